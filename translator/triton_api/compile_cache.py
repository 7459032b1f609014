"""Triton's cache on disk."""

from __future__ import annotations

from gluonize.triton_api.row import Row, names_of

ROWS = (
    Row("FileCacheManager", "triton.runtime.cache:FileCacheManager", "the base of a cache that keeps files together"),
    Row("triton_key", "triton.runtime.cache:triton_key", "what tells one Triton's results from another's"),
)
__getattr__ = names_of(__name__, ROWS)
