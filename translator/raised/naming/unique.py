"""Values with names that a function has once: printed modules name values anew in each region."""

from __future__ import annotations

import re
from dataclasses import replace

from gluonize.trace.model.module import Function
from gluonize.trace.model.module_text import renamed
from gluonize.trace.model.op import Block, Op, Region
from gluonize.trace.model.op_text import VALUES

Names = dict[str, str]


def with_unique_values(function: Function) -> Function:
    """The function with another name for each value whose name another one has already; itself where there is none."""
    found = _Renamer({value for value, _ in function.arguments})
    region = found.region(function.region, {})
    return replace(function, region=region) if found.changed else function


class _Renamer:
    def __init__(self, known: set[str]):
        self.known = known
        self.changed = False

    def region(self, region: Region, names: Names) -> Region:
        names = dict(names)
        return replace(region, blocks=tuple(self._block(block, names) for block in region.blocks))

    def _block(self, block: Block, names: Names) -> Block:
        arguments = tuple((self._defined(value, names), kind) for value, kind in block.arguments)
        return replace(block, arguments=arguments, ops=tuple(self._op(op, names) for op in block.ops))

    def _op(self, op: Op, names: Names) -> Op:
        inner = dict(names)
        text = op.text
        if op.name == "scf.for":
            loop = op.for_loop
            own = [loop.variable, *(argument for argument, _ in loop.bindings)]
            text = self._header(text, own, names, inner)
        elif op.name == "scf.while":
            text = self._header(text, [argument for argument, _ in op.bindings], names, inner)
        else:
            text = renamed(text, names)
        # Regions see what is defined before, and what the header defines, but not the results.
        regions = tuple(self.region(region, inner) for region in op.regions)
        results = tuple(self._defined(value, names) for value in op.results)
        tail = renamed(op.tail, names)
        if (text, tail, results) == (op.text, op.tail, op.results) and all(a is b for a, b in zip(regions, op.regions)):
            return op
        return replace(op, text=text, tail=tail, results=results, regions=regions)

    def _header(self, text: str, own: list[str], outer: Names, inner: Names) -> str:
        for value in own:
            self._defined(value, inner)

        def other(found: re.Match[str]) -> str:
            defines = found.group() in own and text[found.end() :].startswith(" =")
            return (inner if defines else outer).get(found.group(), found.group())

        return VALUES.sub(other, text)

    def _defined(self, value: str, names: Names) -> str:
        """The name for a value that is defined here; of several results the first one decides."""
        base, mark, number = value.partition("#")
        if mark and number != "0":
            first = names.get(f"{base}#0", f"{base}#0").partition("#")[0]
        else:
            first = base
            count = 0
            while first in self.known:
                count += 1
                first = f"{base}.{count}"
            self.known.add(first)
        self.changed |= first != base
        if first == base:
            names.pop(value, None)
        else:
            names[value] = first + mark + number
        return first + mark + number
