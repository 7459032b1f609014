"""Names for the variables that a translation adds to a function."""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Iterable

from gluonize.facts.function import FunctionFacts
from gluonize.numbered import numbered
from gluonize.write.state.statements import holds


class FreshNames:
    """Names that a function has not; taken: those that it has, to which others may come."""

    def __init__(self, taken: set[str]):
        self._taken = taken
        self._names: dict[Hashable, str] = {}

    def of(self, variable: Hashable, name: str) -> str:
        """The name of `variable`: `name`, or it with a number where the function has it already."""
        if variable not in self._names:
            used = self._taken.union(self._names.values())
            self._names[variable] = numbered(name, used.__contains__)
        return self._names[variable]


class LoopNames:
    """Names that pipelined loops add, which are put among those that the function has. kept: others that it is given."""

    def __init__(self, facts: FunctionFacts, taken: set[str], kept: frozenset[str] = frozenset()):
        self._facts, self._taken, self._kept = facts, taken, kept
        self._added: dict[ast.For, set[str]] = {}
        self._blocks: dict[str, tuple] = {}

    def fresh(self, name: str, loop: ast.For | None = None, taken: Iterable[str] = ()) -> str:
        """A name that the source does not use, and none of `taken`. Loops may share it unless one is in the other: the inner
        `loop` would change what the outer one goes on with."""
        others = (n for n in self._added if n is not loop and loop is not None)
        nested = (n for n in others if holds(n, loop) or holds(loop, n))
        used = self._facts.source_names.union(taken, self._kept, *(self._added[n] for n in nested))
        found = numbered(name, used.__contains__)
        self._taken.add(found)
        if loop is not None:
            self._added.setdefault(loop, set()).add(found)
        return found

    def stem(self, stem: str, block: tuple, others: Collection[str]) -> str:
        """A stem for the names of a ring, none of `others`; only rings in the same `block` share one."""
        return numbered(stem, lambda name: name in others or self._blocks.setdefault(name, block) != block)
