"""Which parameters of a kernel are strides by what is done with them, and of which tensors: numbers are multiplied with them, and added
to a pointer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gluonize.judge.inputs.program_scalars import carried
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op

_SAME = ("arith.extsi", "arith.extui", "arith.trunci", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.unsplat")
_SUMS = ("arith.addi", "arith.subi")
_TESTED = ("arith.cmpi", "arith.divsi", "arith.divui", "arith.remsi", "arith.remui")  # as the sizes of a tensor are


@dataclass(frozen=True)
class UsedStrides:
    """tensors: of each integer of the entry function that is a factor of terms of addresses, and nothing else, the pointers that these are
    added to; unit: the pointers that numbers of elements are added to as they are."""

    tensors: Mapping[str, frozenset[str]]
    unit: frozenset[str] = frozenset()

    def others(self, name: str) -> list[str]:
        """The strides of the tensors that `name` is one of, itself among them."""
        return [other for other, own in self.tensors.items() if own & self.tensors[name]]

    def is_dense(self, name: str) -> bool:
        """Whether the elements of a tensor that `name` is a stride of lie side by side in another dimension."""
        return bool(self.tensors[name] & self.unit)


def strides_by_use(module: Module) -> UsedStrides:
    """The strides of the entry function, in the order of its parameters."""
    made: dict[str, Op] = {}
    users: dict[str, list[Op]] = {}
    names = {value: name for (value, _), name in zip(module.entry.arguments, module.entry.argument_names)}
    roots = {value: names[value] for value, kind in module.entry.arguments if kind.kind == "ptr"}
    moved: list[tuple[str, str]] = []
    for op in module.entry.walk():
        made.update(dict.fromkeys(op.results, op))
        for operand in op.operands:
            users.setdefault(operand, []).append(op)
        roots |= {value: roots[first] for value, first in carried(op) if first in roots}
        if op.name in (*_SAME, "tt.addptr") and op.operands[0] in roots:
            roots[op.results[0]] = roots[op.operands[0]]
            moved += [(roots[op.operands[0]], op.operands[1])] if op.name == "tt.addptr" else []
    integers = [value for value, kind in module.entry.arguments if kind.kind == "int" and _is_stride(value, users)]
    tensors: dict[str, set[str]] = {names[value]: set() for value in integers}
    unit: set[str] = set()
    for pointer, offset in moved:
        for term in _parts(offset, made, _SUMS):
            factors = set(_parts(term, made, ("arith.muli",)))
            for value in factors.intersection(integers):
                tensors[names[value]].add(pointer)
            if factors.isdisjoint(integers) and any(f in made and made[f].name == "tt.make_range" for f in factors):
                unit.add(pointer)
    return UsedStrides({name: frozenset(found) for name, found in tensors.items() if found}, frozenset(unit))


def _parts(value: str, made: Mapping[str, Op], names: tuple[str, ...]) -> Iterator[str]:
    """What operations of these names put together to a value."""
    op = made.get(value)
    if op is not None and op.name in (*_SAME, *names):
        for operand in op.operands:
            yield from _parts(operand, made, names)
    else:
        yield value


def _is_stride(argument: str, users: Mapping[str, list[Op]]) -> bool:
    reached = [(argument, False)]
    seen = set(reached)
    while reached:
        value, multiplied = reached.pop()
        for op in users.get(value, ()):
            if op.name not in _SAME and op.name != "arith.muli" and (not multiplied or op.name in _TESTED):
                return False
            if op.name in (*_SAME, *_SUMS, "arith.muli"):
                step = (op.results[0], multiplied or op.name == "arith.muli")
                reached += [step] if step not in seen else []
                seen.add(step)
    return True
