"""Functions of several blocks, which returns in branches leave behind: `if` and `else` again, with `return` where a path ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from gluonize.raised.control import become, leave
from gluonize.raised.text import Written
from gluonize.raised.writer import Writer
from gluonize.trace.model.module import Function
from gluonize.trace.model.op import Block, Op

COPIES = 4  # times that a block which several branches go to is written out at most
SHORT = 4  # operations of what is said in each branch that ends with it: a return, and what makes its value
Edge = tuple[str, tuple[str, ...]]  # the label that is gone to, and what its arguments become


class Flow:
    """The blocks of a function, of which none comes back to itself: Triton makes them of `if` alone."""

    def __init__(self, function: Function):
        self.blocks = function.region.blocks
        self.by_label = {block.label: block for block in self.blocks}

    def after(self, block: Block) -> list[str]:
        return [label for label, _ in branches(block.ops[-1])]

    @cached_property
    def reached(self) -> dict[str, set[str]]:
        """Of each block: those that may follow it, and itself. Raises: ValueError for blocks that come back to themselves."""
        found: dict[str, set[str]] = {}
        open_: set[str] = set()

        def visit(label: str) -> set[str]:
            if label not in found:
                if label in open_:
                    raise ValueError(label)
                open_.add(label)
                found[label] = {label}.union(*map(visit, self.after(self.by_label[label])))
            return found[label]

        for block in self.blocks:
            visit(block.label)
        return found

    def only_returns(self, label: str) -> bool:
        """Whether a block does nothing but return, or little more than making the value: each branch that goes there says so itself.
        Triton makes one block of equal ends, where the source has a return in each branch."""
        ops = [op for each in self.reached[label] for op in self.by_label[each].ops]
        ends = [op for op in ops if op.name == "tt.return"]
        return len(ops) == 1 == len(ends) or len(ops) <= SHORT + len(ends) and all(op.operands for op in ends)

    def always_reaches(self, label: str, other: str) -> bool:
        """Whether each way on from a block leads to another one."""
        if label == other:
            return True
        following = self.after(self.by_label[label])
        return bool(following) and all(self.always_reaches(each, other) for each in following)

    def meet(self, one: str, two: str) -> str | None:
        """Where two branches go on together: the first block that both always lead to, else the first that they do not pass by but by
        what returns. None: what they share is written in both."""
        both = self.reached[one] & self.reached[two]
        first = sorted(both, key=lambda label: (-len(self.reached[label]), label))
        shared = [label for label in first if not self.only_returns(label)]
        always = (each for each in shared if self.always_reaches(one, each) and self.always_reaches(two, each))
        found = next(always, None)
        if found is None and shared and not any(self._passes(each, shared[0], set(shared)) for each in (one, two)):
            return shared[0]
        return found

    def _passes(self, label: str, meet: str, shared: set[str]) -> bool:
        """Whether a way from a block leads to what two branches share without going through where they would meet."""
        if label == meet:
            return False
        return label in shared or any(self._passes(each, meet, shared) for each in self.after(self.by_label[label]))


def branches(op: Op) -> tuple[Edge, ...]:
    return op.branches if op.name in ("cf.br", "cf.cond_br") else ()


@dataclass(frozen=True)
class Stop:
    """Where branches go on together. homes: variables for the arguments of that block."""

    label: str
    homes: Mapping[str, str]


class Structure:
    """What writes the blocks of a function. stops: where the branches around go on, the outermost first."""

    def __init__(self, writer: Writer, function: Function):
        self.w, self.flow = writer, Flow(function)
        self.written: Counter[str] = Counter()

    def function(self) -> None:
        first = self.flow.blocks[0]
        try:
            self.flow.reached
        except ValueError:
            raise self.w.refuse(first.ops[-1], "blocks that come back to themselves, which Gluon has none of") from None
        self._block(first, ())

    def _block(self, block: Block, stops: tuple[Stop, ...]) -> None:
        """A block and what follows it, up to where the branches around go on."""
        self.written[block.label] += not self.flow.only_returns(block.label)
        if self.written[block.label] > COPIES:
            raise self.w.refuse(block.ops[-1], "too many branches go on together in its block")
        *ops, last = block.ops
        self.w.block(ops)
        if last.name == "cf.br":
            self._edge(last, last.branches[0], stops)
        elif last.name == "cf.cond_br":
            self._branch(last, stops)
        elif last.name == "tt.return":
            leave(self.w, last)
            if not last.operands and self.w.depth > 1:
                self.w.line("return", last.place.line)
        else:
            raise self.w.refuse(last, "a block that ends so")

    def _branch(self, op: Op, stops: tuple[Stop, ...]) -> None:
        self.w.only([op.condition])
        test, place = self.w.read(op.condition), op.place.line
        yes, no = op.branches
        meet = self.flow.meet(yes[0], no[0])
        if meet is None:
            # One of them ends, so that what the other does need not stand in an `else`.
            goes_on = [any(stop.label in self.flow.reached[label] for stop in stops) for label, _ in (yes, no)]
            if all(goes_on):
                raise self.w.refuse(op, "its branches cross")
            ends = not goes_on[0]
            self.w.line(f"if {test.text}:" if ends else f"if not {test.text}:", place)
            self._inside(op, yes if ends else no, stops)
            self._edge(op, no if ends else yes, stops)
            return
        own = Stop(meet, self._homes(meet))
        inner = stops if stops and stops[-1].label == meet else (*stops, own)
        if yes == (meet, ()):
            self.w.line(f"if not {test.text}:", place)
            self._inside(op, no, inner)
        else:
            self.w.line(f"if {test.text}:", place)
            self._inside(op, yes, inner)
            if no != (meet, ()):
                self.w.line("else:", 0)
                self._inside(op, no, inner)
        if inner is not stops:
            self._arrive(own, stops)

    def _homes(self, label: str) -> dict[str, str]:
        block = self.flow.by_label[label]
        return {value: self.w.fresh(self.w.called.carried(value, value, kind)) for value, kind in block.arguments}

    def _arrive(self, at: Stop, stops: tuple[Stop, ...]) -> None:
        block = self.flow.by_label[at.label]
        for value, kind in block.arguments:
            self.w.values[value] = Written(at.homes[value], kind)
        self._block(block, stops)

    def _inside(self, op: Op, edge: Edge, stops: tuple[Stop, ...]) -> None:
        self.w.depth += 1
        before = len(self.w.lines)
        self._edge(op, edge, stops)
        if len(self.w.lines) == before:
            self.w.line("pass", 0)
        self.w.depth -= 1

    def _edge(self, op: Op, edge: Edge, stops: tuple[Stop, ...]) -> None:
        """What is done on the way to a block, and the block, unless the branches around go on there."""
        label, given = edge
        if any(stop.label == label for stop in stops[:-1]):
            raise self.w.refuse(op, "it leaves several branches at once")
        arguments = self.flow.by_label[label].arguments
        if stops and stops[-1].label == label:
            become(self.w, [(stops[-1].homes[value], new) for (value, _), new in zip(arguments, given)])
            return
        # What is written here alone needs no variables for what it is given.
        self.w.only(given)
        self.w.values |= {value: self.w.named(new) for (value, _), new in zip(arguments, given)}
        self._block(self.flow.by_label[label], stops)
