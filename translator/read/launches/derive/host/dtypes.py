"""Element types in the conditions of host code: what a comparison of them gives, and what one that has to hold says."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from gluonize.read.evaluate.host_values import HostName
from gluonize.read.launches.derive.host.model import TRITON_TYPE, Dtype
from gluonize.read.launches.derive.kernel.element_types import HALF
from gluonize.read.launches.derive.kernel.roles import is_index

# Types that a tensor of which nothing is shown may have; that it holds integers, truths or doubles would be shown by something.
_OPEN = frozenset({"fp16", "bf16", "fp32", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16"})
# What is taken of several types that a condition allows: those that are guessed where there is no condition.
_USUAL = (HALF, "i64")
_DENIED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.NotEq: ast.Eq, ast.IsNot: ast.Is, ast.NotIn: ast.In}


def is_torch_dtype(value: Any) -> bool:
    return isinstance(value, Dtype) or isinstance(value, HostName) and bool(value.torch_dtype)


def same_dtype(left: Any, right: Any) -> bool | None:
    """Whether two dtypes, or one and any of a tuple, are the same; None where that is open."""
    if isinstance(right, (tuple, list)):
        answers = [same_dtype(left, item) for item in right]
        return True if True in answers else None if None in answers else False
    if not is_torch_dtype(left) or not is_torch_dtype(right):
        return None
    one, two = _name(left), _name(right)
    if one and two:
        return one == two
    unknown = left if not one else right
    return None if (one or two) in _OPEN or (one or two) == "" or is_index(unknown.owner.name) else False


def _name(value: Any) -> str:
    if isinstance(value, Dtype):
        return value.owner.shown()[0]
    return TRITON_TYPE.get(value.torch_dtype, value.torch_dtype)


def allowed_types(values: Iterable[Any]) -> list[str]:
    """The element types that dtypes, also in tuples, are."""
    out: list[str] = []
    for value in values:
        if isinstance(value, (tuple, list, dict, set, frozenset)):
            out += allowed_types(value)
        elif is_torch_dtype(value) and (kind := _name(value)) in TRITON_TYPE.values():
            out.append(kind)
    return out


def chosen_type(allowed: list[str]) -> str:
    """One of the types that a condition allows; "" where it allows none."""
    return next((kind for kind in _USUAL if kind in allowed), allowed[0] if allowed else "")


def looked_up(table: dict, index: Dtype) -> Any:
    """`TABLE[x.dtype]`: where nothing shows the type of `x`, it is one that the table has. Raises: LookupError."""
    tensor = index.owner.root()
    keys = {_name(key): key for key in table if is_torch_dtype(key)}
    if not tensor.element and len(keys) == len(table) and (kind := chosen_type(list(keys))):
        tensor.element, tensor.why, tensor.confidence = kind, "a table of types is asked for it", "use"
    return table[keys[tensor.element]]


def denied(test: ast.expr) -> ast.expr | None:
    """What holds where a test does not: `x.dtype == t` for `x.dtype != t`; None where that says nothing of types."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _DENIED:
        return ast.copy_location(ast.Compare(test.left, [_DENIED[type(test.ops[0])]()], test.comparators), test)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        parts = [part for value in test.values if (part := denied(value)) is not None]
        return ast.copy_location(ast.BoolOp(ast.And(), parts), test) if parts else None
    return None
