"""Warps that copy tiles and warps that compute, with barriers between them; written in one loop, which
`gluonize.loops.specialized.partitions` takes apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gluonize.decide.choices.chosen import Choices
from gluonize.gluon.code import as_lines, line
from gluonize.gluon.nodes import Code, Current, Node
from gluonize.gluon.written import Assigned, Written, binary, name, operand
from gluonize.loops.copies.producer import Producer
from gluonize.loops.forms.prologue import ring_lines
from gluonize.loops.forms.ring import CopiedRing, listed, slots_of
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import PipelinedLoop, Ring, Statements
from gluonize.loops.loop.site import LoopSite
from gluonize.write.state.edits import Made
from gluonize.write.state.gluon_modules import async_module, barrier_module
from gluonize.write.state.writing import Emit


@dataclass(frozen=True)
class SplitWarps(CopiedRing):
    """groups: names of the tiles that are read together; barriers: ready and empty of each group; phase: theirs for the tile's slot."""

    groups: tuple[tuple[str, ...], ...]
    barriers: tuple[tuple[str, str], ...]
    phase: str

    drains = False
    splits = True

    def placed(self, loop: PipelinedLoop) -> PipelinedLoop:
        """Nothing runs ahead: the producer is in an iteration of its own."""
        return replace(loop, ahead=loop.plan.range.index, free=loop.slot)

    def fetched(self, loop: PipelinedLoop) -> Node:
        return Current()

    def where(self, choices: Choices, rings: list[Ring]) -> tuple[list[Ring], list[Ring]]:
        copied = [ring for ring in rings if ring.is_copied]
        return copied, [ring for ring in rings if ring not in copied]

    def ends(self, emit: Emit, loop: PipelinedLoop) -> Written | None:
        return None

    def closed(self, site: LoopSite, loop: PipelinedLoop, fetched: list[Ring]) -> Statements:
        if all(ring.load.tile is not None for ring in fetched):
            return ()
        ready, _ = self._barriers_of(fetched[0])
        return (line(f"{async_module(site.record)}.mbarrier_arrive({ready}.index({loop.slot}))"),)

    def ready_of(self, ring: Ring, slot: str) -> str:
        return f"{self._barriers_of(ring)[0]}.index({slot})"

    def _barriers_of(self, ring: Ring) -> tuple[str, str]:
        return self.barriers[[ring.load.name in group for group in self.groups].index(True)]

    def says(self, loop: PipelinedLoop) -> str:
        tiles, schedule = listed(load.name for load in loop.plan.loads), loop.plan.schedule
        many = schedule.producer_warps
        copying = "one more warp copies" if many == 1 else f"{many} more warps copy"
        warps = f"{copying} {tiles} into {slots_of(loop)} each"
        index = loop.plan.range.index
        return f"`for {index}` is warp-specialized: {warps}, the kernel's {schedule.consumer_warps} warps compute"

    def before(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        """What the partitions share: rings, and two barriers for each slot."""
        producer, schedule, module = (
            Producer(site, site.addressing, loop),
            loop.plan.schedule,
            barrier_module(site.record),
        )
        lines: list[Made] = []
        for ring in loop.rings:
            lines += ring_lines(site, producer, ring)
        lines += ["", "# A slot is ready when all copies into it have landed, and empty when every lane has read it."]
        for pair in self.barriers:
            lines += [
                f"{name} = gl.allocate_shared_memory(gl.int64, [{loop.buffers}, 1], {module}.MBarrierLayout())"
                for name in pair
            ]
        lines.append(f"for {loop.tile} in gl.static_range({loop.buffers}):")
        for group, (ready, empty) in enumerate(self.barriers):
            lines.append(f"    {module}.init({ready}.index({loop.tile}), {schedule.ready_count(group)})")
            lines.append(f"    {module}.init({empty}.index({loop.tile}), {schedule.consumer_warps} * {schedule.lanes})")
        return as_lines([*lines, "gl.barrier()"])

    def top(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        number = Current(loop.trips.number(site.emit, loop))
        return (*self.slots(site, loop), line(f"{self.phase} = (", number, " // ", loop.buffers, ") & 1"))

    def moved_back(self, site: LoopSite, loop: PipelinedLoop) -> list[Code]:
        """The moves happen in the producer."""
        if not loop.plan.runs.rolled_back:
            return []
        tiles = name(site.loop_names.fresh("tiles", loop.plan.loop))
        moves = [made for s in loop.plan.runs.rolled_back for made in site.plain.moves(s)]
        return [
            Assigned(tiles, counts.trips(site.emit, loop)).code,
            *(
                Assigned(made.target, binary(operand(tiles), "*", operand(made.value)), made.sign).code
                for made in moves
            ),
        ]
