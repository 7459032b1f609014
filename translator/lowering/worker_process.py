"""The child side of `worker.py`: runs named functions one after another, in a process that may die of any of them.

Frames on the pipes are an 8-byte little-endian length and a pickle. A request is `(function, args, kwargs, seconds)`; the
answer is `(kind, payload, peak_bytes, said)` with kind `value`, `refused` (diagnostics), `starved` (of memory, below a limit)
or `raised` (a traceback as text); said: what was logged meanwhile, as (level, message), which must not stand among what the compiler prints.
"""

from __future__ import annotations

import functools
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

from translator.diagnostics import TranslationError
from translator.lowering.memory_limit import is_starved, limit_own_memory
from translator.lowering.stderr_log import redirect_stderr

HEADER_BYTES = 8


def write_frame(stream: BinaryIO, value: Any) -> None:
    """Send one value; raises what pickle raises before anything is written."""
    data = pickle.dumps(value)
    stream.write(len(data).to_bytes(HEADER_BYTES, "little") + data)
    stream.flush()


def read_frame(stream: BinaryIO) -> Any:
    """Receive one value. Raises EOFError when the other side is gone."""
    header = stream.read(HEADER_BYTES)
    size = int.from_bytes(header, "little")
    data = stream.read(size) if len(header) == HEADER_BYTES else b""
    if not header or len(data) < size:
        raise EOFError
    return pickle.loads(data)


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


def main(log_path: str, memory: int = 0) -> None:
    """Serve requests from standard input until it closes; everything printed meanwhile goes into `log_path`.

    memory: bytes that this process may ask for, 0 for no limit.
    """
    if memory:
        limit_own_memory(memory)
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    redirect_stderr(log_path)
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    said = _collected_log()
    while True:
        said.clear()
        try:
            function, args, kwargs, seconds = read_frame(requests)
        except EOFError:
            return
        os.truncate(log_path, 0)
        # SIGPROF ends the process after this much CPU time, wherever it is.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        kind, payload = run_job(function, args, kwargs)
        signal.setitimer(signal.ITIMER_PROF, 0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        try:
            write_frame(answers, (kind, payload, peak, list(said)))
        except MemoryError:
            write_frame(answers, ("starved", "", peak, []))
        except (pickle.PicklingError, TypeError, AttributeError):
            write_frame(answers, ("raised", traceback.format_exc(), peak, list(said)))
        except BrokenPipeError:
            return
