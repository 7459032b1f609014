"""Modules that a program loads by their paths, in the steps that importlib documents, and paths relative to a file.

    spec = importlib.util.spec_from_file_location("tiles", Path(__file__).with_name("01-tiles.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["tiles"] = module
    spec.loader.exec_module(module)

Files whose names are no Python names cannot be imported otherwise. The module is read like any other, when something of it is asked for.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gluonize.read.unresolved import Place, Undetermined

PATHS = ("pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath", "pathlib.PurePosixPath")


class FilePath(pathlib.PurePosixPath):
    """`pathlib.Path` without what asks the file system; links are not followed."""

    __slots__ = ()

    def absolute(self) -> FilePath:
        return FilePath(os.path.abspath(self))

    def resolve(self, strict: bool = False) -> FilePath:
        return self.absolute()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(pathlib.Path, name):
            raise Undetermined(f"Path.{name} is known only when the host program runs")
        raise AttributeError(f"a path has no attribute {name}")


@dataclass(frozen=True)
class FileLoader:
    """The `loader` of a `FileSpec`."""

    def exec_module(self, module: Any) -> None:
        """Nothing: what a module binds is read when it is asked for."""


@dataclass(frozen=True)
class FileSpec:
    """What `importlib.util.spec_from_file_location` gives."""

    name: str
    origin: str
    loader: FileLoader = FileLoader()


def file_spec(args: list, kwargs: dict[str, Any], place: Place) -> FileSpec:
    """`spec_from_file_location(name, path)`. Raises: Undetermined for one that has more to say."""
    if len(args) != 2 or kwargs or not isinstance(args[0], str) or not isinstance(args[1], (str, FilePath)):
        raise Undetermined("a module's spec is more than a name and a path", place)
    return FileSpec(args[0], str(args[1]))


def path_of_spec(args: list, place: Place) -> str:
    """Of the file that `module_from_spec(spec)` makes a module of. Raises: Undetermined for a spec from elsewhere."""
    if len(args) != 1 or not isinstance(args[0], FileSpec):
        raise Undetermined("a module is made from a spec that is no file's", place)
    return args[0].origin


class LoadedModules:
    """`sys.modules`: only what the program has put there itself is known of it. is_module: whether a name could be imported."""

    def __init__(self, is_module: Callable[[str], bool]):
        self.is_module = is_module
        self.put: dict[str, Any] = {}

    def get(self, name: str, default: Any = None) -> Any:
        """Raises: Undetermined for a module that something else may have imported."""
        if name not in self.put and self.is_module(name):
            raise Undetermined(f"whether {name} has been imported is known only when the host program runs")
        return self.put.get(name, default)

    def __getitem__(self, name: str) -> Any:
        missing = object()
        if (found := self.get(name, missing)) is missing:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        missing = object()
        return self.get(str(name), missing) is not missing
