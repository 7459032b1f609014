"""What variables are called: as the author calls what they stand for, where the module says so, else by what they are.

The compiler gives what it makes on the way the name of the statement that it belongs to: a slot, a condition and a mask of the tile `a` are
called `a` too. The plain name is kept for what is most like the author's: a tensor before a number, numbers before conditions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from gluonize.trace.model.module import Function
from gluonize.trace.model.op import Op
from gluonize.trace.model.op_text import author_name as named
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
_NUMBERED = re.compile(r"\.\d+(?=#|$)")
_COUNTED = re.compile(r"_\d+$")
# What an operand of an access is, and which it is.
_ACCESSES = {
    "tt.load": ("pointers", 0),
    "tt.store": ("pointers", 0),
    "amdg.buffer_load": ("offsets", 1),
    "amdg.buffer_store": ("offsets", 2),
}
_TENSOR, _NUMBER, _TRUTH, _MEMORY = "tensor", "number", "truth", "memory"


def _class(kind: Type) -> str:
    if kind.kind in ("memdesc", "desc"):
        return _MEMORY
    if kind.element == "i1" and kind.kind == "int":
        return _TRUTH
    return _TENSOR if kind.shape else _NUMBER


def author_name(value: str) -> str:
    """The author's name of a value, "" where there is none; a value that got a name of its own here (`unique.py`) is called as before."""
    return named(_NUMBERED.sub("", value))


def plain(name: str) -> str:
    """A variable's name without the number that tells it from others."""
    return _COUNTED.sub("", name)


class Names:
    """The names of a function's values."""

    def __init__(self, function: Function | None):
        self.classes: dict[str, set[str]] = {}
        self.slots: set[str] = set()  # values that say which slot of a ring is meant
        self.ends: set[str] = set()  # and how far a loop goes
        self.places: dict[str, str] = {}  # pointers and offsets of accesses -> what they are
        self.loaded: set[str] = set()  # names of what is loaded
        self.chosen: Counter[str] = Counter()  # names of what one of two values is, each with how many are called so
        ops = list(function.walk()) if function else []
        for op in ops:
            if op.name == "ttg.memdesc_index":
                self.slots.add(op.operands[1])
            for value, kind in zip(op.results, op.result_types):
                if base := author_name(value) or op.place.name:
                    self.classes.setdefault(base, set()).add(_class(kind))
            if op.name == "scf.for":
                self.ends.add(op.for_loop.high)
            if op.name == "amdg.update_tensor_descriptor":
                self.places |= {value: "offset" for value in op.listed("add_offsets") if value not in self.places}
            if op.name in _ACCESSES:
                what, at = _ACCESSES[op.name]
                self.places.setdefault(op.operands[at], what)
                self.loaded.update(author_name(value) or op.place.name for value in op.results)
            if op.name == "arith.select":
                self.chosen[author_name(op.results[0]) or op.place.name] += 1
        self.trips = _trips(ops, self.ends)
        for op in ops:
            if op.name == "scf.for" and op.regions[0].blocks[0].ops:
                given = op.regions[0].blocks[0].ops[-1].operands
                self.slots |= {held for (held, _), new in zip(op.for_loop.bindings, given) if new in self.slots}
            if op.name == "arith.select" and op.results[0] in self.slots:
                self.slots.add(op.operands[1])  # the next slot, before it goes back to the first

    def of(self, value: str, op: Op, kind: Type) -> str:
        """What the result of an operation is called."""
        base = author_name(value) or op.place.name
        if op.name == "ttg.local_alloc":
            return _with(base or "tile", "smem")
        if not base:
            if value in self.ends or value in self.trips:
                return "end" if value in self.ends else "trips"
            return self.places.get(value) or _plain(op, kind)
        if value in self.places and base in self.loaded:
            return _with(base, self.places[value])
        return self.beside(base, value, kind)

    def goes_on(self, value: str, op: Op) -> bool:
        """Whether a value is one of several under one name that say what becomes of what a loop carries: they are called as that is."""
        return op.name == "arith.select" and self.chosen[author_name(value) or op.place.name] > 1

    def of_loop(self, arguments: Sequence[str]) -> frozenset[str]:
        """The names that several things which a loop carries have: those of the loop, not theirs."""
        found = Counter(filter(None, map(author_name, arguments)))
        return frozenset(name for name, count in found.items() if count > 1)

    def carried(self, argument: str, first: str, kind: Type, new: str = "") -> str:
        """What is called that a loop carries. new: what it becomes, where that is known."""
        named = (author_name(value) for value in (argument, first))
        base = next((name for name in named if name and not name.startswith("arg")), "")
        if not base and argument not in self.slots:
            base = author_name(new)
        return self.beside(base, argument, kind) if base else "slot" if argument in self.slots else "carried"

    def index(self, value: str) -> str:
        """What the index of a loop is called: the compiler gives it the name of a tile that the loop makes, where it has none."""
        base = author_name(value)
        return base if base and not base.startswith("arg") and not self.classes.get(base, set()) - {_NUMBER} else "i"

    def beside(self, base: str, value: str, kind: Type) -> str:
        """A name for what belongs to the author's `base`, which is that itself only where nothing is more like it."""
        found, own = self.classes.get(base, set()), _class(kind)
        if own == _MEMORY:
            return base if found == {_MEMORY} else _with(base, "desc" if kind.kind == "desc" else "slot")
        if own == _TRUTH and found - {_TRUTH}:
            return _with(base, "mask") if kind.shape else "condition"
        if own == _NUMBER and found & {_TENSOR, _MEMORY}:
            return "slot" if value in self.slots else _with(base, "base")
        return base


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
