"""The launches of a launch file that concern one source."""

from __future__ import annotations

import functools
import os
import re

from gluonize.diagnostics import Diagnostic, TranslationError, did_you_mean
from gluonize.read.files.modules import parse_file
from gluonize.read.files.source_names import is_path, source_name
from gluonize.read.spec.launch import LaunchSpec, RefusedLaunch, read_launches


def select_launches(path: str, source: str, kernels: tuple[str, ...], refused: bool = False) -> tuple[LaunchSpec, ...]:
    """The launches of a file that are for `source` and, when given, for `kernels`.

    Launches that name other sources count only when none names this one, and kernels of theirs are in it: a translation is compiled with
    the launches of its source. refused: those with something wrong in them are among them, where they say for which kernel they are.
    Raises: TranslationError `spec-missing` when none is, naming the kernels that the file does have, and what is wrong with a
    launch that is or may be one of them.
    """
    every = _launches_of(path)
    mine = [spec for spec in every if not spec.source or source_name(spec.source) == source_name(source)]
    others = () if _has_none_of(source, every) else every
    found = tuple(spec for spec in mine or others if not kernels or not spec.kernel or spec.kernel in kernels)
    wrong = [
        x for spec in found if isinstance(spec, RefusedLaunch) and not (refused and spec.kernel) for x in spec.problems
    ]
    if wrong:
        raise TranslationError(*wrong)
    if found:
        missing = [name for name in kernels if all(spec.kernel != name for spec in found)]
        if not missing:
            return found
        message = f"no launch for {', '.join(missing)}"
    else:
        message = f"no launch for {', '.join(kernels) or source}"
    has = sorted({f"{spec.kernel} of {spec.source}" if spec.source else spec.kernel for spec in every})
    help = did_you_mean(next((n for n in kernels if all(s.kernel != n for s in every)), ""), (s.kernel for s in every))
    why = f"it has launches for {', '.join(has)}"
    how = "record them with gluonize capture, or have translate guess them, and write them with --write-launches FILE"
    raise TranslationError(Diagnostic("spec-missing", message, path, why=why, help=help or how))


def _has_none_of(source: str, launches: tuple[LaunchSpec, ...]) -> bool:
    """Whether a file mentions no kernel of the launches; False for what is no file, or may have names that it does not mention."""
    try:
        text = parse_file(source).text if is_path(source) else "import *"
    except TranslationError:
        return False  # what is wrong with it is said when it is read
    names = "|".join({re.escape(spec.kernel.rpartition(".")[2]) for spec in launches if spec.kernel})
    return bool(names) and "import *" not in text and not re.search(rf"\b({names})\b", text)


def _launches_of(path: str) -> tuple[LaunchSpec, ...]:
    """`read_launches`, once for as long as the file stays the same: many outputs may share one launch file."""
    try:
        stat = os.stat(path)
    except OSError:
        return tuple(read_launches(path))  # which says what is wrong
    return _read_once(path, os.getcwd(), stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=16)
def _read_once(path: str, _folder: str, _mtime_ns: int, _size: int) -> tuple[LaunchSpec, ...]:
    return tuple(read_launches(path, each=True))


def source_of_launch(spec: LaunchSpec, launches_path: str) -> str:
    """The source that a launch names, with a relative path taken from the folder of the launch file."""
    if spec.source.endswith(".py"):
        return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(launches_path)), spec.source))
    return spec.source
