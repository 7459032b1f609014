"""Numbers that are constexpr parameters in the source come back as such: tile sizes, sizes of groups.

A number of the module is a parameter where the expression of the source that it comes from has that parameter as an operand, and a parameter has one
number wherever it is seen. A dimension of a tensor is one where ranges of the source say so (`tl.arange(0, BLOCK_M)`), and so is each dimension
that must be as large: what is added to it, read in another layout, multiplied with it, carried by a loop.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Container, Iterator
from functools import cached_property

from gluonize.raised.naming.origins import PRODUCTS, Origins
from gluonize.raised.naming.source import Sources
from gluonize.read.spec.launch import AMD_OPTIONS
from gluonize.trace.model.module import Function, Module
from gluonize.trace.model.op import Op, is_arithmetic

Dimension = tuple[str, int]  # of a value, counted from the last one: -1
# From which operator an operation comes that tells what a parameter is.
_TELLING = {"arith.muli": ast.Mult, "arith.divsi": ast.FloorDiv, "arith.remsi": ast.Mod, "arith.cmpi": ast.Compare}
# Operations whose tensors of one shape have one size in each dimension.
_ALIKE = (
    *(
        "tt.load",
        "tt.store",
        "tt.addptr",
        "tt.broadcast",
        "tt.fp_to_fp",
        "tt.bitcast",
        "tt.clampf",
        "tt.scan",
        "tt.atomic_rmw",
    ),
    *("tt.extern_elementwise", "ttg.convert_layout", "amdg.in_thread_transpose", "ttg.local_load", "ttg.local_store"),
    *("ttg.memdesc_index", "ttg.local_alloc", "ttg.async_copy_global_to_local", "amdg.buffer_load_to_local"),
    *("amdg.buffer_load", "amdg.buffer_store", "amdg.update_tensor_descriptor"),
    *("amdg.async_tdm_copy_global_to_local", "amdg.async_tdm_copy_local_to_global"),
)
_OF_RANGES = ("tt.expand_dims", "tt.broadcast", "ttg.convert_layout", "arith.extsi", "arith.trunci")
_TURNED = ("tt.trans", "ttg.memdesc_trans")


class Constexprs:
    """taken: names that no parameter may have. values: of the parameters that come back; none where the source is not there, or a module has more than one function."""

    def __init__(self, module: Module, function: Function, origins: Origins, sources: Sources, taken: Container[str]):
        self.function, self.origins, self.sources = function, origins, sources
        self.values: dict[str, int] = {}
        self.unknown: set[str] = set()
        self.rest = ""
        if len(module.functions) > 1 or module.has("ttg.warp_specialize"):
            return
        found: dict[str, set[int]] = defaultdict(set)
        for op in function.walk():
            for name in self.sources.of(op.place.file).operands(op.place, _TELLING.get(op.name)):
                if number := self._tells(op):
                    found[name].add(number)
        files = dict.fromkeys(op.place.file for op in function.walk())
        known = [name for file in files for name in sources.of(file).constexprs]  # in the order of the source
        others = {*function.argument_names, *AMD_OPTIONS}  # a launch says these itself
        known = [name for name in known if name not in others and name not in taken]
        self.values = {name: min(found[name]) for name in known if len(found.get(name, ())) == 1}
        # What ranges of the source go to, and no operation tells: where one such name is left and one size, it is that.
        lines: dict[str, set[int]] = defaultdict(set)
        for op in function.walk():
            lines[op.place.file].add(op.place.line)
        ends = {name for file, inside in lines.items() for name in sources.of(file).range_ends(inside)}
        self.unknown = {name for name in known if name in ends and name not in self.values}
        sizes = {*self._unnamed.values()}
        sizes = sizes if len(sizes) == 1 else sizes - {*self.values.values()}
        if len(self.unknown) == 1 and len(sizes) == 1:
            self.rest = self.unknown.pop()
            told = {**self.values, self.rest: min(sizes)}
            self.values = {name: told[name] for name in known if name in told}

    def number(self, op: Op | None, number: int) -> str:
        """The parameter that a number is where an operation uses it, "" of one that is a number in the source too, or that nothing is known of."""
        if op is None:
            return ""
        source = self.sources.of(op.place.file)
        told = source.operands(op.place, _TELLING.get(op.name)) or source.mentioned(op.place)
        names = {name for name in told if self.values.get(name) == number}
        if len(names) == 1 and number not in source.numbers(op.place):
            return names.pop()
        lesser = {name for name in source.lessened(op.place) if self.values.get(name) == number + 1}
        return f"{lesser.pop()} - 1" if len(lesser) == 1 else ""

    def size(self, value: str, dimension: int, number: int) -> str:
        """The parameter that a dimension of a value is, counted from the last one: -1; "" of one that is a number. Where no statement says
        so, it is the only parameter that is as large."""
        if number not in self.values.values():
            return ""
        alike = [name for name, size in self.values.items() if size == number]
        of = self._classes.of((value, dimension))
        if of not in self._sizes and len(alike) == 1 and not self.unknown:
            return alike[0]
        found = self._sizes.get(of, self.rest if of in self._unnamed else "")
        return found if found in alike else ""

    @cached_property
    def _unnamed(self) -> dict[Dimension, int]:
        """The classes of dimensions of tensors that no statement of the source names, each with its size."""
        found = {}
        for op in self.function.walk():
            for value, kind in zip(op.results, op.result_types):
                for at, size in enumerate(kind.shape or ()):
                    of = self._classes.of((value, at - len(kind.shape or ())))
                    if (
                        kind.kind not in ("memdesc", "desc")
                        and size > 1
                        and not self._is_uniform(value)
                        and of not in self._sizes
                    ):
                        found[of] = size
        return found

    def _tells(self, op: Op) -> int:
        """The number that an operation has of the expression that it comes from, 0 where it has none or more than one."""
        if op.name == "tt.make_range":
            return op.attribute("end") if op.attribute("start") == 0 else 0
        operands = op.operands if op.name in _TELLING else (op.for_loop.step,) if op.name == "scf.for" else ()
        found = [number for value in operands if (number := self._constant(value)) is not None]
        return found[0] if len(found) == 1 and found[0] > 1 else 0

    def _constant(self, value: str) -> int | None:
        op = self.origins.made.get(value)
        while op is not None and op.name == "tt.splat":
            op = self.origins.made.get(op.operands[0])
        return op.constant.integer if op is not None and op.name == "arith.constant" else None

    @cached_property
    def _classes(self) -> _Classes:
        """Dimensions that have one size."""
        found = _Classes()
        # Of tensors of equal numbers and ranges, which the compiler makes one of: what each is used with.
        shared: dict[Dimension, list[Dimension]] = defaultdict(list)
        for op in self.function.walk():
            for pair in self._equal(op):
                uniform = [each for each in pair if self._is_uniform(each[0])]
                if not uniform:
                    found.join(*pair)
                for each in uniform:
                    shared[each] += [other for other in pair if other not in uniform]
        for dimension, others in shared.items():
            if len({found.of(other) for other in others}) == 1:
                found.join(others[0], dimension)
        return found

    def _is_uniform(self, value: str) -> bool:
        """Whether a tensor is one of equal numbers or a range, of which the compiler makes one wherever the source has them."""
        op = self.origins.made.get(value)
        while op is not None and op.name in _OF_RANGES:
            op = self.origins.made.get(op.operands[0])
        return op is not None and op.name in ("arith.constant", "tt.splat", "tt.make_range")

    @cached_property
    def _sizes(self) -> dict[Dimension, str]:
        """What the source calls the size of each class of dimensions: what the statements say that tensors of one dimension come from."""
        votes: dict[Dimension, Counter[str]] = defaultdict(Counter)
        for op in self.function.walk():
            source = self.sources.of(op.place.file)
            if op.name == "tt.make_tensor_descriptor":
                for at, name in enumerate(reversed(source.blocks(op.place)), 1):
                    votes[self._classes.of((op.results[0], -at))][name] += 1
                continue
            for value, kind in zip(op.results, op.result_types):
                if len(kind.shape or ()) == 1 and not self._is_uniform(value):
                    for name in source.ranges(op.place):
                        if self.values.get(name) == kind.shape[0]:
                            votes[self._classes.of((value, -1))][name] += 1
        return {dimension: count.most_common(1)[0][0] for dimension, count in votes.items()}

    def _equal(self, op: Op) -> Iterator[tuple[Dimension, Dimension]]:
        kinds = self.origins.kinds
        if op.name == "scf.for":
            given = op.regions[0].blocks[0].ops[-1].operands
            for (argument, first), new, result in zip(op.for_loop.bindings, given, op.results):
                for other in (first, new, result):
                    yield from self._same(argument, other)
        elif op.name == "scf.if":
            for region in op.regions:
                for result, given in zip(op.results, region.blocks[-1].ops[-1].operands):
                    yield from self._same(result, given)
        elif op.name in PRODUCTS:
            a, b, c = (value for i, value in enumerate(op.operands) if i not in op.keywords("scale"))
            made = op.results[0]
            yield from self._same(made, c)
            yield from (
                ((a, -2), (made, -2)),
                ((b, -1), (made, -1)),
                *([((a, -1), (b, -2))] if op.name == "tt.dot" else []),
            )
        elif op.name in _TURNED:
            order, rank = op.integers("order"), len(op.type.shape or ())
            yield from (((op.results[0], at - rank), (op.operands[0], of - rank)) for at, of in enumerate(order))
        elif op.name == "tt.expand_dims":
            axis, rank = op.attribute("axis"), len(op.type.shape or ())
            kept = [at - rank for at in range(rank) if at != axis]
            yield from (((op.results[0], at), (op.operands[0], number - rank + 1)) for number, at in enumerate(kept))
        elif op.name == "tt.reduce":
            axis, rank = op.attribute("axis"), (
                len((kinds[op.operands[0]].shape or ())) if op.operands[0] in kinds else 0
            )
            kept = [at - rank for at in range(rank) if at != axis]
            for result, operand in zip(op.results, op.operands):
                yield from (((result, number - rank + 1), (operand, at)) for number, at in enumerate(kept))
        elif op.name in _ALIKE or is_arithmetic(op.name):
            shaped = [value for value in (*op.results, *op.operands) if value in kinds and kinds[value].shape]
            for other in shaped[1:]:
                yield from self._same(shaped[0], other)

    def _same(self, one: str, other: str) -> Iterator[tuple[Dimension, Dimension]]:
        """The dimensions of two values that have one number, the last ones beside each other."""
        sizes = [
            (self.origins.kinds[value].shape or ()) if value in self.origins.kinds else () for value in (one, other)
        ]
        for at in range(-min(map(len, sizes)), 0):
            if sizes[0][at] == sizes[1][at]:
                yield (one, at), (other, at)


class _Classes:
    def __init__(self) -> None:
        self.first: dict[Dimension, Dimension] = {}

    def of(self, dimension: Dimension) -> Dimension:
        while (found := self.first.get(dimension, dimension)) != dimension:
            dimension = found
        return dimension

    def join(self, one: Dimension, other: Dimension) -> None:
        one, other = self.of(one), self.of(other)
        if one != other:
            self.first[other] = one
