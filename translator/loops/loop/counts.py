"""The numbers of a pipelined loop as the translation spells them: tiles, distances, indices."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gluonize.facts.function import FunctionFacts
from gluonize.gluon.nodes import ONE, Binary, Current, Least, Node, Number, When
from gluonize.gluon.printer import written
from gluonize.gluon.written import Written, binary, call, grouped, literal, method, name, operand
from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.loops.plan.plan import PipelinePlan
from gluonize.trace.front.trace import TensorFact
from gluonize.write.accesses.run_time import is_run_time
from gluonize.write.state.writing import Emit


def tile_number(emit: Emit, loop: PipelinedLoop) -> Written:
    """The number of the iteration, not negative."""
    if loop.counter or loop.written_out:
        return name(loop.counter or loop.tile)
    index, step = name(loop.plan.index), loop.plan.step
    return index if step is None else binary(index, "//", operand(emit(step)))


def distance(emit: Emit, loop: PipelinedLoop) -> Written:
    """What the index of the tile ahead is greater by."""
    if loop.plan.step is None:
        return written(loop.tiles_ahead)
    step = operand(emit(loop.plan.step))
    return step if loop.only_holds or loop.refills else binary(operand(written(loop.tiles_ahead)), "*", step)


def tiles(emit: Emit, loop: PipelinedLoop) -> Written:
    """The number of iterations, of a loop that runs at all."""
    low, high, known = loop.plan.low, loop.plan.high, loop.plan.span
    if known is not None:
        span = emit(known.given) if known.given is not None else Written(known.text, known.form)
    else:
        span = emit(high) if low is None else binary(operand(emit(high)), "-", operand(emit(low)))
    return span if loop.plan.step is None else call("gl.cdiv", span, emit(loop.plan.step))


def trips(emit: Emit, loop: PipelinedLoop) -> Written:
    """How often a loop runs."""
    return call("gl.maximum", tiles(emit, loop), "0")


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


def prologue_index(emit: Emit, loop: PipelinedLoop) -> Written:
    """The loop index of a tile that the prologue fetches."""
    plan = loop.plan
    if loop.only_holds:
        return literal(0) if plan.low is None else emit(plan.low)
    text = _from_start(emit, loop)
    if plan.low is None:
        return text
    low, binds = emit(plan.low), (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
    return binary(low if issubclass(low.form, binds) else operand(low), "+", text)


def _from_start(emit: Emit, loop: PipelinedLoop) -> Written:
    """How far the index of a tile that the prologue fetches is from the first one."""
    tile, step = name(loop.tile), loop.plan.step
    return tile if step is None else binary(tile, "*", operand(emit(step)))


def condition(emit: Emit, loop: PipelinedLoop, index: Written) -> Written:
    """That the tile at `index` is not past the end, of a loop that runs."""
    plan, high = loop.plan, operand(emit(loop.plan.high))
    if plan.asks_rest and index == loop.ahead:
        return binary(_rest(plan, high, name(plan.index)), ">", distance(emit, loop))
    if plan.asks_rest != plan.index_dtype and plan.asks_rest and not loop.only_holds:
        low = operand(emit(plan.low))
        left = binary(_rest(plan, high, low), ">", _from_start(emit, loop))
        return binary(grouped(binary(low, "<", high)), "&", grouped(left))
    there = binary(index, ">" if plan.descending else "<", high)
    if not plan.asks_start or plan.low is None:
        return there
    return binary(grouped(binary(operand(emit(plan.low)), "<", high)), "&", grouped(there))


def _rest(plan: PipelinePlan, high: Written, at: Written) -> Written:
    """What is left of a loop from an index that is before its end."""
    left = binary(high, "-", at)
    return left if plan.asks_rest == plan.index_dtype else method(left, "to", f"gl.{plan.asks_rest}")


def as_value(
    facts: FunctionFacts, loop: PipelinedLoop, text: Written, mask: ast.expr | None = None, ends: bool = True
) -> Written:
    """`text`, which says whether a tile is there, as a mask; for the first tiles it may be decided while compiling.

    mask: what of it is the author's, if anything; ends: whether the loop's end is in it.

    Before: mask=t * B < K      After: mask=gl.to_tensor(t * B < K)     where a launch may fix K
    """
    changes = ends or any(n in loop.index_names for n in ast.walk(mask))
    if not loop.written_out and changes and loop.round.at in (loop.ahead, loop.plan.index):
        return text
    parts = [mask] if mask is not None else [end for end in (loop.plan.low, loop.plan.high) if end is not None]
    return text if any(is_run_time(facts, part, loop.plan.loop) for part in parts) else call("gl.to_tensor", text)


def index_value(facts: FunctionFacts, loop: PipelinedLoop, index: Written) -> Written:
    """`index`, that of a tile which is known at compile time but for the loop's start, as a value of the index's type."""
    plan = loop.plan
    start = facts.fact(plan.low) if plan.low is not None else None
    if isinstance(start, TensorFact):
        return index if start.dtype == plan.index_dtype else method(index, "to", f"gl.{plan.index_dtype}")
    typed = call("gl.to_tensor", index)
    return typed if plan.index_dtype == "int32" else method(typed, "to", f"gl.{plan.index_dtype}")
