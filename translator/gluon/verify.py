"""Runs the copies, waits and reads of a pipelined loop as the hardware would, for small trip counts, and says what is wrong.

Found: a read of a slot that holds another tile or none, a read before a wait that covers its copy, a slot that is filled before
its tile is read or with no barrier since, a slot that is stored to where warps a stage behind still read it, copies in flight behind the loop; and, of a pass, values that are used before they are
made, or made twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gluonize.gluon.nodes import (
    Assign,
    Barrier,
    Binary,
    Choose,
    Commit,
    Current,
    Fill,
    Least,
    Load,
    Name,
    Named,
    Node,
    Number,
    Pipelined,
    Previous,
    Read,
    Repeat,
    Slot,
    Stage,
    Store,
    Wait,
    When,
    binds,
    reads,
    walk,
)

_OPERATORS = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "%": int.__mod__}


def problems(loop: Pipelined) -> list[str]:
    """What is wrong with the order of copies, waits and reads, once each; empty for a correct loop."""
    found: dict[str, None] = {}
    for depth in [int(loop.depth)] if loop.depth.isdigit() else range(loop.fewest, loop.fewest + 3):
        for trips in loop.trips or range(2 * depth + 2):
            machine = _Machine(loop, depth, trips)
            machine.run()
            found |= dict.fromkeys(machine.found[:1])
    return list(found)


def moved(before: tuple[Node, ...], after: Pipelined) -> list[str]:
    """What a pass that moves statements of the body `before` has broken: a value that is used before it is made, or made twice."""
    carried = binds(after.before)
    once = {name for name, count in _bindings(before) if count == 1}
    early = {name for name in once if name in _read_early(before)}
    now = dict(_bindings(after.body))
    made = {name for name in now if name not in dict(_bindings(before))}
    used_early = _read_early(after.body)
    slots = {s.target for s in _flat(before) if isinstance(s, Assign) and _named_slot(s) is not None} - reads(
        after.body
    )
    wrong = [
        name
        for name in sorted(once | made, key=repr)
        if now.get(name, 0) != 1 and not (name in slots and name not in now)
    ]
    found = [f"{_shown(name)} is made {now.get(name, 0)} times" for name in wrong]
    late = sorted(((once - early) | made) & used_early - carried, key=repr)
    return found + [f"{_shown(name)} is used before it is made" for name in late]


def _shown(name: Name) -> str:
    return f"`{name}`" if isinstance(name, str) else repr(name)


def _named_slot(s: Assign) -> Slot | None:
    """The slot that a variable names; None where it holds something else."""
    inside = list(walk(s.value))
    return (
        next((n for n in inside if isinstance(n, Slot)), None) if not any(isinstance(n, Read) for n in inside) else None
    )


def _flat(statements: tuple[Node, ...]) -> Iterator[Node]:
    for s in statements:
        if isinstance(s, (Stage, Repeat, When)):
            yield from _flat(s.body)
        else:
            yield s


def _bindings(statements: tuple[Node, ...]) -> list[tuple[str, int]]:
    made: dict[str, int] = {}
    for s in _flat(statements):
        for name in binds(s):
            made[name] = made.get(name, 0) + 1
    return list(made.items())


def _read_early(statements: tuple[Node, ...]) -> set[str]:
    """The variables that are read before the statements bind them."""
    every, bound, found = binds(statements), set(), set()
    for s in _flat(statements):
        found |= (reads(s) & every) - bound
        bound |= binds(s)
    return found


@dataclass
class _Machine:
    """LDS and what is under way. A tile is `(ring, number)`; `names`: the slots that variables stand for."""

    loop: Pipelined
    depth: int
    trips: int
    numbers: dict[str, int] = field(default_factory=dict)
    slots: dict[tuple[str, int], int] = field(default_factory=dict)
    names: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    registers: dict[str, int] = field(default_factory=dict)
    open: set[tuple[str, int]] = field(default_factory=set)
    under_way: dict[bool, list[set[tuple[str, int]]]] = field(default_factory=lambda: {True: [], False: []})
    read: set[tuple[str, int]] = field(default_factory=set)
    since_barrier: set[tuple[str, int]] = field(default_factory=set)
    a_stage_ago: set[tuple[str, int]] = field(default_factory=set)
    in_stage: bool = False
    found: list[str] = field(default_factory=list)

    def run(self) -> None:
        self.numbers = {self.loop.depth: self.depth, self.loop.count: self.trips, "": 0}
        self.block(self.loop.before)
        while self.numbers[""] < self.trips:
            tile = self.numbers[""]
            self.block(self.loop.body)
            self.numbers[""] = self.numbers[""] if self.loop.unrolled else tile + 1
        self.block(self.loop.after)
        if self.open or any(self.under_way.values()):
            self.found.append("copies are under way behind the loop")

    def block(self, statements: tuple[Node, ...]) -> None:
        for s in statements:
            if isinstance(s, Repeat):
                for i in range(self.number(s.count)):
                    self.numbers[s.name] = i
                    self.block(s.body)
                    self.numbers[""] += self.loop.unrolled and s in self.loop.body
            elif isinstance(s, Stage):
                # At a stage's border all warps meet, but one group of them is a stage behind the other.
                self.since_barrier -= self.a_stage_ago
                self.a_stage_ago = set(self.since_barrier)
                self.in_stage = True
                self.block(s.body)
                self.in_stage = False
            elif isinstance(s, When) and self.number(s.tile) < self.number(s.count):
                self.block(s.body)
            elif not isinstance(s, When):
                self.statement(s)

    def statement(self, s: Node) -> None:
        if isinstance(s, Choose):
            self.numbers[s.target] = self.number(s.number)
        elif isinstance(s, (Fill, Store)):
            self.fill(s, next(n for n in s.code if isinstance(n, Slot)))
        elif isinstance(s, Load):
            self.registers[s.target] = self.number(s.tile)
        elif isinstance(s, Commit):
            self.under_way[True].append(self.open)
            self.open = set()
        elif isinstance(s, (Wait, Barrier)):
            if isinstance(s, Wait):
                queue, left = self.under_way[s.grouped], self.number(s.left)
                del queue[: max(0, len(queue) - left)]
            self.since_barrier = set()
        elif isinstance(s, Assign) and (slot := _named_slot(s)) is not None:
            self.names[s.target] = slot.ring, self.number(Number(slot.index)), self.number(slot.tile)
        else:
            self.reads(s)

    def fill(self, s: Fill | Store, slot: Slot) -> None:
        place, tile = (slot.ring, self.number(Number(slot.index))), self.number(slot.tile)
        held = self.slots.get(place)
        if held is not None and held < self.trips and (slot.ring, held) not in self.read:
            self.found.append(f"tile {tile} of {slot.ring} takes the place of tile {held}, which is still to be read")
        if isinstance(s, Store):
            if self.registers.get(s.source) != tile:
                self.found.append(f"tile {tile} of {slot.ring} is stored before it is loaded")
            if self.in_stage and place in self.since_barrier:
                self.found.append(f"tile {tile} of {slot.ring} is stored where the other warps may still read")
        else:
            if place in self.since_barrier:
                self.found.append(f"tile {tile} of {slot.ring} fills a slot with no barrier since it was read")
            if s.grouped:
                self.open.add((slot.ring, tile))
            else:
                self.under_way[False].append({(slot.ring, tile)})
        self.slots[place] = tile

    def reads(self, s: Node) -> None:
        for node in walk(s):
            if isinstance(node, Slot):
                self.read_at(node.ring, self.number(Number(node.index)), self.number(node.tile))
            elif isinstance(node, Named) and node.name in self.names:
                self.read_at(*self.names[node.name])

    def read_at(self, ring: str, slot: int, tile: int) -> None:
        if tile < self.trips:
            if self.slots.get((ring, slot)) != tile:
                self.found.append(f"tile {tile} of {ring} is read where tile {self.slots.get((ring, slot))} lies")
            elif any((ring, tile) in copies for queue in self.under_way.values() for copies in (*queue, self.open)):
                self.found.append(f"tile {tile} of {ring} is read before its copy is waited for")
        self.read.add((ring, tile))
        self.since_barrier.add((ring, slot))

    def number(self, node: Any) -> int:
        if isinstance(node, Current):
            return self.numbers[""]
        if isinstance(node, Number):
            text = str(node.text)
            return int(text) if text.isdigit() else self.numbers[text]
        if isinstance(node, Previous):
            return (self.number(node.slot) - 1) % self.number(node.count)
        if isinstance(node, Least):
            return min(self.number(node.left), self.number(node.right))
        assert isinstance(node, Binary), f"bug in gluonize: {node} is no number"
        return _OPERATORS[node.op](self.number(node.left), self.number(node.right))
