"""Pipelined loops while a function is rewritten: names, renamed syntax, and reads of LDS slots."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gluonize.facts.function import FunctionFacts
from gluonize.facts.obligations import Obligation
from gluonize.facts.webs import Web
from gluonize.gluon import nodes as tree
from gluonize.gluon.nodes import ONE, Binary, Current, Named, Node, Number, Permuted, Pipelined, Place, Slot
from gluonize.gluon.written import Written, indexed, name
from gluonize.loops.plan.plan import PipelinedLoad, PipelinePlan
from gluonize.rules.gluon import copies_to_lds
from gluonize.trace.model.layouts import Layout
from gluonize.write import costs
from gluonize.write.descriptors.tile_functions import Copies
from gluonize.write.state.gluon_modules import async_module
from gluonize.write.state.site import Site
from gluonize.write.state.unit import Record

Statements = tuple[Node, ...]
NOWHERE = name("")


@dataclass(frozen=True)
class Ring:
    """The LDS buffers of one load. fetch: the load for a tile ahead; next: the name of a tile held in registers; tiles:
    that of the descriptor whose tiles are copied; desc: that of the descriptor it is made from. clipped: whether the mask of its
    tiles ahead ends with the loop (gluonize.loops.loop.clip); again: whether the same load has its tiles in another layout too.
    """

    load: PipelinedLoad
    smem: str
    fetch: ast.Call
    next: str
    tiles: str = ""
    desc: str = ""
    clipped: bool = False
    again: bool = False

    @property
    def held(self) -> bool:
        """Whether the tiles stay in registers: there is no ring in LDS."""
        return self.load.held


@dataclass
class LoopRound:
    """What writing a loop has come to. The walks that look for layouts, and then the writing, each begin anew; what is wanted in more
    than one layout stays.

    rings: of the loads, in the layouts that are wanted. wanted: the names of those in another layout that is read now. at: the
    index of the tile that is being fetched. before, top, end, after: what stands around the author's statements, before the loop,
    at the top and at the end of the body, behind the loop; waits: those at the top; copies_again: what fills the slots behind the
    last read; prefetched: the body whose operands are read one iteration ahead; tree: all of it, when it is final. hidden: whether
    matrix instructions follow the copies into a slot that is filled again; late_read: what a compute stage reads from LDS, which
    it must not. permuted: variable -> (load statement, how the permuted tile is read) of tiles that are read in two ways;
    permuted_now: those that are read now.
    """

    rings: list[Ring] = field(default_factory=list)
    wanted: set[str] = field(default_factory=set)
    at: Written = NOWHERE
    before: Statements = ()
    top: Statements = ()
    end: Statements = ()
    after: Statements = ()
    waits: Statements = ()
    copies_again: Statements = ()
    prefetched: Any = None
    tree: Pipelined | None = None
    hidden: bool = True
    late_read: str = ""
    permuted: dict[str, tuple[ast.stmt, Written]] = field(default_factory=dict)
    permuted_now: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Nothing is wanted in more than one layout yet."""
        self.wanted, self.permuted_now = set(), set()

    def finish(self) -> bool:
        """Leave out the loads whose layouts nothing wants any more; -> whether there were any."""
        rings = [ring for ring in self.rings if not ring.again or ring.next in self.wanted]
        permuted = {name: read for name, read in self.permuted.items() if name in self.permuted_now}
        changed = len(rings) < len(self.rings) or len(permuted) < len(self.permuted)
        self.rings, self.permuted = rings, permuted
        return changed


@dataclass(frozen=True, eq=False)
class PipelinedLoop:
    """A plan with its names, the syntax of tiles ahead, and what the choices make of it; `round` is what becomes of it in writing.

    slot: of the tile that an iteration reads; free: of the one that is copied ahead; tile: the loop variable of the prologue; counter:
    of iterations, where the loop index is not one from 0, else empty; first: the index of the first tile of a round, where the body
    is written once per buffer. barriers: ready and empty of each group, where partitions share the loop; phase: theirs for the
    tile's slot. index_names: uses of the loop index in the producer's copies; own_names: of values that each tile computes anew;
    ahead_of: statement -> its copy for tiles ahead; doubled: (what the consumer moves, what the producer moves). assumed: what its
    addresses and masks rest on. stages: where groups of warps alternate; sliced: where the accumulator is kept in slices.
    prefetch: operands are to be read from LDS one iteration ahead; l2_ahead: how many tiles beyond those that are copied are asked
    for in the L2 cache; repeats: copies past the end fetch the last tile once more; stores_early: groups of warps store tiles as
    soon as both have read what lies there; early: rings of an operand, and of its scales, that are copied again before the other
    is read in full.
    """

    plan: PipelinePlan
    buffers: Written
    ahead: str
    slot: str
    free: str
    tile: str
    counter: str
    first: str = ""
    barriers: tuple[tuple[str, str], ...] = ()
    phase: str = ""
    index_names: tuple[ast.Name, ...] = ()
    own_names: tuple[tuple[ast.Name, Web], ...] = ()
    ahead_of: Mapping[ast.stmt, ast.stmt] = field(default_factory=dict)
    doubled: tuple[tuple[Web, Web], ...] = ()
    assumed: frozenset[Obligation] = frozenset()
    stages: tuple = ()  # of StagePlan
    sliced: Any = None
    prefetch: bool = False
    l2_ahead: int = 0
    repeats: bool = False
    stores_early: bool = False
    early: tuple[Ring, ...] = ()
    round: LoopRound = field(default_factory=LoopRound)

    @property
    def rings(self) -> list[Ring]:
        """Those of this round."""
        return self.round.rings

    @property
    def copies(self) -> bool:
        return self.plan.schedule.mechanism in ("copies", "partitions")

    @property
    def specialized(self) -> bool:
        """Whether some warps copy and others compute; `gluonize.loops.specialized.partitions` takes the loop apart."""
        return self.plan.schedule.mechanism == "partitions"

    def ready_of(self, ring: Ring, slot: str) -> str:
        """The barrier that a copy of the tensor data mover arrives at, where partitions share the loop; else empty."""
        return f"{self.barriers[self.group_of(ring)][0]}.index({slot})" if self.specialized else ""

    def group_of(self, ring: Ring) -> int:
        """The number of the tiles' group that shares barriers with `ring`."""
        return [ring.load.name in group for group in self.plan.schedule.groups].index(True)

    @property
    def mixed(self) -> bool:
        """Whether some tiles are copied and others go through registers."""
        return self.copies and any(ring.load.stored for ring in self.rings)

    @property
    def store_slot(self) -> str:
        """The slot of tiles that go through registers: the one just read, or beside copies that which these fill."""
        return self.free if self.copies else self.slot

    @property
    def written_out(self) -> bool:
        return self.plan.written_out is not None

    @property
    def refills(self) -> bool:
        """Whether the one slot is filled again after the last read (`gluonize.loops.passes.refill`)."""
        return self.plan.refills

    @property
    def depth(self) -> Node:
        """The number of slots."""
        return Number(self.buffers)

    @property
    def tiles_ahead(self) -> Node:
        """How many tiles ahead of the one that is read a tile is fetched."""
        return Binary(self.depth, "-", ONE) if self.copies and not self.refills else self.depth

    @property
    def fetched(self) -> Node:
        """The tile that an iteration fetches."""
        here = self.specialized or self.plan.once
        return Current() if here else Binary(Current(), "+", self.tiles_ahead)

    def read_at_top(self, facts: FunctionFacts, ring: Ring) -> bool:
        """Whether a tile that is read in two ways is read in both where it is loaded, not where it is used.

        A read after the last barrier of the body takes one more before the next tile is stored. RDNA has no registers for it.
        """
        return ring.load.stored and not self.stages and not facts.kernel.target.has_few_registers

    @property
    def only_holds(self) -> bool:
        """Whether nothing goes through LDS: the tiles of the next iteration wait in variables."""
        return self.plan.schedule.mechanism == "held"

    def fetch_at(self, index: Written) -> None:
        """From now on the producer's syntax is that of the tile at `index`."""
        self.round.at = index
        for name in self.index_names:
            name.id, name.literal = index.text, index


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
class Held:
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
        """What has the tiles in `layout`: the same load again where Triton makes it there too and moving costs more; else None."""
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
                self.loop.round.wanted.add(ring.next)
                return ring
        site.demand_more()
        staged = replace(load.staged, source=layout)
        own = site.names.variant(self.ring.next, layout)
        made = replace(self.ring, load=replace(load, staged=staged), next=own, again=True)
        self.loop.round.wanted.add(own)
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
            current = read.loop.round
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
    plain = loop.plan.schedule.mechanism == "registers" and not (loop.stages or loop.sliced or loop.prefetch)
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
