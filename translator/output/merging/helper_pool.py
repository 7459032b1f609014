"""The helpers of an output file: one for all kernels and launches whose translations of it agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gluonize.gluon.function import JIT, Block, GluonFunction
from gluonize.numbered import numbered
from gluonize.write.function import merge
from gluonize.write.state.emitted import EmittedFunction, EmittedKernel


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


@dataclass
class HelperPool:
    """The helpers of a file, once each: those of all kernels and launches, joined where they agree.

    base_name: what the first version of a source function is called. taken: names that no helper may get.
    """

    base_name: Callable[[Any], str]
    taken: set[str]
    helpers: list[Helper] = field(default_factory=list)

    def place(self, emitted: EmittedKernel) -> tuple[GluonFunction, dict[str, Helper]]:
        """Take in the helpers of a kernel; -> the kernel that calls them, and the helpers by their old names."""
        placed: dict[str, Helper] = {}
        for helper in emitted.helpers:
            placed[helper.name] = self._place(helper, {old: h.name for old, h in placed.items()})
        return emitted.kernel.function.renaming({old: h.name for old, h in placed.items()}), placed

    def _place(self, helper: EmittedFunction, names: dict[str, str]) -> Helper:
        function = helper.function.renaming(names)
        for known in self.helpers:
            if place_of(known.fn) == place_of(helper.fn):
                joined = merge.merge(known.function, function.called(known.name))
                if joined is not None:
                    known.function = joined
                    return known
        name = numbered(self.base_name(helper.fn), self.taken.__contains__)
        self.taken.add(name)
        self.helpers.append(Helper(function.called(name), helper.fn, helper.noinline))
        return self.helpers[-1]


def place_of(fn: Any) -> tuple:
    """Where a source function is: two loads of a file make two objects of it."""
    return fn.file_name, fn.def_file_line_number, fn.__name__
