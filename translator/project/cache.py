"""Results of earlier runs, found by content: the same inputs, options and versions give the same bytes without work.

An entry is found by a key over everything that is known before the work (request, options, versions, gluonize's own
code) and holds good while the files that the work read still have the same digests. Entries are written to a temporary
file and renamed, so parallel runs see whole entries or none; a damaged entry is a miss.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from translator.project.digests import file_digest
from translator.project.recorded import Reads, location

MAX_ENTRIES = 4000  # about 30 kB each: some 120 MB at most
_SWITCHES = ("TRITON_", "AMDGCN_", "LLVM_", "MLIR_", "GLUONIZE_")  # environment variables that change what compilers do
_PRUNED: set[Path] = set()  # folders that this process has looked after
_NOT_SWITCHES = ("TRITON_CACHE_DIR", "TRITON_HOME", "GLUONIZE_CACHE_DIR")


class ContentCache:
    """A folder of entries. `folder` None: a cache that never has anything and keeps nothing (`--no-cache`)."""

    def __init__(self, folder: Path | None):
        self.folder = folder
        self.hits = self.misses = 0

    @classmethod
    def of_user(cls, enabled: bool = True) -> ContentCache:
        """The cache in the user's cache folder (`GLUONIZE_CACHE_DIR`, else under `XDG_CACHE_HOME` or `~/.cache`)."""
        return cls(user_folder() if enabled else None)

    def get(self, key: str) -> Any:
        """The value stored for `key` whose reads still hold, else None."""
        if self.folder is None:
            return None
        entry = self._load(self._path(key))
        if entry is None or not still_holds(entry["reads"], entry["environment"]):
            self.misses += 1
            return None
        self.hits += 1
        with contextlib.suppress(OSError):
            os.utime(self._path(key))
        return entry["value"]

    def put(self, key: str, value: Any, reads: Reads = Reads()) -> None:
        """Store a value; a folder that cannot be written is no error, the work was done anyway."""
        if self.folder is None:
            return
        environment = environment_digest() if reads.environment else ""
        payload = pickle.dumps({"value": value, "reads": reads, "environment": environment}, protocol=4)
        path = self._path(key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".entry-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(payload).digest() + payload)
                os.replace(temporary, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
            if self.folder not in _PRUNED:
                _PRUNED.add(self.folder)
                self.prune()

    def prune(self, keep: int = MAX_ENTRIES) -> int:
        """Delete the entries that were not used for longest beyond `keep`; returns how many went."""
        if self.folder is None:
            return 0
        entries = []
        with contextlib.suppress(OSError):
            for entry in os.scandir(self.folder):
                with contextlib.suppress(OSError):
                    entries.append((entry.stat().st_mtime, entry.path))
        old = sorted(entries)[: max(0, len(entries) - keep)]
        for _, path in old:
            with contextlib.suppress(OSError):
                os.unlink(path)
        return len(old)

    def _path(self, key: str) -> Path:
        return self.folder / key

    def _load(self, path: Path) -> dict | None:
        try:
            raw = path.read_bytes()
        except OSError:
            return None
        digest, payload = raw[:32], raw[32:]
        if hashlib.sha256(payload).digest() != digest:
            return None
        try:
            return pickle.loads(payload)
        except (pickle.UnpicklingError, AttributeError, ImportError, EOFError):  # of another version of the classes
            return None


def user_folder() -> Path:
    """Where entries are kept."""
    if given := os.environ.get("GLUONIZE_CACHE_DIR"):
        return Path(given)
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home folder
        base = Path(tempfile.gettempdir()) / f"gluonize-{os.getuid()}"
    return base / "gluonize" / "results"


def content_key(*parts: Any) -> str:
    """A key over `parts` (by their `repr`), the versions of everything involved and what switches compilers."""
    digest = hashlib.sha256()
    for part in (*parts, *_versions(), _switches(), tuple(sys.path), os.getcwd()):
        text = repr(part).encode()
        digest.update(b"%d:" % len(text) + text)
    return digest.hexdigest()[:40]


def still_holds(reads: Reads, environment: str) -> bool:
    """Whether every file that was read, every module lookup and, where it mattered, the environment are what they were."""
    from translator.source.module_file import _find_in

    if reads.environment and environment != environment_digest():
        return False
    if any(file_digest(path) != digest for path, digest in reads.files):
        return False
    return all(location(_find_in.__wrapped__(*lookup)) == found for lookup, found in reads.lookups)


def environment_digest() -> str:
    """Of all environment variables."""
    return hashlib.sha256(repr(sorted(os.environ.items())).encode()).hexdigest()


def _switches() -> list[tuple[str, str]]:
    chosen = (item for item in os.environ.items() if item[0].startswith(_SWITCHES) and item[0] not in _NOT_SWITCHES)
    return sorted(chosen)


@functools.cache
def _versions() -> tuple:
    from translator import __version__
    from translator.versions import triton_version

    return (__version__, own_digest(), triton_version(), sys.version)


def own_digest() -> str:
    """Of gluonize's own code: a checkout under development changes without its version."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for path in sorted((*root.glob("translator/**/*.py"), *root.glob("rules/**/*.py"))):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def folder_digest(folders: Iterable[str]) -> tuple:
    """Of every file given with `--rules`, or in a folder that is."""
    found = []
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")) if Path(folder).is_dir() else [Path(folder)]:
            if path.is_file():
                found.append((str(path), hashlib.sha256(path.read_bytes()).hexdigest()))
    return tuple(found)
