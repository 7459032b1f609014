"""The order of copies, waits and reads of a pipelined loop, as data.

Tile `i` is what iteration `i` of the loop reads. Three mechanisms:

* `copies`: asynchronous copies from global memory to LDS, one commit group per tile. `buffers` slots; the prologue
  copies tiles 0 .. buffers-2; iteration i waits until at most `wait` groups are outstanding, copies tile i + ahead
  and reads tile i. Copies of the tensor data mover have no groups: waits count `tensor_loads` operations per tile.
* `registers`: iteration i loads tile i + ahead to registers, reads tile i from its slot, and stores the registers to
  the slot of tile i + ahead at the end; barriers between reads and stores are the compiler's.
  Beside copies (`stored`), tiles that cannot be copied go this way, into slots like theirs.
  Where `refills` is set there is one slot: iteration i waits for tile i, reads it, and copies tile i + 1 after a barrier.
* `held`: iteration i takes tile i from a variable and loads tile i + ahead into it; no LDS.

Tiles past the last one are fetched masked out: they still occupy a slot and a commit group.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """`buffers` slots; `prologue` tiles fetched before the loop; iteration i fetches tile i + `ahead`.

    wait: commit groups that may be outstanding when tile i is read (copies only).
    grouped: whether a tile has copies with a commit group; tensor_loads: its copies by the tensor data mover, of which
    `tensor_wait` may be outstanding when tile i is read. refills: copies come after the last read of the slot they fill.
    stored: whether a tile has parts that go through registers beside its copies.
    """

    mechanism: str
    buffers: int
    prologue: int
    ahead: int
    wait: int = 0
    grouped: bool = True
    tensor_loads: int = 0
    tensor_wait: int = 0
    refills: bool = False
    stored: bool = False


def copy_schedule(buffers: int, tensor_loads: int = 0, grouped: bool = True, stored: bool = False) -> Schedule:
    ahead = buffers - 1
    return Schedule(
        "copies",
        buffers,
        ahead,
        ahead,
        ahead - 1,
        grouped=grouped,
        tensor_loads=tensor_loads,
        tensor_wait=(ahead - 1) * tensor_loads,
        stored=stored,
    )


def refill_schedule(tensor_loads: int, grouped: bool = False) -> Schedule:
    """One slot, which is filled again."""
    return Schedule("copies", 1, 1, 1, grouped=grouped, tensor_loads=tensor_loads, refills=True)


def held_schedule() -> Schedule:
    return Schedule("held", 1, 1, 1)


def register_schedule(buffers: int) -> Schedule:
    return Schedule("registers", buffers, buffers, buffers)
