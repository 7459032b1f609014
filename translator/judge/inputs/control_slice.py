"""What decides the way through a kernel: its module without the operations that no condition and no loop bound needs.

It takes all branches and loops as the whole module does, for a hundredth of the work, so many inputs can be asked which way they go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gluonize.judge.machine.control import TERMINATORS
from gluonize.trace.model.module import Function, Module
from gluonize.trace.model.op import Block, Op, Region

_CONTROL = frozenset({"scf.if", "scf.for", "scf.while", "scf.execute_region", "tt.call"})
_ATOMIC = ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_poll", "tt.atomic_store", "tt.store")


class Partial(dict):
    """Values of a slice; one that it has not computed is None."""

    def __missing__(self, key: str) -> None:
        return None


@dataclass(frozen=True)
class ControlSlice:
    """module: the slice; origin: the block of the whole module that a block of it stands for; parameters: of the entry
    function, those that decide anything."""

    module: Module
    origin: dict[Block, Block]
    parameters: frozenset[str]


def control_slice(module: Module) -> ControlSlice:
    """The operations that decide which blocks run and how often."""
    origin: dict[Block, Block] = {}
    functions = {}
    parameters: frozenset[str] = frozenset()
    for name, function in module.functions.items():
        needed = needed_values(function, decisions(function))
        functions[name] = replace(function, region=_region(function.region, needed, origin))
        if function is module.entry:
            pairs = zip(function.arguments, function.argument_names)
            parameters = frozenset(name for (value, _), name in pairs if value in needed)
    entry = functions[module.entry.name]
    return ControlSlice(replace(module, functions=functions, entry=entry), origin, parameters)


def decisions(function: Function) -> Iterator[str]:
    """Values that conditions and loop bounds of a function are, and all that a waiting loop may depend on."""
    waits = any(op.name == "scf.while" and _touches_memory(op) for op in function.walk())
    for op in function.walk():
        if op.name in ("scf.if", "cf.cond_br"):
            yield op.condition
        if op.name in ("cf.br", "cf.cond_br", "tt.call", "scf.condition", "tt.return"):
            yield from op.operands
        if op.name == "scf.for":
            yield from (op.for_loop.low, op.for_loop.high, op.for_loop.step)
        if waits and op.name in _ATOMIC:  # another program may wait for it
            yield from op.operands


def _touches_memory(loop: Op) -> bool:
    return any(op.name.startswith(("tt.load", "tt.atomic")) for op in Function("", (), (), (), loop.regions[0]).walk())


def needed_values(function: Function, roots: Iterator[str]) -> frozenset[str]:
    """Everything that `roots` are computed from, through loops and branches."""
    sources = _sources(function)
    needed: set[str] = set()
    waiting = list(roots)
    while waiting:
        value = waiting.pop()
        if value not in needed:
            needed.add(value)
            waiting += sources.get(value, ())
    return frozenset(needed)


def _sources(function: Function) -> dict[str, tuple[str, ...]]:
    """Per value what it is computed from directly. Regions side by side may give one name to different values: it stands for all of
    them."""
    out: dict[str, tuple[str, ...]] = {}
    for op in function.walk():
        for name, sources in _sources_of(op):
            out[name] = out.get(name, ()) + sources
    return out


def _sources_of(op: Op) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What an operation makes, and the arguments of its regions, with what each is computed from directly."""
    yields = [region.blocks[-1].ops[-1].operands for region in op.regions if region.blocks and region.blocks[-1].ops]
    if op.name == "scf.for":
        loop = op.for_loop
        yield loop.variable, (loop.low, loop.high, loop.step)
        for (name, first), last, result in zip(loop.bindings, yields[0] if yields else (), op.results):
            yield name, (first, last)
            yield result, (first, last)
    elif op.name == "scf.if":
        for number, result in enumerate(op.results):
            yield result, (op.condition, *(values[number] for values in yields))
    elif op.name == "scf.while":
        everything = (*(first for _, first in op.bindings), *(value for values in yields for value in values))
        names = [name for name, _ in op.bindings]
        names += [name for region in op.regions for name, _ in region.blocks[0].arguments]
        yield from ((name, everything) for name in (*names, *op.results))
    else:
        inner = Function("", (), (), (), Region("", tuple(block for region in op.regions for block in region.blocks)))
        free = tuple(value for one in inner.walk() for value in one.operands)
        yield from ((result, (*op.operands, *free)) for result in op.results)


def _region(region: Region, needed: frozenset[str], origin: dict[Block, Block]) -> Region:
    blocks = []
    for block in region.blocks:
        kept = []
        for op in block.ops:
            if op.name in _CONTROL:
                kept.append(replace(op, regions=tuple(_region(inner, needed, origin) for inner in op.regions)))
            elif op.name in TERMINATORS or needed.intersection(op.results) or _stays(op, needed):
                kept.append(op)
        blocks.append(replace(block, ops=tuple(kept)))
        origin[blocks[-1]] = block
    return Region(region.head, tuple(blocks))


def _stays(op: Op, needed: frozenset[str]) -> bool:
    """A store or an atomic operation whose result nobody needs, all of whose operands are there."""
    return op.name in _ATOMIC and needed.issuperset(op.operands)
