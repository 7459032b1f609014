"""What the rounds of the loops of a kernel were in every launch, and what the facts say of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from narrow_numbers import Number

from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.loop_range import every_iteration, index_dtype, int_of, is_index, loop_bounds, varies
from gluonize.facts.loops.span import constant_span, known_trips, runs_once


@dataclass
class _Open:
    """A loop that runs. first: what nodes were when they were first met in this round, and in the round before."""

    loop: ast.For
    index: np.ndarray | None = None
    going: np.ndarray | None = None
    first: dict[ast.AST, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    before: dict[ast.AST, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    ran: dict[ast.stmt, np.ndarray] = field(default_factory=dict)


@dataclass
class Rounds:
    """trips: of each run of a loop, the launches that came to it, the number of rounds and the bounds; changed: the nodes that were
    something else in another round; unlike: the names that were not the index; skipped: the statements that a round left out.
    """

    trips: dict[ast.For, list[tuple[np.ndarray, np.ndarray, tuple[Number, ...]]]] = field(default_factory=dict)
    changed: set[tuple[ast.For, ast.AST]] = field(default_factory=set)
    unlike: set[tuple[ast.For, ast.AST]] = field(default_factory=set)
    skipped: set[tuple[ast.For, ast.stmt]] = field(default_factory=set)
    met: set[tuple[ast.For, ast.AST]] = field(default_factory=set)
    dtypes: dict[ast.For, str] = field(default_factory=dict)
    _open: list[_Open] = field(default_factory=list)

    def starts(self, loop: ast.For, active: np.ndarray, dtype: str, bounds: tuple[Number, ...]) -> None:
        self._open.append(_Open(loop))
        self.trips.setdefault(loop, []).append((active, np.zeros(len(active), np.int64), bounds))
        self.dtypes[loop] = dtype

    def goes(self, index: np.ndarray, going: np.ndarray) -> None:
        self._round_ends()
        run = self._open[-1]
        run.index, run.going = index.copy(), going
        self.trips[run.loop][-1][1][going] += 1

    def ends(self) -> None:
        self._round_ends()
        self._open.pop()

    def _round_ends(self) -> None:
        run = self._open[-1]
        if run.going is not None:
            for s in (s for b in run.loop.body for s in ast.walk(b) if isinstance(s, ast.stmt)):
                ran = run.ran.get(s)
                if ran is None or (run.going & ~ran).any():
                    self.skipped.add((run.loop, s))
        run.before, run.first, run.ran = run.first, {}, {}

    def runs(self, statement: ast.stmt, active: np.ndarray) -> None:
        for run in self._open:
            run.ran[statement] = run.ran.get(statement, False) | active

    def sees(self, node: ast.AST, value: Any, active: np.ndarray) -> None:
        found = value.value if isinstance(value, Number) else np.full(len(active), value)
        for run in self._open:
            if run.index is None:
                continue
            self.met.add((run.loop, node))
            flat = np.broadcast_to(found, (len(active), *found.shape[1:])).reshape(len(active), -1)
            if isinstance(node, ast.Name) and (flat != run.index[:, None])[active].any():
                self.unlike.add((run.loop, node))
            if node in run.first:
                continue
            run.first[node] = flat, active
            if node in run.before:
                other, was = run.before[node]
                if flat.shape != other.shape or (flat != other)[active & was].any():
                    self.changed.add((run.loop, node))


def unsound_rounds(facts: FunctionFacts, rounds: Rounds, dead: np.ndarray) -> str:
    """The first claim about a loop that is wrong; empty where there is none."""
    for loop in rounds.trips:
        for found in (*_trips(facts, rounds, loop, dead), *_inside(facts, rounds, loop)):
            return f"{ast.unparse(loop.iter)}: {found}"
    return ""


def _trips(facts: FunctionFacts, rounds: Rounds, loop: ast.For, dead: np.ndarray) -> Iterator[str]:
    known, once, bounds = known_trips(facts, loop), runs_once(facts, loop), loop_bounds(facts, loop, either_way=True)
    span = constant_span(facts, *bounds[:2]) if bounds is not None else None
    for active, counted, (low, high, step) in rounds.trips[loop]:
        rows = active & ~dead & low.whole & high.whole & step.whole
        if known is not None and (counted != known)[rows].any():
            yield f"{set(counted[rows])} rounds, not {known}"
        if once and (counted > 1)[rows].any():
            yield f"{set(counted[rows])} rounds, not one"
        if span is not None and (high.value - low.value != span.value)[rows].any():
            yield f"its ends are not {span.value} apart"
        if bounds is None:
            continue
        for said, real, default in zip(bounds, (low, high, step), (0, None, 1)):
            value = default if said is None else int_of(facts, said)
            if value is not None and (real.value != value)[rows].any():
                yield f"bounds {[b and ast.unparse(b) for b in bounds]}"
    if loop_bounds(facts, loop) is not None and any((s.value <= 0)[a].any() for a, _, (_, _, s) in rounds.trips[loop]):
        yield "goes down"
    if index_dtype(facts, loop) != rounds.dtypes[loop]:
        yield f"its index is {rounds.dtypes[loop]}"


def _inside(facts: FunctionFacts, rounds: Rounds, loop: ast.For) -> Iterator[str]:
    for node in (n for s in loop.body for n in ast.walk(s)):
        if isinstance(node, ast.expr) and (loop, node) in rounds.changed and not varies(facts, loop, node):
            yield f"`{ast.unparse(node)}` does not stay the same"
        if isinstance(node, ast.Name) and (loop, node) in rounds.unlike and is_index(facts, loop, node):
            yield f"`{node.id}` is not its index"
    for s in every_iteration(facts, loop.body):
        if (loop, s) in rounds.skipped:
            yield f"a round leaves out `{ast.unparse(s)}`"


__all__ = ["Rounds", "unsound_rounds"]
