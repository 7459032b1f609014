"""Follow the slots of an LDS ring through the first iterations of a loop, as its text says.

Tiles are counted: each fill before the loop brings the next one, each iteration fetches one more and reads one. What
a fill copies is not looked at, only where it goes.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gluonize.rules.gluon import Effect, named

_COPIERS = ("async_copy", "tdm")
_COMMITS = named(Effect.COMMITS)
_WAITS = named(Effect.WAITS, *_COPIERS)
_FILLS = named(Effect.FILLS, *_COPIERS)
# Of the tensor data mover every load is a group of its own.
_OWN_WAITS, _OWN_GROUPS = named(Effect.WAITS, "tdm"), named(Effect.FILLS, "tdm")
_READS = named(Effect.READS, "memory", "async_copy") - named(Effect.STORES)
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
}
# Stands for a tile size that the text does not tell; any positive number does.
UNKNOWN_STEP = 64
MOST_FILLS = 16


@dataclass(frozen=True)
class Replay:
    """What happens to one ring. mechanism: `copies` (asynchronous), `registers` or `held`. prologue: tiles fetched before the
    loop, which is also how far ahead an iteration fetches. wait: commit groups that may be outstanding when a tile is
    read.

    first: events before the loop; iterations: of each iteration, in order; last: after the loop. The events are those
    of `gluonize.product.report.loops.hazards`.
    """

    mechanism: str
    buffers: int
    prologue: int
    wait: int
    first: tuple[tuple, ...]
    iterations: tuple[tuple[tuple, ...], ...]
    last: tuple[tuple, ...]

    @property
    def ahead(self) -> int:
        return self.prologue

    def events(self, trips: int) -> Iterator[tuple]:
        """In order, for at most as many trips as were followed."""
        assert trips <= len(self.iterations), f"only {len(self.iterations)} iterations were followed"
        yield from self.first
        for iteration in self.iterations[:trips]:
            yield from iteration
        yield from self.last

    def slot_of(self, tile: int) -> int:
        """Where a tile is put."""
        every = [e for e in self.events(len(self.iterations)) if e[0] in ("copy", "store", "tensor")]
        return next(event[2] for event in every if event[1] == tile)


def replay_of(
    loop: ast.For, before: list[ast.stmt], ring: str, buffers: int, rings: int, names: Mapping[str, int]
) -> Replay | None:
    """Follow `ring` through the statements `before` the loop and its first iterations; None when a slot is not a number
    that the text tells. rings: how many the loop fills, which is what TDM waits count."""
    follower = _Follower(ring, rings, dict(names))
    bounds = loop.iter.args if isinstance(loop.iter, ast.Call) else []
    step = bounds[2] if len(bounds) == 3 else None
    for name in {n.id for n in ast.walk(step) if isinstance(n, ast.Name)} if step is not None else ():
        follower.names.setdefault(name, UNKNOWN_STEP)
    if len(bounds) > 1 and isinstance(bounds[0], ast.Name):
        follower.names.setdefault(bounds[0].id, 0)
    low = value_of(bounds[0], follower.names) if len(bounds) > 1 else 0
    stride = value_of(step, follower.names) if step is not None else 1
    if low is None or stride is None:
        return None
    try:
        allocated = max((i for i, s in enumerate(before) if _allocates(s, ring)), default=-1)
        follower.run(before[allocated + 1 :])
        prologue, first = follower.tile, tuple(follower.take())
        iterations = []
        for i in range(buffers + 8):
            if isinstance(loop.target, ast.Name):
                follower.names[loop.target.id] = low + i * stride
            follower.iteration = i
            follower.run(loop.body)
            if follower.tile != prologue + i + 1:
                return None
            iterations.append(tuple(follower.take()))
    except _NotFollowed:
        return None
    copies = not any(e[0] == "store" for e in first + iterations[0])
    waits = [e[1] for e in iterations[0] if e[0] == "wait"]
    last = (("drain", 0),) if copies else ()
    mechanism = "copies" if copies else "registers"
    return Replay(mechanism, buffers, prologue, waits[0] if waits else 0, first, tuple(iterations), last)


class _NotFollowed(Exception):
    """The text does something that is not understood here."""


class _Follower:
    """Runs statements on integers and notes what they do to one ring."""

    def __init__(self, ring: str, rings: int, names: dict[str, int]):
        self.ring, self.rings, self.names = ring, rings, names
        self.tile = 0
        self.iteration = -1
        self.events: list[tuple] = []

    def take(self) -> list[tuple]:
        events, self.events = self.events, []
        return events

    def run(self, statements: list[ast.stmt]) -> None:
        for s in statements:
            if isinstance(s, ast.For):
                self._loop(s)
            elif isinstance(s, (ast.If, ast.While, ast.With)):
                if self.ring in ast.unparse(s):
                    raise _NotFollowed
            else:
                self._calls(s)
                self._assign(s)

    def _loop(self, s: ast.For) -> None:
        if self.ring not in ast.unparse(s):
            return
        count = value_of(s.iter.args[-1], self.names) if isinstance(s.iter, ast.Call) and s.iter.args else None
        if (
            "static_range" not in ast.unparse(s.iter)
            or count is None
            or count > MOST_FILLS
            or not isinstance(s.target, ast.Name)
        ):
            raise _NotFollowed
        for i in range(count):
            self.names[s.target.id] = i
            self.run(s.body)

    def _assign(self, s: ast.stmt) -> None:
        target = s.targets[0] if isinstance(s, ast.Assign) else getattr(s, "target", None)
        value = getattr(s, "value", None)
        if not isinstance(target, ast.Name) or value is None:
            return
        if isinstance(s, ast.AugAssign):
            value = ast.BinOp(ast.Name(target.id), s.op, value)
        found = value_of(value, self.names)
        if found is not None:
            self.names[target.id] = found
        else:
            self.names.pop(target.id, None)

    def _calls(self, s: ast.stmt) -> None:
        """The calls of one statement, inner ones first, which is the order in which they run."""
        for call in _in_order(s):
            name = called(call)
            if name in _WAITS and call.args:
                count = value_of(call.args[0], self.names)
                if count is None:
                    raise _NotFollowed
                self.events.append(("wait", -(-count // self.rings) if name in _OWN_WAITS else count))
            elif name in _COMMITS:
                self.events.append(("commit",))
            elif (slot := self._slot(call, name)) is not None:
                self._touch(name, slot)

    def _touch(self, name: str, slot: int) -> None:
        if name in _READS:
            self.events.append(("read", self.iteration, slot))
            return
        if name == "store":
            self.events += [("load", self.tile), ("store", self.tile, slot)]
        else:
            self.events.append(("copy", self.tile, slot))
            if name in _OWN_GROUPS:  # every TDM load is a group of its own
                self.events.append(("commit",))
        self.tile += 1

    def _slot(self, call: ast.Call, name: str) -> int | None:
        """The slot that a load, store or copy of this ring is for; None for any other call."""
        if name in ("load", "store") and isinstance(call.func, ast.Attribute):
            where = [call.func.value]
        elif name in _FILLS or name in _READS:
            where = [*call.args, *(k.value for k in call.keywords)]
        else:
            return None
        for node in where:
            if isinstance(node, ast.Call) and called(node) == "index" and isinstance(node.func, ast.Attribute):
                if isinstance(node.func.value, ast.Name) and node.func.value.id == self.ring:
                    found = value_of(node.args[0], self.names)
                    if found is None:
                        raise _NotFollowed
                    return found
        return None


def _allocates(s: ast.stmt, ring: str) -> bool:
    return isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and s.targets[0].id == ring


def _in_order(node: ast.AST) -> list[ast.Call]:
    found = [c for child in ast.iter_child_nodes(node) for c in _in_order(child)]
    return [*found, node] if isinstance(node, ast.Call) else found


def called(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def value_of(node: ast.expr, names: Mapping[str, int]) -> int | None:
    """An integer expression of known names, else None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Call):
        values = [value_of(a, names) for a in node.args]
        if called(node) == "constexpr" and len(values) == 1:
            return values[0]
        if called(node) == "where" and len(values) == 3 and None not in values:
            return values[1] if values[0] else values[2]
        return None
    if isinstance(node, ast.IfExp):
        test = value_of(node.test, names)
        return None if test is None else value_of(node.body if test else node.orelse, names)
    if isinstance(node, ast.BinOp) or (isinstance(node, ast.Compare) and len(node.ops) == 1):
        kind = type(node.op) if isinstance(node, ast.BinOp) else type(node.ops[0])
        left = value_of(node.left, names)
        right = value_of(node.right if isinstance(node, ast.BinOp) else node.comparators[0], names)
        if kind in _OPERATORS and left is not None and right is not None:
            return None if right == 0 and kind in (ast.FloorDiv, ast.Mod) else int(_OPERATORS[kind](left, right))
    return None
