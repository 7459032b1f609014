"""Where a store is, as people write it: `file:///shared/gluonize`, `s3://bucket/gluonize`, `memory://`, or a folder."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.store.entries import Store
from gluonize.store.folder import FolderStore
from gluonize.store.remote import RemoteStore

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}  # as disks are sold


def absolute_url(url: str) -> str:
    """The same place whatever the working folder: a folder's name becomes a `file://` address."""
    if "://" in url and not url.startswith("file://"):
        return url
    return Path(os.path.abspath(os.path.expanduser(_folder(url)))).as_uri()


def open_store(url: str) -> Store:
    """The store at an address. Raises: TranslationError `cache-address` when nothing here can open it."""
    if "://" not in url or url.startswith("file://"):
        return FolderStore(Path(_folder(url)))
    try:
        import fsspec
    except ImportError:
        help = "pip install 'gluonize[cluster]', or name a folder that all machines have"
        raise TranslationError(Diagnostic("cache-address", f"{url} needs fsspec", help=help)) from None
    try:
        # What others write is seen at once: listings are not remembered.
        fs, root = fsspec.url_to_fs(url, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        help = "for example s3://BUCKET/FOLDER, file:///FOLDER, or a folder"
        raise TranslationError(
            Diagnostic("cache-address", f"cannot open the cache {url}", why=str(error), help=help)
        ) from None
    return RemoteStore(url, fs, root.rstrip("/"))


def _folder(url: str) -> str:
    return unquote(urlsplit(url).path) if url.startswith("file://") else url


def parse_bytes(text: str) -> int:
    """`500MB`, `20 GB`, `1e6` as bytes. Raises: ValueError."""
    word = text.strip().lower().removesuffix("b").removesuffix("i").strip()
    unit = word[-1:] if word[-1:] in _UNITS else ""
    size = float(word.removesuffix(unit) or "x") * _UNITS[unit]
    if not 0 <= size < 2**62:
        raise ValueError(f"{text} is no size")
    return int(size)


def shown_bytes(size: int) -> str:
    """`1.5 GB`."""
    for unit in "TGMk":
        if size >= _UNITS[unit.lower()]:
            return f"{size / _UNITS[unit.lower()]:.1f} {unit}B"
    return f"{size} B"
