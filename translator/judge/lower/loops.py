"""Loops of an assembly text, by its backward branches and the control flow between its blocks."""

from __future__ import annotations

import bisect
import functools
import re
from dataclasses import dataclass

from gluonize.judge.lower.amdgcn import Instruction

_BRANCH = re.compile(r"s_c?branch")
_ENDS = ("s_branch", "s_endpgm")


@dataclass(frozen=True)
class Loop:
    """A range of instruction indices, header first and backward branch last; `depth` counts from 1."""

    first: int
    last: int
    depth: int
    innermost: bool


def find_loops(code: tuple[Instruction, ...]) -> tuple[Loop, ...]:
    """Loops closed by a backward branch, one per header, in program order.

    A branch back from code behind the end of the program, where a block that is rarely needed was put, closes no loop.
    A loop that sleeps until a barrier's word in LDS changes is a wait and no loop: it counts in the loop around it.
    A branch back to a block that stands before the header of the loop around it (where parts of the body are skipped) closes no
    loop of its own either: that one begins there.
    """
    position: dict[str, int] = {}
    branches: list[tuple[int, int]] = []  # backward ones, (target, branch)
    for index, line in enumerate(code):
        if line.label:
            position[line.label] = index
        elif _BRANCH.match(line.op) and (target := position.get(line.operands.strip())) is not None:
            branches.append((target, index))
    branches = [(f, e) for f, e in branches if not _polls(code[f : e + 1]) and _returns(code, f, e, position)]
    spans = _spans(branches, ControlFlow(code, position)) if branches else []
    return tuple(
        Loop(
            first,
            last,
            depth=sum(f <= first and last <= e for f, e in spans),
            innermost=not any((f, e) != (first, last) and first <= f and e <= last for f, e in spans),
        )
        for first, last in spans
    )


def _spans(branches: list[tuple[int, int]], flow: "ControlFlow") -> list[tuple[int, int]]:
    """(first, last) of the loops that `branches` close."""
    found: dict[int, tuple[int, int]] = {}  # by the header
    for target, branch in branches:
        header = flow.header(target, branch)
        first, last = found.get(header, (header, branch))
        found[header] = min(first, target), max(last, branch)
    return sorted({*found.values()})


class ControlFlow:
    """The blocks of a program, each by the index of its first instruction, and what is executed after what.

    Of instructions only `op`, `label` and `operands` are read. position: index of each label. next: block -> the blocks after it,
    the one that follows in the text first.
    """

    def __init__(self, code: tuple[Instruction, ...], position: dict[str, int]):
        self.starts = [0]
        for index, line in enumerate(code):
            ends = _BRANCH.match(line.op) or line.op in _ENDS
            if index and line.label and index != self.starts[-1]:
                self.starts.append(index)
            if ends and index + 1 < len(code):
                self.starts.append(index + 1)
        self.next: dict[int, list[int]] = {}
        for start, end in zip(self.starts, [*self.starts[1:], len(code)]):
            last = code[end - 1]
            after = [] if last.op in _ENDS or end == len(code) else [end]
            if _BRANCH.match(last.op) and (target := position.get(last.operands.strip())) is not None:
                after.append(target)
            self.next[start] = after
        self.before: dict[int, list[int]] = {start: [] for start in self.starts}
        for start, after in self.next.items():
            for other in after:
                self.before[other].append(start)
        self.dominators = self._dominators()

    def header(self, target: int, branch: int) -> int:
        """The header of the loop that a backward branch belongs to: `target`, where that is one."""
        block = self.starts[bisect.bisect_right(self.starts, branch) - 1]
        if block not in self.dominators or target in self.dominators[block]:
            return target
        around = [h for h, body in self.natural_loops if target in body and block in body]
        return max(around, key=lambda h: len(self.dominators[h]), default=target)

    @functools.cached_property
    def natural_loops(self) -> list[tuple[int, set[int]]]:
        """(header, blocks) of every edge back to a block that dominates its source."""
        loops = []
        for source, after in self.next.items():
            for header in after:
                if header in self.dominators.get(source, ()):
                    body, pending = {header}, [source]
                    while pending:
                        block = pending.pop()
                        if block not in body:
                            body.add(block)
                            pending += self.before[block]
                    loops.append((header, body))
        return loops

    def _dominators(self) -> dict[int, frozenset[int]]:
        """The blocks that every way to a block leads through, itself included; of blocks that are reached."""
        order, seen = [], {0}
        pending = [(0, iter(self.next[0]))]
        while pending:
            block, after = pending[-1]
            for other in after:
                if other not in seen:
                    seen.add(other)
                    pending.append((other, iter(self.next[other])))
                    break
            else:
                order.append(block)
                pending.pop()
        found: dict[int, frozenset[int]] = {0: frozenset([0])}
        changed = True
        while changed:
            changed = False
            for block in reversed(order):
                ways = [found[b] for b in self.before[block] if b in found]
                if block and ways and (now := frozenset.intersection(*ways) | {block}) != found.get(block):
                    found[block], changed = now, True
        return found


def _returns(code: tuple[Instruction, ...], first: int, last: int, position: dict[str, int]) -> bool:
    """Whether the branch at `last` can be reached from the header at `first` by instructions between the two."""
    seen, pending = set(), [first]
    while pending:
        index = pending.pop()
        while first <= index <= last and index not in seen:
            if index == last:
                return True
            seen.add(index)
            line = code[index]
            if _BRANCH.match(line.op):
                pending.append(position.get(line.operands.strip(), -1))
            if line.op in _ENDS:
                break
            index += 1
    return False


def _polls(body: tuple[Instruction, ...]) -> bool:
    ops = {line.op for line in body}
    return "s_sleep" in ops and not any(
        op.startswith(("v_wmma", "v_mfma", "global_", "buffer_", "ds_store")) for op in ops
    )
