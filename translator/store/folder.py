"""A store in a folder, of this machine or on a network file system.

Whoever may use the folder may use what is in it: folders below it get its permissions, and entries these without execution. So
a folder that a group may write, and hands its group on (`chmod 2770`), is shared by that group, and one that is private stays so.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gluonize.store.entries import Entry

_UNFINISHED = ".entry-"  # of a writer that is at work, or was killed
_LOST_SECONDS = 3600.0  # no writer needs as long


@dataclass(frozen=True)
class FolderStore:
    """Entries are files, written beside their place and renamed.

    mode: permissions of the folder where it has to be made, of which the umask takes some.
    """

    folder: Path
    mode: int = 0o777

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
        shared = self._made(path.parent)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                with contextlib.suppress(OSError):  # not every file system has permissions
                    os.fchmod(handle, shared & 0o666)
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _made(self, folder: Path) -> int:
        """Make a folder of the store unless it is there; -> permissions of the store's."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=self.mode)
        permissions = stat.S_IMODE(self.folder.stat().st_mode)
        for below in reversed([folder, *folder.parents][: len(folder.relative_to(self.folder).parts)]):
            with contextlib.suppress(FileExistsError):
                below.mkdir(mode=0o700)
                with contextlib.suppress(OSError):
                    below.chmod(permissions)
        return permissions

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
                    found = path.stat()
                    if not name.startswith(_UNFINISHED):
                        yield Entry(path.relative_to(self.folder).as_posix(), found.st_size, found.st_mtime)
                    elif newest - found.st_mtime > _LOST_SECONDS:
                        path.unlink()


def _now(folder: Path) -> float:
    """The time by the clock that dates the files, which may be another machine's."""
    with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_mtime
    return 0.0
