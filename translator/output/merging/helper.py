"""A helper of an output file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gluonize.gluon.trees.function import JIT, Block, GluonFunction


@dataclass
class Helper:
    """A translated helper of the file; `fn` is its source function."""

    function: GluonFunction
    fn: Any
    noinline: bool

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def block(self) -> Block:
        """Its definition for the top level of a file."""
        return (self.function.defined(f"{JIT}(noinline=True)" if self.noinline else JIT),)


def place_of(fn: Any) -> tuple:
    """Where a source function is: two loads of a file make two objects of it."""
    return fn.file_name, fn.def_file_line_number, fn.__name__
