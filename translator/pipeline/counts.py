"""The numbers of a pipelined loop as the translation spells them: tiles, distances, indices."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from translator.gluon.printer import printed
from translator.gluon.tree import ONE, Binary, Current, Least, Node, Number, When
from translator.rewrite.emission import Emit
from translator.facts.function import FunctionFacts
from translator.frontend.trace import TensorFact
from translator.pipeline.loop import PipelinedLoop
from translator.pipeline.plan import PipelinePlan
from translator.rewrite.run_time import is_run_time
from translator.rewrite.splice import operand


def tile_number(emit: Emit, loop: PipelinedLoop) -> str:
    """The number of the iteration, not negative."""
    if loop.counter:
        return loop.counter
    if loop.written_out:
        return loop.tile
    step = loop.plan.step
    return loop.plan.index if step is None else f"{loop.plan.index} // {operand(emit(step))}"


def distance(emit: Emit, loop: PipelinedLoop) -> str:
    """What the index of the tile ahead is greater by."""
    if loop.plan.step is None:
        return printed(loop.tiles_ahead)
    step = operand(emit(loop.plan.step))
    return step if loop.only_holds or loop.refills else f"{operand(printed(loop.tiles_ahead))} * {step}"


def tiles(emit: Emit, loop: PipelinedLoop) -> str:
    """The number of iterations, of a loop that runs at all."""
    if loop.plan.span is not None:
        span = emit(given) if (given := loop.plan.span.given) is not None else loop.plan.span.text
        return span if loop.plan.step is None else f"gl.cdiv({span}, {emit(loop.plan.step)})"
    high, low = emit(loop.plan.high), loop.plan.low
    span = high if low is None else f"{operand(high)} - {operand(emit(low))}"
    return span if loop.plan.step is None else f"gl.cdiv({span}, {emit(loop.plan.step)})"


def trips(emit: Emit, loop: PipelinedLoop) -> str:
    """How often a loop runs."""
    return f"gl.maximum({tiles(emit, loop)}, 0)"


def fetched_before(emit: Emit, loop: PipelinedLoop) -> Node:
    """How many tiles the prologue fetches."""
    return Least(loop.tiles_ahead, Number(tiles(emit, loop))) if loop.written_out else loop.tiles_ahead


def where_fetched(emit: Emit, loop: PipelinedLoop, statements: Iterable[Node]) -> tuple[Node, ...]:
    """`statements`, of a loop that is written out only for the tiles that are not fetched before it."""
    found = tuple(statements)
    if not loop.written_out or not found:
        return found
    tile = Binary(Current(loop.tile), "+", loop.depth)
    if loop.tiles_ahead != loop.depth:
        tile = Binary(tile, "-", ONE)
    return (When(tile, Number(tiles(emit, loop)), found),)


def prologue_index(emit: Emit, loop: PipelinedLoop) -> str:
    """The loop index of a tile that the prologue fetches."""
    plan = loop.plan
    if loop.only_holds:
        return "0" if plan.low is None else emit(plan.low)
    text = _from_start(emit, loop)
    if plan.low is None:
        return text
    low, binds = emit(plan.low), (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
    stands = isinstance(plan.low, ast.BinOp) and isinstance(plan.low.op, binds)
    return f"{low if stands else operand(low)} + {text}"


def _from_start(emit: Emit, loop: PipelinedLoop) -> str:
    """How far the index of a tile that the prologue fetches is from the first one."""
    step = loop.plan.step
    return loop.tile if step is None else f"{loop.tile} * {operand(emit(step))}"


def condition(emit: Emit, loop: PipelinedLoop, index: str) -> str:
    """That the tile at `index` is not past the end, of a loop that runs."""
    plan, high = loop.plan, operand(emit(loop.plan.high))
    if plan.asks_rest and index == loop.ahead:
        return f"{_rest(plan, high, plan.index)} > {distance(emit, loop)}"
    if plan.asks_rest != plan.index_dtype and plan.asks_rest and not loop.only_holds:
        low = operand(emit(plan.low))
        return f"({low} < {high}) & ({_rest(plan, high, low)} > {_from_start(emit, loop)})"
    there = f"{index} {'>' if plan.descending else '<'} {high}"
    return f"({operand(emit(plan.low))} < {high}) & ({there})" if plan.asks_start and plan.low is not None else there


def _rest(plan: PipelinePlan, high: str, at: str) -> str:
    """What is left of a loop from an index that is before its end."""
    left = f"{high} - {at}"
    return left if plan.asks_rest == plan.index_dtype else f"({left}).to(gl.{plan.asks_rest})"


def as_value(
    facts: FunctionFacts, loop: PipelinedLoop, text: str, mask: ast.expr | None = None, ends: bool = True
) -> str:
    """`text`, which says whether a tile is there, as a mask; for the first tiles it may be decided while compiling.

    mask: what of it is the author's, if anything; ends: whether the loop's end is in it.

    Before: mask=t * B < K      After: mask=gl.to_tensor(t * B < K)     where a launch may fix K
    """
    changes = ends or any(n in loop.index_names for n in ast.walk(mask))
    if not loop.written_out and changes and loop.at in (loop.ahead, loop.plan.index):
        return text
    parts = [mask] if mask is not None else [end for end in (loop.plan.low, loop.plan.high) if end is not None]
    return text if any(is_run_time(facts, part, loop.plan.loop) for part in parts) else f"gl.to_tensor({text})"


def index_value(facts: FunctionFacts, loop: PipelinedLoop, index: str) -> str:
    """`index`, that of a tile which is known at compile time but for the loop's start, as a value of the index's type."""
    plan = loop.plan
    start = facts.fact(plan.low) if plan.low is not None else None
    if isinstance(start, TensorFact):
        return index if start.dtype == plan.index_dtype else f"{operand(index)}.to(gl.{plan.index_dtype})"
    typed = f"gl.to_tensor({index})"
    return typed if plan.index_dtype == "int32" else f"{typed}.to(gl.{plan.index_dtype})"
