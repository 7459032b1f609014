"""What is sent to a worker and what comes back: plain frozen data.

Paths in both are those of the machine that asks. The worker finds the files in a folder of its own, below which they have the
same paths; what a job reads beyond what was sent, it asks for, and is sent again with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Lookup = tuple[str, str, tuple[str, ...]]  # arguments of `module_file._find_in`
Found = tuple[str, tuple[str, ...]] | None  # path and folders of a module


@dataclass(frozen=True)
class World:
    """What a job may know of the file system of the machine that asks.

    files: (path, digest of its bytes). absent: paths at which there is no file. lookups: where modules were looked for, and
    what is there. packages: folders, with the Python files below. paths: strings among the arguments that are paths.
    """

    cwd: str
    python_path: tuple[str, ...]
    triton: str
    files: tuple[tuple[str, str], ...] = ()
    absent: frozenset[str] = frozenset()
    lookups: tuple[tuple[Lookup, Found], ...] = ()
    packages: tuple[tuple[str, tuple[str, ...]], ...] = ()
    paths: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Job:
    """One call. switches: environment variables that compilers read, which need a process of their own. environment: those
    that the sources may ask for, None for one that is not set. contents: digest -> compressed bytes of files that the worker may not have. version: of
    gluonize and Triton. limit, what: as for `WorkerPool.submit`. memory: bytes that a child may ask for, 0 for no limit.
    """

    function: str
    args: tuple
    kwargs: dict[str, Any]
    limit: float
    what: str
    world: World
    switches: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str | None], ...]
    shared: tuple[tuple[str, str], ...]
    version: tuple[str, ...]
    contents: dict[str, bytes] = field(default_factory=dict, hash=False)
    memory: int = 0


@dataclass(frozen=True)
class Needs:
    """What a job asked for that it had not been sent. contents: digests of files that the worker does not have (any more)."""

    files: frozenset[str] = frozenset()
    lookups: frozenset[Lookup] = frozenset()
    packages: frozenset[str] = frozenset()
    contents: frozenset[str] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        pairs = zip(self._all(), other._all())
        return Needs(*(mine | theirs for mine, theirs in pairs))

    def _all(self) -> tuple[frozenset, ...]:
        return self.files, self.lookups, self.packages, self.contents


@dataclass(frozen=True)
class Answer:
    """kind: `value`, `refused` (diagnostics), `bug` (text), `needs`, `version` (of the worker), `lost` (why),
    or `killed` (diagnostics: the child was killed, by its own hunger for memory or from outside). said: what was logged
    meanwhile, as (level, message). worker: where it ran."""

    kind: str
    payload: Any
    said: tuple[tuple[int, str], ...] = ()
    worker: str = ""
