"""Loads that addresses are made of: rows of a gather, taken from memory tile by tile.

They run ahead with the tile whose address they give. That changes nothing where the loop writes no memory. Where their own
mask does not leave out what lies past the loop's end, they get the end as a mask.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.kernel import KernelFacts
from gluonize.gluon.written import Written
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.loops.plan.tiles.tail import TailProof
from gluonize.trace.front.trace import ConstFact, Frame, TensorFact, node_key
from gluonize.write.state.writing import Emit

# Calls that write nothing.
_READING = (*callees.PURE_KINDS, "load", "dot", "reduce", "scan", "gather")
_FETCHING = ("load", "gather", "prefetch")  # of a descriptor's methods, those that read
_PLAIN = frozenset(("pointer", "mask", "other", "eviction_policy"))


@dataclass(frozen=True)
class Guard:
    """The end of the loop as the mask of a load that runs ahead in it."""

    loop: PipelinedLoop

    def text(self, facts: FunctionFacts, emit: Emit) -> Written | None:
        """The condition at the tile that the producer is at; None where nothing runs ahead."""
        if self.loop.form.splits:
            return None
        return counts.as_value(facts, self.loop, counts.condition(emit, self.loop, self.loop.fetch.at))


def unguarded(facts: FunctionFacts, tail: TailProof, statement: ast.stmt) -> list[ast.Call]:
    """The loads in a statement that runs ahead whose own mask does not end with the loop."""
    found = []
    for n in ast.walk(statement):
        if isinstance(n, ast.Call) and isinstance(facts.fact(n), TensorFact) and callees.kind_of(facts, n) == "load":
            mask = callees.bound(facts, n).get("mask")
            if not callees.is_given(facts, mask) or not tail.implied(mask):
                found.append(n)
    return found


def why_not_ahead(facts: FunctionFacts, loop: ast.For, value: ast.expr) -> str:
    """Why the loads in `value` cannot run ahead of their iteration; empty where they may."""
    loads = []
    for n in ast.walk(value):
        if not isinstance(n, ast.Call) or not isinstance(facts.fact(n), TensorFact):
            continue
        kind = callees.kind_of(facts, n)
        if kind == "load":
            loads.append(n)
        elif kind not in callees.PURE_KINDS:
            return "a function"
    if not loads or any(isinstance(n, (ast.While, ast.With)) for n in ast.walk(loop)):
        return "memory or a function"
    for n in ast.walk(loop):
        if isinstance(n, ast.Call) and n is not loop.iter and not reads_only(facts, n):
            return "memory, in a loop that may write it"
    if any(set(callees.bound(facts, load)) - _PLAIN for load in loads):
        return "a load with other arguments than a mask"
    return ""


def reads_only(facts: FunctionFacts, node: ast.Call) -> bool:
    """Whether a call writes no memory, helpers with what they call."""
    if callees.is_helper(facts, node):
        frame, _ = callees.callee_frame(facts, node)
        return frame is not None and _frame_reads_only(facts.kernel, frame)
    return _builtin_reads_only(facts, node)


@dataclass(frozen=True)
class _Called:
    """What is asked of a function that is rewritten, of one that is only called: the facts of its nodes, and the kernel."""

    frame: Frame
    kernel: KernelFacts
    known_callees: dict[ast.Call, Any] = field(default_factory=dict)

    def fact(self, node: ast.AST) -> Any:
        return self.frame.fact(node)


def _frame_reads_only(kernel: KernelFacts, frame: Frame) -> bool:
    called_in = _Called(frame, kernel)
    for n in ast.walk(ast.parse(frame.fn.src)):
        if not isinstance(n, ast.Call) or not (visits := frame.visits.get(node_key(n), [])):
            continue
        if not callees.is_helper(called_in, n):
            if not _builtin_reads_only(called_in, n):
                return False
            continue
        called = [kernel.trace.by_name.get(frame.calls.get(visit.ident, "")) for visit in visits]
        if not all(inner is not None and _frame_reads_only(kernel, inner) for inner in called):
            return False
    return True


def _builtin_reads_only(facts: FunctionFacts, node: ast.Call) -> bool:
    fact = facts.fact(node)
    if fact is None:  # not reached by this launch
        return True
    return isinstance(fact, ConstFact) or callees.kind_of(facts, node) in _READING and not writes(facts, node)


def writes(facts: FunctionFacts, node: ast.Call) -> bool:
    """Whether a builtin that is called writes memory: a store, an atomic, or a descriptor's method that does."""
    callee = callees.callee_of(facts, node) if facts.fact(node) is not None else None
    if callee is None or callee.row is None:
        return False
    if callee.owner is not None and callees.is_descriptor(facts.fact(callee.owner)):
        return callee.name not in _FETCHING
    return callee.row.kind in ("store", "atomic")
