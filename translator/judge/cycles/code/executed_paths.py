"""What each wave executes: the way through a program, loops as loops, with the LDS addresses of its lanes.

Branches that the wave's number decides are followed (groups of waves that are a barrier apart, partitions). Of the others, the one is
taken that a program is written for: loops are entered and stayed in, masked blocks are executed as for a tile that is in bounds.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

from gluonize.judge.cycles.code.assembly import Line, Program, Registers
from gluonize.judge.cycles.code.register_values import Choice, Lanes, Registry
from gluonize.judge.lower.loops import ControlFlow

MOST_STEPS = 400_000
_WAVE_NUMBER_BIT = 25  # of ttmp8, GFX12
# What a block is worth executing for, when nothing else decides.
_WORK = ("v_mfma", "v_smfmac", "v_wmma", "v_swmmac", "global_", "buffer_", "flat_", "tensor_", "ds_read", "ds_load")


@dataclass(frozen=True)
class Step:
    """One executed instruction, by its index in the program. lanes: byte addresses in LDS, None where not known."""

    line: int
    lanes: tuple[int, ...] | None = None


@dataclass(frozen=True)
class LoopPath:
    """One iteration of a loop as it is executed; `header` is the index of its first instruction."""

    header: int
    body: "tuple[Step | LoopPath, ...]"


Path = tuple[Step | LoopPath, ...]


@dataclass
class _Open:
    """A loop that is being followed: its blocks, and what was executed of it."""

    header: int
    blocks: set[int]
    body: list = field(default_factory=list)
    exit: int | None = None


class Flow:
    """Control flow of a program with its natural loops, shared by all waves."""

    def __init__(self, program: Program):
        self.program = program
        self.graph = ControlFlow(program.lines, program.position)
        self.loops: dict[int, set[int]] = {}
        for header, blocks in self.graph.natural_loops:
            self.loops.setdefault(header, set()).update(blocks)
        # Of branches that nothing decides: the way taken, the other.
        self.preferences: dict[tuple[int, int], tuple[int, int]] = {}

    def block(self, index: int) -> int:
        """The block that an instruction is in."""
        return self.graph.starts[bisect.bisect_right(self.graph.starts, index) - 1]

    def reached(self, start: int, within: set[int] | None, stop: int | None) -> set[int]:
        """Blocks that are reached from `start` without passing `stop`, inside of `within`."""
        found, pending = set(), [start]
        while pending:
            block = pending.pop()
            if block not in found and block != stop and (within is None or block in within):
                found.add(block)
                pending += self.following(block)
        return found

    def following(self, block: int) -> list[int]:
        """The blocks that may follow one: behind a branch on the lanes that are left, the one that is executed."""
        at = self.lines_of(block)[-1]
        line = self.program.lines[at]
        target = self.program.position.get(line.operands.strip())
        if not line.op.startswith("s_cbranch_exec") or target is None or at + 1 == len(self.program.lines):
            return self.graph.next[block]
        return [self.block(self.executed(at, target, line.op))]

    def executed(self, at: int, target: int, op: str) -> int:
        """Where a branch on the lanes that are left leads: into what it guards, unless that only stands in for loads."""
        guarded, other = (target, at + 1) if op.endswith("nz") else (at + 1, target)
        return other if self.only_fills(self.block(guarded)) else guarded

    def preferred(self, branch: int, options: tuple[int, int], inside: _Open | None) -> int:
        """The successor with more loops behind it, then with more work of its own, then the first."""
        key = branch, inside.header if inside else -1
        if key not in self.preferences:
            within, stop = (inside.blocks, inside.header) if inside else (None, None)
            first, second = (self.reached(x, within, stop) for x in options)
            scores = []
            for own, other in ((first, second), (second, first)):
                scores.append((sum(h in own for h in self.loops), sum(map(self._work, own - other))))
            self.preferences[key] = options if scores[0] >= scores[1] else options[::-1]
        return self.preferences[key][0]

    def turn(self, key: tuple[int, int]) -> None:
        """Take the other way at a branch."""
        self.preferences[key] = self.preferences[key][::-1]

    def _work(self, block: int) -> int:
        return sum(self.program.lines[n].op.startswith(_WORK) for n in self.lines_of(block))

    def lines_of(self, block: int) -> range:
        n = bisect.bisect_right(self.graph.starts, block)
        end = self.graph.starts[n] if n < len(self.graph.starts) else len(self.program.lines)
        return range(block, end)

    def only_fills(self, block: int) -> bool:
        """Whether a block does nothing but write LDS or registers: what stands in for loads that are masked off."""
        ops = [self.program.lines[n].op for n in self.lines_of(block)]
        return any(x.startswith(("ds_write", "ds_store")) for x in ops) and not any(x.startswith(_WORK) for x in ops)


def follow(flow: Flow, wave: int, lanes: int) -> Path:
    """The way of one wave from the program's entry to its end."""
    return _walked(flow, wave, lanes).path


def _walked(flow: Flow, wave: int, lanes: int) -> "_Walk":
    """A wave that has gone its way. Where that is past every loop, because a mask that was set on the way says so, branches that nothing
    decides are taken the other way, one at a time, until a loop is entered."""
    first = _Walk(flow, wave, lanes)
    if first.loops or not flow.loops:
        return first
    for key in tuple(flow.preferences):
        flow.turn(key)
        if (other := _Walk(flow, wave, lanes)).loops:
            return other
        flow.turn(key)
    return first


def follow_all(flow: Flow, waves: int, lanes: int) -> list[Path]:
    """The ways of all waves of a workgroup.

    Where no value decides a branch of the first wave, its number does not either: the others go the same way, and their
    lanes are taken to be apart in LDS as its are.
    """
    first = _walked(flow, 0, lanes)
    if not first.decided:
        return [first.path] * waves
    return [first.path, *(follow(flow, wave, lanes) for wave in range(1, waves))]


class _Walk:
    def __init__(self, flow: Flow, wave: int, lanes: int):
        self.flow = flow
        self.lines = flow.program.lines
        self.position = flow.program.position
        self.registry = Registry(lanes)
        numbers = tuple(range(wave * lanes, (wave + 1) * lanes))
        self.registry.vectors["v", 0] = Lanes(numbers)
        self.registry.scalars["ttmp8"] = wave << _WAVE_NUMBER_BIT
        self.done: list = []
        self.open: list[_Open] = []
        self.closed: set[int] = set()
        self.decided = False
        self.path = self._run()

    @property
    def loops(self) -> bool:
        """Whether it goes through a loop."""
        return any(isinstance(item, LoopPath) for item in self.path)

    def _run(self) -> Path:
        at: int | None = 0
        for _ in range(MOST_STEPS):
            if at is None or at >= len(self.lines):
                break
            at = self._enter(at)
            line = self.lines[at]
            if line.label:
                at += 1
                continue
            self._body().append(Step(at, self._addresses(line) if line.op.startswith("ds_") else None))
            if line.op == "s_endpgm":
                break
            if line.op.startswith(("s_branch", "s_cbranch")):
                at = self._next(at, line)
            else:
                self.registry.execute(line)
                at += 1
        while self.open:
            self._close()
        return tuple(self.done)

    def _body(self) -> list:
        return self.open[-1].body if self.open else self.done

    def _enter(self, at: int) -> int:
        """Open the loop whose header this is; at the header of one that is open, leave it. Returns where to go on."""
        while self.open and self.flow.block(at) not in self.open[-1].blocks:
            self._abandon()
        if at not in self.flow.loops:
            return at
        if self.open and any(x.header == at for x in self.open):
            while self.open[-1].header != at:
                self._abandon()
            leave = self._exit(self.open[-1])
            self._close()
            return self._enter(leave) if leave is not None else len(self.lines) - 1
        if at not in self.closed:
            self.open.append(_Open(at, self.flow.loops[at]))
        return at

    def _close(self) -> None:
        found = self.open.pop()
        self.closed.add(found.header)
        self._body().append(LoopPath(found.header, tuple(found.body)))

    def _abandon(self) -> None:
        """A loop that was left before its end came round runs once: no loop."""
        found = self.open.pop()
        self._body().extend(found.body)

    def _exit(self, loop: _Open) -> int | None:
        """Where the last executed branch that can leave the loop leads to."""
        if loop.exit is not None:
            return loop.exit
        ends = [x for b in sorted(loop.blocks) for x in self.flow.graph.next[b] if x not in loop.blocks]
        return ends[-1] if ends else None

    def _next(self, at: int, line: Line) -> int | None:
        target = self.position.get(line.operands.strip())
        if line.op == "s_branch" or target is None:
            return target if line.op == "s_branch" else at + 1
        loop = self.open[-1] if self.open else None
        if loop is not None:
            inside = [x for x in (at + 1, target) if self.flow.block(x) in loop.blocks]
            if len(inside) == 1:
                loop.exit = target if inside[0] == at + 1 else at + 1
        taken = self._known(line.op)
        if taken is None and loop is not None and len(inside) == 1:
            return inside[0]
        if taken is None:
            return self._undecided(at, target, line.op, loop)
        self.decided = True
        return target if taken else at + 1

    def _known(self, op: str) -> bool | None:
        """Whether the branch is taken, where that is known."""
        if op.startswith("s_cbranch_scc"):
            return None if self.registry.scc is None else self.registry.scc == op.endswith("1")
        mask = self.registry.mask("exec" if "exec" in op else "vcc")
        if not isinstance(mask, int):
            return None
        return mask != 0 if op.endswith("nz") else mask == 0

    def _undecided(self, at: int, target: int, op: str, loop: _Open | None) -> int:
        if "scc" in op:
            return self.flow.preferred(at, (at + 1, target), loop)
        mask = self.registry.mask("exec" if "exec" in op else "vcc")
        if "exec" in op:
            chosen = self.flow.executed(at, target, op)
        else:
            chosen = self.flow.preferred(at, (at + 1, target), loop)
        if isinstance(mask, Choice):
            self.registry.settle(mask, (chosen == target) == op.endswith("nz"))
        return chosen

    def _addresses(self, line: Line) -> tuple[int, ...] | None:
        operand = line.arguments[1] if _reads(line.op) and len(line.arguments) > 1 else line.arguments[0]
        found = self.registry.vector(operand) if isinstance(operand, Registers) else None
        if found is None:
            return None
        offset = line.number("offset") or 0
        return tuple(x + offset for x in found.values)


def _reads(op: str) -> bool:
    return op.startswith(("ds_read", "ds_load"))
