"""Default arguments: they are bound when `def` runs, once, and shared by all calls."""

from __future__ import annotations

import ast
from typing import Any

from gluonize.read.evaluate.evaluation import Evaluation
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import NoValue


def bound_defaults(evaluation: Evaluation, spec: ast.arguments, scope: Scope | Frame) -> dict[int, Any]:
    """The defaults of a function that is defined now, or was, by their expressions; why one has no value in its place."""
    held = {}
    for default in [*spec.defaults, *spec.kw_defaults]:
        if default is None or isinstance(default, ast.Constant) or is_same_later(default, scope):
            continue
        if id(default) in scope.defaults:
            held[id(default)] = scope.defaults[id(default)]
            continue
        try:
            held[id(default)] = evaluation.evaluate(default, scope)
        except NoValue as error:
            held[id(default)] = error
    return held


def is_same_later(default: ast.expr, scope: Scope | Frame) -> bool:
    """Whether a default is what it was when `def` ran whenever it is asked for, so that no module need be run for one that nobody asks
    for: `Kind.NONE` of an import, function or class that is bound once, where no attribute of that name is assigned to.
    """
    attributes = []
    while isinstance(default, ast.Attribute):
        attributes.append(default.attr)
        default = default.value
    if not isinstance(default, ast.Name) or not isinstance(scope, Scope) or scope.kind != "module":
        return False
    names = scope.bindings
    bound = names.by_name.get(default.id, ())
    if names.stars or names.unknown or names.unknown_in_functions or default.id in names.changed_by_functions:
        return False
    is_kept = len(bound) == 1 and bound[0].kind in ("import", "from", "def", "class") and not bound[0].guards
    return is_kept and scope.assigned_attributes.isdisjoint(attributes)


def default_value(evaluation: Evaluation, node: ast.expr, held: dict[int, Any], scope: Scope | Frame) -> Any:
    """The value of one of them. Raises: Undetermined, Raised."""
    if id(node) not in held:
        return evaluation.evaluate(node, scope)
    value = held[id(node)]
    if isinstance(value, NoValue):
        raise value
    return evaluation.program.effects.check(value)


__all__ = ["bound_defaults", "default_value"]
