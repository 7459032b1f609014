"""Tiles that Triton keeps in registers go through LDS where a compute unit then holds as many workgroups as of Triton's kernel.

What the loop needs is known before its text is there: the rings, and what Triton's own loop takes beside its rings
(`gluonize.decide.readback.loop_lds`). A tile that finds no room waits in registers, as in Triton's loop.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from gluonize.decide.readback.staging import Staged
from gluonize.facts.function import FunctionFacts
from gluonize.loops.plan.tiles.strided import StridedTile, free_dimension
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.shared_layouts import Padded, slots_bytes

REASON = "Triton keeps it in registers, and with it in LDS a compute unit would hold fewer workgroups"


@dataclass(frozen=True)
class Room:
    """tiles: those of the data mover with as much padding as there is room for; left: those of them that have to wait in
    registers; crowded: whether these are several, and most of the tiles that Triton keeps there."""

    tiles: dict[ast.Call, StridedTile]
    left: tuple[ast.Call, ...] = ()
    crowded: bool = False


def fitted(
    facts: FunctionFacts, loop: ast.For, ways: dict[ast.Call, Staged], tiles: dict[ast.Call, StridedTile], slots: int
) -> Room:
    """What becomes of `tiles` where the loop has `slots` of each.

    ways: all loads that go through LDS.
    """
    kept = [call for call in tiles if ways[call].copy == "held"]
    if not kept or not facts.kernel.lds_bytes:
        return Room(tiles)
    sizes = {call: _bytes(facts, call, tiles.get(call), way, slots) for call, way in ways.items()}
    room = most_lds(facts) - max(_beside(facts, call) for call in ways)
    found = dict(tiles)
    for call in sorted(kept, key=lambda call: sizes[call], reverse=True):
        if sum(sizes.values()) > room and (wider := _wider(found[call])) is not None:
            found[call], sizes[call] = wider, _bytes(facts, call, wider, ways[call], slots)
    left: list[ast.Call] = []
    while (excess := sum(sizes.values()) - room) > 0 and kept:
        # Operands of matrix instructions go through LDS anyway; the smallest that makes room, else the largest.
        plain = [call for call in kept if free_dimension(facts, loop, call) is None] or kept
        call = min(
            plain, key=lambda call: (sizes[call] < excess, sizes[call] if sizes[call] >= excess else -sizes[call])
        )
        kept.remove(call)
        left.append(call)
        del sizes[call]
    return Room(found, tuple(left), len(left) > max(1, len(kept)))


def most_lds(facts: FunctionFacts) -> int:
    """Bytes of LDS that a workgroup may have."""
    return facts.kernel.target.roomiest_lds(facts.kernel.lds_bytes, facts.kernel.num_warps)


def _beside(facts: FunctionFacts, call: ast.Call) -> int:
    return max((facts.kernel.loop_lds.get((*facts.path, visit), 0) for visit in facts.visits(call)), default=0)


def _bytes(facts: FunctionFacts, call: ast.Call, tile: StridedTile | None, way: Staged, slots: int) -> int:
    shared = tile.shared if tile is not None else way.shared
    return slots_bytes(shared, way.shape, bits_of(facts.tensor(call).dtype), slots)


def _wider(tile: StridedTile) -> StridedTile | None:
    """The tile padded half as often, every other line of banks: a read of a matrix operand then takes two turns at most."""
    if not isinstance(tile.shared, Padded):
        return None
    pairs = tuple((2 * interval, padding) for interval, padding in tile.shared.pairs)
    return replace(tile, shared=replace(tile.shared, pairs=pairs))


__all__ = ["REASON", "Room", "fitted"]
