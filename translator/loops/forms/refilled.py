"""One slot for tiles that Triton keeps in registers, filled again behind its last read (`gluonize.loops.passes.refill`)."""

from __future__ import annotations

from dataclasses import replace

from gluonize.decide.choices.chosen import Choices
from gluonize.gluon.code import as_lines, line
from gluonize.gluon.nodes import Barrier
from gluonize.gluon.written import name
from gluonize.loops.copies.multicast import before_next
from gluonize.loops.copies.producer import Producer, commit
from gluonize.loops.forms.ring import RingForm, by_copies, listed
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import Fresh, LoopBody, PipelinedLoop, Ring, Statements
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.passes.refill import refilled


class RefilledSlot(RingForm):
    drains = one_slot = True
    verb = "copied"

    def placed(self, loop: PipelinedLoop) -> PipelinedLoop:
        return replace(loop, slot="0", free="0")

    def where(self, choices: Choices, rings: list[Ring]) -> tuple[list[Ring], list[Ring]]:
        """Copies come behind the last read."""
        return [], [ring for ring in rings if ring.held]

    def says(self, loop: PipelinedLoop) -> str:
        tiles = listed(load.name for load in loop.plan.loads if not load.held)
        held = listed(load.name for load in loop.plan.loads if load.held)
        said = f"`for {loop.plan.range.index}` is software-pipelined: {tiles} by {by_copies(loop)} into one LDS buffer each"
        said += ", filled again after its last read"
        return f"{said}; {held} 1 tile ahead in registers" if held else said

    def slots(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        return ()

    def again(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        """What copies the next tiles when all warps have read these."""
        producer = Producer(site, site.addressing, loop)
        copied = [ring for ring in loop.rings if not ring.held]
        loop.fetch.be(name(loop.ahead))
        condition = counts.condition(site.emit, loop, loop.fetch.at)
        again = [
            Barrier(),
            *as_lines(before_next(site.record, loop)),
            *(producer.fetch(ring, loop.free, loop.fetched, condition) for ring in copied),
            *commit(site.record, loop, copied),
        ]
        why = line("# Every warp has read this tile: the next one takes its place.")
        return (why, *loop.trips.where_fetched(site.emit, loop, again))

    def body(self, loop: PipelinedLoop, body: LoopBody, fresh: Fresh) -> LoopBody:
        every = [step.statements for step in body.steps]
        rings = {ring.smem for ring in loop.rings if not ring.held}
        early = fresh if loop.plan.schedule.reads_early else None
        multiplies = [step.multiplies for step in body.steps]
        every, in_time = refilled(every, multiplies, rings, body.again, early)
        return replace(body.with_statements(every), in_time=in_time)
