"""Trees with names that are given later: functions, from where their code is whole to where what they name is known.

A `Reference` stands in the tree where an `Unnamed` stands in code. Both ways go through Python's syntax, in which a reference is an
identifier with a number: it stands for the same thing in all functions of a kernel, and nobody outside of this module reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import libcst as cst
from gluonize.gluon.code import code_of
from gluonize.gluon.nodes import Code, Node, Unnamed
from gluonize.gluon.trees.function import GluonFunction, parsed
from gluonize.gluon.trees.walk import assigned, mapped, walk

_IDENTIFIER = re.compile(r"__later_(\d+)__")


@dataclass(frozen=True, eq=False)
class Reference(cst.Name):
    """A name that is given later. of: what has it, or a node that stands in the tree as it is."""

    of: Any = None


class References:
    """What the references of one kernel stand for: one number for each thing."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._every: list[Any] = []

    def identifier(self, of: Any) -> str:
        number = self._numbers.setdefault(of, len(self._every))
        if number == len(self._every):
            self._every.append(of)
        return f"__later_{number}__"

    def text(self, code: Code) -> str:
        """Code as Python that can be parsed."""
        return "".join(part if isinstance(part, str) else self.identifier(_thing(part)) for part in code)

    def function(self, text: str) -> GluonFunction:
        """The function whose `text` this is."""
        function = parsed(text)

        def change(n: cst.CSTNode) -> cst.CSTNode | None:
            found = _IDENTIFIER.fullmatch(n.value) if isinstance(n, cst.Name) else None
            return None if found is None else Reference(n.value, n.lpar, n.rpar, of=self._every[int(found[1])])

        return function.with_node(mapped(function.node, change))

    def code(self, text: str) -> Code:
        """The code that the text of a tree is."""
        parts = _IDENTIFIER.split(text)
        return code_of(*(_part(self._every[int(part)]) if i % 2 else part for i, part in enumerate(parts)))

    def named(self, text: str, names: Mapping[Any, str]) -> str:
        """The text of code with names in the place of what has none yet."""
        return _IDENTIFIER.sub(lambda found: names[self._every[int(found[1])]], text)

    def exchanged(self, function: GluonFunction, instead: Mapping[Any, Any]) -> GluonFunction:
        """A function whose references stand for other things."""

        def change(n: cst.CSTNode) -> cst.CSTNode | None:
            if not isinstance(n, Reference) or n.of not in instead:
                return None
            return n.with_changes(value=self.identifier(instead[n.of]), of=instead[n.of])

        return function.with_node(mapped(function.node, change))


def _thing(part: Node) -> Any:
    return part.of if isinstance(part, Unnamed) else part


def _part(thing: Any) -> Node:
    return thing if isinstance(thing, Node) else Unnamed(thing)


def references(node: cst.CSTNode) -> dict[Any, None]:
    """What the references in a tree stand for, in the order of the text."""
    return dict.fromkeys(n.of for n in walk(node) if isinstance(n, Reference))


def bound(node: cst.CSTNode) -> set[Any]:
    """What those references stand for that are assigned in a tree."""
    return {n.of for n in assigned(node) if isinstance(n, Reference)}


def named(function: GluonFunction, names: Mapping[Any, str]) -> GluonFunction:
    """A function with names in the place of references to what has one."""

    def change(n: cst.CSTNode) -> cst.CSTNode | None:
        found = names.get(n.of) if isinstance(n, Reference) else None
        return None if found is None else cst.Name(found, n.lpar, n.rpar)

    return function.with_node(mapped(function.node, change))


__all__ = ["Reference", "References", "bound", "named", "references"]
