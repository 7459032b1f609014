"""Two groups of warps take turns in the body: while one moves data, the other multiplies (`gluonize.loops.passes.stages`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gluonize.decide.choices.chosen import Choices
from gluonize.facts.function import FunctionFacts
from gluonize.facts.products import products
from gluonize.gluon.code import line
from gluonize.gluon.nodes import Store
from gluonize.loops.copies.producer import Producer
from gluonize.loops.copies.waits import waits_of_body
from gluonize.loops.loop.loop import Fresh, LoopBody, LoopPass, PipelinedLoop, Ring, Statements, Step
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.passes import early_refill, early_stores, slices
from gluonize.loops.passes.slices import SlicedDot
from gluonize.loops.passes.stages import (
    FEWEST_STORED,
    StagePlan,
    alternating,
    late_read,
    plan_stages,
    reads_tiles,
    stage_contents,
)
from gluonize.loops.plan.schedule import Stored


@dataclass(frozen=True)
class Alternating(LoopPass):
    """stages: what the groups alternate in. sliced: the product, where its accumulator is kept in slices. again: the rings of an operand,
    and of its scales, that are copied again before the other one is read in full. stores_early: whether tiles are stored as soon as
    both groups have read what lies there."""

    stages: tuple[StagePlan, ...]
    sliced: SlicedDot | None = None
    again: tuple[Ring, ...] = ()
    stores_early: bool = False

    alternates = True

    @property
    def groups(self) -> int:
        """Two where an operand has commit groups of its own."""
        return 2 if self.again else 1

    @property
    def refills_early(self) -> bool:
        return bool(self.again) or self.stores_early

    def left(self, loop: PipelinedLoop) -> int:
        """Two groups for each tile that follows, and one of the operand that is a tile further ahead."""
        return 3 if self.again else 2

    def says(self, loop: PipelinedLoop) -> list[str]:
        index = loop.plan.range.index
        rounds = ", written once per buffer: slots are literals" if loop.trips.in_rounds else ""
        said = [f"warps of `for {index}` alternate between memory and compute in {len(self.stages)} stages{rounds}"]
        if self.again:
            names = " and ".join(f"`{ring.load.name}`" for ring in self.again)
            be, them = ("is", "it") if len(self.again) == 1 else ("are", "them")
            said.append(f"{names} {be} copied again as soon as both groups of warps have read {them}")
        if self.stores_early:
            what = "have read those that they replace"
            said.append(f"tiles of `for {index}` are stored as soon as both groups of warps {what}")
        return said

    def refills(self, site: LoopSite, loop: PipelinedLoop) -> Statements | None:
        return early_refill.again(site, Producer(site, site.addressing, loop), self.again) if self.again else None

    def before(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        producer = Producer(site, site.addressing, loop)
        first = early_refill.first(site, producer, self.again) if self.again else ()
        return (*first, *waits_of_body(site, loop)[1:])

    def body(self, loop: PipelinedLoop, body: LoopBody, fresh: Fresh) -> LoopBody:
        every = [step.statements for step in body.steps]
        stored = tuple(s for s in body.end if isinstance(s, Store))
        if self.sliced is not None:
            number = next(i for i, step in enumerate(body.steps) if self.sliced.statement in step.sources)
            contents = slices.stage_contents_of(every, number)
            if self.again:
                contents[early_refill.stage_of(self.sliced)].insert(0, body.again)
            if self.stores_early:
                contents = early_stores.with_stores(contents, stored)
            elif stored:
                contents.append([stored])
        else:
            tiles = {ring.load.name: ring.smem for ring in loop.rings}
            contents = stage_contents([*every, stored], self.stages, tiles, fresh)
        contents[-1].append(tuple(s for s in body.end if s not in stored))
        why = line("# The tile of the next iteration has landed: the other warps read it a stage earlier.")
        waits = (why, *body.waits[1:]) if body.waits else ()
        top = tuple(s for s in body.top if s not in body.waits)
        steps = (Step((), tuple(alternating(contents, self.stages, waits)), True),)
        return LoopBody(top, steps, (), late_read=late_read(contents, self.stages))


def asked(facts: FunctionFacts, choices: Choices, loop: PipelinedLoop, sliced: SlicedDot | None) -> LoopPass | None:
    """The stages that two groups of warps alternate in, None where the loop has none."""
    if not choices.asks("warp-groups", "alternating") or facts.kernel.num_ctas > 1:
        return None  # workgroups of a cluster wait for each other, with all of their warps
    after_read = choices.asks("refill", "after-read")
    body, schedule = loop.plan.loop.body, loop.plan.schedule
    stored = isinstance(schedule, Stored)
    rolled = not loop.trips.written_out and not loop.trips.in_rounds
    early = after_read and stored and rolled and sliced is not None and sliced.product is None
    statement = sliced.statement if sliced is not None else None
    multiplies = [facts.taken(s) and (s is statement or products.multiplies(facts, s)) for s in body]
    tiles = [reads_tiles(loop, s) for s in body]
    stages = plan_stages(tiles, multiplies, schedule, 1 if early else FEWEST_STORED)
    if not stages:
        return None
    if sliced is None:
        return Alternating(stages)
    if early:
        return Alternating(early_stores.stages_of(sliced), sliced, stores_early=True)
    found = Alternating((*slices.stages_of(sliced), *((StagePlan("memory", ()),) if stored else ())), sliced)
    return replace(found, again=tuple(early_refill.early_rings(facts, loop, sliced)) if after_read else ())


__all__ = ["Alternating", "asked"]
