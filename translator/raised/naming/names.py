"""What variables are called: as the author calls what they stand for, where the module says so, else by what they are.

The compiler gives what it makes on the way the name of the statement that it belongs to: a slot, a condition and a mask of the tile `a` are
called `a` too. The plain name is kept for what is most like the author's: a tensor before a number, numbers before conditions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from itertools import chain, count

from gluonize.gluon.layout_names import LayoutNames, product_role, unsliced
from gluonize.raised.naming.origins import Origins, author_name
from gluonize.raised.naming.roles import UNSURE
from gluonize.trace.model.layouts import Layout, Mfma, Slice, Wmma
from gluonize.trace.model.module import Function, Module
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type

# What values are called that nobody has named, by the operation that gives them.
_PLAIN = {
    **dict.fromkeys(("tt.load", "amdg.buffer_load", "ttg.local_load"), "loaded"),
    **dict.fromkeys(("tt.dot", "tt.dot_scaled"), "product"),
    **dict.fromkeys(("tt.atomic_rmw", "tt.atomic_cas", "amdg.buffer_atomic_rmw"), "before"),
    "tt.make_range": "offsets",
    "tt.addptr": "pointers",
    "tt.reduce": "reduced",
    "tt.scan": "scanned",
    "ttg.local_alloc": "tile",
    "ttg.memdesc_index": "tile",
    "tt.make_tensor_descriptor": "desc",
    "amdg.update_tensor_descriptor": "desc",
}
_USES = re.compile(r"_(load|read|operand|store|atomic)$")
_COUNTED = re.compile(r"_\d+$")
# What an operand of an access is, and which it is.
_POINTERS = re.compile(r"_(ptrs?|pointers?)$")
_ACCESSES = {
    "tt.load": ("pointers", 0),
    "tt.store": ("pointers", 0),
    "amdg.buffer_load": ("offs", 1),
    "amdg.buffer_store": ("offs", 2),
    "tt.atomic_rmw": ("pointers", 0),
    "amdg.buffer_atomic_rmw": ("offs", 2),
}
_SUMS = ("arith.addi", "tt.addptr")
_OF_ADDRESSES = (*_SUMS, "arith.muli", "arith.subi", "tt.expand_dims", "tt.broadcast", "tt.splat", "tt.make_range")
_LOADS = ("tt.load", "amdg.buffer_load", "ttg.local_alloc")
_TENSOR, _NUMBER, _TRUTH, _MEMORY = "tensor", "number", "truth", "memory"


def _class(kind: Type) -> str:
    if kind.kind in ("memdesc", "desc"):
        return _MEMORY
    if kind.element == "i1" and kind.kind == "int":
        return _TRUTH
    return _TENSOR if kind.shape else _NUMBER


def plain(name: str) -> str:
    """A variable's name without the number that tells it from others."""
    return _COUNTED.sub("", name)


def unused(base: str, *taken: Container[str]) -> str:
    """The name, or the first one with a number behind it, that nothing has."""
    names = chain([base], (f"{base}_{number}" for number in count(2)))
    return next(name for name in names if not any(name in each for each in taken))


class Names:
    """The names of a function's values."""

    def __init__(self, module: Module, function: Function | None, layouts: LayoutNames, origins: Origins):
        self.module, self.layouts, self.origins = module, layouts, origins
        self.variants: dict[str, list[Type]] = {}  # the tensors of a name
        self.classes: dict[str, set[str]] = {}
        self.slots: set[str] = set()  # values that say which slot of a ring is meant
        self.ends: set[str] = set()  # and how far a loop goes
        self.places: dict[str, str] = {}  # pointers and offsets of accesses -> what they are
        self.loaded: dict[str, set[str]] = {}  # names of what is loaded, or lies in LDS -> its elements
        self.members: Counter[str] = Counter()  # names of the author's, each with how many values are called so
        self.chosen: Counter[str] = Counter()  # names of what one of two values is, each with how many are called so
        self.ahead: set[str] = set()  # what the index of a loop is an iteration later
        self.last: dict[str, Op] = {}  # what the index of a loop is in the end -> the loop
        self.uses: dict[str, str] = {}  # values -> what their first uses are called
        self.elsewhere: set[str] = (
            set()
        )  # what the compiler made of several, where another one than that it is named after stood
        steps: dict[str, str] = {}
        lows: dict[str, Op] = {}
        ops = list(function.walk()) if function else []
        self.pointers = {name for value, name in origins.parameters.items() if origins.kinds[value].kind == "ptr"}
        for op in ops:
            for value in op.operands if op.results else ():
                self.uses.setdefault(value, origins.name(op.results[0]))
            if op.name == "ttg.memdesc_index":
                self.slots.add(op.operands[1])
            for value, kind in zip(op.results, op.result_types):
                self.members[origins.name(value)] += 1
                if base := self._base(value, kind):
                    if op.name in _LOADS:
                        self.loaded.setdefault(base, set()).add(kind.element)
                    self.classes.setdefault(base, set()).add(_class(kind))
                    self.variants.setdefault(base, []).extend([kind] if _class(kind) == _TENSOR else [])
            if op.name == "scf.for":
                self.ends.add(op.for_loop.high)
                lows[op.for_loop.low] = op
                steps[op.for_loop.variable] = op.for_loop.step
                self.places |= dict.fromkeys(_steps(op, origins), "step")
            if op.name == "arith.addi" and op.operands[0] in lows and op.place.line == lows[op.operands[0]].place.line:
                self.last[op.results[0]] = lows[op.operands[0]]
            if op.name == "arith.addi" and op.operands[0] in steps and op.operands[1] == steps[op.operands[0]]:
                self.ahead.add(op.results[0])
            if op.name == "amdg.update_tensor_descriptor":
                self.places |= {value: "offset" for value in op.listed("add_offsets") if value not in self.places}
                if (pred := op.keyword("pred")) is not None:
                    self.places.setdefault(op.operands[pred], "pred")
            if op.name in _ACCESSES:
                what, at = _ACCESSES[op.name]
                self.places.setdefault(op.operands[at], what)
            if op.name == "arith.select":
                self.chosen[origins.name(op.results[0])] += 1
        self.trips = _trips(ops, self.ends)
        for op in ops:
            if op.name == "scf.for" and op.regions[0].blocks[0].ops:
                given = op.regions[0].blocks[0].ops[-1].operands
                self.slots |= {held for (held, _), new in zip(op.for_loop.bindings, given) if new in self.slots}
            if op.name == "arith.select" and op.results[0] in self.slots:
                self.slots.add(op.operands[1])  # the next slot, before it goes back to the first

    def _base(self, value: str, kind: Type) -> str:
        """What the author calls what a value belongs to. What is added to a pointer has the name of the sum in the module."""
        base = self.origins.name(value)
        if value in self.elsewhere:
            base = self.uses[value] or base
        if kind.kind != "int":
            return base
        return _with(_POINTERS.sub("", base), "offs") if base in self.pointers else _POINTERS.sub("_offs", base)

    def of(self, value: str, op: Op, kind: Type) -> str:
        """What the result of an operation is called."""
        base = self._base(value, kind)
        if op.name == "ttg.local_alloc" and (op.operands or self.classes.get(base) != {_MEMORY}):
            return _with(base or self.origins.stem(value) or "tile", "smem")
        if op.name == "tt.get_program_id" and self.classes.get(base, set()) - {_NUMBER}:
            return _plain(op, kind)
        if not base:
            if value in self.slots:
                return "slot"
            if value in self.ends or value in self.trips:
                return "end" if value in self.ends else "trips"
            return self.places.get(value) or _plain(op, kind)
        what = self.places.get(value, "")
        if what == "step":
            return _with(base.removesuffix("_offs"), what)
        if what and base in self.loaded:
            return _with(base, what)
        return self.beside(base, value, kind)

    def of_branch(self, value: str, op: Op, kind: Type) -> str:
        """What a result of a branch is called: as what its regions give, where it has no name."""
        if not self.origins.name(value):
            number = op.results.index(value)
            given = (self.origins.name(region.blocks[-1].ops[-1].operands[number]) for region in op.regions)
            if base := next(filter(None, given), ""):
                return self.beside(base, value, kind)
        return self.of(value, op, kind)

    def is_alone(self, value: str) -> bool:
        """Whether nothing else has the author's name of a value: it is what the author calls so."""
        return (
            self.origins.name(value) not in self.origins.parameters.values()
            and self.members[self.origins.name(value)] == 1
        )

    def goes_on(self, value: str, op: Op) -> bool:
        """Whether a value is one of several under one name that say what becomes of what a loop carries: they are called as that is."""
        return op.name == "arith.select" and self.chosen[self.origins.name(value)] > 1

    def of_loop(self, arguments: Sequence[str]) -> frozenset[str]:
        """The names that several things which a loop carries have: those of the loop, not theirs."""
        found = Counter(filter(None, map(author_name, arguments)))
        return frozenset(name for name, count in found.items() if count > 1)

    def carried(self, argument: str, first: str, kind: Type, new: str = "") -> str:
        """What is called that a loop carries. new: what it becomes, where that is known."""
        named = (author_name(argument), self.origins.name(first))
        base = next((name for name in named if name and not name.startswith("arg")), "")
        if not base and argument not in self.slots:
            base = self.origins.name(new)
        base = _POINTERS.sub("_offs", base) if kind.kind == "int" else base
        return self.beside(base, argument, kind) if base else "slot" if argument in self.slots else "carried"

    def index(self, loop: Op) -> str:
        """What the index of a loop is called: the compiler gives it the name of a tile that the loop makes, where it has none."""
        value = loop.for_loop.variable
        base = author_name(value)
        return base if base and not base.startswith("arg") and not self.classes.get(base, set()) - {_NUMBER} else "i"

    def beside(self, base: str, value: str, kind: Type) -> str:
        """A name for what belongs to the author's `base`, which is that itself only where nothing is more like it."""
        found, own = self.classes.get(base, set()), _class(kind)
        if own == _MEMORY:
            return base if found == {_MEMORY} else _with(base, "desc" if kind.kind == "desc" else "slot")
        if own == _TRUTH and found - {_TRUTH}:
            return self._variant(base, _with(base, "mask"), kind) if kind.shape else "condition"
        if own == _NUMBER and found & {_TENSOR, _MEMORY}:
            return "slot" if value in self.slots else _with(base, "base") if kind.kind == "int" else base
        made = self.origins.made.get(value)
        cast = made is not None and made.name.startswith(("arith.ext", "arith.trunc"))
        adds = made is not None and made.name in _OF_ADDRESSES
        if kind.kind == "int" and not cast and adds and self.loaded.get(base, {kind.element}) - {kind.element}:
            return self._variant(base, _with(base, "offs"), kind) if kind.shape else _with(base, "offs")
        return self._variant(base, base, kind) if kind.shape else base

    def _variant(self, base: str, name: str, kind: Type) -> str:
        """The name of one of several tensors that belong to the author's `base`: which rows or columns it says, and for what it lies as it
        does, where the others lie otherwise."""
        others = self.variants.get(base, [])
        layout = self.module.layout(kind)
        if kind.kind not in ("int", "ptr"):
            return name
        layouts = list(dict.fromkeys(self.module.layout(other) for other in others))
        roots = list(dict.fromkeys(map(unsliced, layouts)))
        of_tile = any(len(other.shape or ()) == 2 and 1 not in other.shape for other in others)
        if of_tile or len([each for each in layouts if unsliced(each) == unsliced(layout)]) > 1:
            name = _with(name, along) if (along := _along(kind, layout)) else name
        main = next((root for root in roots if self._is_of(root, base)), roots[0] if roots else layout)
        use = self._use(own := unsliced(layout))
        return name if own == main or not use or self._is_of(own, base) else _with(name, use)

    def _use(self, layout: Layout) -> str:
        """What a layout is for: `a` of one in which `a` is loaded, or an operand; "" where no operation says so."""
        if isinstance(layout, (Mfma, Wmma)):
            return product_role(layout)
        rank, _, role = min(self.layouts.roles.get(layout, []), default=(UNSURE, 0, ""))
        return _USES.sub("", role) if rank < UNSURE else ""

    def _is_of(self, layout: Layout, base: str) -> bool:
        """Whether a layout is for what the author calls `base`, or what that points to."""
        use = self._use(layout)
        return bool(use) and (base.lower() == use or base.lower().startswith(f"{use}_"))


def _along(kind: Type, layout: Layout) -> str:
    """What a tensor of numbers says of a tile: something for each of its rows, or for each column; "" of what is as large as the tile."""
    if len(kind.shape) == 1:
        return ("cols", "rows")[layout.dim] if isinstance(layout, Slice) and layout.dim < 2 else ""
    if len(kind.shape) == 2 and 1 in kind.shape:
        return ("cols", "rows")[kind.shape.index(1)]
    return ""


def _steps(loop: Op, origins: Origins) -> set[str]:
    """What a loop adds to the numbers and pointers that it carries, which it does not make itself."""
    inside = {value for op in loop.regions[0].walk() for value in op.results} | {loop.for_loop.variable}
    last = loop.regions[0].blocks[0].ops[-1].operands
    made = ((held, origins.made.get(new)) for (held, _), new in zip(loop.for_loop.bindings, last))
    sums = [op.operands for held, op in made if op is not None and op.name in _SUMS and op.operands[0] == held]
    return {step for _, step in sums if step not in inside}


def _trips(ops: Sequence[Op], ends: set[str]) -> set[str]:
    """What the ends of loops are made of by taking the tiles away that are ahead."""
    return {op.operands[0] for op in ops if op.name == "arith.subi" and op.results[0] in ends}


def part_of(name: str, what: str) -> str:
    """A name for a part of a variable: a slot of `a_smem` is `a_slot`."""
    return _with(re.sub(r"_(smem|desc|slot)$", "", plain(name)), what)


def _with(base: str, what: str) -> str:
    """A name that says what this is of the author's, where it does not yet."""
    return base if base.endswith(what) else f"{base}_{what}"


def _plain(op: Op, kind: Type) -> str:
    if op.name in ("tt.get_program_id", "tt.get_num_programs"):
        number = {"x": "", "y": "_1", "z": "_2"}[op.word]
        return f"{'pid' if op.name == 'tt.get_program_id' else 'programs'}{number}"
    if _class(kind) == _TRUTH:
        return "mask" if kind.shape else "condition"
    return _PLAIN.get(op.name, "x")
