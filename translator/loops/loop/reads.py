"""What stands for the loads of a pipelined loop where their tiles are used: reads of LDS slots, and variables that hold tiles."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gluonize.facts.function import FunctionFacts
from gluonize.gluon import nodes as tree
from gluonize.gluon.nodes import Named, Permuted, Place, Slot
from gluonize.gluon.written import Written, indexed, name
from gluonize.loops.loop.loop import PipelinedLoop, Ring
from gluonize.rules.gluon import copies_to_lds
from gluonize.trace.model.layouts import Layout
from gluonize.write import costs
from gluonize.write.descriptors.tile_functions import Copies
from gluonize.write.state.gluon_modules import async_module
from gluonize.write.state.site import Site
from gluonize.write.state.unit import Record


@dataclass(frozen=True)
class Read:
    """What stands for a staged load in the consumer."""

    loop: PipelinedLoop
    ring: Ring

    def slot(self, order: tuple[int, ...] = ()) -> Place:
        """Where the tile lies in LDS, its dimensions permuted by `order`."""
        place = Slot(self.ring.smem, self.loop.slot)
        tile = self.ring.load.tile
        if tile is not None:
            order = tuple(tile.permutation[d] for d in order or range(len(tile.permutation)))
        return place if order == tuple(range(len(order))) else Permuted(place, order)

    def text(self, site: Site, layout: Layout, tile: Place | None = None) -> Written:
        """The tile in `layout`; `tile`: where it lies, by default its slot."""
        relaxed = self.loop.copies and not self.ring.load.stored and site.facts.kernel.target.relaxed_lds_reads
        return site.expression(
            tree.Read(tile or self.slot(), site.names.spell(layout).code, async_module(site.record) if relaxed else "")
        )


@dataclass(frozen=True)
class HeldRead:
    """What stands for a load whose tiles wait in registers, the oldest first where there are several."""

    loop: PipelinedLoop
    ring: Ring

    @property
    def layout(self) -> Layout:
        return self.ring.load.staged.source

    def text(self, site: Site, layout: Layout) -> Written:
        ring = self.ring_in(site, layout)
        tile = name((ring or self.ring).next)
        tile = tile if self.loop.only_holds else indexed(tile, "0")
        return tile if ring is not None else site.convert(tile, layout)

    def ring_in(self, site: Site, layout: Layout) -> Ring | None:
        """What has the tiles in `layout`: the same load again where Triton makes it there too and moving costs more; else None.

        Where nothing has them there yet, that load is added to the loop, and one more walk is asked for.
        """
        if layout == self.layout:
            return self.ring
        load, rings = self.ring.load, self.loop.rings
        fact = site.facts.tensor(load.call)
        if (
            not costs.is_small(site.facts, fact)
            or costs.many_loads(layout, fact)
            or layout not in site.facts.placed_layouts(load.call)
        ):
            return None
        for ring in rings:
            if ring.again and ring.load.call is load.call and ring.load.staged.source == layout:
                self.loop.reads.wanted.add(ring.next)
                return ring
        site.demand_more()
        staged = replace(load.staged, source=layout)
        own = site.names.variant(self.ring.next, layout)
        made = replace(self.ring, load=replace(load, staged=staged), next=own, again=True)
        self.loop.reads.wanted.add(own)
        rings.insert(rings.index(self.ring) + 1, made)
        return made


def permuted_read(site: Site, data: ast.expr, order: tuple[int, ...], layout: Layout) -> Written | None:
    """A staged tile with its dimensions permuted, read from LDS straight into `layout`; None for anything else."""
    tile = ""
    if isinstance(data, ast.Name):
        made, read = site.facts.webs.definition_of(data), _assigned(site.facts, site.staged, site.loops, data)
        if read is None:
            return None
        tile = "" if site.state(site.facts.webs.of_use[data]).variants else data.id
        if not tile and read.loop.read_at_top(site.facts, read.ring):
            own = site.names.variant(f"{data.id}_t", layout)
            current = read.loop.reads
            current.permuted_now.add(own)
            if own not in current.permuted:
                current.permuted[own] = made.node, read.text(site, layout, read.slot(order))
                site.demand_more()
            return name(own)
    elif data in site.staged:
        read = site.staged[data]
    else:
        return None
    return read.text(site, layout, Permuted(Named(tile), order) if tile else read.slot(order))


def read_where_used(
    facts: FunctionFacts, staged: Mapping[ast.Call, Read], loops: tuple[ast.AST, ...], data: ast.expr
) -> Read | None:
    """How a staged tile with one use is read at that use, so that nothing before it holds the tile; None for others.

    Its variable names the tile where it lies in LDS. The slot stays as it is until the end of the iteration.
    """
    read = _assigned(facts, staged, loops, data) if isinstance(data, ast.Name) else None
    if read is None:
        return None
    loop, web = read.loop, facts.webs.of_use[data]
    plain = loop.plan.schedule.in_slots and not loop.passes
    return read if plain and len(web.definitions) == len(web.uses) == 1 else None


def _assigned(
    facts: FunctionFacts, staged: Mapping[ast.Call, Read], loops: tuple[ast.AST, ...], name: ast.Name
) -> Read | None:
    """What stands for the staged load that a variable is assigned in the loop which reads it here."""
    made = facts.webs.definition_of(name)
    if made is None or made.value not in staged or not isinstance(made.node, ast.Assign):
        return None
    read = staged[made.value]
    return read if read.loop.plan.loop in loops else None


def tile_copies(facts: FunctionFacts, record: Record) -> Copies:
    """The copies of the target that fetch a descriptor's tiles."""
    by_pointers, by_offsets = copies_to_lds(facts.kernel.target)
    return Copies(async_module(record), by_pointers, *filter(None, (by_offsets,)))
