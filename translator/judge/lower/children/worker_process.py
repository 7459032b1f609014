"""The child side of `worker.py`: runs named functions one after another, in a process that may die of any of them.

Frames on the pipes are those of `frames.py`. A request is `(function, args, kwargs, seconds)`; the
answer is `(kind, payload, peak_bytes, said)` with kind `value`, `refused` (diagnostics), `starved` (of memory, below a limit)
or `raised` (a traceback as text); said: what was logged meanwhile, as (level, message), which must not stand among what the compiler prints.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import logging
import os
import pickle
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.children.apart import ALONE, Apart, asked
from gluonize.judge.lower.children.frames import read_frame, write_frame
from gluonize.judge.lower.children.memory_limit import is_starved, limit_own_memory
from gluonize.judge.lower.stderr_log import redirect_stderr

# A job makes syntax trees of many small objects that live until it ends: collections walk through them and find nothing.
ALLOCATIONS_BETWEEN_COLLECTIONS = 1_000_000
_COMPILES = "gluonize."  # functions of this package have the compiler loaded before anything else is done
_served: list[int] = []


def resolve(name: str) -> Callable[..., Any]:
    """The function called `module:function`."""
    module, _, path = name.partition(":")
    return functools.reduce(getattr, path.split("."), importlib.import_module(module))


def run_job(function: str, args: tuple, kwargs: dict) -> tuple[str, Any]:
    """One answer without its memory figure; never raises an Exception."""
    try:
        return "value", resolve(function)(*args, **kwargs)
    except Exception as error:
        if is_starved(error):
            return "starved", ""
        if isinstance(error, TranslationError):
            return "refused", error.diagnostics
        return "raised", traceback.format_exc()  # the parent re-raises it as a bug in gluonize, with this traceback


def _collected_log() -> list[tuple[int, str]]:
    """What the logger `gluonize` says from now on goes into the list that is returned."""
    said: list[tuple[int, str]] = []
    collector = logging.Handler()
    collector.emit = lambda record: said.append((record.levelno, record.getMessage()))
    log = logging.getLogger("gluonize")
    log.handlers[:], log.propagate = [collector], False
    log.setLevel(logging.INFO)
    return said


def worker_id() -> int:
    """The process that serves requests, 0 outside of one; a job may run in another that was forked for it."""
    return _served[0] if _served else 0


def peak_bytes() -> int:
    """The most memory that this process had at a time. Linux's `ru_maxrss` begins with what the parent had when it started it."""
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class _Server:
    """Does one request after another. said: what was logged since the last one."""

    def __init__(self, log_path: str, answers: BinaryIO):
        self.log_path, self.answers = log_path, answers
        self.said = _collected_log()
        self.apart: Apart | None = None

    def serve(self, request: tuple) -> None:
        """Do a request here or apart from this process, whichever it asks for."""
        os.truncate(self.log_path, 0)
        function, args = request[:2]
        name = asked(function, args)
        if self.apart is None and name.startswith(_COMPILES):
            self.apart = Apart(self.answer)
        if self.apart is not None and name in ALONE:
            self.apart.run(request)
        else:
            self.answer(request)

    def answer(self, request: tuple) -> None:
        """Do a request in this process and write its answer."""
        function, args, kwargs, seconds = request
        self.said.clear()
        # SIGPROF ends the process after this much CPU time, wherever it is.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        kind, payload = run_job(function, args, kwargs)
        signal.setitimer(signal.ITIMER_PROF, 0)
        peak = peak_bytes()
        try:
            write_frame(self.answers, (kind, payload, peak, list(self.said)))
        except MemoryError:
            write_frame(self.answers, ("starved", "", peak, []))
        except (pickle.PicklingError, TypeError, AttributeError):
            write_frame(self.answers, ("raised", traceback.format_exc(), peak, list(self.said)))


def main(log_path: str, memory: int = 0) -> None:
    """Serve requests from standard input until it closes; everything printed meanwhile goes into `log_path`.

    memory: bytes that this process may ask for, 0 for no limit.
    """
    if memory:
        limit_own_memory(memory)
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)
    requests = os.fdopen(os.dup(0), "rb")
    server = _Server(log_path, os.fdopen(os.dup(1), "wb"))
    redirect_stderr(log_path)
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    _served[:] = [os.getpid()]
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            server.serve(read_frame(requests))
