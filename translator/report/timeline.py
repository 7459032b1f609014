"""The pipelines of a translation, read from its text: LDS rings, prologue, what one iteration fetches, waits for and reads.

`Schedule` (translator/pipeline) replays the order of events; nothing here depends on how the translation was made, so a
hand-tuned file shows what it does now.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from dataclasses import dataclass

from translator.pipeline.schedule import Schedule, hazards

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_MATRIX = ("mfma", "wmma", "mfma_scaled", "wmma_scaled", "dot", "dot_fma")
_MEMORY = ("load", "buffer_load", "async_load")


@dataclass(frozen=True)
class Ring:
    """LDS buffers of one tile: `name` as the translation calls it; the tile's shape as written."""

    name: str
    slots: int
    shape: str
    line: int


@dataclass(frozen=True)
class LoopTimeline:
    """One loop that loads tiles. schedule: None where the loop is not pipelined.

    computes: whether it has matrix instructions. hazards: what is wrong with the schedule, empty when every read gets its
    tile, for 0 to `checked` iterations.
    """

    function: str
    line: int
    index: str
    rings: tuple[Ring, ...]
    schedule: Schedule | None
    computes: bool
    loads: int
    hazards: tuple[str, ...] = ()
    checked: int = 0


def timelines(text: str) -> tuple[LoopTimeline, ...]:
    """The loops of every kernel of a translation that load from memory or LDS, in order."""
    found = []
    functions = {f.name: f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef)}
    for function in functions.values():
        if any("jit" in ast.unparse(d) for d in function.decorator_list):
            values = _constants(function)
            rings = _rings(function, values)
            for block in _blocks(function):
                for at, s in enumerate(block):
                    if isinstance(s, ast.For) and (loop := _timeline(function, s, block[:at], rings, values, functions)):
                        found.append(loop)
    return tuple(found)


def _timeline(
    function: ast.FunctionDef,
    loop: ast.For,
    before: list[ast.stmt],
    rings: tuple[Ring, ...],
    values: dict[str, int],
    functions: dict[str, ast.FunctionDef],
) -> LoopTimeline | None:
    calls = _calls(loop, functions, frozenset([function.name]))
    latest = {r.name: r for r in rings if r.line < loop.lineno}  # a name may be allocated again for a later loop
    used = tuple(r for r in latest.values() if any(f"{r.name}.index(" in ast.unparse(c) for c in calls))
    names = [_called(c) for c in calls]
    loads = sum(name in _MEMORY for name in names)
    computes = any(name in _MATRIX for name in names)
    index = loop.target.id if isinstance(loop.target, ast.Name) else ast.unparse(loop.target)
    if "static_range" in ast.unparse(loop.iter) or not (used or (loads and computes)):
        return None
    schedule = _schedule(loop, before, used, index, values, names) if used else None
    checked = schedule.buffers + 4 if schedule else 0
    problems = tuple(dict.fromkeys(p for n in range(checked + 1) for p in hazards(schedule, n))) if schedule else ()
    return LoopTimeline(function.name, loop.lineno, index, used, schedule, computes, loads, problems, checked)


def _schedule(
    loop: ast.For, before: list[ast.stmt], rings: tuple[Ring, ...], index: str, values: dict[str, int], names: list[str]
) -> Schedule | None:
    copies = any(name.endswith("_to_shared") or name == "async_load" for name in names)
    ahead = next(
        (
            _value(s.value, {**values, index: 0, "tile": 0})
            for s in loop.body
            if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]).split("_")[-1] == "ahead"
        ),
        None,
    )
    buffers = rings[0].slots
    ahead = ahead if ahead is not None else (buffers - 1 if copies else buffers)
    waits = [
        _value(n.args[0], values)
        for s in loop.body
        for n in ast.walk(s)
        if isinstance(n, ast.Call) and _called(n) in ("wait_group", "async_wait") and n.args
    ]
    prologue = 0
    for s in before:
        if isinstance(s, ast.For) and "static_range" in ast.unparse(s.iter) and isinstance(s.iter, ast.Call):
            if any(f"{ring.name}.index(" in ast.unparse(s) for ring in rings):
                prologue = _value(s.iter.args[-1], values) or 0
    per_group = len(rings) if copies and "async_load" in names else 1
    wait = (waits[0] // per_group if waits and waits[0] is not None else 0) if copies else 0
    return Schedule("copies" if copies else "registers", buffers, prologue, ahead, wait)


def _calls(node: ast.AST, functions: dict[str, ast.FunctionDef], busy: frozenset[str]) -> list[ast.Call]:
    """The calls in the body of a loop or function, with those of the file's own functions that it calls."""
    found = [n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Call)]  # type: ignore[attr-defined]
    inner = {_called(c) for c in found if isinstance(c.func, ast.Name)} & set(functions) - busy
    return found + [c for name in sorted(inner) for c in _calls(functions[name], functions, busy | {name})]


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _constants(function: ast.FunctionDef) -> dict[str, int]:
    """Integer defaults of parameters and integer constants of the body."""
    arguments = function.args
    found = dict(zip([a.arg for a in arguments.args][::-1], arguments.defaults[::-1]))
    out = {name: v for name, node in found.items() if (v := _value(node, {})) is not None}
    for s in function.body:
        target = s.target if isinstance(s, ast.AnnAssign) else s.targets[0] if isinstance(s, ast.Assign) else None
        if isinstance(target, ast.Name) and s.value is not None and (v := _value(s.value, out)) is not None:  # type: ignore[union-attr]
            out[target.id] = v
    return out


def _value(node: ast.expr, names: Mapping[str, int]) -> int | None:
    """An integer expression of known names, else None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("gl.constexpr", "tl.constexpr") and node.args:
        return _value(node.args[0], names)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _value(node.left, names), _value(node.right, names)
        if left is not None and right is not None and not (right == 0 and isinstance(node.op, (ast.FloorDiv, ast.Mod))):
            return _OPERATORS[type(node.op)](left, right)
    return None


def _rings(function: ast.FunctionDef, values: dict[str, int]) -> tuple[Ring, ...]:
    out = []
    for s in ast.walk(function):
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and isinstance(s.targets[0], ast.Name):
            if _called(s.value) == "allocate_shared_memory" and len(s.value.args) > 1:
                shape = s.value.args[1]
                parts = shape.elts if isinstance(shape, (ast.List, ast.Tuple)) else []
                slots = _value(parts[0], values) if len(parts) > 2 else None
                if slots:
                    written = " x ".join(ast.unparse(p) for p in parts[1:])
                    out.append(Ring(s.targets[0].id, slots, written, s.lineno))
    return tuple(out)


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    found = []
    for n in ast.walk(node):
        for name in ("body", "orelse"):
            block = getattr(n, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                found.append(block)
    return found
