"""What the facts say of the nodes of a kernel, held against what the nodes were in every launch."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np
from narrow_kernels import Launches
from narrow_machine import Seen

from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.host_bounds import Bound, Condition
from gluonize.facts.numbers.launch_values import value_in_launch
from gluonize.facts.numbers.overflow import conditions_for, upper_bound
from gluonize.facts.numbers.signs import Signs, _Arguments, least_for, most_checked, most_of, sign_of
from gluonize.facts.numbers.values import Question
from gluonize.facts.obligations import Obligation
from gluonize.trace.front.trace import TensorFact

MOST_OF_ALL = 63  # what an address of 64 bits reads as not negative
_FAR = 1 << 40


def unsound(facts: FunctionFacts, given: Launches, said: Counter | None = None, every: bool = True) -> str:
    """The first claim that is wrong of some launch; empty where there is none. said: gets the number of claims by kind; every: asks for
    the signs and bounds of all nodes, not only of what is assigned."""
    said = Counter() if said is None else said
    for found in _problems(facts, given, said, every):
        return found
    return ""


def _problems(facts: FunctionFacts, given: Launches, said: Counter, every: bool) -> Iterator[str]:
    machine = given.machine
    assigned = {s.value for s in ast.walk(facts.tree) if isinstance(s, ast.Assign)}
    questions: dict[int, list[tuple[str, Question, np.ndarray]]] = {}
    for node, seen in machine.seen.items():
        owner = machine.owner[node]
        if not isinstance(node.ctx if isinstance(node, ast.Name) else None, ast.Load | None):
            continue
        counted = Claims(owner, node, seen, given, said)
        if id(owner) not in questions:
            questions[id(owner)] = _questions(owner, given)
        yield from counted.ranges(questions[id(owner)])
        if node in assigned or every and isinstance(node, ast.Name | ast.BinOp | ast.Call | ast.IfExp | ast.UnaryOp):
            yield from counted.signs()
            yield from counted.bounds()


def _questions(owner: FunctionFacts, given: Launches) -> list[tuple[str, Question, np.ndarray]]:
    """Questions about a function, with the flag of what they say exactly, and the launches that they are about."""
    everything = np.ones(given.machine.rows, bool)
    positive = _positive(owner, given)
    return [
        ("fits", Question(owner), everything),
        ("whole", Question(owner, exactly=True), everything),
        ("fits", Question(owner, _Arguments(owner)), positive),
        ("whole", Question(owner, _Arguments(owner), True), positive),
        ("fits", Question(owner, _Arguments(owner, frozenset("a"))), _positive(owner, given, "a")),
    ]


def _positive(owner: FunctionFacts, given: Launches, without: str = "") -> np.ndarray:
    """The launches whose arguments are not negative, but for those that are known to be."""
    left_out = owner.kernel.given_negative | {without}
    return np.all([column >= 0 for name, column in given.numbers.items() if name not in left_out], axis=0)


class Claims:
    """What is said of one node of a function."""

    def __init__(self, owner: FunctionFacts, node: ast.AST, seen: Seen, given: Launches, said: Counter):
        self.owner, self.node, self.seen, self.given, self.said = owner, node, seen, given, said
        self.alive = seen.reached & ~given.machine.dead

    def wrong(self, what: str, least, most, rows: np.ndarray, admitted=None, flag: str = "all") -> Iterator[str]:
        """The first of some launches in which the node is not between two numbers, or arrays of them."""
        lo, hi = self.seen.least[flag], self.seen.most[flag]
        found = np.flatnonzero(self.alive & rows & (lo <= hi) & ((lo < least) | (hi > most)))
        for row in (found if admitted is None else admitted(found))[:1]:
            yield f"{ast.unparse(self.node)} is {lo[row]}..{hi[row]}, {what}, for {self.given.described(row)}"

    def ranges(self, questions: list[tuple[str, Question, np.ndarray]]) -> Iterator[str]:
        for flag, question, rows in questions:
            known = question.value(self.node)
            self.said["range"] += known.range.hi - known.range.lo < 31
            yield from self.wrong(f"not in {known.range}", known.range.lo, known.range.hi, rows)
            yield from self.wrong(f"not exactly in {known.exact}", known.exact.lo, known.exact.hi, rows, None, flag)

    def signs(self) -> Iterator[str]:
        every = np.ones(len(self.alive), bool)
        for exactly in (False, True):
            proof = Signs(self.owner, "a test", exactly)
            if proof.holds(self.node):
                self.said["sign"] += 1
                self.said["checked sign"] += any(o.condition is not None for o in proof.assumed)
                yield from self._refused(proof.assumed)
                what = f"not 0 or more by {sorted(map(str, proof.assumed))}"
                yield from self.wrong(what, 0, MOST_OF_ALL, every, lambda rows: self._admits(rows, proof.assumed))

    def _refused(self, assumed: set[Obligation]) -> Iterator[str]:
        """What a launch that the kernel is translated for would not pass."""
        kernel = self.owner.kernel
        for o in assumed:
            negative = o.condition is None and kernel.given_negative.intersection(o.arguments)
            if negative or o.condition is not None and kernel.refuses(o.condition):
                yield f"{ast.unparse(self.node)} rests on {o}, which a launch breaks"

    def _admits(self, rows: np.ndarray, assumed: set[Obligation]) -> np.ndarray:
        checked = [o for o in assumed if o.discharge == "launch"]
        names = frozenset(name for o in checked if o.condition is None for name in o.arguments)
        return self.given.admits(rows, names, frozenset(o.condition for o in checked if o.condition is not None))

    def bounds(self) -> Iterator[str]:
        fact = self.owner.fact(self.node)
        if not isinstance(fact, TensorFact) or fact.is_pointer:
            return
        most = most_of(self.owner, self.node)
        yield from self.wrong(f"more than {most}", -(2**80), most, self.seen.reached)
        positive = _positive(self.owner, self.given)
        for exactly in (False, True):
            ask = lambda asked: Question(asked, _Arguments(asked), exactly)  # noqa: E731
            known, conditions = ask(self.owner).value(self.node), conditions_for(ask, self.owner, self.node)
            if conditions is None:
                continue
            self.said["conditions"] += bool(conditions)
            yield from self._checked(conditions, positive)
            what = f"not in {known.exact} by {sorted(map(str, conditions))}"
            admitted = self._taking(conditions)
            yield from self.wrong(what, known.exact.lo, known.exact.hi, positive, admitted)
            upper = upper_bound(ask, self.owner, self.node)
            if upper is not None:
                self.said["upper bound"] += 1
                yield from self._beyond(f"more than {upper.text()}", upper, positive, admitted)
        yield from self._least_for()
        yield from self._most_checked(positive)
        yield from self._in_launch(positive)

    def _taking(self, conditions: frozenset[Condition], names: frozenset[str] = frozenset()):
        return lambda rows: self.given.admits(rows, names, conditions)

    def _checked(self, conditions: frozenset[Condition], rows: np.ndarray) -> Iterator[str]:
        """The conditions that are another thing to the check before a launch, of the launches that are nearest to their ends."""
        some = np.flatnonzero(rows)
        for c in conditions:
            over = self.given.bounded(c.bound, some) - c.most
            for at in {int(np.argmin(np.where(over > 0, over, _FAR))), int(np.argmax(np.where(over > 0, -_FAR, over)))}:
                if c.holds(self.given.arguments(some[at]), self.given.grid[some[at]].tolist()) != (over[at] <= 0):
                    yield f"{c} is {over[at] > 0} for {self.given.described(some[at])}"

    def _beyond(self, what: str, upper, rows: np.ndarray, admitted) -> Iterator[str]:
        some = np.flatnonzero(self.alive & rows)
        most = self.seen.most["all"]
        for row in admitted(some[most[some] > self.given.bounded(upper, some)])[:1]:
            yield f"{ast.unparse(self.node)} is {most[row]}, {what}, for {self.given.described(row)}"

    def _least_for(self) -> Iterator[str]:
        found = least_for(self.owner, lambda ask: conditions_for(ask, self.owner, self.node))
        if found is not None:
            conditions, names = found
            without = frozenset(self.given.numbers) - names
            known = Question(self.owner, _Arguments(self.owner, without), True).value(self.node)
            what = f"not in {known.exact} by {sorted(map(str, conditions))} and {sorted(names)}"
            every = np.ones(len(self.alive), bool)
            yield from self.wrong(what, known.exact.lo, known.exact.hi, every, self._taking(conditions, names))

    def _most_checked(self, positive: np.ndarray) -> Iterator[str]:
        for most, exactly in itertools.product((3, 9, 40), (False, True)):
            found = most_checked(self.owner, [[self.node]], most, exactly)
            if found is not None:
                conditions, names = found
                self.said["most"] += 1
                yield from self._passed(conditions)
                what = f"more than {most} by {sorted(map(str, conditions))} and {sorted(names)}"
                sign = sign_of(self.owner, self.node, exactly)
                every = self._taking(conditions | sign.conditions, names | sign.assumed)
                yield from self.wrong(what, 0, most, np.ones(len(self.alive), bool) if sign.holds else positive, every)
        yield from self._most_of_two(positive)

    def _passed(self, conditions: frozenset[Condition]) -> Iterator[str]:
        """The conditions that a launch which the kernel is translated for does not pass."""
        for c in conditions:
            if self.owner.kernel.refuses(c):
                yield f"{ast.unparse(self.node)} rests on {c}, which a launch breaks"

    def _most_of_two(self, positive: np.ndarray) -> Iterator[str]:
        """Of the sum and of the product with the argument `b`."""
        other = next((n for n in ast.walk(self.owner.tree) if isinstance(n, ast.Name) and n.id == "b"), None)
        seen = self.given.machine.seen.get(other)
        if seen is None or not isinstance(other.ctx, ast.Load):
            return
        mine, its = self.seen.most["all"], seen.most["all"]
        for products, together in (([[self.node], [other]], mine + its), ([[self.node, other]], mine * its)):
            found = most_checked(self.owner, products, 14)
            if found is None:
                continue
            rows = np.flatnonzero(self.alive & positive & (its >= 0) & (together > 14))
            conditions, names = found
            for row in self.given.admits(rows, names, conditions)[:1]:
                yield f"{ast.unparse(self.node)} and b give {together[row]} for {self.given.described(row)}"
                return

    def _in_launch(self, positive: np.ndarray) -> Iterator[str]:
        for exactly, flag in ((False, "fits"), (True, "whole")):
            bound = value_in_launch(Question(self.owner, _Arguments(self.owner), exactly), self.node)
            if bound is not None:
                self.said["value"] += 1
                yield from self._is(bound, positive & ~self.seen.off[flag])

    def _is(self, bound: Bound, rows: np.ndarray) -> Iterator[str]:
        if missing := bound.arguments() - self.given.arguments(0).keys():
            yield f"{ast.unparse(self.node)} is {bound.text()}, but no launch has {sorted(missing)}"
            return
        some = np.flatnonzero(self.alive & rows)
        value, least, most = self.given.bounded(bound, some), self.seen.least["all"], self.seen.most["all"]
        for row in some[(least[some] != value) | (most[some] != value)][:1]:
            text = f"{least[row]}..{most[row]}"
            yield f"{ast.unparse(self.node)} is {text}, not {bound.text()}, for {self.given.described(row)}"


__all__ = ["unsound"]
