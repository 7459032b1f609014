"""Functions that do nothing but make a block pointer: what they make is written where they are called.

before: p = rows(x, i, FLAT)     with `def rows(x, i, FLAT): if FLAT: return tl.make_block_ptr(x, ...) else: return tl.make_block_ptr(...)`
after:  if FLAT: p = tl.make_block_ptr(x, ...)
        else: p = tl.make_block_ptr(...)
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from dataclasses import dataclass

from gluonize.read.block_pointers.builtin_calls import arguments_of, helper_of, name_of
from gluonize.triton_api.jit_functions import JITFunction


@dataclass(frozen=True)
class _Choice:
    """A condition and what is made on either side of it."""

    test: ast.expr
    yes: "_Choice | ast.Call"
    no: "_Choice | ast.Call"


def is_maker_call(fn: JITFunction, node: ast.AST) -> bool:
    """Whether a function calls one that only makes a block pointer."""
    return isinstance(node, ast.Call) and _made(fn, node) is not None


def made_lines(fn: JITFunction, target: str, call: ast.Call, step: str) -> list[str]:
    """The statements in place of `target = call`; step: the indentation of a block."""
    made = _made(fn, call)
    assert made is not None
    return _lines(target, made, step)


def _lines(target: str, made: _Choice | ast.Call, step: str) -> list[str]:
    if isinstance(made, ast.Call):
        return [f"{target} = {ast.unparse(made)}"]
    if isinstance(made.test, ast.Constant):
        return _lines(target, made.yes if made.test.value else made.no, step)
    yes, no = ([f"{step}{line}" for line in _lines(target, side, step)] for side in (made.yes, made.no))
    return [f"if {ast.unparse(made.test)}:", *yes, "else:", *no]


def _made(fn: JITFunction, call: ast.Call) -> _Choice | ast.Call | None:
    """What a call makes, in the words of its caller; None where the function does something else."""
    helper = helper_of(fn, call)
    if helper is None or helper.noinline or "make_block_ptr" not in helper.src:
        return None
    tree = ast.parse(helper.src).body[0]
    assert isinstance(tree, ast.FunctionDef)
    body = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    values = _values(helper, call)
    found = _returned(body)
    if found is None or values is None:
        return None
    outside = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)} - values.keys()
    own = {n.id for n in ast.walk(ast.parse(fn.src)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    missing = object()
    same = all(fn.__globals__.get(n, missing) is helper.__globals__.get(n) for n in outside)
    return _with(found, values) if same and not outside & (own | set(fn.arg_names)) else None


def _values(helper: JITFunction, call: ast.Call) -> dict[str, ast.expr] | None:
    """What a call gives each parameter; None where that cannot be written."""
    given = dict(arguments_of(helper, call))
    for name, parameter in helper.signature.parameters.items():
        if name not in given and isinstance(parameter.default, int | bool | type(None)):
            given[name] = ast.Constant(parameter.default)
    plain = not any(isinstance(a, ast.Starred) for a in call.args) and all(k.arg for k in call.keywords)
    return given if plain and given.keys() == helper.signature.parameters.keys() else None


def _returned(body: list[ast.stmt]) -> _Choice | ast.Call | None:
    if not body:
        return None
    first, *rest = body
    if isinstance(first, ast.Return):
        made = first.value
        return made if isinstance(made, ast.Call) and name_of(made) == "make_block_ptr" else None
    if not isinstance(first, ast.If):
        return None
    yes, no = _returned(first.body), _returned(first.orelse or rest)
    return _Choice(first.test, yes, no) if yes is not None and no is not None else None


def _with(made: _Choice | ast.Call, values: Mapping[str, ast.expr]) -> _Choice | ast.Call:
    """What is made, with arguments in the place of parameters."""

    class Arguments(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(values[node.id]) if node.id in values else node

    if isinstance(made, ast.Call):
        return Arguments().visit(copy.deepcopy(made))
    return _Choice(Arguments().visit(copy.deepcopy(made.test)), _with(made.yes, values), _with(made.no, values))


__all__ = ["is_maker_call", "made_lines"]
