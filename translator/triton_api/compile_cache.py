"""Triton's cache on disk."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

from gluonize.triton_api.row import Row, names_of, place_in
from gluonize.versions import triton_version

ROWS = (
    Row("FileCacheManager", "triton.runtime.cache:FileCacheManager", "the base of a cache that keeps files together"),
    Row("triton_key", "triton.runtime.cache:triton_key", "what tells one Triton's results from another's"),
)
__getattr__ = names_of(__name__, ROWS)


def give_triton_key(key: str) -> None:
    """Have Triton take this for the digest of its files."""
    module, attribute = place_in(ROWS, "triton_key", triton_version())
    setattr(importlib.import_module(module), attribute, lambda: key)


def compiler_files() -> Iterator[Path]:
    """All files of the installed Triton that can be part of its digest: its Python files and its library."""
    module, _ = place_in(ROWS, "triton_key", triton_version())
    root = Path(str(importlib.import_module(module.partition(".")[0]).__file__)).parent
    for pattern in ("**/*.py", "_C/libtriton*"):
        yield from root.glob(pattern)
