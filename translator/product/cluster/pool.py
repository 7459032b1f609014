"""Jobs on the workers of a cluster, with the interface of `WorkerPool`; what is lost is sent again."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import queue
import threading
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any

from gluonize.diagnostics import ClusterLost, Diagnostic, InternalError, TranslationError
from gluonize.judge.lower.children.memory_limit import memory_limit
from gluonize.judge.lower.children.worker import WorkerPool, job_count
from gluonize.product.cluster.connection import Connection, Lost
from gluonize.product.cluster.sent_job import Answer, Job, Needs, World
from gluonize.product.cluster.version import version
from gluonize.product.cluster.world import Knowledge, content, environment_of
from gluonize.product.project.cache.kept_jobs import runs_user_code
from gluonize.product.project.cache.results import switches
from gluonize.store.chosen_store import SHARED

# Jobs that use something that was set up where the command runs.
NEED_THIS_MACHINE = frozenset({"gluonize.judge.emulator:validate_emulated"})
MAX_LOST = 50  # times that one job is sent again: a worker that dies now and then is no reason to give up, a job that kills all is
MAX_KILLED = 3  # a job whose child is killed as often needs more memory than there is
MAX_ASKED = 60  # rounds in which one job asks for more
IN_FLIGHT = 2  # jobs under way for each thread of a worker: the next is there when one ends
LEAST_IN_FLIGHT = 8
ORCHESTRATED = 64  # files that are worked on at a time when no number is given
log = logging.getLogger("gluonize")


@dataclass(frozen=True)
class _Task:
    future: Future
    function: str
    args: tuple
    kwargs: dict
    limit: float
    what: str


class ClusterPool:
    """Runs functions by name in child processes of workers. jobs: how many callers may wait at a time."""

    def __init__(self, address: str, jobs: int = 0, *, timeout: float):
        self.jobs = jobs or ORCHESTRATED
        self.timeout = timeout
        self._wide = jobs
        self._memory = memory_limit()
        self._connection = Connection(address)
        self._knowledge = Knowledge()
        self._sent: set[str] = set()
        self._queue: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._waiting = 0
        self._closed = self._killed = False
        self._here: WorkerPool | None = None

    def submit(
        self, function: str, /, *args: Any, timeout: float | None = None, what: str = "", **kwargs: Any
    ) -> Future:
        """As `WorkerPool.submit`. Jobs that import host code, or use what is installed here, run here."""
        if function in NEED_THIS_MACHINE or runs_user_code(function, args, kwargs):
            return self._local().submit(function, *args, timeout=timeout, what=what, **kwargs)
        future: Future = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool is closed")
            self._waiting += 1
            self._queue.put(_Task(future, function, args, kwargs, timeout or self.timeout, what or function))
            if len(self._threads) < min(self._width(), self._waiting):
                thread = threading.Thread(target=self._serve, name="gluonize-cluster", daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def close(self) -> None:
        """Finish what was submitted, then disconnect."""
        with self._lock:
            self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._connection.close()
        if self._here is not None:
            self._here.close()

    def kill(self) -> None:
        """Give up at once what was not finished."""
        with self._lock:
            self._closed = self._killed = True
        with contextlib.suppress(queue.Empty):
            while True:
                if (task := self._queue.get_nowait()) is not None:
                    task.future.cancel()
        for _ in self._threads:
            self._queue.put(None)
        self._connection.close()
        if self._here is not None:
            self._here.kill()
        for thread in self._threads:
            thread.join(timeout=5)

    def _width(self) -> int:
        return self._wide or LEAST_IN_FLIGHT

    def _local(self) -> WorkerPool:
        with self._lock:
            if self._here is None:
                self._here = WorkerPool(job_count(0), timeout=self.timeout)
            return self._here

    def _serve(self) -> None:
        if not self._wide:
            self._wide = max(LEAST_IN_FLIGHT, IN_FLIGHT * self._threads_there())
        while (task := self._queue.get()) is not None:
            if task.future.set_running_or_notify_cancel():
                try:
                    result = self._run(task)
                except BaseException as error:  # whatever ends the job ends it for the caller
                    task.future.set_exception(error)
                else:
                    task.future.set_result(result)
            with self._lock:
                self._waiting -= 1

    def _threads_there(self) -> int:
        try:
            return self._connection.threads()
        except (Lost, ClusterLost):  # the job that comes next will say so
            return 0

    def _run(self, task: _Task) -> Any:
        world = self._knowledge.world(task.args, task.kwargs)
        lost, killed, wanted = 0, 0, frozenset()
        for _ in range(MAX_ASKED + MAX_LOST):
            try:
                answer = self._asked(task, world, wanted)
                killed += answer.kind == "killed"
                if answer.kind == "lost" or (answer.kind == "killed" and killed < MAX_KILLED):
                    raise Lost(
                        f"{answer.payload if answer.kind == 'lost' else 'its child was killed'} on {answer.worker}"
                    )
            except Lost as error:
                lost += 1
                if self._killed:
                    raise CancelledError from None
                if lost > MAX_LOST:
                    raise ClusterLost(_in_vain(task, str(error))) from None
                log.warning("%s: %s: sent again", task.what, error)
                continue
            for level, message in answer.said:
                log.log(level, "%s%s", message, f" (on {answer.worker})" if answer.worker else "")
            if answer.kind != "needs":
                return _result(task, answer)
            needs: Needs = answer.payload
            wanted |= needs.contents
            world = self._knowledge.learn(world, needs)
        raise InternalError(f"{task.what}: a worker asks for more and more")

    def _asked(self, task: _Task, world: World, wanted: frozenset[str]) -> Answer:
        """Send a job with the files that no worker has had, or that were asked for, and wait. Raises: Lost."""
        contents = {}
        for path, digest in world.files:
            if digest in wanted or digest not in self._sent:
                data = content(path, digest)
                if data is None:  # saved meanwhile: of another world
                    return Answer("needs", Needs())
                contents[digest] = data
        job = Job(
            task.function, task.args, task.kwargs, task.limit, task.what, world,
            switches=tuple(switches()), environment=environment_of(world), shared=_shared(), version=version(),
            memory=self._memory, contents=contents,
        )  # fmt: skip
        answer: Answer = pickle.loads(self._connection.run(pickle.dumps(job), task.what))
        self._sent |= set(contents)
        return answer


def _shared() -> tuple[tuple[str, str], ...]:
    return tuple((name, os.environ[name]) for name in SHARED if os.environ.get(name))


def _result(task: _Task, answer: Answer) -> Any:
    if answer.kind in ("refused", "killed"):
        raise TranslationError(*answer.payload)
    if answer.kind == "bug":
        raise InternalError(f"{task.what}:\n{answer.payload}")
    if answer.kind == "version":
        why = f"here {', '.join(version())}; on {answer.worker} {', '.join(answer.payload)}"
        help = "install the same gluonize, Triton and Python there, and restart the worker"
        raise ClusterLost(Diagnostic("cluster-version", "a worker would give other answers", why=why, help=help))
    return answer.payload


def _in_vain(task: _Task, why: str) -> Diagnostic:
    message = f"{task.what} was sent {MAX_LOST} times and never answered"
    return Diagnostic("cluster-lost", message, why=why, help="look into the logs of the workers")
