"""The worker's side: each job in a child process of the worker, one set of children for each set of compiler switches."""

from __future__ import annotations

import functools
import os
import pickle
import tempfile
import threading
from collections import OrderedDict
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any

from gluonize.diagnostics import InternalError, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.product.cluster.sent_job import Answer, Job
from gluonize.product.project.cache.results import switches

SANDBOX = "gluonize.product.cluster.sandbox:run_in_sandbox"
MAX_POOLS = 4  # sets of switches, and limits, that have children at a time
_pools: OrderedDict[tuple, WorkerPool] = OrderedDict()
_lock = threading.Lock()
# What Dask does up to a hundred times a second to show where a worker's own process spends its time; ours is spent in children.
_OF_OWN_PROCESS = ("profile", "tick")


def run_job(payload: bytes) -> bytes:
    """Run a pickled `Job`; -> a pickled `Answer`. This is the one function that Dask calls."""
    _leave_time_to_children()
    job: Job = pickle.loads(payload)
    return pickle.dumps(answer_of(job))


@functools.cache
def _leave_time_to_children() -> None:
    """Stop what only watches the worker's own process, once: it takes a few percent of a core from what its children do."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # called without a worker, in a test
        return
    for name in _OF_OWN_PROCESS:
        if (callback := worker.periodic_callbacks.get(name)) is not None:
            worker.loop.add_callback(callback.stop)


def answer_of(job: Job) -> Answer:
    """The answer of a child, whatever becomes of it."""
    from gluonize.product.cluster.version import version

    if job.version != version():
        return Answer("version", version(), worker=_address())
    try:
        found: Answer = _submit(job).result()
    except TranslationError as error:  # the child died or took too long
        if any("SIGKILL" in found.message or "SIGTERM" in found.message for found in error.diagnostics):
            return Answer("killed", error.diagnostics, worker=_address())
        return Answer("refused", error.diagnostics, worker=_address())
    except (InternalError, CancelledError) as error:
        return Answer("lost", f"the child was lost: {error}", worker=_address())
    return replace(found, worker=_address())


def _submit(job: Job) -> Any:
    base, jobs, kind = _own_folder(), _threads(), (job.switches, job.memory)
    while True:
        with _lock:
            pool = _pools.get(kind)
            if pool is None:
                pool = _pools[kind] = WorkerPool(jobs, environment=_environment(job), memory=job.memory)
            _pools.move_to_end(kind)
            old = _pools.popitem(last=False)[1] if len(_pools) > MAX_POOLS else None
        if old is not None:
            old.close()
        try:
            return pool.submit(SANDBOX, job, base, timeout=job.limit, what=job.what)
        except RuntimeError:  # closed by another thread in between
            continue


def _environment(job: Job) -> dict[str, str]:
    """That of the worker with the switches of the machine that asks in the place of its own."""
    own = switches()
    kept = {name: value for name, value in os.environ.items() if (name, value) not in own}
    return kept | dict(job.switches) | dict(job.shared)


def _threads() -> int:
    from distributed import get_worker

    try:
        return get_worker().state.nthreads
    except ValueError:  # called without a worker, in a test
        return 1


def _own_folder() -> str:
    """A folder that the worker has for itself; Dask removes it with the worker."""
    from distributed import get_worker

    try:
        base = get_worker().local_directory
    except ValueError:
        base = os.path.join(tempfile.gettempdir(), f"gluonize-{os.getuid()}-worker")
    return os.path.join(base, "gluonize")


def _address() -> str:
    from distributed import get_worker

    try:
        return get_worker().address
    except ValueError:
        return ""
