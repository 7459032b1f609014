"""How many dimensions the tensors of a host function have, as far as it shows: `M, N = x.shape`, `x.stride(2)`, `x.shape[1]`."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gluonize.read.launches.derive.host.address_terms import Terms


@dataclass(frozen=True)
class Rank:
    """count: of dimensions; exact: there are no more than these, which only an unpacking says."""

    count: int
    exact: bool = False


@functools.lru_cache(maxsize=1024)
def ranks_shown(function: ast.FunctionDef) -> Mapping[str, Rank]:
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
    return {name: Rank(count) for name, count in least.items()} | {n: Rank(count, True) for n, count in exact.items()}


def ranks_by_use(arguments: Mapping[str, ast.expr], terms: Mapping[str, Terms]) -> dict[str, int]:
    """Tensors of a launch of which the kernel uses strides beside an index without any: they have a dimension more."""
    out: dict[str, int] = {}
    for pointer, found in terms.items():
        tensor = arguments.get(pointer)
        asked = [_stride_asked(arguments[name]) for name in found.factors if name in arguments]
        if found.unit and (called := _dotted(tensor)):
            axes = [axis for name, axis in filter(None, asked) if name == called]
            out[called] = max([out.get(called, 0), *(axis + 2 for axis in axes)])
    return {name: count for name, count in out.items() if count}


def ranks_asked(passed: Iterable[ast.expr]) -> dict[str, int]:
    """The dimensions that tensors have at least for what is passed to be there, by name."""
    out: dict[str, int] = {}
    for value in passed:
        for node in ast.walk(value):
            if isinstance(node, ast.expr) and (found := _stride_asked(node)) is not None:
                out[found[0]] = max(out.get(found[0], 0), found[1] + 1)
    return out


def _stride_asked(node: ast.expr) -> tuple[str, int] | None:
    """`("x", 1)` of `x.stride(1)`; None of anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "stride" and node.args:
        index = _number(node.args[0])
        if (owner := _dotted(node.func.value)) and index is not None and index >= 0:
            return owner, index
    return None


def _shape_of(value: ast.expr) -> str:
    if (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "size"
        and not value.args
    ):
        value = value.func
    return _dotted(value.value) if isinstance(value, ast.Attribute) and value.attr in ("shape", "size") else ""


def _dotted(node: ast.expr | None) -> str:
    """`x` and `args.x` as they are written; "" of anything else."""
    inner = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return ast.unparse(node) if node is not None and isinstance(inner, ast.Name) else ""


def _note(ranks: dict[str, int], owner: ast.expr, index: ast.expr | None) -> None:
    number = _number(index) if index is not None else None
    if (name := _dotted(owner)) and number is not None:
        # `x.stride(0)` alone does not say that x is a vector; taken for a matrix its stride is not a constant.
        ranks[name] = max(ranks.get(name, 2), number + 1 if number >= 0 else -number)


def _number(node: ast.expr) -> int | None:
    try:
        number = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return number if type(number) is int else None
