"""The pipelines of a translation, read from its text: LDS rings, prologue, what one iteration fetches, waits for and
reads.

Nothing here depends on how the translation was made: a hand-tuned file shows what it does now, or is said not to be
understood. `replay.py` follows the slots through the first iterations.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gluonize.product.report.loops.hazards import hazards
from gluonize.product.report.loops.replay import Replay, called, replay_of, value_of
from gluonize.read.text.parsed import parsed_text
from gluonize.rules import gluon

_MATRIX = gluon.named(gluon.Effect.MULTIPLIES)
# Loads of tiles; what an atomic operation gives is none, and a copy that groups end is told by its ring.
_MEMORY = frozenset(
    op.name
    for op in gluon.OPS
    if op.effect & gluon.Effect.LOADS and not op.effect & gluon.Effect.STORES and "async_copy" not in op.home
    if op.effect != gluon.ANYTHING
)
_ALLOCATIONS = gluon.named(gluon.Effect.ALLOCATES)


@dataclass(frozen=True)
class Ring:
    """LDS buffers of one tile: `name` as the translation calls it; the tile's shape as written."""

    name: str
    slots: int
    shape: str
    line: int


@dataclass(frozen=True)
class LoopTimeline:
    """One loop that loads tiles. replay: None where the loop is not pipelined, or its slots cannot be followed.

    computes: whether it has matrix instructions. hazards: what is wrong with the schedule, empty when every read gets
    its tile, for 0 to `checked` iterations. remarks: what it leaves to the compiler. planned: made from the translator's
    plan, `line` being one of the source; how: how it is pipelined in words; reason: why it is not.
    """

    function: str
    line: int
    index: str
    rings: tuple[Ring, ...]
    replay: Replay | None
    computes: bool
    loads: int
    hazards: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    checked: int = 0
    planned: bool = False
    how: str = ""
    reason: str = ""


# The compiler puts barriers where LDS is read and written again; whether it does so here is not told by the text.
_BARRIER = "with no barrier since it was read"


def timelines(text: str) -> tuple[LoopTimeline, ...]:
    """The loops of every kernel of a translation that load from memory or LDS, in order."""
    found = []
    functions = {f.name: f for f in parsed_text(text).body if isinstance(f, ast.FunctionDef)}
    for function in functions.values():
        if any("jit" in ast.unparse(d) for d in function.decorator_list):
            values = _constants(function)
            rings = _rings(function, values)
            for block in _blocks(function):
                for at, s in enumerate(block):
                    if isinstance(s, ast.For) and (
                        loop := _timeline(function, s, block[:at], rings, values, functions)
                    ):
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
    names = [called(c) for c in calls]
    loads = sum(name in _MEMORY for name in names)
    computes = any(name in _MATRIX for name in names)
    index = loop.target.id if isinstance(loop.target, ast.Name) else ast.unparse(loop.target)
    if "static_range" in ast.unparse(loop.iter) or not (used or (loads and computes)):
        return None
    replays = [replay_of(loop, before, ring.name, ring.slots, len(used), values) for ring in used]
    if not replays or any(r is None or not r.ahead for r in replays):
        return LoopTimeline(function.name, loop.lineno, index, used, None, computes, loads)
    checked = max(r.buffers for r in replays if r) + 4
    said = dict.fromkeys(p for r in replays if r for n in range(checked + 1) for p in hazards(r.events(n), n))
    wrong = tuple(p for p in said if _BARRIER not in p)
    remarks = ("slots are refilled without a wait since they were read: the compiler has to put a barrier there",)
    return LoopTimeline(
        function.name,
        loop.lineno,
        index,
        used,
        replays[0],
        computes,
        loads,
        wrong,
        remarks if len(wrong) < len(said) else (),
        checked,
    )


def _calls(node: ast.AST, functions: dict[str, ast.FunctionDef], busy: frozenset[str]) -> list[ast.Call]:
    """The calls in the body of a loop or function, with those of the file's own functions that it calls."""
    found = [n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Call)]  # type: ignore[attr-defined]
    inner = {called(c) for c in found if isinstance(c.func, ast.Name)} & set(functions) - busy
    return found + [c for name in sorted(inner) for c in _calls(functions[name], functions, busy | {name})]


def _constants(function: ast.FunctionDef) -> dict[str, int]:
    """Integer defaults of parameters and integer constants of the body."""
    arguments = function.args
    found = dict(zip([a.arg for a in arguments.args][::-1], arguments.defaults[::-1]))
    out = {name: v for name, node in found.items() if (v := value_of(node, {})) is not None}
    for s in function.body:
        target = s.target if isinstance(s, ast.AnnAssign) else s.targets[0] if isinstance(s, ast.Assign) else None
        if isinstance(target, ast.Name) and s.value is not None and (v := value_of(s.value, out)) is not None:  # type: ignore[union-attr]
            out[target.id] = v
    return out


def _rings(function: ast.FunctionDef, values: dict[str, int]) -> tuple[Ring, ...]:
    out = []
    for s in ast.walk(function):
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and isinstance(s.targets[0], ast.Name):
            if called(s.value) in _ALLOCATIONS and len(s.value.args) > 1:
                shape = s.value.args[1]
                parts = shape.elts if isinstance(shape, (ast.List, ast.Tuple)) else []
                slots = value_of(parts[0], values) if len(parts) > 2 else None
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
