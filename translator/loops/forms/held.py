"""Tiles that wait in registers for one iteration; nothing goes through LDS."""

from __future__ import annotations

from gluonize.gluon.code import as_lines
from gluonize.gluon.nodes import Code, Number
from gluonize.gluon.written import Assigned
from gluonize.loops.copies.producer import Producer
from gluonize.loops.forms.prologue import fetched_first, made_first
from gluonize.loops.forms.ring import BACK, RingForm, listed
from gluonize.loops.loop.loop import PipelinedLoop, Statements
from gluonize.loops.loop.site import LoopSite


class HeldTiles(RingForm):
    one_slot = True
    tile = "first"

    def says(self, loop: PipelinedLoop) -> str:
        held = listed(load.name for load in loop.plan.loads if load.held)
        return f"`for {loop.plan.range.index}` is software-pipelined: {held} to registers, an iteration ahead"

    def before(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        producer = Producer(site, site.addressing, loop)
        lines = [*made_first(site, producer)]
        lines.append("# Prologue: each tile is loaded an iteration before it is used, the first ones here.")
        return (*as_lines(lines), *fetched_first(site, producer, Number("0")))

    def slots(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        return ()

    def moved_back(self, site: LoopSite, loop: PipelinedLoop) -> list[Code]:
        moves = [made for s in loop.plan.runs.rolled_back for made in site.plain.moves(s)]
        return [Assigned(made.target, made.value, BACK[made.sign]).code for made in moves]
