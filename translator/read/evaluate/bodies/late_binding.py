"""Names that a kernel reads when it is compiled, long after its module was imported: what may bind them in between."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from gluonize.read.evaluate.host_objects import UserFunction
from gluonize.read.evaluate.host_values import HostName
from gluonize.read.names.reached import origin_of
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import Place, Undetermined


def check_late(scope: Scope, name: str, value: Any) -> None:
    """Raises: Undetermined for a name that a function, or another file, may bind after the module has been imported."""
    if isinstance(value, (ModuleType, HostName, Scope, UserFunction)):
        return
    home: Scope | Frame | None = scope
    while isinstance(home, Scope) and name not in home.bindings.by_name and home.parent is not None:
        home = home.parent
    if not isinstance(home, Scope) or name not in home.bindings.by_name and not home.bindings.stars:
        return
    check_bound(home, name, value)
    origin, binding = origin_of(home, name)
    if binding is not None and origin is not home:
        check_bound(origin, binding.name, value)


def check_bound(home: Scope, name: str, value: Any) -> None:
    """The same for a name in the scope that binds it."""
    if home.kind != "module" or f"{home.module}:{name}" in home.program.overrides:
        return
    if (line := home.bindings.changed_by_functions.get(name)) is not None:
        raise Undetermined(f"a function may bind {name}: line {line}", Place(home.path, line, 1))
    for node, names in home.bindings.unknown_in_functions:
        if names.match(name):
            raise Undetermined(f"a function may bind {name}: line {node.lineno}", home.place(node))
    home.program.check_others(home, name, value)


__all__ = ["check_bound", "check_late"]
