"""Inputs that go where no other went: which scalars and grids take the branches and trip counts that have not run yet.

Many inputs are tried on the slice of the kernel that decides its way (`control_slice`); the cheapest that show something new are
then run on both whole kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from gluonize.judge.inputs.bind import bind, place_tensors
from gluonize.judge.inputs.control_slice import ControlSlice, Partial, control_slice, needed_values
from gluonize.judge.inputs.inputs import Inputs, with_values
from gluonize.judge.inputs.scalar_candidates import Change, single_changes
from gluonize.judge.machine.coverage import CLASSES, Points, Ran
from gluonize.judge.machine.engine import Machine
from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op

WORK = 30_000  # operations of slices that a validation may take, about a fifth of a second
PAIRS = 64  # changes of two things at once that are tried
PROGRAMS = 8  # of one change that are asked
FIRST = 64  # of the launch as given
MEMORY = ("tt.load", "tt.atomic", "tt.descriptor", "tt.call")
WRITES = ("tt.store", "tt.atomic", "tt.call")
SEED = 7

Token = tuple  # (block,), (line of the module, side) or (line of the module, class of trip counts)


@dataclass(frozen=True)
class Outcome:
    """What a change shows: each token with the first program that does. cost: operations of the whole kernel per program."""

    change: Change
    tokens: dict[Token, int]
    cost: float


def tokens_of(points: Points, ran: Ran) -> set[Token]:
    """What there is to run that ran."""
    blocks = {block for block, _ in points.statements}
    out: set[Token] = {(block,) for block in ran.blocks if block in blocks}
    out |= {(branch.op.line, side) for branch in points.branches for side in (0, 1)} & ran.sides
    for op in points.loops:
        out |= {(op.line, name) for name in points.classes(ran.trips.get(op.line, ()))}
    return out


def all_tokens(points: Points, admitted: dict[int, set[str]]) -> set[Token]:
    """What there is to run."""
    out: set[Token] = {(block,) for block, _ in points.statements}
    out |= {(branch.op.line, side) for branch in points.branches for side in (0, 1)}
    return out | {(op.line, name) for op in points.loops for name in admitted.get(op.line, CLASSES)}


class Steering:
    """A launch of a source kernel. accepts(inputs): whether the contract of the translation admits them."""

    def __init__(
        self, module: Module, names: list[str], spec, grid: tuple[int, ...], points: Points,
        accepts: Callable[[Inputs], bool],
    ):  # fmt: skip
        self.names, self.spec, self.grid, self.points, self.accepts = names, spec, grid, points, accepts
        self.module = module
        self.slice: ControlSlice = control_slice(module)
        self.outcomes: list[Outcome] = []
        self.work = 0
        self.all_tried = False  # or as many as it took to see all that was wanted
        self.writes = any(op.name.startswith(WRITES) for op in self.slice.module.walk())
        self.placed: tuple[Memory, dict[int, int]] | None = None

    def explore(self, inputs: Inputs, wanted: set[Token]) -> None:
        """Try changes until all that is `wanted` was seen or the work is spent; fills `outcomes`."""
        left = set(wanted)
        singles = list(single_changes(self.spec, self.slice.module, self.slice.parameters, self.points.few, self.grid))
        for change in [Change(), *singles, *self._pairs(singles)]:
            if not left:
                break
            if self.work > WORK:
                return
            outcome = self.outcome(inputs, change)
            if outcome is not None:
                left -= outcome.tokens.keys()
                self.outcomes.append(outcome)
        self.all_tried = True

    def _pairs(self, singles: list[Change]) -> Iterator[Change]:
        """Two changes at once, drawn the same way each time."""
        if len(singles) < 2:
            return
        rng = np.random.default_rng(SEED)
        for _ in range(PAIRS):
            first, second = (singles[i] for i in rng.choice(len(singles), 2, replace=False))
            yield first | second

    def applied(self, inputs: Inputs, change: Change) -> Inputs:
        return replace(with_values(inputs, self.spec, change.values, str(change)), grid=change.grid)

    def outcome(self, inputs: Inputs, change: Change) -> Outcome | None:
        """Which way the programs go; None for inputs that the contract refuses or the slice cannot run."""
        inputs = self.applied(inputs, change)
        if not self.accepts(inputs):
            return None
        if self.writes or self.placed is None:
            memory = Memory()
            self.placed = memory, place_tensors(memory, inputs)
        memory, addresses = self.placed
        machine = Machine(self.slice.module, memory, inputs.grid or self.grid, Partial)
        programs = _some(machine.programs, PROGRAMS if str(change) else FIRST)
        tokens: dict[Token, int] = {}
        cost = 0.0
        try:
            arguments = bind(self.slice.module, self.names, inputs, addresses)
            for program in programs:
                machine.ran = Ran()
                machine.run(arguments, [program])
                ran = self._whole(machine.ran)
                cost = max(cost, sum(times * len(block.ops) for block, times in ran.blocks.items()))
                for token in tokens_of(self.points, ran):
                    tokens.setdefault(token, program)
        except (Hazard, NotRunnable):
            return None
        finally:
            self.work += machine.work + len(programs)
        return Outcome(change, tokens, cost)

    def _whole(self, ran: Ran) -> Ran:
        """What ran of the slice as what runs of the module."""
        blocks = type(ran.blocks)({self.slice.origin.get(block, block): times for block, times in ran.blocks.items()})
        return replace(ran, blocks=blocks)

    def best(self, inputs: Inputs, wanted: set[Token], tried: set[int], dearest: float) -> Inputs | None:
        """Inputs that show most of what is wanted, the cheapest of those; None when nothing shows any of it."""
        useful = [
            (-len(wanted & outcome.tokens.keys()), outcome.cost, number)
            for number, outcome in enumerate(self.outcomes)
            if number not in tried and outcome.cost <= dearest and wanted & outcome.tokens.keys()
        ]
        if not useful:
            return None
        number = min(useful)[2]
        tried.add(number)
        outcome = self.outcomes[number]
        programs = sorted({outcome.tokens[token] for token in wanted & outcome.tokens.keys()})
        changed = self.applied(inputs, outcome.change)
        what = changed.variant or f"programs {', '.join(map(str, programs))}"
        return replace(changed, programs=tuple(programs), variant=what)

    def admitted(self) -> dict[int, set[str]]:
        """Per loop, by line of the module, the classes of trip counts that some change shows; only of loops whose bounds
        come from arguments alone, since of others nothing is known; {} where not all changes could be tried."""
        if not self.all_tried:
            return {}
        seen = {token for outcome in self.outcomes for token in outcome.tokens}
        return {
            op.line: {name for name in CLASSES if (op.line, name) in seen}
            for op in self.points.loops
            if self._closed(op)
        }

    def _closed(self, loop: Op) -> bool:
        function = next(f for f in self.module.functions.values() if any(op is loop for op in f.walk()))
        bounds = (loop.for_loop.low, loop.for_loop.high, loop.for_loop.step)
        needed = needed_values(function, iter(bounds))
        return function is self.module.entry and not any(
            op.name.startswith(MEMORY) for op in function.walk() if needed.intersection(op.results)
        )


def _some(count: int, most: int) -> list[int]:
    """Programs of a grid: all, or the first ones and an even sample with the last one."""
    if count <= most:
        return list(range(count))
    return sorted({*range(most // 2), *np.linspace(0, count - 1, most // 2).astype(int).tolist()})
