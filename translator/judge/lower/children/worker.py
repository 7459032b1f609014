"""A pool of child processes for everything that runs the compiler on generated code.

Some invalid IR aborts the process, some never ends. A job that does either costs its child, not the run: the caller
gets a Diagnostic with what MLIR or LLVM printed, and the next job gets a fresh child.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any

from gluonize.diagnostics import Diagnostic, InternalError, TranslationError
from gluonize.judge.lower.cache_folder import prune_cache_folder, use_cache_folder
from gluonize.judge.lower.children.apart import fixed_addresses
from gluonize.judge.lower.children.frames import wait_for_frame, write_frame
from gluonize.judge.lower.children.memory_limit import ended_starved, memory_limit, starved
from gluonize.judge.lower.stderr_log import error_lines, read_log

# Of CPU time, so that what else the machine does decides nothing: 15 s of compiling took more than a minute on a busy one.
JOB_SECONDS = 60.0
# A child that waits uses no CPU time: it is given this many times its limit by the clock.
CLOCK_FACTOR = 4
# A child is replaced after this many jobs or above this peak, so that memory does not grow with the number of kernels. Starting
# one takes as long as a thousand small jobs.
MAX_JOBS = 5000
MAX_BYTES = 2 << 30
# One worker per core: threads of numpy's products in each would only wait for each other.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
# The child gets the parent's import path before it imports anything: with `-m` a triton.py or types.py in the working
# folder would be found first.
_START_CHILD = """
import sys
sys.path[:] = sys.argv[3:]
from gluonize.judge.lower.children.worker_process import main
main(sys.argv[1], int(sys.argv[2]))
"""
log = logging.getLogger("gluonize")


@dataclass(frozen=True)
class _Job:
    future: Future
    function: str
    args: tuple
    kwargs: dict
    timeout: float
    what: str


class WorkerPool:
    """Runs functions by name in at most `jobs` child processes, which start when first needed.

    Use it as a context manager: leaving it normally waits for what was submitted; leaving it by an exception, Ctrl-C
    included, kills the children at once and cancels the rest. environment: of the children, that of this
    process when left out. memory: bytes that a child may ask for, 0 for no limit; GLUONIZE_MEMORY_LIMIT when left out.
    """

    def __init__(
        self, jobs: int = 1, *, timeout: float = JOB_SECONDS, max_jobs: int = MAX_JOBS,
        environment: dict[str, str] | None = None, memory: int | None = None,
    ):  # fmt: skip
        assert jobs >= 1, f"a pool needs at least one job, not {jobs}"
        self.jobs = jobs
        self.timeout = timeout
        self.max_jobs = max_jobs
        self.environment = environment
        self.memory = memory_limit() if memory is None else memory
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        self._waiting = 0
        self._closed = False
        self._pruned = False

    def submit(
        self, function: str, /, *args: Any, timeout: float | None = None, what: str = "", **kwargs: Any
    ) -> Future:
        """Call `module:function` with picklable arguments in a child.

        `timeout` in seconds of CPU time; `what` names the job in diagnostics. The future raises TranslationError for what the
        function refused and for `compiler-abort`, `compiler-timeout` and `compiler-memory`, InternalError for any other exception.
        """
        future: Future = Future()
        job = _Job(future, function, args, kwargs, timeout or self.timeout, what or function)
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool is closed")
            self._waiting += 1
            self._queue.put(job)
            if len(self._workers) < min(self.jobs, self._waiting):
                self._workers.append(_Worker(self))
        return future

    def call(self, function: str, /, *args: Any, timeout: float | None = None, what: str = "", **kwargs: Any) -> Any:
        """`submit` and wait for the result."""
        return self.submit(function, *args, timeout=timeout, what=what, **kwargs).result()

    def map(self, function: str, items: Iterable[tuple], timeout: float | None = None) -> Iterator[Any]:
        """Results of `function(*item)` in the order of the items."""
        futures = [self.submit(function, *item, timeout=timeout) for item in items]
        return (future.result() for future in futures)

    def close(self) -> None:
        """Finish what was submitted, then end the children."""
        with self._lock:
            self._closed = True
        for _ in self._workers:
            self._queue.put(None)
        for worker in self._workers:
            worker.thread.join()

    def kill(self) -> None:
        """End the children now; unfinished futures are cancelled."""
        with self._lock:
            self._closed = True
        with contextlib.suppress(queue.Empty):
            while True:
                if (job := self._queue.get_nowait()) is not None:
                    job.future.cancel()
        for worker in self._workers:
            self._queue.put(None)
            worker.kill()
        for worker in self._workers:
            worker.thread.join(timeout=5)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close() if kind is None else self.kill()

    def _finished(self) -> None:
        with self._lock:
            self._waiting -= 1


def _took_too_long(job: _Job, printed: str) -> TranslationError:
    message = f"{job.what} took more than {job.timeout:g} s"
    return TranslationError(Diagnostic("compiler-timeout", message, why=printed, help="raise --timeout"))


def _kill(process: subprocess.Popen) -> None:
    """End a child and what it has forked: all of its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def start_child(log_path: str, log_handle: int, memory: int, environment: dict[str, str]) -> subprocess.Popen:
    """A process that serves requests. It has a session of its own: Ctrl-C reaches the parent only, which then kills its children.

    log_path, log_handle: where it prints. memory: bytes that it may ask for, 0 for no limit.
    """
    with fixed_addresses():
        return subprocess.Popen(
            [sys.executable, "-c", _START_CHILD, log_path, str(memory), *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log_handle,
            bufsize=0,
            start_new_session=True,
            env=environment,
        )


class _Starved(Exception):
    """A child was refused memory; with what it printed."""


class _Worker:
    """One child process and the thread that feeds it."""

    def __init__(self, pool: WorkerPool):
        self.pool = pool
        self.process: subprocess.Popen | None = None
        self.log = ""
        self.done = 0
        self.killed = False
        self.thread = threading.Thread(target=self._serve, name="gluonize-worker", daemon=True)
        self.thread.start()

    def kill(self) -> None:
        self.killed = True
        if (process := self.process) is not None:
            _kill(process)

    def _serve(self) -> None:
        while (job := self.pool._queue.get()) is not None:
            if job.future.set_running_or_notify_cancel():
                try:
                    result = self._run(job)
                except (TranslationError, InternalError, CancelledError) as error:
                    job.future.set_exception(error)
                except OSError as error:
                    job.future.set_exception(InternalError(f"cannot run a child process: {error}"))
                else:
                    job.future.set_result(result)
            self.pool._finished()
        self._stop()

    def _run(self, job: _Job) -> Any:
        """The result of a job; one that other jobs left too little memory is run again in a child of its own."""
        if self.process is not None:
            try:
                return self._run_once(job)
            except _Starved:
                pass
        try:
            return self._run_once(job)
        except _Starved as error:
            raise TranslationError(starved(job.what, self.pool.memory, str(error))) from None

    def _run_once(self, job: _Job) -> Any:
        if self.process is None:
            self._start()
        request = (job.function, job.args, job.kwargs, job.timeout)
        try:
            write_frame(self.process.stdin, request)
            answer = wait_for_frame(self.process.stdout, time.monotonic() + CLOCK_FACTOR * job.timeout)
        except (BrokenPipeError, EOFError):
            raise self._death(job) from None
        if answer is None:
            printed = self._printed()
            self._stop()
            raise _took_too_long(job, printed)
        kind, payload, peak, said = answer
        for level, message in said:
            log.log(level, "%s", message)
        self.done += 1
        if kind == "starved":
            self._stop()  # what was being imported or made is half done
            raise _Starved(payload)
        if self.done >= self.pool.max_jobs or peak > MAX_BYTES:
            self._stop()
        if kind == "refused":
            raise TranslationError(*payload)
        if kind == "raised":
            raise InternalError(f"{job.what}:\n{payload}")
        return payload

    def _start(self) -> None:
        if self.killed:
            raise CancelledError
        if not self.pool._pruned:
            self.pool._pruned = True
            prune_cache_folder(use_cache_folder())
        handle, self.log = tempfile.mkstemp(prefix="gluonize-child-")
        self.done = 0
        environment = os.environ if self.pool.environment is None else self.pool.environment
        self.process = start_child(self.log, handle, self.pool.memory, _ONE_THREAD | environment)
        os.close(handle)
        if self.killed:  # killed while the child was being started
            _kill(self.process)

    def _stop(self) -> None:
        """End the child; an idle one leaves by itself when its input closes, a busy one is killed."""
        if self.process is None:
            return
        _kill(self.process)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                stream.close()
        self.process = None
        with contextlib.suppress(OSError):
            os.unlink(self.log)

    def _death(self, job: _Job) -> Exception:
        """What to raise for a job whose child died."""
        status = self.process.wait()
        printed = self._printed()
        hungry = ended_starved(read_log(self.log))
        self._stop()
        if self.killed:
            return CancelledError()
        if hungry:
            return _Starved(printed)
        if status >= 0:
            return InternalError(f"{job.what}: the child process left with status {status}\n{printed}")
        name = signal.Signals(-status).name
        if name == "SIGPROF":  # the child's own limit
            return _took_too_long(job, printed)
        why = printed or ("perhaps out of memory" if name == "SIGKILL" else "it printed nothing")
        return TranslationError(Diagnostic("compiler-abort", f"{job.what} killed the compiler with {name}", why=why))

    def _printed(self) -> str:
        return "\n       ".join(error_lines(read_log(self.log)))


def job_count(jobs: int) -> int:
    """Child processes for `-j`: 0 means one per core that this process may use."""
    if jobs:
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
