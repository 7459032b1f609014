"""Loops over a range: bounds, index, and what changes from one iteration to the next."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.operations import range_of_loop
from gluonize.trace.front.trace import ConstFact, TensorFact

if TYPE_CHECKING:
    from gluonize.facts.webs import Definition

# Functions that say something about a value and return it.
HINTS = ("multiple_of", "max_contiguous", "max_constancy")


def loop_bounds(
    facts: FunctionFacts, loop: ast.For, either_way: bool = False
) -> tuple[ast.expr | None, ast.expr, ast.expr | None] | None:
    """(low or None for 0, high, step or None for 1); either_way: the step may be negative."""
    if not isinstance(loop.iter, ast.Call) or any(isinstance(a, ast.Starred) for a in loop.iter.args):
        return None
    if range_of_loop(loop.iter, facts.fact(loop.iter.func)) is None or not 1 <= len(loop.iter.args) <= 3:
        return None
    if facts.unrolled(loop):
        return None
    if any(k.arg in ("arg1", "arg2", "step") for k in loop.iter.keywords):
        return None
    args = loop.iter.args
    low, high = (None, args[0]) if len(args) == 1 else (args[0], args[1])
    step = args[2] if len(args) == 3 else None
    if low is not None and int_of(facts, low) == 0:
        low = None
    if step is not None:
        value = int_of(facts, step)
        if not value or value < 0 and not either_way:
            return None
        step = None if value == 1 else step
    return low, high, step


def is_index(facts: FunctionFacts, loop: ast.For, name: ast.Name) -> bool:
    """Whether `name` is the index of `loop`, also after a hint about it."""
    definition = facts.webs.definition_of(name)
    return definition is not None and (definition.node is loop or is_hinted_index(facts, loop, definition))


def is_hinted_index(facts: FunctionFacts, loop: ast.For, definition: Definition) -> bool:
    """Whether a definition is `i = tl.multiple_of(i, n)`, which gives the index its own value.

    The hint is about iterations that exist: what runs ahead of them does without it.
    """
    if not isinstance(definition.value, ast.Call) or definition.in_loop[-1:] != (loop,):
        return False
    callee = callees.callee_of(facts, definition.value)
    if callee is None or callee.row is None or callee.name not in HINTS:
        return False
    value = next(iter(callees.bind(definition.value, callee).values()), None)
    return isinstance(value, ast.Name) and is_index(facts, loop, value)


def varies(facts: FunctionFacts, loop: ast.For, node: ast.AST) -> bool:
    """Whether the value of `node` may differ between iterations."""
    for name in ast.walk(node):
        if (web := facts.webs.of_use.get(name)) is not None:
            if any(loop in d.in_loop or d.node is loop for d in web.definitions):
                return True
    return False


def every_iteration(facts: FunctionFacts, statements: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a body that run in every iteration; branches decided at compile time are looked into."""
    out: list[ast.stmt] = []
    for s in statements:
        if not facts.taken(s):
            continue
        if isinstance(s, ast.If) and isinstance(fact := facts.settled(s.test), ConstFact):
            out += every_iteration(facts, s.body if fact.value else s.orelse)
        else:
            out.append(s)
    return out


def int_of(facts: FunctionFacts, node: ast.expr) -> int | None:
    fact = facts.settled(node)
    return fact.value if isinstance(fact, ConstFact) and isinstance(fact.value, int) else None


def step_of(facts: FunctionFacts, step: ast.expr | None) -> int | None:
    """The step of a loop, where it is known at compile time."""
    return 1 if step is None else int_of(facts, step)


def trips_of(
    facts: FunctionFacts, low: ast.expr | None, high: ast.expr, step: ast.expr | None, apart: int | None = None
) -> int | None:
    """The number of iterations, where it is known at compile time; apart: `high - low` where that is known."""
    by = step_of(facts, step)
    if apart is None:
        first, last = 0 if low is None else int_of(facts, low), int_of(facts, high)
        apart = None if first is None or last is None or isinstance(last, bool) else last - first
    return None if apart is None or by is None else max(0, -(-apart // by))


def index_dtype(facts: FunctionFacts, loop: ast.For) -> str:
    """The integer type of the loop index: that of a use, else that of the bounds."""
    for n in ast.walk(loop):
        if isinstance(n, ast.Name) and is_index(facts, loop, n) and isinstance(fact := facts.fact(n), TensorFact):
            return fact.dtype
    kinds = {f.dtype for a in loop.iter.args if isinstance(f := facts.fact(a), TensorFact)}
    return "int32" if kinds <= {"int32"} else "int64"
