"""Functions and classes of the user's host code, as values of a static evaluation."""

from __future__ import annotations

import ast
import functools
import inspect
from dataclasses import dataclass, field
from typing import Any

from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import Place, Raised, Undetermined


@dataclass(frozen=True, eq=False)
class UserFunction:
    """A host function or lambda of the program; `unusable` says why its value is not known, if it is not. raised: by a decorator of it;
    kept: by arguments, the results of one that gives the same object again."""

    node: ast.FunctionDef | ast.Lambda
    scope: Scope | Frame
    unusable: str = ""
    held: dict[int, Any] = field(default_factory=dict)  # the defaults that are bound, by their expressions
    raised: Raised | None = None
    kept: dict[tuple, Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """It may be held by `functools.partial`; only the evaluator can call it. Raises: Undetermined."""
        raise Undetermined(f"{self.name} is called by a function that is not evaluated", self.scope.place(self.node))

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
        """Raises: Undetermined for what is no attribute, or one that a method of the class gives another value."""
        try:
            found = self.scope.own(name)
        except KeyError:
            raise Undetermined(f"attribute {name} of class {self.node.name}", self.scope.place(self.node)) from None
        for node in ast.walk(self.node):
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, (ast.Store, ast.Del)):
                if isinstance(node.value, ast.Name) and node.value.id in ("cls", self.node.name):
                    raise Undetermined(f"a method of class {self.node.name} changes {name}", self.scope.place(node))
        if isinstance(found, UserFunction) and isinstance(found.node, ast.FunctionDef):
            if any(isinstance(d, ast.Name) and d.id == "classmethod" for d in found.node.decorator_list):
                return functools.partial(found, self)
        return found

    def construct(self, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        raise Undetermined(f"an object of class {self.node.name} is made", place)


def record_fields(node: ast.ClassDef) -> tuple[str, ...] | None:
    """The parameters of a class whose one method, `__init__`, keeps each of them under its name; None for any other class."""
    body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef) or node.bases or node.decorator_list or node.keywords:
        return None
    init, spec = body[0], body[0].args
    if init.name != "__init__" or init.decorator_list or ast.unparse(spec) != ", ".join(a.arg for a in spec.args):
        return None
    owner, *fields = [a.arg for a in spec.args]
    kept = [ast.unparse(s) for s in init.body]
    return tuple(fields) if sorted(kept) == sorted(f"{owner}.{f} = {f}" for f in fields) else None


def record_class(name: str, fields: tuple[str, ...], module: str) -> type:
    """The class that such a definition makes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.__dict__.update(signature.bind(*args, **kwargs).arguments)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(f, kind) for f in fields])
    return type(name, (), {"__init__": __init__, "__module__": module})


@dataclass(frozen=True)
class LookedThrough:
    """A decorator that leaves the kernel as it is: `autotune`, `heuristics`, `cache`."""

    kind: str
