"""How many dimensions the tensors of a host function have, as far as it shows: `M, N = x.shape`, `x.stride(2)`, `x.shape[1]`."""

from __future__ import annotations

import ast


def ranks_shown(function: ast.FunctionDef) -> dict[str, int]:
    """The rank by name: what an unpacking says, else one more than the last dimension that is asked for."""
    least: dict[str, int] = {}
    exact: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            target, name = node.targets[0], _shape_of(node.value)
            if name and not any(isinstance(item, ast.Starred) for item in target.elts):
                exact[name] = len(target.elts)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("stride", "size")
        ):
            _note(least, node.func.value, node.args[0] if node.args else None)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            _note(least, node.value.value, node.slice)
    return least | exact


def _shape_of(value: ast.expr) -> str:
    if (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "size"
        and not value.args
    ):
        value = value.func
    if isinstance(value, ast.Attribute) and value.attr in ("shape", "size") and isinstance(value.value, ast.Name):
        return value.value.id
    return ""


def _note(ranks: dict[str, int], owner: ast.expr, index: ast.expr | None) -> None:
    if not isinstance(owner, ast.Name) or index is None:
        return
    try:
        number = ast.literal_eval(index)
    except (ValueError, TypeError):
        return
    if isinstance(number, int):
        # `x.stride(0)` alone does not say that x is a vector; taken for a matrix its stride is not a constant.
        ranks[owner.id] = max(ranks.get(owner.id, 2), number + 1 if number >= 0 else -number)
