"""How many groups of copies may be under way at a wait: modules say it by tokens, Gluon by their number."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.trace.model.module import Function
from gluonize.trace.model.op import Block, Op

NEVER = 1 << 30


class AnotherBlock(Exception):
    """A token is used in another block of the function than that of its operation."""


@dataclass(frozen=True)
class Spot:
    """Where an operation stands: its block, and the spot of what the block is in."""

    op: Op
    block: Block
    index: int
    outer: Spot | None


class Groups:
    """The groups of a function. commit: the operation that ends a group."""

    def __init__(self, function: Function, commit: str):
        self.commit = commit
        self.spots: dict[str, Spot] = {}
        self.arguments: dict[str, tuple[Spot, int]] = {}
        self.of_op: dict[Op, Spot] = {}
        for block in function.region.blocks:
            self._enter(block, None)

    def _enter(self, block: Block, outer: Spot | None) -> None:
        for index, op in enumerate(block.ops):
            spot = Spot(op, block, index, outer)
            self.of_op[op] = spot
            self.spots |= dict.fromkeys(op.results, spot)
            if op.name == "scf.for":
                for number, (argument, _) in enumerate(op.for_loop.bindings):
                    self.arguments[argument] = (spot, number)
            for region in op.regions:
                for inner in region.blocks:
                    self._enter(inner, spot)

    def after(self, tokens: tuple[str, ...], wait: Op) -> int:
        """The groups that were ended behind those of all tokens, on the way with fewest of them, when `wait` is reached."""
        if not tokens:
            return 0
        return min(self._since(token, self.of_op[wait], frozenset()) for token in tokens)

    def origin(self, token: str) -> str:
        """The name of the operation that a token comes from, of what a loop carries that before it."""
        while token in self.arguments:
            loop, number = self.arguments[token]
            token = loop.op.for_loop.bindings[number][1]
        return self.spots[token].op.name if token in self.spots else ""

    def _since(self, token: str, at: Spot, seen: frozenset[str]) -> int:
        if token in self.arguments:
            loop, number = self.arguments[token]
            inside = self._from_start(at, loop)
            if token in seen:
                return NEVER
            first = self._since(loop.op.for_loop.bindings[number][1], loop, seen | {token})
            return inside + min(first, self._at_end(loop.op, number, seen | {token}))
        spot = self.spots[token]
        between = self._between(spot, at)
        if spot.op.name == "scf.for":
            number = spot.op.results.index(token)
            first = self._since(spot.op.for_loop.bindings[number][1], spot, seen)
            return between + min(first, self._at_end(spot.op, number, seen))
        if spot.op.name == "scf.if":
            number = spot.op.results.index(token)
            ends = []
            for region in spot.op.regions:
                last = region.blocks[-1].ops[-1]
                ends.append(self._since(last.operands[number], self.of_op[last], seen))
            return between + min(ends)
        return between

    def _at_end(self, loop: Op, number: int, seen: frozenset[str]) -> int:
        last = loop.regions[0].blocks[-1].ops[-1]
        return self._since(last.operands[number], self.of_op[last], seen)

    def _between(self, spot: Spot, at: Spot) -> int:
        """The groups between an operation and another behind it that stands in its block or deeper."""
        count = 0
        while at.block is not spot.block:
            count += self._count(at.block.ops[: at.index])
            if at.outer is None:
                raise AnotherBlock
            at = at.outer
        return count + self._count(at.block.ops[spot.index + 1 : at.index])

    def _from_start(self, at: Spot, loop: Spot) -> int:
        count = self._count(at.block.ops[: at.index])
        while at.outer is not loop:
            assert at.outer is not None, "an argument of a loop is used outside of it"
            at = at.outer
            count += self._count(at.block.ops[: at.index])
        return count

    def _count(self, ops: tuple[Op, ...]) -> int:
        count = 0
        for op in ops:
            if op.name == self.commit:
                count += 1
            elif op.name == "scf.if" and len(op.regions) == 2:
                count += min(self._count(region.blocks[0].ops) for region in op.regions)
        return count
