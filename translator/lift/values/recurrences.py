"""Loops that carry tensors from one iteration to the next otherwise than by adding products: maxima, sums, rescaled accumulators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gluonize.lift.values.tensors import Node
from gluonize.trace.model.op import Op

# What an accumulator goes through on its way round: sums of products are told by their products (`gluonize.lift.loops.chains`).
PLAIN = frozenset(
    {
        "ttng.warp_group_dot",
        "ttng.warp_group_dot_wait",
        "tt.dot",
        "ttg.convert_layout",
        "scf.for",
        "scf.while",
        "scf.if",
    }
)


@dataclass(eq=False)
class Carrying:
    """One execution of such a loop: `first` values by position, and for each iteration what the next one gets, told by `carried` nodes."""

    loop: object
    positions: tuple[int, ...]
    first: dict[int, Node]
    bodies: list[dict[int, Node]] = field(default_factory=list)


def held_positions(op: Op) -> tuple[int, ...]:
    """The positions of carried tensors that an iteration makes of their values in the one before, and of each other's."""
    if "held" not in op.memo:
        op.memo["held"] = _held(op)
    return op.memo["held"]


def _held(op: Op) -> tuple[int, ...]:
    header, body = op.for_loop, op.regions[0]
    if len(body.blocks) > 1:
        return ()
    names = [name for name, _ in header.bindings]
    tensors = [k for k, kind in enumerate(op.result_types) if kind.is_tensor or kind.is_float]
    reached: dict[str, dict[int, bool]] = {
        names[k]: {k: False} for k in tensors
    }  # position -> through more than products
    for inner in body.blocks[0].ops[:-1]:
        found = _from(inner, reached)
        if inner.name not in PLAIN:
            found = dict.fromkeys(found, True)
        reached |= {result: found for result in inner.results if found}
    yielded = body.blocks[0].ops[-1].operands
    edges = {k: reached.get(yielded[k], {}) for k in tensors}
    around = {k: {j for j in tensors if k in _closure(edges, j) and j in _closure(edges, k)} for k in tensors}
    return tuple(k for k in tensors if any(edges[i].get(j) for i in around[k] for j in around[k]))


def _from(op: Op, reached: Mapping[str, dict[int, bool]]) -> dict[int, bool]:
    used = list(op.operands) + [x for region in op.regions for inner in region.walk() for x in inner.operands]
    out: dict[int, bool] = {}
    for name in used:
        for k, more in reached.get(name, {}).items():
            out[k] = out.get(k, False) or more
    return out


def _closure(edges: Mapping[int, Mapping[int, bool]], start: int) -> set[int]:
    seen, stack = set(), list(edges[start])
    while stack:
        k = stack.pop()
        if k not in seen:
            seen.add(k)
            stack += edges[k]
    return seen
