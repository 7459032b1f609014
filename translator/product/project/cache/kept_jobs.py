"""A pool whose answers are kept by content: what was compiled or validated once, here or elsewhere, is not done again."""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Protocol

from gluonize.diagnostics import TranslationError
from gluonize.product.project.cache.recorded import Reads
from gluonize.product.project.cache.results import ContentCache, content_key, folder_digest
from gluonize.request import TranslateRequest

RECORDED = "gluonize.product.project.cache.recorded:run_recorded"
# Functions whose answer depends on their arguments and on what they read alone -> where they are told to import host code, whose
# own reads are not seen; None: the request says it.
PURE = {
    "gluonize.judge.lower.jobs:lower_file": 4,
    "gluonize.judge.cycles.job:lower_and_walk": 4,
    "gluonize.judge.verdict:validate_launch": 6,
    "gluonize.translation:translate_kernel": None,
}
OWN_PREFIX = "gluonize-"  # of temporary folders that gluonize makes: nobody else writes there
log = logging.getLogger("gluonize")


class Pool(Protocol):
    """What runs functions by name in child processes, here or on other machines; see `WorkerPool`."""

    jobs: int
    timeout: float

    def submit(
        self, function: str, /, *args: Any, timeout: float | None = None, what: str = "", **kwargs: Any
    ) -> Future: ...

    def close(self) -> None: ...

    def kill(self) -> None: ...


class KeptJobs:
    """`pool` behind a cache. Answers and refusals are kept; aborts, time limits and bugs are not, nor is what user code took part in."""

    def __init__(self, pool: Pool, cache: ContentCache):
        self.pool = pool
        self.cache = cache
        self.jobs, self.timeout = pool.jobs, pool.timeout

    def submit(
        self, function: str, /, *args: Any, timeout: float | None = None, what: str = "", **kwargs: Any
    ) -> Future:
        """As `WorkerPool.submit`; the future of what is known already is done."""
        if function not in PURE or self.cache.shelf is None or runs_user_code(function, args, kwargs):
            return self.pool.submit(function, *args, timeout=timeout, what=what, **kwargs)
        drafts = _Drafts.among(args)
        rules = tuple(folder_digest(x.rules) for x in args if isinstance(x, TranslateRequest))
        key = content_key("job", function, drafts.named(args), sorted(kwargs.items()), rules)
        future: Future = Future()
        if (found := self.cache.get(key)) is not None:
            log.info("%s: found in the cache", what or function)
            _settle(future, found)
            return future
        inner = self.pool.submit(RECORDED, function, args, kwargs, timeout=timeout, what=what or function)
        future.set_running_or_notify_cancel()
        inner.add_done_callback(lambda done: self._keep(done, future, key, drafts))
        return future

    def call(self, function: str, /, *args: Any, timeout: float | None = None, what: str = "", **kwargs: Any) -> Any:
        """`submit` and wait for the result."""
        return self.submit(function, *args, timeout=timeout, what=what, **kwargs).result()

    def map(self, function: str, items: Iterable[tuple], timeout: float | None = None) -> Iterator[Any]:
        """Results of `function(*item)` in the order of the items."""
        futures = [self.submit(function, *item, timeout=timeout) for item in items]
        return (future.result() for future in futures)

    def close(self) -> None:
        self.pool.close()

    def kill(self) -> None:
        self.pool.kill()

    def __enter__(self) -> KeptJobs:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close() if kind is None else self.kill()

    def _keep(self, done: Future, future: Future, key: str, drafts: _Drafts) -> None:
        try:
            answer, reads = done.result()
        except BaseException as error:  # whatever ended the job ends it for the caller, a cancellation too
            future.set_exception(error)
            return
        try:
            own = drafts.without(reads)
            if not _of_this_machine(answer) and not drafts.mentioned_in((answer, own)):
                self.cache.put(key, answer, own)
        finally:  # the caller waits for the answer, not for the cache
            _settle(future, answer)


def _settle(future: Future, answer: tuple[str, Any]) -> None:
    """Give the caller a recorded answer: a value, or the diagnostics of a refusal."""
    kind, payload = answer
    if kind == "refused":
        future.set_exception(TranslationError(*payload))
    else:
        future.set_result(payload)


def _of_this_machine(answer: tuple[str, Any]) -> bool:
    """Whether an answer says what is wrong with this machine: with its cache of compiled kernels, or a file that is not there."""
    kind, payload = answer
    return kind == "refused" and any(found.code in ("compiler-cache", "source-unreadable") for found in payload)


def runs_user_code(function: str, args: tuple, kwargs: dict) -> bool:
    """Whether a job imports host code or lets it make the inputs."""
    if function == RECORDED:
        return runs_user_code(*args)
    place = PURE.get(function)
    imports = place is not None and len(args) > place and bool(args[place])
    return imports or bool(kwargs.get("inputs")) or any(getattr(x, "import_hosts", False) for x in args)


class _Drafts:
    """Files in our own temporary folders: their content counts, not where they are."""

    def __init__(self, names: dict[str, tuple[str, str]]):
        self.names = names

    @classmethod
    def among(cls, args: tuple) -> _Drafts:
        ours = os.path.join(tempfile.gettempdir(), OWN_PREFIX)
        paths = [x for x in args if isinstance(x, str) and x.startswith(ours) and os.path.isfile(x)]
        names = {}
        for path in paths:
            with open(path, "rb") as file:
                names[path] = (os.path.basename(path), hashlib.sha256(file.read()).hexdigest())
        return cls(names)

    def named(self, args: tuple) -> tuple:
        return tuple(self.names.get(x, x) if isinstance(x, str) else x for x in args)

    def mentioned_in(self, answer: Any) -> bool:
        payload = pickle.dumps(answer, protocol=4)
        return any(os.path.dirname(path).encode() in payload for path in self.names)

    def without(self, reads: Reads) -> Reads:
        """What was read beside the drafts; in their folders there is nothing else that can be found."""
        gone = {os.path.abspath(path) for path in self.names}
        own = {os.path.dirname(path) for path in gone}
        lookups = tuple(
            ((name, part, tuple(folder for folder in folders if folder not in own)), found)
            for (name, part, folders), found in reads.lookups
            if found not in gone
        )
        files = tuple(item for item in reads.files if item[0] not in gone)
        mentions = tuple(item for item in reads.mentions if item[0] not in gone)
        return replace(reads, files=files, lookups=lookups, mentions=mentions)
