"""Names of output files, and writing them whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
from collections.abc import Iterable

from gluonize.diagnostics import Diagnostic, TranslationError

STANDARD_OUTPUT = "-"  # in the place of a file's name
MAX_NAME = 180  # bytes; file systems allow 255, temporary names need some


def write_whole(path: str, text: str) -> None:
    """`write_bytes` of a text as UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str, content: bytes) -> None:
    """Write `content` to `path` through a temporary file in the same folder and a rename.

    After a failure, or Ctrl-C, `path` holds what it held before and the temporary file is gone.
    Raises: TranslationError `output-unwritable`.
    """
    path = os.path.realpath(path)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            with open(path, "wb") as device:  # /dev/stdout and the like cannot be renamed onto
                device.write(content)
            return
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if os.path.exists(path):
                if not os.access(path, os.W_OK):
                    raise PermissionError(errno.EACCES, "it is write-protected")
                os.chmod(temporary, os.stat(path).st_mode & 0o777)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror or str(error)
        raise TranslationError(
            Diagnostic("output-unwritable", "cannot write the output", path, why=why, help="nothing was changed there")
        ) from None


def make_folder(path: str) -> None:
    """Create a folder for outputs. Raises: TranslationError `output-unwritable`."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        help = ""
        if os.path.isfile(path):
            why, help = "it is a file", "name a folder, or one output with -o"
        raise TranslationError(
            Diagnostic("output-unwritable", "cannot create the output folder", path, why=why, help=help)
        ) from None
    if not os.access(path, os.W_OK):
        raise TranslationError(Diagnostic("output-unwritable", "cannot write into the output folder", path))


def check_destination(path: str) -> None:
    """Refuse a path that could not be written later, before hours of work are spent on what should go there.

    Raises: TranslationError `output-unwritable`.
    """
    folder, help = os.path.dirname(os.path.realpath(path)), ""
    if os.path.isdir(path):
        why, help = "it is a folder", f"name a file in it: {os.path.join(path, 'NAME')}"
    elif not os.path.isdir(folder):
        why = f"there is no folder {folder}"
    elif not os.access(path if os.path.exists(path) else folder, os.W_OK):
        why = "it is write-protected"
    else:
        return
    raise TranslationError(Diagnostic("output-unwritable", "cannot write the output", path, why=why, help=help))


def file_stem(text: str) -> str:
    """A file name without extension for a kernel, module or launch id: letters, digits and underscores."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or "kernel"


def launch_stems(ids: Iterable[str]) -> dict[str, str]:
    """Launch id -> file stem, different for different ids, whatever the file system thinks of case."""
    ids = list(dict.fromkeys(ids))
    plain = {name: file_stem(name)[:MAX_NAME] for name in ids}
    taken: dict[str, int] = {}
    for stem in plain.values():
        taken[stem.lower()] = taken.get(stem.lower(), 0) + 1

    def stem(name: str) -> str:
        found = plain[name]
        if taken[found.lower()] == 1 and len(file_stem(name)) <= MAX_NAME:
            return found
        return f"{found}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"

    return {name: stem(name) for name in ids}
