"""The digest of Triton's own files, which tells results of one compiler from another's, kept from process to process.

Triton makes it in each process that compiles: half a second for a library of hundreds of megabytes. Here it is made again only
where one of the files has another size, time or place.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from gluonize.judge.lower.cache_folder import is_own, use_cache_folder

FILE = "compiler-digest.json"  # beside our own folder of compiled kernels


@functools.cache
def prepare() -> None:
    """Do what the first compile of a process does for all: have Triton's digest of its own files."""
    from gluonize.triton_api.compile_cache import compiler_files, give_triton_key, triton_key

    folder = use_cache_folder()
    if is_own(str(folder / "entry")):  # nothing is put beside a folder of the user's
        give_triton_key(kept_digest(folder.parent / FILE, compiler_files(), triton_key))
    else:
        triton_key()


def kept_digest(kept: Path, files: Iterable[Path], make: Callable[[], str]) -> str:
    """What `make` makes of files, or what it made of them in an earlier process."""
    found = sorted((str(path), (s := path.stat()).st_size, s.st_mtime_ns, s.st_ino) for path in files)
    state = hashlib.sha256(repr(found).encode()).hexdigest()
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        told = json.loads(kept.read_text(encoding="utf-8"))
        digest = told["digest"]
        if told["state"] == state and told["check"] == _check(state, digest):
            return digest
    digest = make()
    temporary = kept.with_name(f"{kept.name}.{os.getpid()}.tmp")
    with contextlib.suppress(OSError):  # a full disk costs time alone
        temporary.write_text(json.dumps({"state": state, "digest": digest, "check": _check(state, digest)}))
        os.replace(temporary, kept)
    return digest


def _check(state: str, digest: str) -> str:
    return hashlib.sha256(f"{state}{digest}".encode()).hexdigest()


__all__ = ["kept_digest", "prepare"]
