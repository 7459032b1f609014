"""The helpers of an output file: one for all kernels and launches whose translations of it agree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gluonize.gluon.trees.function import GluonFunction, code, statements
from gluonize.numbered import numbered
from gluonize.output.merging.helper import Helper, place_of
from gluonize.output.merging.layout_arguments import with_layout_arguments
from gluonize.write.function import merge
from gluonize.write.state.emitted import EmittedFunction, EmittedKernel


@dataclass
class HelperPool:
    """The helpers of a file, once each: those of all kernels and launches, joined where they agree.

    base_name: what the first version of a source function is called. taken: names that no helper may get.
    """

    base_name: Callable[[Any], str]
    taken: set[str]
    helpers: list[Helper] = field(default_factory=list)

    def place_all(self, kernels: Sequence[EmittedKernel]) -> tuple[list[GluonFunction], list[list[Helper]]]:
        """Take in the helpers of all kernels of the file; -> the kernels that call them, and the helpers of each."""
        placed = [self._place_own(emitted) for emitted in kernels]
        functions = [function for function, _ in placed]
        helpers, functions, instead = with_layout_arguments(self.helpers, functions)
        self.taken -= {h.name for h in self.helpers}
        names: dict[str, str] = {}
        for h in helpers:
            names[h.name] = numbered(self.base_name(h.fn), self.taken.__contains__)
            self.taken.add(names[h.name])
        functions = [function.renaming(names) for function in functions]
        self.helpers = [replace(h, function=h.function.called(names[h.name]).renaming(names)) for h in helpers]
        known = dict(zip(names, self.helpers))
        return functions, [[known[instead.get(h.name, h.name)] for h in own.values()] for _, own in placed]

    def _place_own(self, emitted: EmittedKernel) -> tuple[GluonFunction, dict[str, Helper]]:
        """Take in the helpers of a kernel; -> the kernel that calls them, and the helpers by their old names."""
        placed: dict[str, Helper] = {}
        for helper in emitted.helpers:
            placed[helper.name] = self._place(helper, {old: h.name for old, h in placed.items()})
        return emitted.kernel.function.renaming({old: h.name for old, h in placed.items()}), placed

    def _place(self, helper: EmittedFunction, names: dict[str, str]) -> Helper:
        function = helper.function.renaming(names)
        if (helper.fn.__module__ or "").partition(".")[0] == "triton":
            function = _summed_up(function)
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


def _summed_up(function: GluonFunction) -> GluonFunction:
    """A copy of a function of Triton's, whose docstring has the first paragraph: Triton's pages have the rest."""
    if not function.docstring:
        return function
    first, more, _ = ast.literal_eval(code(function.docstring[0]).strip()).strip().partition("\n\n")
    if not more:
        return function
    block = [*statements(f'"""{first}"""\n'), *function.statements[1:]]
    return function.with_node(function.node.with_changes(body=function.block.with_changes(body=block)))
