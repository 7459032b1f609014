"""A store in a folder, of this machine or on a network file system."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from translator.store.entries import Entry

_UNFINISHED = ".entry-"  # of a writer that is at work, or was killed
_LOST_SECONDS = 3600.0  # no writer needs as long


@dataclass(frozen=True)
class FolderStore:
    """Entries are files, written beside their place and renamed."""

    folder: Path

    @property
    def url(self) -> str:
        return self.folder.absolute().as_uri()

    def read(self, name: str) -> bytes | None:
        try:
            return (self.folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def delete(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    def touch(self, name: str) -> None:
        with contextlib.suppress(OSError):  # evicted meanwhile, another user's, or on a disk that is only read
            os.utime(self.folder / name)

    def entries(self) -> Iterator[Entry]:
        newest = _now(self.folder)
        for base, _, names in os.walk(self.folder):
            for name in names:
                path = Path(base, name)
                with contextlib.suppress(FileNotFoundError):  # evicted or renamed meanwhile
                    stat = path.stat()
                    if not name.startswith(_UNFINISHED):
                        yield Entry(path.relative_to(self.folder).as_posix(), stat.st_size, stat.st_mtime)
                    elif newest - stat.st_mtime > _LOST_SECONDS:
                        path.unlink()


def _now(folder: Path) -> float:
    """The time by the clock that dates the files, which may be another machine's."""
    with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_mtime
    return 0.0
