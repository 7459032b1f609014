"""Waits for the tiles of a pipelined loop."""

from __future__ import annotations


from translator.pipeline import counts
from translator.pipeline.clusters import before_next
from translator.pipeline.loop import PipelinedLoop
from translator.rewrite import tdm
from translator.rewrite.emission import Emission
from translator.rewrite.gluon_modules import async_module


def wait_lines(rw: Emission, loop: PipelinedLoop, under_way: int = 2) -> list[str]:
    """A comment and the waits for one tile; nothing where the compiler waits.

    under_way: how many tiles less than buffers may still be under way.
    """
    if not loop.copies:
        return []
    lines = ["# This tile has landed, and every warp is done with the slot that the next copy fills."]
    if loop.refills:
        lines = ["# This tile has landed."]
    schedule, tiles = loop.plan.schedule, f"{loop.buffers} - {under_way}"
    if loop.refills:
        tiles = "0"
    elif loop.written_out:
        tiles = f"min({tiles}, {counts.tiles(rw, loop)} - 1 - {loop.tile})"
    if schedule.grouped:
        lines.append(f"{async_module(rw)}.wait_group({tiles})")
    if schedule.tensor_loads:
        count = tiles if schedule.tensor_loads == 1 or loop.refills else f"({tiles}) * {schedule.tensor_loads}"
        lines.append(f"{tdm.module(rw)}.async_wait({count})")
    return lines if loop.refills else lines + before_next(rw, loop)
