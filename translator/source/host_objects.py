"""Functions and classes of the user's host code, as values of a static evaluation."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from translator.source.scope import Frame, Scope
from translator.source.unresolved import Place, Undetermined


@dataclass(frozen=True, eq=False)
class UserFunction:
    """A host function or lambda of the program; `unusable` says why its value is not known, if it is not."""

    node: ast.FunctionDef | ast.Lambda
    scope: Scope | Frame
    unusable: str = ""

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "<lambda>")

    @property
    def qualname(self) -> str:
        return f"{self.scope.qualname}.{self.name}" if self.scope.qualname else self.name


@dataclass(frozen=True, eq=False)
class UserClass:
    """An ordinary class of the program; its class attributes can be read, it cannot be instantiated."""

    node: ast.ClassDef
    scope: Scope

    def member(self, name: str) -> Any:
        try:
            return self.scope.own(name)
        except KeyError:
            raise Undetermined(f"attribute {name} of class {self.node.name}", self.scope.place(self.node)) from None

    def construct(self, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        raise Undetermined(f"an object of class {self.node.name} is made", place)


@dataclass(frozen=True)
class LookedThrough:
    """A decorator that leaves the kernel as it is: `autotune`, `heuristics`, `cache`."""

    kind: str
