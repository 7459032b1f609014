"""A store behind fsspec: object stores and whatever else it has an implementation for."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gluonize.store.entries import Entry

# Written in one request, which others see done or not at all. What is not named here is written beside its place and moved.
_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "memory"})
_UNFINISHED = ".entry-"
_DATES = ("mtime", "LastModified", "last_modified", "updated", "created", "modified")


@dataclass(frozen=True)
class RemoteStore:
    """Entries are objects below `root` of the file system `fs`."""

    url: str
    fs: Any
    root: str

    def read(self, name: str) -> bytes | None:
        try:
            with _faults():
                return self.fs.cat_file(self._path(name))
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        with _faults():
            self._write(name, data)

    def _write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        if self._whole():
            self.fs.pipe_file(path, data)
            return
        folder, _, last = path.rpartition("/")
        self.fs.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/{_UNFINISHED}{uuid.uuid4().hex}-{last}"
        self.fs.pipe_file(temporary, data)
        self.fs.mv(temporary, path)

    def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError), _faults():
            self.fs.rm_file(self._path(name))

    def touch(self, name: str) -> None:
        """Object stores do not date what is read: entries go by when they were written."""

    def entries(self) -> Iterator[Entry]:
        try:
            with _faults():
                self.fs.invalidate_cache()
                found = self.fs.find(self.root, detail=True)
        except FileNotFoundError:
            return
        for path, info in found.items():
            name = path.removeprefix(self.root).lstrip("/")
            if not name.rpartition("/")[2].startswith(_UNFINISHED):
                yield Entry(name, int(info.get("size") or 0), _date(info))

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def _whole(self) -> bool:
        protocol = self.fs.protocol
        return bool(_WHOLE & set((protocol,) if isinstance(protocol, str) else protocol))


@contextlib.contextmanager
def _faults() -> Iterator[None]:
    """Every fault of a store as OSError: without credentials, for one, each implementation raises something of its own."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # whatever foreign code raises says why the store cannot be reached
        raise OSError(f"{type(error).__name__}: {error}") from error


def _date(info: dict) -> float:
    for name in _DATES:
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, (int, float)):
            return float(value)
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                return datetime.fromisoformat(value).timestamp()
    return 0.0
