"""Where and how Triton keeps what it compiled for us: the user's folder when set, else one of our own, kept small.

A compile of the same code with the same spec is then done once, also across runs: parity compiles the source again and
again while its translation is being edited.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

MANAGER = "gluonize.judge.lower.children.triton_cache:CheckedCacheManager"
MAX_ENTRIES = 4000  # one entry is one compiled kernel, about 0.3 MB: the folder stays near 1 GB at most


def use_cache_folder() -> Path:
    """Point Triton at the cache folder through `TRITON_CACHE_DIR` (left alone when the user set it); returns the folder.

    `TRITON_CACHE_MANAGER` says how files are kept there, unless the user has a manager or a remote cache of their own.
    Falls back to a folder in the system's temporary directory where the user's cache cannot be written.
    """
    if not os.environ.get("TRITON_REMOTE_CACHE_BACKEND"):
        os.environ.setdefault("TRITON_CACHE_MANAGER", MANAGER)
    if given := os.environ.get("TRITON_CACHE_DIR"):
        return Path(given)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "gluonize" / "triton"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        folder = Path(tempfile.gettempdir()) / f"gluonize-{os.getuid()}" / "triton"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.environ["TRITON_CACHE_DIR"] = str(folder)
    return folder


def prune_cache_folder(folder: Path, keep: int = MAX_ENTRIES, told: Callable[[], None] = lambda: None) -> int:
    """Delete the oldest entries of our own folder beyond `keep`, and call `told` for each; returns how many went. The user's own is left
    alone."""
    if not _is_ours(folder):
        return 0
    try:
        entries = [(entry.stat().st_mtime, entry.path) for entry in os.scandir(folder) if entry.is_dir()]
    except OSError:
        return 0
    old = sorted(entries)[: max(0, len(entries) - keep)]
    for _, path in old:
        shutil.rmtree(path, ignore_errors=True)
        told()
    return len(old)


def is_own(entry: str) -> bool:
    """Whether the folder of one compiled kernel is in our own folder."""
    return _is_ours(Path(entry).parent)


def _is_ours(folder: Path) -> bool:
    return folder.name == "triton" and folder.parent.name.partition("-")[0] == "gluonize"
