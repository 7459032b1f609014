"""Triton's cache of compiled kernels, with checksums, and shared with other machines where a shared cache was given.

Triton makes the manager that `TRITON_CACHE_MANAGER` names for every kernel. Its files of one kernel are a group: here a
group is one entry of the shared cache, so that files of two writers never mix, and lies in the folder of this machine as
Triton's own manager writes it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

from gluonize.judge.lower.cache_folder import is_own
from gluonize.store.chosen_store import COMPILED, shared_shelf
from gluonize.store.packed import pack, unpack
from gluonize.triton_api.compile_cache import FileCacheManager

log = logging.getLogger("gluonize")


class CheckedCacheManager(FileCacheManager):
    """Groups of files in Triton's folder, each with the digests of its files; what is missing there comes from the shared cache."""

    def __init__(self, key: str, override: bool = False, dump: bool = False):
        super().__init__(key, override=override, dump=dump)
        self._plain = override or dump  # folders in which people look and write: nothing is checked or shared

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a group by name, None when one of them is missing or damaged."""
        if self._plain:
            return super().get_group(filename)
        found = self._whole(filename)
        shelf = shared_shelf()
        if found is not None or shelf is None:
            return found
        payload = shelf.get(self._name(filename))
        files = None if payload is None else unpack(payload)
        if files is None:
            return None
        found = {name: self.put(data, name) for name, data in files.items()}
        self._note(filename, found)
        return found

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Note that files which were put belong together; what is shared is shared now, whole."""
        if self._plain:
            return super().put_group(filename, group)
        path = self._note(filename, group)
        if (shelf := shared_shelf()) is not None:
            shelf.put(self._name(filename), pack({name: Path(file).read_bytes() for name, file in group.items()}))
        return path

    def _whole(self, filename: str) -> dict[str, str] | None:
        """The group in the folder of this machine if each file is what was written."""
        if not self.has_file(f"__grp__{filename}"):
            return None
        if not self.has_file(_sums(filename)):
            # In a folder that is the user's it may have been written by Triton's own manager.
            return None if is_own(self.cache_dir) else super().get_group(filename)
        try:
            names = json.loads(Path(self._make_path(f"__grp__{filename}")).read_bytes())["child_paths"]
            sums = json.loads(Path(self._make_path(_sums(filename))).read_bytes())
            # The folder may have been moved: the paths are those of the time of writing.
            paths = {name: self._make_path(name) for name in names}
            if {name: _digest(Path(file).read_bytes()) for name, file in paths.items()} == sums:
                return paths
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        log.warning("what Triton compiled in %s is damaged: it is made anew", self.cache_dir)
        return None

    def _note(self, filename: str, group: dict[str, str]) -> str:
        sums = {name: _digest(Path(file).read_bytes()) for name, file in group.items()}
        self.put(json.dumps(sums), _sums(filename), binary=False)
        return super().put_group(filename, group)

    def _name(self, filename: str) -> str:
        return f"{COMPILED}{self.key}-{filename}"


def _sums(filename: str) -> str:
    return f"__sums__{filename}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
