"""What native code writes to file descriptor 2, kept in a file so that it survives an abort of the process.

MLIR and LLVM print their errors there and nowhere else.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator

# Lines that carry the cause; the rest is IR dumps, reproducers and stack traces.
_ERROR = re.compile(r"error:|LLVM ERROR|Assertion|assertion|fatal error|Cannot select|UNREACHABLE")
_NO_NEWS = re.compile(r"Failures have been detected while processing an MLIR pass pipeline")
# What Python's `warnings` print, with the line of code that is shown below.
_WARNING = re.compile(r"^\S.*:\d+: \w*Warning: .*\n?(?:[ \t]+\S.*\n?)?", re.MULTILINE)
_PATH = re.compile(r"^.*?([\w.-]+\.py:\d+:\d+: )")


_redirected: list[str] = []  # the file that file descriptor 2 writes to in this process, when it does


def redirect_stderr(path: str) -> None:
    """Send file descriptor 2 of this process into `path` for good; another process may read it at any time."""
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    os.dup2(target, 2)
    os.close(target)
    _redirected[:] = [path]


@contextlib.contextmanager
def captured_stderr() -> Iterator[Callable[[], str]]:
    """Yields a function that returns what file descriptor 2 received since entry.

    Where `redirect_stderr` is in force the text stays in its file too, so that an abort does not lose it.
    """
    if _redirected:
        start = os.path.getsize(_redirected[0])
        yield lambda: read_log(_redirected[0], start)
        return
    sys.stderr.flush()
    handle, path = tempfile.mkstemp(prefix="gluonize-stderr-")
    saved = os.dup(2)
    os.dup2(handle, 2)
    os.close(handle)
    try:
        yield lambda: read_log(path)
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
        os.unlink(path)


def read_log(path: str, start: int = 0, limit: int = 1 << 20) -> str:
    """The bytes of a log file from `start` on as text, at most the last `limit`; empty when there is no file."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(start, size - limit))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def error_lines(text: str, most: int = 4) -> list[str]:
    """The lines of a log that say what went wrong, shortened, without repetition; the last lines when none does."""
    lines = [line.strip() for line in _WARNING.sub("", text).splitlines() if line.strip()]
    found = [line for line in lines if _ERROR.search(line) and not _NO_NEWS.search(line)] or lines[-1:]
    short = (_PATH.sub(r"\1", line)[:400] for line in found)
    return list(dict.fromkeys(short))[:most]
