"""Results of earlier runs, found by content: the same inputs, options and versions give the same bytes without work.

An entry is found by a key over everything that is known before the work (request, options, versions, gluonize's own
code) and holds good while the files that the work read still have the same digests. Entries are whole or absent and carry
a checksum, so parallel runs, also of other machines, see whole entries or none; a damaged entry is a miss.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gluonize import rules
from gluonize.judge.lower.children.memory_limit import VARIABLE as MEMORY_LIMIT
from gluonize.product.project.cache.mapped import mapped
from gluonize.product.project.cache.places import PACKAGE, Places
from gluonize.product.project.cache.plain_pickle import load_plain
from gluonize.product.project.cache.recorded import Reads, location
from gluonize.product.project.digests import file_digest
from gluonize.read.files.environment import ALL
from gluonize.store.chosen_store import RESULTS, SHARED, shared_shelf, size_limit
from gluonize.store.folder import FolderStore
from gluonize.store.shelf import Shelf

_SWITCHES = ("TRITON_", "AMDGCN_", "LLVM_", "MLIR_", "GLUONIZE_")  # environment variables that change what compilers do
_NOT_SWITCHES = frozenset(
    {
        "TRITON_CACHE_DIR", "TRITON_CACHE_MANAGER", "TRITON_HOME",
        "GLUONIZE_CACHE_DIR", "GLUONIZE_CLUSTER_PATIENCE", "GLUONIZE_EMULATOR", MEMORY_LIMIT, *SHARED,
    }  # fmt: skip
)


class ContentCache:
    """Values by key on a shelf. shelf None: a cache that never has anything and keeps nothing (`--no-cache`).

    folder: where the entries are on the shelf.
    """

    def __init__(self, shelf: Shelf | None, folder: str = ""):
        self.shelf = shelf
        self.folder = folder
        self.hits = self.misses = 0

    @classmethod
    def of_user(cls, enabled: bool = True) -> ContentCache:
        """The shared cache where one was given, else the one in the user's cache folder."""
        if not enabled:
            return cls(None)
        return cls(shared, RESULTS) if (shared := shared_shelf()) else cls.in_folder(user_folder())

    @classmethod
    def in_folder(cls, folder: Path) -> ContentCache:
        """A cache that has a folder for itself."""
        return cls(_shelf(folder.absolute(), size_limit()))

    def get(self, key: str) -> Any:
        """The value stored for `key` whose reads still hold, else None."""
        found = self.find(key)
        return None if found is None else found[0]

    def find(self, key: str) -> tuple[Any, Reads] | None:
        """The value stored for `key`, and what it was read from, which still holds; else None."""
        if self.shelf is None:
            return None
        payload = self.shelf.get(self.folder + key)
        entry = None if payload is None else load_plain(payload)
        places = Places.here()
        if isinstance(entry, dict) and entry["folders"] in ((), places.folders):
            reads = _moved(entry["reads"], places.local)
            if still_holds(reads, entry["environment"]):
                self.hits += 1
                return mapped(entry["value"], places.local), reads
        self.misses += 1
        return None

    def put(self, key: str, value: Any, reads: Reads = Reads()) -> None:
        """Store a value; a cache that cannot be written is no error, the work was done anyway."""
        if self.shelf is None:
            return
        places = Places.here()
        value = mapped(value, places.portable)
        bound = places.mentioned_in(pickle.dumps(value, protocol=4))
        entry = {
            "value": value,
            "reads": _moved(reads, places.portable),
            "environment": environment_digest(reads.environment),
            "folders": places.folders if bound else (),
        }
        self.shelf.put(self.folder + key, pickle.dumps(entry, protocol=4))

    def prune(self, limit: int | None = None) -> int:
        """Delete the entries that were not used for longest beyond the limit in bytes; returns how many went."""
        return 0 if self.shelf is None else self.shelf.prune(limit)


@functools.lru_cache(maxsize=8)
def _shelf(folder: Path, limit: int) -> Shelf:
    """One for each folder, so that all caches of a process count together what they write."""
    return Shelf(FolderStore(folder, mode=0o700), limit)


def user_folder() -> Path:
    """Where entries are kept (`GLUONIZE_CACHE_DIR`, else under `XDG_CACHE_HOME` or `~/.cache`)."""
    if given := os.environ.get("GLUONIZE_CACHE_DIR"):
        return Path(given)
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home folder
        base = Path(tempfile.gettempdir()) / f"gluonize-{os.getuid()}"
    return base / "gluonize" / "results"


def content_key(*parts: Any) -> str:
    """A key over `parts` (by their `repr`), the versions of everything involved and what switches compilers.

    Folders that are called otherwise on another machine (`places.py`) do not change it.
    """
    digest, places = hashlib.sha256(), Places.here()
    paths = tuple(places.portable(path) for path in sys.path)
    for part in (*parts, *_versions(), switches(), paths, places.portable(os.getcwd())):
        text = places.portable_text(repr(part)).encode()
        digest.update(b"%d:" % len(text) + text)
    return digest.hexdigest()[:40]


def still_holds(reads: Reads, environment: str) -> bool:
    """Whether every file that was read, every module lookup and each variable that files ask for are what they were."""
    from gluonize.read.files.package import files_mentioning_now
    from gluonize.read.files.modules import _find_in

    if environment != environment_digest(reads.environment):
        return False
    if any(file_digest(path) != digest for path, digest in reads.files):
        return False
    if any(location(_find_in.__wrapped__(*lookup)) != found for lookup, found in reads.lookups):
        return False
    return all(files_mentioning_now(path, called) == found for path, called, found in reads.mentions)


def _moved(reads: Reads, move) -> Reads:
    """The reads with `move` applied to every path."""

    def found_at(found: str) -> str:
        return "|".join(map(move, found.split("|")))

    files = tuple((move(path), digest) for path, digest in reads.files)
    lookups = tuple(
        ((name, part, tuple(map(move, folders))), found_at(found)) for (name, part, folders), found in reads.lookups
    )
    mentions = tuple((move(path), called, tuple(map(move, found))) for path, called, found in reads.mentions)
    return replace(reads, files=files, lookups=lookups, mentions=mentions)


def environment_digest(names: Iterable[str]) -> str:
    """Of the variables with these names, of all for `*`; empty for none."""
    names = tuple(names)
    if not names:
        return ""
    values = sorted(os.environ.items()) if ALL in names else [(name, os.environ.get(name)) for name in sorted(names)]
    return hashlib.sha256(repr(values).encode()).hexdigest()


def switches() -> list[tuple[str, str]]:
    """The environment variables that change what compilers do, with their values."""
    chosen = (item for item in os.environ.items() if item[0].startswith(_SWITCHES) and item[0] not in _NOT_SWITCHES)
    return sorted(chosen)


@functools.cache
def _versions() -> tuple:
    from gluonize import __version__
    from gluonize.versions import triton_version

    return (__version__, own_digest(), triton_version(), sys.version)


@functools.cache
def own_digest() -> str:
    """Of gluonize's own code: a checkout under development changes without its version."""
    folders = {"gluonize": PACKAGE, "gluonize/rules": Path(rules.__path__[0])}  # installed, one lies in the other
    files = {f"{name}/{p.relative_to(f).as_posix()}": p for name, f in folders.items() for p in f.glob("**/*.py")}
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def folder_digest(folders: Iterable[str]) -> tuple:
    """Of every file given with `--rules`, or in a folder that is."""
    found = []
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")) if Path(folder).is_dir() else [Path(folder)]:
            if path.is_file():
                found.append((str(path), hashlib.sha256(path.read_bytes()).hexdigest()))
    return tuple(found)
