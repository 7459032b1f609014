"""Which integer operation a call is, by the object that is called: a function of the user's that is named alike is none of them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from gluonize.trace.front.trace import ConstFact, MethodFact, TensorFact
from gluonize.triton_api.gluon_language import gl
from gluonize.triton_api.language import tl

# Operation -> the names of its arguments, by which a call gives them; a method's object is the first.
ARGUMENTS = {
    "program_id": ("axis",),
    "num_programs": ("axis",),
    "arange": ("start", "end"),
    "cdiv": ("x", "div"),
    "to": ("self", "dtype"),
    "cast": ("input", "dtype"),
    "to_tensor": ("x",),
    "maximum": ("x", "y"),
    "minimum": ("x", "y"),
    "where": ("condition", "x", "y"),
    "abs": ("x",),
    "full": ("shape", "value", "dtype"),
    "zeros": ("shape", "dtype"),
    "zeros_like": ("input",),
    "sum": ("input", "axis"),
    "cumsum": ("input", "axis"),
    "max": ("input", "axis"),
    "min": ("input", "axis"),
    "argmax": ("input", "axis"),
    "argmin": ("input", "axis"),
    "multiple_of": ("input",),
    "max_contiguous": ("input",),
    "max_constancy": ("input",),
    "broadcast_to": ("input",),
    "expand_dims": ("input",),
    "reshape": ("input",),
    "view": ("input",),
    "ravel": ("x",),
    "trans": ("input",),
    "permute": ("input",),
    "flip": ("x",),
    "load": ("pointer",),
}
# Each element of the result is one of the first argument.
SAME_ELEMENTS = frozenset(
    "multiple_of max_contiguous max_constancy broadcast_to expand_dims reshape view ravel trans permute flip to_tensor".split()
)
_RANGES = (range, tl.range, tl.static_range, gl.static_range)
_SELECTED = {tl.core.builtin_min: "minimum", tl.core.builtin_max: "maximum"}


def _by_object() -> dict[int, str]:
    found = {}
    for name in ARGUMENTS:
        for owner in (tl, tl.tensor):
            if (function := getattr(owner, name, None)) is not None:
                found[id(function)] = name
    return found | {id(function): name for function, name in _SELECTED.items()}


_BY_OBJECT = _by_object()


@dataclass(frozen=True)
class Operation:
    """A call of a known operation. operands: its arguments by name, those that are left out missing."""

    name: str
    operands: dict[str, ast.expr]

    @property
    def first(self) -> ast.expr | None:
        return self.operands.get(ARGUMENTS[self.name][0])


def operation_of(call: ast.Call, callee: Any) -> Operation | None:
    """The operation that `call` is, where its callee, as the trace saw it, is one; None for any other call."""
    method = isinstance(callee, MethodFact)
    function = callee.function if method else callee.value if isinstance(callee, ConstFact) else None
    name = _BY_OBJECT.get(id(getattr(function, "__func__", function)))
    if name is None or any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    given = list(call.args)
    if any(function is known for known in _SELECTED) and len(given) != 2:
        return None
    if method:
        if not isinstance(callee.owner, TensorFact) or not isinstance(call.func, ast.Attribute):
            return None
        given = [call.func.value, *given]
    named = {k.arg: k.value for k in call.keywords if k.arg is not None}
    return Operation(name, dict(zip(ARGUMENTS[name], given)) | named)


def range_of_loop(call: ast.AST, callee: Any) -> tuple[ast.expr | None, ast.expr, ast.expr | None] | None:
    """(low or None for 0, high, step or None for 1) of `range(...)`, however its arguments are given."""
    if not isinstance(call, ast.Call) or not isinstance(callee, ConstFact):
        return None
    if not any(callee.value is known for known in _RANGES):
        return None
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    given = dict(zip(("arg1", "arg2", "step"), call.args)) | {k.arg: k.value for k in call.keywords}
    if "arg1" not in given:
        return None
    if "arg2" not in given:
        return None, given["arg1"], given.get("step")
    return given["arg1"], given["arg2"], given.get("step")


__all__ = ["SAME_ELEMENTS", "Operation", "operation_of", "range_of_loop"]
