"""What `@triton.heuristics` gives an argument of a launch of which some arguments are known."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gluonize.diagnostics import TranslationError
from gluonize.read.evaluate.program import Program
from gluonize.read.evaluate.spec_values import encode_value
from gluonize.read.kernels.load import Decorator
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import NoValue, Undetermined

NO_VALUE = object()  # what a launch spec cannot say


@dataclass(frozen=True)
class HeuristicValue:
    """A value as a launch spec has it, and where it comes from."""

    value: Any
    why: str


@dataclass(frozen=True)
class HeuristicTable:
    """One `heuristics` decorator. node: its call; written: its table as the source has it; functions: by argument."""

    node: ast.Call
    written: ast.expr
    functions: dict[str, Any]


def heuristic_tables(decorators: Iterable[Decorator], program: Program, home: Scope) -> Iterator[HeuristicTable]:
    """The `heuristics` of a kernel that can be evaluated, in their order."""
    for decorator in decorators:
        if decorator.kind != "heuristics" or not isinstance(decorator.node, ast.Call):
            continue
        tables = [k.value for k in decorator.node.keywords if k.arg == "values"] or decorator.node.args[:1]
        if not tables:
            continue
        try:
            table = program.evaluate(tables[0], home)
        except NoValue:
            continue
        if isinstance(table, dict):
            yield HeuristicTable(decorator.node, tables[0], table)


def heuristic_value(
    name: str, decorators: Iterable[Decorator], known: Callable[[], dict[str, Any]], program: Program, home: Scope
) -> HeuristicValue | None:
    """What a heuristic of the kernel gives the argument `name`; None where none of them can be evaluated.

    known: the arguments as a heuristic's function sees them.

    A test of divisibility that depends on more than is known is taken to be false, the general case.
    """
    for found in heuristic_tables(decorators, program, home):
        if name not in found.functions:
            continue
        frame = Frame(home, home.path, home.module, "")
        try:
            value = encoded(
                program.evaluator.calls.apply(found.functions[name], [_Known(known())], {}, frame.place(found.node))
            )
        except NoValue:
            text = _text(found.written, name)
            if re.search(r"%.*==\s*0|is_divisible", text):
                return HeuristicValue(False, f"the general case of its heuristic `{text}`")
        else:
            if value is not NO_VALUE:
                return HeuristicValue(value, "what its heuristic gives for this launch")
    return None


def encoded(value: Any) -> Any:
    """A value as a launch spec has it, or NO_VALUE."""
    try:
        return encode_value(value)
    except TranslationError:
        return NO_VALUE


class _Known(dict):
    """Arguments by name; those that are missing are undetermined instead of errors."""

    def __missing__(self, key: str) -> Any:
        raise Undetermined(f"argument {key} is known only when the host program runs")


def _text(table: ast.expr, name: str) -> str:
    if isinstance(table, ast.Dict):
        for key, value in zip(table.keys, table.values):
            if isinstance(key, ast.Constant) and key.value == name:
                return ast.unparse(value)
    return ast.unparse(table)
