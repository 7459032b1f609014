"""The values that `pytest.mark.parametrize` gives a test function, and so a launch in it."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator
from typing import Any

from gluonize.read.evaluate.program import Program
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import NoValue

# Calls of a test that are looked at: three values of each of two parameters, and both of a flag.
ROWS = 18


def parametrized(program: Program, function: ast.FunctionDef, scope: Scope | Frame) -> tuple[list[dict[str, Any]], int]:
    """Values for parameters by name, a dict per call, and how many calls there are beside these: the first row of every decorator, then
    the others of each, one at a time, then those that differ from the first in two decorators, and so on."""
    tables = [rows for node in function.decorator_list if (rows := _rows(program, node, scope))]
    if not tables:
        return [], 0
    out = [
        {name: value for rows, number in zip(tables, numbers) for name, value in rows[number].items()}
        for numbers in itertools.islice(_numbers([len(rows) for rows in tables]), ROWS)
    ]
    return out, math.prod(map(len, tables)) - len(out)


def _numbers(counts: list[int]) -> Iterator[tuple[int, ...]]:
    """A number below each count, in all ways: fewer that are not 0 before more, and of those the small ones first."""
    for changed in range(len(counts) + 1):
        ranges = (
            [range(1, min(count, ROWS)) if place in places else (0,) for place, count in enumerate(counts)]
            for places in itertools.combinations(range(len(counts)), changed)
        )
        yield from sorted((numbers for each in ranges for numbers in itertools.product(*each)), key=sum)


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
