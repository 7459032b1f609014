"""The values that `pytest.mark.parametrize` gives a test function, and so a launch in it."""

from __future__ import annotations

import ast
import itertools
from typing import Any

from gluonize.read.evaluate.program import Program
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import NoValue

# Rows that are looked at: of each decorator, and in all.
_EACH, _ROWS = 8, 12


def parametrized(program: Program, function: ast.FunctionDef, scope: Scope | Frame) -> list[dict[str, Any]]:
    """Values for parameters by name, a dict per call: the first row of every decorator, then the others of each, one at a time."""
    tables = [rows for node in function.decorator_list if (rows := _rows(program, node, scope))]
    if not tables:
        return []
    first = {name: value for rows in tables for name, value in rows[0].items()}
    others = (first | row for rows in tables for row in rows[1:_EACH])
    return list(itertools.islice(itertools.chain([first], others), _ROWS))


def _rows(program: Program, decorator: ast.expr, scope: Scope | Frame) -> list[dict[str, Any]]:
    if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith("parametrize"):
        return []
    given = {k.arg: k.value for k in decorator.keywords}
    parts = dict(zip(("argnames", "argvalues"), decorator.args)) | given
    if "argnames" not in parts or "argvalues" not in parts:
        return []
    try:
        names = program.evaluate(parts["argnames"], scope)
    except NoValue:
        return []
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    return [dict(zip(names, row)) for row in _values(program, parts["argvalues"], scope, len(names))]


def _values(program: Program, node: ast.expr, scope: Scope | Frame, count: int) -> list[tuple]:
    """The rows that can be read, each with a value per name."""
    items = node.elts if isinstance(node, (ast.List, ast.Tuple)) else None
    try:
        values = program.evaluator.iterate(program.evaluate(node, scope), scope.place(node)) if items is None else []
    except NoValue:
        return []
    out = [value if count > 1 else (value,) for value in values]
    for item in items or ():
        if isinstance(item, ast.Call) and ast.unparse(item.func).endswith(".param"):
            item = ast.copy_location(ast.Tuple(item.args, ast.Load()), item)
            single = False
        else:
            single = count == 1
        try:
            value = program.evaluate(item, scope)
        except NoValue:
            continue
        out.append((value,) if single else value)
    return [tuple(row) for row in out if isinstance(row, (tuple, list)) and len(row) == count]
