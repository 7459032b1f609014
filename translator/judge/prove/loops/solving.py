"""What is carried into an arbitrary iteration of a loop, from what iterations make of it (`induction`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gluonize.judge.prove.loops.turns import MOST_REMAINDERS, Carried, Turns
from gluonize.judge.prove.proof_values import NeedCase, NotProved, indices, lam_over, moved
from gluonize.judge.prove.slot_boxes import Cell, meet, within
from gluonize.judge.prove.terms.elements import Term, bits, is_integer


class Unsolved(Exception):
    """It depends on what is carried and not known yet."""


class Solved(Turns):
    """A loop whose iterations have been run."""

    def at(self, function: Term, iteration: Term) -> Term:
        """What holds for iteration k, for another one."""
        return self.t.substitute(function, {self.count: iteration})

    def told(self, term: Term, r: int) -> Term:
        """A term of the iteration with remainder r, with what is carried into it told."""
        for _ in range(MOST_REMAINDERS):
            by = {x: self.closed[x] for x in term.free if x in self.closed}
            by |= {head: self.content(key, r) for key, head in self.turns[r].heads.items() if head in term.free}
            if not by:
                return term
            term = self.t.substitute(term, by)
        raise NotProved("shared memory that is computed from itself", self.op)

    def content(self, key: tuple, r: int) -> Term:
        """What a box holds at the head of an iteration with remainder r: a function of the allocation's indices. Raises: NotProved."""
        found = self._contents.get((key, r))
        if found is None:
            if (key, r) in self._asked:
                raise NotProved("shared memory that is computed from itself", self.op)
            self._asked.add((key, r))
            found = self._contents[key, r] = self._content(key, r)
            self._asked.discard((key, r))
        return found

    def _content(self, key: tuple, r: int) -> Term:
        t = self.t
        back = self.k
        at = r
        for steps in range(1, len(self.turns) + 1):
            at = (at - 1) % len(self.turns)
            turn = self.turns[at]
            # What was read in parts since is one box there.
            cell = next((c for c in turn.shared.cells.get(key[0], []) if within(key[1], c.box)), None)
            heads = {head: box for (own, box), head in turn.heads.items() if own == key[0] and meet(key[1], box)}
            if cell is None or cell.content is None:
                raise NotProved("what shared memory holds is not known", self.op)
            if any(within(key[1], box) and self._is_head(cell, head) for head, box in heads.items()):
                continue
            function = lam_over(t, self._as_atom(cell, cell.content), cell.allocation.shape)
            if not function.free.isdisjoint(heads):
                raise NotProved("shared memory that is computed from what it held", self.op)
            function = self.told_function(function, at)
            before = self.at(function, t.add(back, t.integer(-steps)))
            if steps > r:  # for the first such iteration it was written before the loop
                first = self._first(key)
                head = self.at(before, t.integer(r))
                if head is not first:
                    facts = self._facts_at(r)
                    if t.assuming(head, facts) is t.assuming(first, facts):
                        self._weak.add(key)  # where there is an iteration
                    else:
                        before = self._from_then_on(first, before, r, cell)
            return before
        return self._first(key)

    def _facts_at(self, iteration: int) -> list[Term]:
        """What holds in an iteration."""
        return [x for x in (self.at(fact, self.t.integer(iteration)) for fact in self.facts) if x is not self.t.true]

    def told_function(self, function: Term, r: int) -> Term:
        told = self.told(function, r)
        unknown = [x for x in told.free if x in self._functions]
        if unknown:
            raise Unsolved
        return told

    def _from_then_on(self, first: Term, before: Term, r: int, cell: Cell) -> Term:
        """What was there before the loop in iteration r, `before` later."""
        t = self.t
        at = indices(t, cell.allocation.shape)
        element = cell.allocation.element
        chosen = t.select(
            t.is_zero(t.add(self.k, t.integer(-r))), t.apply(first, at, element), t.apply(before, at, element)
        )
        return lam_over(t, chosen, cell.allocation.shape)

    def _is_head(self, cell: Cell, head: Term) -> bool:
        at = indices(self.t, cell.allocation.shape)
        content = self.t.apply(head, at, cell.allocation.element)
        if is_integer(cell.allocation.element):
            content = self.t.reduced(content, bits(cell.allocation.element))
        return cell.content is content

    def _as_atom(self, cell: Cell, term: Term) -> Term:
        element = cell.allocation.element
        return self.t.value(term, bits(element)) if is_integer(element) else term

    def _first(self, key: tuple) -> Term:
        """What a box held before the loop."""
        cell = next((c for c in self.entry.cells.get(key[0], []) if within(key[1], c.box)), None)
        if cell is None:
            raise NotProved("what shared memory holds is not known", self.op)
        if cell.case is not None:
            raise NeedCase(*cell.case)
        if cell.content is None:
            raise NotProved("what shared memory holds is not known", self.op)
        return lam_over(self.t, self._as_atom(cell, cell.content), cell.allocation.shape)

    def _solve(self) -> None:
        """Find what each carried value is at the head of iteration k."""
        self._functions = {c.function for c in self.carried.values()}
        self._contents: dict[tuple, Term] = {}
        self._asked: set[tuple] = set()
        self._weak: set[Any] = set()  # what is known at the head of an iteration, but not where there is none
        while True:
            progress = False
            for j, c in self.carried.items():
                if c.function in self.closed:
                    continue
                try:
                    found = self._closed(j, c)
                except Unsolved:
                    self._asked.clear()
                    continue
                if found is not None:
                    self.closed[c.function] = found
                    self._functions.discard(c.function)
                    self._contents.clear()
                    progress = True
            if not progress:
                break
        self._fold()

    def _next(self, j: int, r: int) -> Term:
        """What an iteration makes of a carried value, at its indices, with what is known told."""
        c, value = self.carried[j], self.turns[r].results[j]
        term = value.term
        if c.base is not None:
            if term.op != "ptr" or term.args[0] is not c.base:
                raise NotProved("a pointer that a loop carries from one argument to another", self.op)
            term = term.args[1]
        if is_integer(c.element):
            term = self.t.value(term, bits(c.element))
        return self.t.assuming(self.told(term, r), self.facts)

    def _start(self, j: int) -> Term:
        c = self.carried[j]
        term = c.first.term.args[1] if c.base is not None else c.first.term
        return self.t.value(term, bits(c.element)) if is_integer(c.element) else term

    def _closed(self, j: int, c: Carried) -> Term | None:
        t, shape = self.t, c.first.shape
        first, after = self._start(j), self._next(j, 0)
        for r in range(1, len(self.turns)):
            if self._next(j, r) is not after:
                return None
        mine = t.apply(c.function, indices(t, shape), c.element)
        unknown = {x for x in after.free if x in self._functions}
        if after is mine:
            return lam_over(t, first, shape)
        if is_integer(c.element) and unknown == {c.function}:
            change = t.reduced(t.add(self._modular(after, c), mine, -1), bits(c.element))
            if c.function not in change.free and self.count not in change.free:
                moved = t.reduced(t.add(first, t.multiply(self.k, change)), bits(c.element))
                return lam_over(t, t.value(moved, bits(c.element)), shape)
        if not unknown and not any(h in after.free for turn in self.turns for h in turn.heads.values()):
            before = self.at(after, t.add(self.k, t.integer(-1)))
            start = self.at(after, t.integer(-1))
            if start is not first:
                facts = self._facts_at(0)
                if t.assuming(start, facts) is t.assuming(first, facts):
                    self._weak.add(c.function)
                else:
                    before = t.select(t.is_zero(self.k), first, before)
            return lam_over(t, before, shape)
        return None

    def _modular(self, term: Term, c: Carried) -> Term:
        return self.t.reduced(term, bits(c.element))

    def _fold(self) -> None:
        """What is left are recurrences: each of what it needs, and what these need."""
        t = self.t
        left = {c.function: j for j, c in self.carried.items() if c.function not in self.closed}
        if not left:
            return
        after: dict[Term, Term] = {}
        for function, j in left.items():
            try:
                after[function] = self._next(j, 0)
            except Unsolved:
                raise NotProved("what a loop carries through shared memory is not understood", self.op) from None
        for function, j in left.items():
            if (found := self._of_one_element(function, left, after)) is not None:
                self.closed[function] = lam_over(t, found, self.carried[j].first.shape)
                continue
            order: list[Term] = []
            todo = [function]
            while todo:
                x = todo.pop(0)
                if x not in order:
                    order.append(x)
                    todo += [y for y in appearing(after[x]) if y in left and y not in order]
            terms = []
            for x in order:
                c = self.carried[left[x]]
                terms += [lam_over(t, self._start(left[x]), c.first.shape), lam_over(t, after[x], c.first.shape)]
            t.at = self.op
            group = t.group(order, self.count, terms)
            c = self.carried[j]
            made = t.node("fold", c.first.shape, (group, self.k, *indices(t, c.first.shape)), c.element)
            term = t.integer_of(made) if is_integer(c.element) else made
            self.closed[function] = lam_over(t, term, c.first.shape)
        self._functions.clear()
        self._contents.clear()

    def _of_one_element(self, root: Term, left: Mapping[Term, int], after: Mapping[Term, Term]) -> Term | None:
        """The recurrence of one element of a carried tensor, if it needs one element of each tensor; None where it needs more of one."""
        t = self.t
        at: dict[Term, list[Term]] = {root: indices(t, self.carried[left[root]].first.shape)}
        order, bodies = [root], {}
        for x in order:
            c = self.carried[left[x]]
            bodies[x] = moved(t, after[x], c.first.shape, at[x])
            for app in applications(bodies[x], left):
                f, where = app.args[0], [t.integer_of(y) for y in app.args[1:]]
                if any(atom.op != "idx" for y in where for atom in y.args):
                    return None
                if f not in at:
                    at[f] = where
                    order.append(f)
                elif at[f] != where:
                    return None
        functions = {x: t.function(self.carried[left[x]].element) for x in order}
        by = {}
        for x, f in functions.items():
            shape = self.carried[left[x]].first.shape
            by[x] = lam_over(t, t.apply(f, [], self.carried[left[x]].element), shape)
        terms = []
        for x in order:
            first = moved(t, self._start(left[x]), self.carried[left[x]].first.shape, at[x])
            terms += [first, t.substitute(bodies[x], by)]
        t.at = self.op
        group = t.group([functions[x] for x in order], self.count, terms)
        element = self.carried[left[root]].element
        made = t.node("fold", (), (group, self.k), element)
        return t.integer_of(made) if is_integer(element) else made

    def _same_in_all(self) -> None:
        """Check that iterations of every remainder do the same."""
        for j in self.carried:
            first = self._next(j, 0)
            for r in range(1, len(self.turns)):
                if self._next(j, r) is not first:
                    raise NotProved("iterations that take turns in what they carry", self.op)
        first_effects = [self.t.assuming(self.told(x, 0), self.facts) for x in self.turns[0].effects]
        for r in range(1, len(self.turns)):
            if [self.t.assuming(self.told(x, r), self.facts) for x in self.turns[r].effects] != first_effects:
                raise NotProved("iterations that take turns in what they store", self.op)


def appearing(term: Term) -> list[Term]:
    """The function symbols of a term, in the order in which they appear."""
    out: list[Term] = []
    seen: set[Term] = set()

    def walk(t: Term) -> None:
        if t in seen or not t.free:
            return
        seen.add(t)
        if t.op == "fun" and t not in out:
            out.append(t)
        for x in t.args:
            walk(x)

    walk(term)
    return out


def applications(term: Term, functions: Mapping[Term, int]) -> list[Term]:
    """Where elements of carried tensors are taken, in the order in which they appear."""
    out: list[Term] = []
    seen: set[Term] = set()

    def walk(t: Term) -> None:
        if t in seen or not t.free:
            return
        seen.add(t)
        if t.op == "app" and t.args[0] in functions:
            out.append(t)
        for x in t.args:
            walk(x)

    walk(term)
    return out
