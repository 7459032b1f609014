"""What stands for names and defaults of a jit function that have no static value, and why they have none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gluonize.diagnostics import Diagnostic
from gluonize.read.evaluate.host_objects import LookedThrough, UserClass, UserFunction
from gluonize.read.evaluate.host_values import HostName


@dataclass(frozen=True)
class UnresolvedDefault:
    """Stands for a default argument that has no static value, or what one is computed from; `diagnostic` says why.

    Triton evaluates the expressions of defaults also where a launch gives the value: what they ask of it is another of these.
    """

    text: str
    diagnostic: Diagnostic

    def __getattr__(self, name: str) -> UnresolvedDefault:
        if name.startswith("__"):
            raise AttributeError(name)
        return UnresolvedDefault(f"{self.text}.{name}", self.diagnostic)


def refusal_of(name: str, value: Any) -> str:
    if isinstance(value, UserFunction):
        return (
            value.unusable
            or f"{name} is a host function ({value.scope.path}:{value.node.lineno}); a kernel can call only jit functions"
        )
    if isinstance(value, UserClass):
        return f"{name} is a host class ({value.scope.path}:{value.node.lineno})"
    if isinstance(value, HostName):
        return f"{value.dotted} belongs to the host program"
    if isinstance(value, LookedThrough):
        return f"{name} is a launch decorator"
    return ""
