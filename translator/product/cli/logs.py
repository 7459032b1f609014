"""What `-v` prints of the work itself, on standard error: each step with the seconds since the start."""

from __future__ import annotations

import logging
import sys


def log_to_stderr() -> None:
    """Let everything under the logger `gluonize` through; once, however often a process runs commands."""
    log = logging.getLogger("gluonize")
    log.setLevel(logging.INFO)
    log.propagate = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_SinceStart())
    log.handlers[:] = [handler]


class _SinceStart(logging.Formatter):
    """`[  0.42 s] message`."""

    def format(self, record: logging.LogRecord) -> str:
        return f"[{record.relativeCreated / 1000:6.2f} s] {record.getMessage()}"
