"""Which store this process and its children use: environment variables, so that children and workers agree."""

from __future__ import annotations

import functools
import os

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.store.address import absolute_url, open_store, parse_bytes
from gluonize.store.shelf import LIMIT_BYTES, Shelf

URL = "GLUONIZE_CACHE"  # an address; unset or empty: no cache is shared
LIMIT = "GLUONIZE_CACHE_LIMIT"
SHARED = (URL, LIMIT)
RESULTS = "results/"
COMPILED = "compiled/"


def is_shared() -> str:
    """The address of the shared cache, empty when there is none."""
    return os.environ.get(URL, "")


def share(url: str | None) -> None:
    """Use the cache at an address from now on, in children too; None leaves it as the environment says.

    Raises: TranslationError `cache-address` when it cannot be opened, `cache-limit` for a limit that is no size.
    """
    if url is not None:
        os.environ[URL] = absolute_url(url) if url else ""
    size_limit()
    if is_shared():
        open_store(is_shared())


def size_limit() -> int:
    """Bytes of all entries of a store. Raises: TranslationError `cache-limit`."""
    given = os.environ.get(LIMIT)
    try:
        return parse_bytes(given) if given else LIMIT_BYTES
    except ValueError:
        help = "for example 20GB"
        raise TranslationError(Diagnostic("cache-limit", f"{LIMIT}={given} is no size", help=help)) from None


def shared_shelf() -> Shelf | None:
    """The shared cache, None when there is none."""
    return _opened(is_shared(), size_limit()) if is_shared() else None


@functools.lru_cache(maxsize=4)
def _opened(url: str, limit: int) -> Shelf:
    return Shelf(open_store(url), limit)
