"""What a job is sent of the file system here: what its arguments name, what these import, and what jobs like it asked for."""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import sys
import tempfile
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from gluonize.product.cluster.sent_job import Found, Lookup, Needs, World
from gluonize.product.project.cache.kept_jobs import OWN_PREFIX
from gluonize.read.files.environment import ALL, names_asked
from gluonize.read.files.modules import _find_in, decode_source_bytes
from gluonize.read.files.package import _files_below
from gluonize.read.text.parsed import parsed_text
from gluonize.request import TranslateRequest

MAX_FAMILIES = 1000  # kinds of jobs of which is remembered what they asked for
MAX_FILES = 20000  # of which digests are remembered
# Imports that are answered before they are asked for: all but those of packages of which no file is ever read.
_NEVER_READ = frozenset({"torch", "triton", "numpy", *sys.stdlib_module_names})


class Knowledge:
    """Makes worlds, and remembers what jobs asked for: jobs with the same arguments but for drafts are a family."""

    def __init__(self) -> None:
        self._asked: OrderedDict[tuple, Needs] = OrderedDict()
        self._lock = threading.Lock()

    def world(self, args: tuple, kwargs: dict) -> World:
        """The world of a job as far as it can be foreseen."""
        paths = frozenset(_paths((args, kwargs)))
        with self._lock:
            asked = self._asked.get(_family(paths), Needs())
        return _world(paths, asked | _foreseen(args, kwargs))

    def learn(self, world: World, needs: Needs) -> World:
        """The world with what a job asked for, which its family gets from now on."""
        known = Needs(
            files=frozenset(path for path, _ in world.files) | world.absent,
            lookups=frozenset(lookup for lookup, _ in world.lookups),
            packages=frozenset(top for top, _ in world.packages),
        )
        needs |= _next(world, needs)
        family = _family(world.paths)
        with self._lock:
            self._asked[family] = self._asked.get(family, Needs()) | _lasting(needs)
            self._asked.move_to_end(family)
            if len(self._asked) > MAX_FAMILIES:
                self._asked.popitem(last=False)
        return _world(world.paths, known | needs)


def _world(paths: frozenset[str], needs: Needs) -> World:
    lookups: dict[Lookup, Found] = {lookup: _answer(lookup) for lookup in needs.lookups}
    packages = {top: _files_below(top) for top in needs.packages}
    asked = {*needs.files, *(path for files in packages.values() for path in files)}
    asked |= {found[0] for found in lookups.values() if found and found[0]}
    digests = {path: file_digest(path) for path in asked}
    return World(
        cwd=os.getcwd(),
        python_path=tuple(os.path.abspath(entry or os.curdir) for entry in sys.path),
        triton=_triton_folder(),
        files=tuple(sorted((path, digest) for path, digest in digests.items() if digest)),
        absent=frozenset(path for path, digest in digests.items() if not digest),
        lookups=tuple(sorted(lookups.items(), key=lambda item: item[0])),
        packages=tuple(sorted(packages.items())),
        paths=paths,
    )


def _foreseen(args: tuple, kwargs: dict) -> Needs:
    """The files that arguments name, the packages around them, and the rules of a request."""
    files: set[str] = set()
    for path in _named_files((args, kwargs)):
        files |= {path, *_around(path)}
    for request in _requests((args, kwargs)):
        for rules in request.rules:
            files |= {os.path.abspath(path) for path in Path(rules).rglob("*") if path.is_file()}
            files |= {os.path.abspath(rules)} if os.path.isfile(rules) else set()
    return Needs(frozenset(files))


def _next(world: World, needs: Needs) -> Needs:
    """What a job will ask after `needs`, most likely: where the modules are that the files import which it has or now gets."""
    searched = {folders for name, part, folders in needs.lookups if name == part}
    paths = {path for path, _ in world.files}
    paths |= {found[0] for lookup in needs.lookups if (found := _answer(lookup)) and found[0]}
    return Needs(lookups=frozenset(x for path in paths for folders in searched for x in imports_of(path, folders)))


def imports_of(path: str, folders: tuple[str, ...]) -> Iterator[Lookup]:
    """The questions that resolving the imports of a file asks, when it looks in `folders`."""
    for name in _imported(path, _stamp(path)):
        below = folders
        prefix = ""
        for part in name.split("."):
            prefix = f"{prefix}.{part}" if prefix else part
            lookup = (prefix, part, below)
            yield lookup
            found = _answer(lookup)
            if found is None:
                break
            below = found[1]


@functools.lru_cache(maxsize=2000)
def _imported(path: str, _: tuple) -> tuple[str, ...]:
    """The modules that a file imports by absolute names."""
    try:
        tree = parsed_text(decode_source_bytes(Path(path).read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return ()
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found[node.module] = None
    return tuple(name for name in found if name.partition(".")[0] not in _NEVER_READ)


def _around(path: str) -> Iterator[str]:
    """Where it is asked for `__init__.py` to know what package a file is in."""
    folder = os.path.dirname(path)
    while True:
        above = os.path.dirname(folder)
        both = [os.path.join(folder, "__init__.py"), os.path.join(above, "__init__.py")]
        yield from both
        if not any(map(os.path.isfile, both)) or above == folder:
            return
        folder = above


def _named_files(value: Any) -> Iterator[str]:
    for text in _strings(value):
        if text.endswith(".py") or os.sep in text:
            path = os.path.abspath(text)
            if os.path.isfile(path):
                yield path


def _paths(value: Any) -> Iterator[str]:
    """The strings that are absolute paths of something that is there."""
    for text in _strings(value):
        if text.startswith(os.sep) and len(text) > 1 and "\n" not in text and os.path.exists(text):
            yield text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) < 4096:
            yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from (*_strings(name), *_strings(item))
    elif isinstance(value, (tuple, list, set, frozenset)):
        for item in value:
            yield from _strings(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            yield from _strings(getattr(value, f.name))


def _requests(value: Any) -> Iterator[TranslateRequest]:
    if isinstance(value, TranslateRequest):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _requests(item)


def _answer(lookup: Lookup) -> Found:
    found = _find_in.__wrapped__(*lookup)
    return None if found is None else (found.path, found.folders)


def _family(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(path for path in paths if not _is_draft(path)))


def _lasting(needs: Needs) -> Needs:
    """Without what is in drafts, which no other job has."""
    files = frozenset(path for path in needs.files if not _is_draft(path))
    lookups = frozenset(lookup for lookup in needs.lookups if not any(map(_is_draft, lookup[2])))
    return Needs(files, lookups, needs.packages)


def _is_draft(path: str) -> bool:
    return path.startswith(os.path.join(tempfile.gettempdir(), OWN_PREFIX))


def file_digest(path: str) -> str:
    """The sha256 of a file, empty when there is none that can be read."""
    try:
        return _digest(path, _stamp(path)) if os.path.isfile(path) else ""
    except OSError:
        return ""


def _stamp(path: str) -> tuple:
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


@functools.lru_cache(maxsize=MAX_FILES)
def _digest(path: str, _: tuple) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def content(path: str, digest: str) -> bytes | None:
    """The bytes of a file as they are sent; None when it is another file by now."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return None
    return zlib.compress(data, 1) if hashlib.sha256(data).hexdigest() == digest else None


def environment_of(world: World) -> tuple[tuple[str, str | None], ...]:
    """The variables that the files of a world may ask for, as they are here; None for one that is not set."""
    names: set[str] = set()
    for path, digest in world.files:
        names |= _asked_by(path, digest)
    return tuple((name, os.environ.get(name)) for name in sorted(names - {ALL}))


@functools.lru_cache(maxsize=MAX_FILES)
def _asked_by(path: str, _: str) -> frozenset[str]:
    """The variables that one file asks for; for names that it computes, those that a text in it is a part of."""
    try:
        text = decode_source_bytes(Path(path).read_bytes())
        if "environ" not in text and "getenv" not in text:
            return frozenset()
        tree = parsed_text(text)
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    names = names_asked(tree)
    if ALL not in names:
        return names
    texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return names | {name for name in os.environ if any(len(text) > 2 and text in name for text in texts)}


@functools.cache
def _triton_folder() -> str:
    import importlib.util

    found = importlib.util.find_spec("triton")
    assert found is not None and found.origin, "Triton is a dependency"
    return os.path.dirname(os.path.abspath(found.origin))
