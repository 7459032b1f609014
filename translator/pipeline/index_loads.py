"""Loads that addresses are made of: rows of a gather, taken from memory tile by tile.

They run ahead with the tile whose address they give. That changes nothing where the loop writes no memory. Where their own
mask does not leave out what lies past the loop's end, they get the end as a mask.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from translator.frontend.trace import ConstFact, Frame, TensorFact, node_key
from translator.pipeline import counts
from translator.pipeline.loop import PipelinedLoop
from translator.pipeline.tail import TailProof
from translator.rewrite import callees, descriptors, helpers

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

# Calls that write nothing.
_READING = (*callees.PURE_KINDS, "load", "dot", "reduce", "scan", "gather")
_FETCHING = ("load", "gather", "prefetch")  # of a descriptor's methods, those that read
_PLAIN = frozenset(("pointer", "mask", "other", "eviction_policy"))


@dataclass(frozen=True)
class Guard:
    """The end of the loop as the mask of a load that runs ahead in it."""

    loop: PipelinedLoop

    def text(self, rw: "FunctionRewriter") -> str:
        """The condition at the tile that the producer is at; empty where nothing runs ahead."""
        if self.loop.specialized:
            return ""
        return counts.as_value(rw, self.loop, counts.condition(rw, self.loop, self.loop.at))


def unguarded(rw: "FunctionRewriter", tail: TailProof, statement: ast.stmt) -> list[ast.Call]:
    """The loads in a statement that runs ahead whose own mask does not end with the loop."""
    found = []
    for n in ast.walk(statement):
        if isinstance(n, ast.Call) and isinstance(rw.fact(n), TensorFact) and callees.kind_of(rw, n) == "load":
            mask = callees.bind(rw, n, callees.callee_of(rw, n)).get("mask")
            if mask is None or callees.is_none(rw, mask) or not tail.implied(mask):
                found.append(n)
    return found


def why_not_ahead(rw: "FunctionRewriter", loop: ast.For, value: ast.expr) -> str:
    """Why the loads in `value` cannot run ahead of their iteration; empty where they may."""
    loads = []
    for n in ast.walk(value):
        if not isinstance(n, ast.Call) or not isinstance(rw.fact(n), TensorFact):
            continue
        kind = callees.kind_of(rw, n)
        if kind == "load":
            loads.append(n)
        elif kind not in callees.PURE_KINDS:
            return "a function"
    if not loads or any(isinstance(n, (ast.While, ast.With)) for n in ast.walk(loop)):
        return "memory or a function"
    for n in ast.walk(loop):
        if isinstance(n, ast.Call) and n is not loop.iter and not reads_only(rw, n):
            return "memory, in a loop that may write it"
    if any(set(callees.bind(rw, load, callees.callee_of(rw, load))) - _PLAIN for load in loads):
        return "a load with other arguments than a mask"
    return ""


def reads_only(rw: "FunctionRewriter", node: ast.Call) -> bool:
    """Whether a call writes no memory, helpers with what they call."""
    if callees.is_helper(rw, node):
        frame, _ = helpers.callee_frame(rw, node)
        return frame is not None and _frame_reads_only(rw, frame)
    return _builtin_reads_only(rw, node)


@dataclass(frozen=True)
class _Called:
    """What is asked of a function that is rewritten, of one that is only called: the facts of its nodes, and the unit."""

    frame: Frame
    unit: Any

    def fact(self, node: ast.AST) -> Any:
        return self.frame.fact(node)


def _frame_reads_only(rw: "FunctionRewriter", frame: Frame) -> bool:
    called_in = _Called(frame, rw.unit)
    for n in ast.walk(ast.parse(frame.fn.src)):
        if not isinstance(n, ast.Call) or not (visits := frame.visits.get(node_key(n), [])):
            continue
        if not callees.is_helper(called_in, n):
            if not _builtin_reads_only(called_in, n):
                return False
            continue
        called = [rw.unit.trace.by_name.get(frame.calls.get(visit.ident, "")) for visit in visits]
        if not all(inner is not None and _frame_reads_only(rw, inner) for inner in called):
            return False
    return True


def _builtin_reads_only(rw, node: ast.Call) -> bool:
    fact = rw.fact(node)
    if fact is None:  # not reached by this launch
        return True
    return isinstance(fact, ConstFact) or callees.kind_of(rw, node) in _READING and not writes(rw, node)


def writes(rw, node: ast.Call) -> bool:
    """Whether a builtin that is called writes memory: a store, an atomic, or a descriptor's method that does."""
    callee = callees.callee_of(rw, node) if rw.fact(node) is not None else None
    if callee is None or callee.row is None:
        return False
    if callee.owner is not None and descriptors.is_descriptor(rw.fact(callee.owner)):
        return callee.name not in _FETCHING
    return callee.row.kind in ("store", "atomic") or callee.name == "store_tensor_descriptor"
