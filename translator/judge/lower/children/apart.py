"""Jobs that run in a process without a past: forked for each, from one that has loaded the compiler and compiled nothing.

What LLVM makes of a module can depend on where its objects lie in memory, so on what a process compiled before, and on where the
system put it. A job whose answer has to be the same after any others, in any worker, runs apart from them, at addresses that are
not drawn anew for each process.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.children.frames import read_frame, write_frame

ALONE = ("gluonize.judge.lower.jobs:lower_file", "gluonize.judge.cycles.job:lower_and_walk")
# What such jobs import, so that a fork has it.
_LOADED = (
    "gluonize.judge.lower.jobs",
    "gluonize.judge.lower.compile",
    "gluonize.judge.lower.compiler_digest",
    "gluonize.judge.lower.children.triton_cache",
    "gluonize.trace.front.offline",
    "gluonize.read.kernels.load",
    "gluonize.read.kernels.gluon_kernels",
    "gluonize.lift.kernel",
    "gluonize.triton_api.front_end:ASTSource",
    "gluonize.triton_api.front_end:GluonASTSource",
)
_ASK, _NO_RANDOM_ADDRESSES = 0xFFFFFFFF, 0x0040000  # of personality(2)


@contextlib.contextmanager
def fixed_addresses() -> Iterator[None]:
    """Processes that this thread starts meanwhile lie at the same addresses each time, where the system is a Linux that allows it."""
    personality = getattr(ctypes.CDLL(None), "personality", None)
    before = -1 if personality is None else personality(_ASK)
    if before == -1 or personality(before | _NO_RANDOM_ADDRESSES) == -1:
        yield
        return
    try:
        yield
    finally:
        personality(before)


def asked(function: str, args: tuple) -> str:
    """The function that a job is about, behind those that record what it reads or give it the files of another machine."""
    inner = args[0] if args else None
    if isinstance(inner, str) and inner in ALONE:
        return inner
    if isinstance(name := getattr(inner, "function", None), str):
        return asked(name, inner.args)
    return function


def load() -> None:
    """Import what such jobs do."""
    for name in _LOADED:
        module, _, row = name.partition(":")
        with contextlib.suppress(TranslationError):  # a row that this Triton has not: the job that needs it says so
            getattr(importlib.import_module(module), row or "__name__")


class Apart:
    """A process forked from this one now, which forks again for each job. `serve` does a job and sends its answer."""

    def __init__(self, serve: Callable[[Any], None]):
        load()
        jobs, self._jobs = os.pipe()
        self._ends, ends = os.pipe()
        if os.fork():
            os.close(jobs)
            os.close(ends)
            return
        os.close(self._jobs)
        os.close(self._ends)
        _fork_for_each(serve, os.fdopen(jobs, "rb"), ends)

    def run(self, job: Any) -> None:
        """Have a job done. The process that did it having died, this one dies as it did."""
        with os.fdopen(os.dup(self._jobs), "wb") as stream:
            write_frame(stream, job)
        status = os.read(self._ends, 4)
        _end_like(int.from_bytes(status, "little") if status else signal.SIGKILL)


def _fork_for_each(serve: Callable[[Any], None], jobs: Any, ends: int) -> NoReturn:
    from gluonize.judge.lower.compiler_digest import prepare

    while True:
        try:
            job = read_frame(jobs)
        except EOFError:
            os._exit(0)
        prepare()
        child = os.fork()
        if not child:
            try:
                serve(job)
            except BaseException:  # nothing of the process that it was forked from may run in it
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        os.write(ends, status.to_bytes(4, "little"))


def _end_like(status: int) -> None:
    """Nothing after a job that was done; else this process ends by the same signal or status."""
    if os.WIFSIGNALED(status):
        name = os.WTERMSIG(status)
        if name != signal.SIGKILL:
            signal.signal(name, signal.SIG_DFL)
        os.kill(os.getpid(), name)
    if os.WEXITSTATUS(status):
        os._exit(os.WEXITSTATUS(status))
