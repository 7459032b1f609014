"""Loads that addresses are made of: rows of a gather, taken from memory tile by tile.

They run ahead with the tile whose address they give. That changes nothing where the loop writes no memory, and where their
own mask leaves out what lies past the loop's end.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from translator.frontend.trace import ConstFact, TensorFact
from translator.pipeline.tail import TailProof
from translator.rewrite import callees

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

_PURE = ("elementwise", "creator", "same", "shape")
# Calls that write nothing.
_READING = (*_PURE, "load", "dot", "reduce", "scan", "gather")
_PLAIN = frozenset(("pointer", "mask", "other", "eviction_policy"))


def why_not_ahead(rw: "FunctionRewriter", loop: ast.For, tail: TailProof, value: ast.expr) -> str:
    """Why the loads in `value` cannot run ahead of their iteration; empty where they may."""
    loads = []
    for n in ast.walk(value):
        if not isinstance(n, ast.Call) or not isinstance(rw.fact(n), TensorFact):
            continue
        kind = _kind(rw, n)
        if kind == "load":
            loads.append(n)
        elif kind not in _PURE:
            return "a function"
    if not loads or any(isinstance(n, (ast.While, ast.With)) for n in ast.walk(loop)):
        return "memory or a function"
    for n in ast.walk(loop):
        if isinstance(n, ast.Call) and n is not loop.iter and not _reads_only(rw, n):
            return "memory, in a loop that may write it"
    for load in loads:
        given = callees.bind(rw, load, callees.callee_of(rw, load))
        mask = given.get("mask")
        if set(given) - _PLAIN or mask is None or callees.is_none(rw, mask) or not tail.implied(mask):
            return "memory that may lie past the loop's end"
    return ""


def _kind(rw: "FunctionRewriter", node: ast.Call) -> str:
    callee = callees.callee_of(rw, node)
    return callee.row.kind if callee is not None and callee.row is not None else ""


def _reads_only(rw: "FunctionRewriter", node: ast.Call) -> bool:
    fact = rw.fact(node)
    if fact is None:  # not reached by this launch
        return True
    return isinstance(fact, ConstFact) or _kind(rw, node) in _READING
