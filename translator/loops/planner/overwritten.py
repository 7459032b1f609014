"""Loads that may not run ahead because their loop writes what a later iteration loads.

for i in range(n - 1):
    a = tl.load(x_ptr + i * stride + offs)                  # what the iteration before has stored
    tl.store(x_ptr + (i + 1) * stride + offs, a * w)

Tiles and writes of different kernel arguments are taken to be different memory, as by Triton. Of the same argument they are
apart where their numbers say so; strides that are known at run time only may be anything.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.polynomials import INDEX, Polynomial, add, fixed, moving
from gluonize.facts.loops.loop_range import step_of
from gluonize.facts.numbers.signs import obligation_at
from gluonize.facts.obligations import Obligation
from gluonize.facts.refusals import line_of
from gluonize.facts.syntax import arguments_of
from gluonize.facts.variables.same_value import value_key
from gluonize.loops.loop.index_loads import reads_only, writes
from gluonize.loops.plan.tiles.address_reader import AddressReader
from gluonize.loops.plan.tiles.terms import NotATile, strides_of
from gluonize.trace.front.trace import TensorFact, TupleFact
from gluonize.write.accesses.addresses import is_pointer

_ANY = "*"  # a pointer from anywhere


def overwritten(facts: FunctionFacts, loop: ast.For, bounds: tuple, call: ast.Call, ahead: int) -> str:
    """Why the load `call` may find something else `ahead` iterations before its own; empty where it does not."""
    loaded = _roots(facts, _address(facts, call), set())
    for write in _writes(facts, loop):
        helper = not writes(facts, write)
        targets = arguments_of(write) if helper else [_address(facts, write)]
        for target in targets:
            written = _roots(facts, target, set()) if not helper or _points(facts, target) else set()
            if not (loaded & written or written and _ANY in loaded | written):
                continue
            if helper or not _apart(facts, loop, bounds, call, write, ahead):
                return f"what the load in line {line_of(facts.frame, call)} reads may be written in line {line_of(facts.frame, write)}"
    return ""


def elsewhere(facts: FunctionFacts, loop: ast.For, calls: Iterable[ast.Call]) -> set[Obligation]:
    """What loads that run ahead of a loop's writes rest on: that these are of other memory, or were found apart."""
    if not _writes(facts, loop):
        return set()
    rewrite = "tiles ahead of what their loop writes"
    return {obligation_at(facts, call, "apart", rewrite, "contract") for call in calls}


def _writes(facts: FunctionFacts, loop: ast.For) -> list[ast.Call]:
    """The calls in a loop that write memory."""
    calls = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Call)]
    return [n for n in calls if callees.is_helper(facts, n) and not reads_only(facts, n) or writes(facts, n)]


def _points(facts: FunctionFacts, node: ast.expr) -> bool:
    fact = facts.fact(node)
    pointer = isinstance(fact, TensorFact) and fact.is_pointer
    return pointer or isinstance(fact, TupleFact) or callees.is_descriptor(fact)


def _address(facts: FunctionFacts, call: ast.Call) -> ast.expr:
    """The pointer or the descriptor that a load or a write is given."""
    callee = callees.callee_of(facts, call)
    if callee.owner is not None:
        return callee.owner
    given = callees.bind(call, callee)
    return given.get("pointer") or given.get("desc") or next(iter(given.values()))


def _roots(facts: FunctionFacts, node: ast.expr | None, seen: set[int]) -> set[str]:
    """The kernel arguments that an address may come from."""
    if node is None:
        return {_ANY}
    if isinstance(node, ast.BinOp):
        return _roots(facts, node.left if is_pointer(facts, node.left) else node.right, seen)
    if isinstance(node, ast.IfExp):
        return _roots(facts, node.body, seen) | _roots(facts, node.orelse, seen)
    if isinstance(node, ast.Subscript):
        return _roots(facts, node.value, seen)
    if isinstance(node, ast.Call):
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        inputs = [n for n in [*owner, *arguments_of(node)] if _points(facts, n)]
        return set().union(*(_roots(facts, n, seen) for n in inputs)) if inputs else {_ANY}
    if not isinstance(node, ast.Name) or (web := facts.webs.of_use.get(node)) is None:
        return {_ANY}
    if web.index in seen:
        return set()
    seen.add(web.index)
    found: set[str] = set()
    for d in web.definitions:
        if isinstance(d.node, ast.arg):
            found.add((facts.pointers.roots.get(d.name) or _ANY) if facts.path else d.name)
        elif not d.augmented:
            found |= _roots(facts, d.value, seen)
    return found


@dataclass(frozen=True)
class _Tile:
    """The elements that an access takes: base, offset of the first (the loop index is in it), stride and extent by dimension."""

    base: str
    start: Polynomial
    strides: tuple[Polynomial, ...]
    extents: tuple[int, ...]


def _tile(facts: FunctionFacts, loop: ast.For, low: ast.expr | None, step: ast.expr | None, pointer: ast.expr) -> _Tile:
    """Raises: NotATile for an address that is not a sum of strides."""
    fact = facts.fact(pointer)
    reader = AddressReader(facts, loop, low, step, fact.shape)
    base, address = reader.pointer(pointer, tuple(range(len(fact.shape))))
    strides, start = strides_of(reader.numeric(address), len(fact.shape))
    if any(monomial.count(INDEX) > 1 for monomial in start):
        raise NotATile("its address is not affine")
    # What the loop moves is known by what it starts with.
    web = facts.webs.of_use.get(base) if base in reader.moved_bases else None
    name = f"start of {web.name}#{web.index}" if web is not None else value_key(facts, base, loop)
    return _Tile(name, start, tuple(strides), tuple(fact.shape))


def _apart(facts: FunctionFacts, loop: ast.For, bounds: tuple, load: ast.Call, write: ast.Call, ahead: int) -> bool:
    """Whether no element that `write` writes is one that `load` reads 1 to `ahead` iterations later."""
    low, _, step = bounds
    by = step_of(facts, step)
    pointers = _address(facts, load), _address(facts, write)
    if any(not isinstance(facts.fact(p), TensorFact) for p in pointers):
        return False
    try:
        read, written = (_tile(facts, loop, low, step, p) for p in pointers)
    except NotATile:
        return False
    if read.base != written.base or moving(read.start) != moving(written.start):
        return False
    walk = {tuple(a for a in m if a != INDEX): c * by for m, c in moving(read.start).items()}
    gap = add(fixed(read.start), fixed(written.start), -1)
    distances = [add(gap, {m: c * d for m, c in walk.items()}, 1) for d in range(1, ahead + 1)]
    return all(_numbers_apart(read, written, distance) for distance in distances)


def _number(polynomial: Polynomial) -> int | None:
    return polynomial.get((), 0) if set(polynomial) <= {()} else None


def _numbers_apart(read: _Tile, written: _Tile, distance: Polynomial) -> bool:
    """Whether two tiles whose starts are `distance` apart have no element in common, by numbers."""
    sizes = [
        [None if (n := _number(stride)) is None else n * (extent - 1) for stride, extent in zip(t.strides, t.extents)]
        for t in (read, written)
    ]
    first = _number(distance)
    if first is None or any(size is None for side in sizes for size in side):
        return False
    least = first + sum(min(0, n) for n in sizes[0]) - sum(max(0, n) for n in sizes[1])
    most = first + sum(max(0, n) for n in sizes[0]) - sum(min(0, n) for n in sizes[1])
    return least > 0 or most < 0


__all__ = ["overwritten"]
