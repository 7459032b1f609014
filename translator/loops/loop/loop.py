"""Pipelined loops while a function is rewritten: a plan, the form it is written in, and the passes that go over it.

A `LoopForm` (`gluonize.loops.forms`) is one way in which tiles come to their reads, `Trips` how iterations are counted, a `LoopPass`
(`gluonize.loops.passes`) a change of the loop that a choice asks for. Each is a class; what most of them have in common stands here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from gluonize.decide.choices.chosen import Choices
from gluonize.facts.function import FunctionFacts
from gluonize.facts.obligations import Obligation
from gluonize.facts.webs import Web
from gluonize.gluon.nodes import Binary, Code, Current, Node, Number, Pipelined
from gluonize.gluon.written import Written, name
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.plan.plan import PipelinedLoad, PipelinePlan
from gluonize.loops.plan.schedule import Held
from gluonize.write.state.edits import Made
from gluonize.write.state.function_loops import FunctionLoops
from gluonize.write.state.relations import Wants
from gluonize.write.state.site import Spot
from gluonize.write.state.writing import Emit

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

    @property
    def is_copied(self) -> bool:
        """Whether copies bring its tiles, those of the tensor data mover among them."""
        return not self.held and not self.load.stored


@dataclass
class ReadTiles:
    """In which layouts the tiles of a loop are read. The walks that look for layouts, and then the writing, each begin anew; what is wanted in
    more than one layout stays, until a whole round no longer wants it.

    rings: of the loads, in the layouts that are wanted. wanted: the names of those in another layout that is read in this round. permuted:
    variable -> (load statement, how the permuted tile is read) of tiles that are read in two ways; permuted_now: those of this round.
    """

    rings: list[Ring] = field(default_factory=list)
    wanted: set[str] = field(default_factory=set)
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


@dataclass
class Fetched:
    """The tile whose fetch is being written: uses of the loop's index in the syntax of tiles ahead stand for its index, `at`."""

    uses: tuple[ast.Name, ...] = ()
    at: Written = NOWHERE

    def be(self, index: Written) -> None:
        """From now on it is the tile at `index`."""
        self.at = index
        for use in self.uses:
            use.id, use.literal = index.text, index


@dataclass(frozen=True)
class LoopParts:
    """What stands around the author's statements: before the loop; at the top of the body, the waits there among it; at its end; behind the
    loop. again: what fills slots behind their last read."""

    before: Statements = ()
    top: Statements = ()
    waits: Statements = ()
    again: Statements = ()
    end: Statements = ()
    after: Statements = ()


@dataclass(frozen=True)
class FinishedLoop:
    """A loop as it is written. tree: all of it; body: what became of its body, with what passes found against it."""

    tree: Pipelined
    body: LoopBody


@dataclass(frozen=True)
class Step:
    """What has become of a statement of the body, or of several that share a line."""

    sources: tuple[ast.stmt, ...]
    statements: Statements
    multiplies: bool  # whether they have a matrix product


@dataclass(frozen=True)
class LoopBody:
    """A body as a tree: what stands at its top, what has become of the author's statements, and what stands at its end.

    waits: those at the top; again: what fills slots behind their last read. in_time: whether matrix instructions follow the copies into a slot
    that is filled again; late_read: what a compute stage reads from LDS, which it must not.
    """

    top: Statements
    steps: tuple[Step, ...]
    end: Statements
    waits: Statements = ()
    again: Statements = ()
    in_time: bool = True
    late_read: str = ""

    @property
    def nodes(self) -> Statements:
        return (*self.top, *(s for step in self.steps for s in step.statements), *self.end)

    def with_statements(self, every: Sequence[Statements]) -> LoopBody:
        """The body with other statements for each step."""
        return replace(self, steps=tuple(replace(step, statements=s) for step, s in zip(self.steps, every)))


Fresh = Callable[..., str]  # gives a name that the function does not use


class LoopForm:
    """How tiles come to their reads, written: one class for each schedule.

    drains: whether copies may be under way behind the last iteration. splits: whether some warps copy and others compute, as
    `gluonize.loops.specialized.partitions` then takes the loop apart. one_slot: whether LDS has one slot of each tile, or none.
    tile: what the number of a tile that is fetched before the loop is called.
    """

    drains: ClassVar[bool] = False
    splits: ClassVar[bool] = False
    one_slot: ClassVar[bool] = False
    tile: ClassVar[str] = "t"

    def placed(self, loop: PipelinedLoop) -> PipelinedLoop:
        """The loop with the names of its slots as they are in this form."""
        return loop

    def tiles_ahead(self, loop: PipelinedLoop) -> Node:
        """How many tiles ahead of the one that is read a tile is fetched."""
        return loop.depth

    def fetched(self, loop: PipelinedLoop) -> Node:
        """The tile that an iteration fetches."""
        return Binary(Current(), "+", loop.tiles_ahead)

    def store_slot(self, loop: PipelinedLoop) -> str:
        """The slot of tiles that go through registers."""
        return loop.slot

    def where(self, choices: Choices, rings: list[Ring]) -> tuple[list[Ring], list[Ring]]:
        """(what is fetched before a run of load statements, what behind it), of what the run loads.

        Copies go before it: LDS is read while they are in flight; late: behind it, so that reads do not wait for room in the queue
        of memory. Loads to registers go after it: the tile that they replace is on its way to the matrix cores by then, which frees
        registers; early: before it, where all tiles go that way. Tiles that wait in registers are taken before the next ones replace them.
        """
        return [], rings

    def ends(self, emit: Emit, loop: PipelinedLoop) -> Written | None:
        """What a fetch asks for, so that no tile past the end is fetched; None where nothing has to be asked."""
        raise NotImplementedError

    def closed(self, site: LoopSite, loop: PipelinedLoop, fetched: list[Ring]) -> Statements:
        """What stands behind the fetches of an iteration."""
        return ()

    def ready_of(self, ring: Ring, slot: str) -> str:
        """The barrier that a copy of the tensor data mover arrives at; "" where there is none."""
        return ""

    def says(self, loop: PipelinedLoop) -> str:
        """One line on how a loop is written, as `translate` prints it."""
        raise NotImplementedError

    def header(self, site: LoopSite, loop: PipelinedLoop) -> None:
        """Edit the loop's header."""
        loop.trips.header(site, loop)

    def before(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        """What stands before the loop."""
        raise NotImplementedError

    def top(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        """What stands at the top of the body."""
        raise NotImplementedError

    def again(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        """What fills slots behind their last read."""
        return ()

    def body(self, loop: PipelinedLoop, body: LoopBody, fresh: Fresh) -> LoopBody:
        """The body as this form has it."""
        return body

    def end(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        """What stands at the end of the body."""
        return ()

    def after(self, site: LoopSite, loops: FunctionLoops, loop: PipelinedLoop) -> Statements:
        """What stands behind the loop, at its own indentation; of a branch inside of it."""
        raise NotImplementedError


class Trips:
    """How iterations are counted, and how often the body stands in the text."""

    written_out: ClassVar[bool] = False  # each iteration has a text of its own
    in_rounds: ClassVar[bool] = False  # the body stands once for each buffer

    def number(self, emit: Emit, loop: PipelinedLoop) -> Written:
        """The number of the iteration, not negative."""
        raise NotImplementedError

    def fetched_before(self, emit: Emit, loop: PipelinedLoop) -> Node:
        """How many tiles are fetched before the loop."""
        return loop.tiles_ahead

    def where_fetched(self, emit: Emit, loop: PipelinedLoop, statements: Iterable[Node]) -> Statements:
        """`statements`, which fetch a tile ahead, for the iterations that do."""
        return tuple(statements)

    def under_way(self, emit: Emit, loop: PipelinedLoop, left: Node) -> Node:
        """How much may be under way behind a wait that leaves `left` in the middle of the loop."""
        return left

    def header(self, site: LoopSite, loop: PipelinedLoop) -> None:
        """Edit the loop's header."""
        raise NotImplementedError

    def index(self, site: LoopSite, loop: PipelinedLoop, used: bool) -> Statements:
        """The loop's index at the top of the body, where it is no variable of the header; used: whether anything reads it."""
        return ()

    def slots(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        """The slots of the tile that is read, and of the one that is fetched, at the top of the body."""
        raise NotImplementedError

    def nodes(self, loop: PipelinedLoop, body: LoopBody) -> Statements:
        """The whole body."""
        return body.nodes

    def count(self, emit: Emit, loop: PipelinedLoop) -> str:
        """The number of iterations where the body stands once for each; else empty."""
        return ""

    def known(self, count: str) -> tuple[int, ...]:
        """The numbers of iterations that the loop can have, empty where it can have any; count: as `count` gives it."""
        return (int(count),) if count.isdigit() else ()


class LoopPass:
    """A change of a pipelined loop that a choice asks for. What a pass does not define stays as it is without it.

    again: rings that it has filled again before the others have been read in full. groups: of copies, for each tile. alternates: whether two
    groups of warps take turns in the body.
    """

    again: tuple[Ring, ...] = ()
    groups: ClassVar[int] = 1
    reads_ahead: bool = False  # whether operands are read one iteration before their product
    alternates: ClassVar[bool] = False
    masks_end: ClassVar[bool] = True  # whether fetches ask for the loop's end
    refills_early: ClassVar[bool] = False  # whether slots are filled again as soon as they are read
    uses_ahead: ClassVar[bool] = False  # whether it reads the index of the tile ahead

    def statements(self) -> tuple[ast.stmt, ...]:
        """The statements that it writes itself (`statement`)."""
        return ()

    def left(self, loop: PipelinedLoop) -> int:
        """How many fewer tiles than there are buffers may be under way when a tile is read."""
        return 2

    def says(self, loop: PipelinedLoop) -> list[str]:
        """What `translate` prints about it."""
        return []

    def wants(self, spot: Spot, s: ast.stmt) -> Wants | None:
        """The layouts that a statement wants of its parts; None where the pass leaves them as they are."""
        return None

    def statement(self, site: LoopSite, s: ast.stmt) -> Sequence[Code] | None:
        """The lines that stand for a statement; None where the pass leaves it as it is."""
        return None

    def moved(self, site: LoopSite, loop: PipelinedLoop, move: Code, at: Written | None) -> list[Code] | None:
        """The lines in which a pointer moves ahead: in the body, or, with the index `at` of a tile, before the loop; None where it is left."""
        return None

    def moved_back(self, site: LoopSite, loop: PipelinedLoop, move: Code) -> list[Code] | None:
        """The lines behind the loop in which a pointer that moved too far is put right; None where it is left."""
        return None

    def beside(self, site: LoopSite, loop: PipelinedLoop, copied: list[Ring]) -> Statements:
        """What stands behind the copies of an iteration."""
        return ()

    def begin(self, site: LoopSite, loop: PipelinedLoop) -> None:
        """Called when the author's statements have been written."""

    def refills(self, site: LoopSite, loop: PipelinedLoop) -> Statements | None:
        """What fills slots behind their last read; None where that is left to the form."""
        return None

    def before(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        """What stands before the loop, behind the first tiles."""
        return ()

    def body(self, loop: PipelinedLoop, body: LoopBody, fresh: Fresh) -> LoopBody:
        """The body as the pass makes it."""
        return body

    def after(self, site: LoopSite, loop: PipelinedLoop) -> list[Made]:
        """What stands behind the loop."""
        return []


@dataclass(frozen=True, eq=False)
class PipelinedLoop:
    """A plan with its form, its names, the syntax of tiles ahead, and its passes.

    slot: of the tile that an iteration reads; free: of the one that is copied ahead; tile: the loop variable of the prologue; counter:
    of iterations, where the loop index does not count them from 0, else empty. own_names: of values that each tile computes anew;
    ahead_of: statement -> its copy for tiles ahead; doubled: (what the consumer moves, what the producer moves). assumed: what its
    addresses and masks rest on. reads: in which layouts its tiles are read; fetch: the tile whose fetch is being written.
    """

    plan: PipelinePlan
    form: LoopForm
    trips: Trips
    buffers: Written
    ahead: str
    slot: str
    free: str
    tile: str
    counter: str
    own_names: tuple[tuple[ast.Name, Web], ...] = ()
    ahead_of: Mapping[ast.stmt, ast.stmt] = field(default_factory=dict)
    doubled: tuple[tuple[Web, Web], ...] = ()
    assumed: frozenset[Obligation] = frozenset()
    passes: tuple[LoopPass, ...] = ()
    reads: ReadTiles = field(default_factory=ReadTiles)
    fetch: Fetched = field(default_factory=Fetched)

    @property
    def rings(self) -> list[Ring]:
        """Those of this round."""
        return self.reads.rings

    @property
    def copies(self) -> bool:
        """Whether copies are under way that have to be waited for."""
        return self.plan.schedule.copies

    @property
    def mixed(self) -> bool:
        """Whether some tiles are copied and others go through registers."""
        return self.copies and any(ring.load.stored for ring in self.rings)

    def asked(self, question: Callable[[LoopPass], Any]) -> Any:
        """The answer of the first pass that has one to a question; None where none has."""
        return next((found for one in self.passes if (found := question(one)) is not None), None)

    @property
    def copied_again(self) -> list[Ring]:
        """The rings that a pass has copied again before the others are read in full."""
        return [ring for one in self.passes for ring in one.again]

    @property
    def alternates(self) -> bool:
        """Whether two groups of warps take turns in the body."""
        return any(one.alternates for one in self.passes)

    @property
    def reads_ahead(self) -> bool:
        """Whether operands are read one iteration before their product."""
        return any(one.reads_ahead for one in self.passes)

    @property
    def depth(self) -> Node:
        """The number of slots."""
        return Number(self.buffers)

    @property
    def tiles_ahead(self) -> Node:
        return self.form.tiles_ahead(self)

    @property
    def fetched(self) -> Node:
        return self.form.fetched(self)

    def read_at_top(self, facts: FunctionFacts, ring: Ring) -> bool:
        """Whether a tile that is read in two ways is read in both where it is loaded, not where it is used.

        A read after the last barrier of the body takes one more before the next tile is stored. RDNA has no registers for it.
        """
        return ring.load.stored and not self.alternates and not facts.kernel.target.has_few_registers

    @property
    def only_holds(self) -> bool:
        """Whether nothing goes through LDS: the tiles of the next iteration wait in variables."""
        return isinstance(self.plan.schedule, Held)
