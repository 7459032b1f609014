"""The numbers of a pipelined loop as the translation spells them: tiles, distances, indices."""

from __future__ import annotations

import ast

from gluonize.facts.function import FunctionFacts
from gluonize.gluon.printer import written
from gluonize.gluon.written import Written, binary, call, grouped, literal, method, name, operand
from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.loops.plan.plan import PipelinePlan
from gluonize.trace.front.trace import TensorFact
from gluonize.write.accesses.run_time import is_run_time
from gluonize.write.state.writing import Emit


def distance(emit: Emit, loop: PipelinedLoop) -> Written:
    """What the index of the tile ahead is greater by."""
    if loop.plan.range.step is None:
        return written(loop.tiles_ahead)
    step, ahead = operand(emit(loop.plan.range.step)), operand(written(loop.tiles_ahead))
    return step if ahead == literal(1) else binary(ahead, "*", step)


def tiles(emit: Emit, loop: PipelinedLoop) -> Written:
    """The number of iterations, of a loop that runs at all."""
    low, high, known = loop.plan.range.low, loop.plan.range.high, loop.plan.range.span
    if known is not None:
        span = emit(known.given) if known.given is not None else Written(known.text, known.form)
    else:
        span = emit(high) if low is None else binary(operand(emit(high)), "-", operand(emit(low)))
    return span if loop.plan.range.step is None else call("gl.cdiv", span, emit(loop.plan.range.step))


def trips(emit: Emit, loop: PipelinedLoop) -> Written:
    """How often a loop runs."""
    return call("gl.maximum", tiles(emit, loop), "0")


def prologue_index(emit: Emit, loop: PipelinedLoop) -> Written:
    """The loop index of a tile that the prologue fetches."""
    plan = loop.plan
    if loop.only_holds:
        return literal(0) if plan.range.low is None else emit(plan.range.low)
    text = _from_start(emit, loop)
    if plan.range.low is None:
        return text
    low, binds = emit(plan.range.low), (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
    return binary(low if issubclass(low.form, binds) else operand(low), "+", text)


def _from_start(emit: Emit, loop: PipelinedLoop) -> Written:
    """How far the index of a tile that the prologue fetches is from the first one."""
    tile, step = name(loop.tile), loop.plan.range.step
    return tile if step is None else binary(tile, "*", operand(emit(step)))


def condition(emit: Emit, loop: PipelinedLoop, index: Written) -> Written:
    """That the tile at `index` is not past the end, of a loop that runs."""
    plan, high = loop.plan, operand(emit(loop.plan.range.high))
    if plan.range.asks_rest and index == loop.ahead:
        return binary(_rest(plan, high, name(plan.range.index)), ">", distance(emit, loop))
    if plan.range.asks_rest != plan.range.dtype and plan.range.asks_rest and not loop.only_holds:
        low = operand(emit(plan.range.low))
        left = binary(_rest(plan, high, low), ">", _from_start(emit, loop))
        return binary(grouped(binary(low, "<", high)), "&", grouped(left))
    there = binary(index, ">" if plan.range.descending else "<", high)
    if not plan.range.asks_start or plan.range.low is None:
        return there
    return binary(grouped(binary(operand(emit(plan.range.low)), "<", high)), "&", grouped(there))


def _rest(plan: PipelinePlan, high: Written, at: Written) -> Written:
    """What is left of a loop from an index that is before its end."""
    left = binary(high, "-", at)
    return left if plan.range.asks_rest == plan.range.dtype else method(left, "to", f"gl.{plan.range.asks_rest}")


def as_value(
    facts: FunctionFacts, loop: PipelinedLoop, text: Written, mask: ast.expr | None = None, ends: bool = True
) -> Written:
    """`text`, which says whether a tile is there, as a mask; for the first tiles it may be decided while compiling.

    mask: what of it is the author's, if anything; ends: whether the loop's end is in it.

    Before: mask=t * B < K      After: mask=gl.to_tensor(t * B < K)     where a launch may fix K
    """
    changes = ends or any(n in loop.fetch.uses for n in ast.walk(mask))
    if not loop.trips.written_out and changes and loop.fetch.at in (loop.ahead, loop.plan.range.index):
        return text
    parts = (
        [mask] if mask is not None else [end for end in (loop.plan.range.low, loop.plan.range.high) if end is not None]
    )
    return text if any(is_run_time(facts, part, loop.plan.loop) for part in parts) else call("gl.to_tensor", text)


def index_value(facts: FunctionFacts, loop: PipelinedLoop, index: Written) -> Written:
    """`index`, that of a tile which is known at compile time but for the loop's start, as a value of the index's type."""
    plan = loop.plan
    start = facts.fact(plan.range.low) if plan.range.low is not None else None
    if isinstance(start, TensorFact):
        return index if start.dtype == plan.range.dtype else method(index, "to", f"gl.{plan.range.dtype}")
    typed = call("gl.to_tensor", index)
    return typed if plan.range.dtype == "int32" else method(typed, "to", f"gl.{plan.range.dtype}")
