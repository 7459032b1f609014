"""Plan the software pipeline of one loop: which loads run ahead, what they need, and in which order everything happens.

`plan_loop` reads facts only (the trace, def-use webs, Triton's staging decisions); no text is made here.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from translator.frontend.trace import TensorFact
from translator.memory.staging import Staged
from translator.optimize.tuning import Tuning
from translator.pipeline.index_loads import why_not_ahead
from translator.pipeline.depth import fitting
from translator.pipeline.loop_range import every_iteration, index_dtype, int_of, loop_bounds, trips_of, varies
from translator.pipeline.partitions import Partitions
from translator.pipeline.schedule import Schedule, copy_schedule, register_schedule
from translator.pipeline.span import Span, constant_span
from translator.pipeline.strided_tiles import NotATile, StridedTile, strided_tile
from translator.pipeline.tensor_tiles import DescriptorTile
from translator.pipeline.tail import TailProof
from translator.rewrite import callees, descriptors, tdm
from translator.rewrite.webs import Web

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

# Calls that a producer may make: it is executed again for tiles ahead, so nothing with effects and no memory.
_PURE_KINDS = ("elementwise", "creator", "same", "shape")


@dataclass(frozen=True)
class NotPipelined:
    """Why a loop stays as it is; `wanted` when Triton does pipeline it."""

    line: int
    reason: str
    wanted: bool = False

    def __str__(self) -> str:
        return f"line {self.line}: not pipelined: {self.reason}"


@dataclass(frozen=True)
class PipelinedLoad:
    """name: of the tile; covered: its own mask excludes tiles past the end; shrinking: its lanes only get fewer."""

    name: str
    line: int
    call: ast.Call
    statement: ast.stmt
    staged: Staged
    covered: bool
    shrinking: bool
    tile: DescriptorTile | StridedTile | None = None  # how the tensor data mover fetches it; None: another way


@dataclass(frozen=True)
class PipelinePlan:
    """One pipelined loop over `range(low, high, step)`.

    producer: statements of the body that addresses and masks need, run ahead; shared: the producer's variables that
    the consumer computes for itself as well; carried: those that move from tile to tile; rolled_back: those of them
    that are used after the loop and have to be moved back by the tiles that were fetched ahead; not_tiles: lines of loads
    that a tensor data mover does not fetch, with the reason. written_out: the number of iterations where it is known and
    so small that the loop is a prologue and an epilogue. once: the loop is a branch (`translator.pipeline.once`).
    descending: the step is negative. span: `high - low` where that is known at compile time and they are not.
    """

    loop: ast.For
    index: str
    index_dtype: str
    low: ast.expr | None
    high: ast.expr
    step: ast.expr | None
    schedule: Schedule | Partitions
    loads: tuple[PipelinedLoad, ...]
    atoms: tuple[ast.stmt, ...]
    producer: tuple[ast.stmt, ...]
    shared: tuple[Web, ...]
    carried: tuple[Web, ...]
    rolled_back: tuple[ast.AugAssign, ...]
    assumed: frozenset[str]
    not_tiles: tuple[tuple[int, str], ...] = ()
    written_out: int | None = None
    once: bool = False
    descending: bool = False
    span: Span | None = None

    def __str__(self) -> str:
        s = self.schedule
        lines = [f"line {self.loop.lineno}: `for {self.index}` pipelined, {s.mechanism}, {s.buffers} buffers"]
        for load in self.loads:
            tail = "tail masked by the load itself" if load.covered else "tail masked by the loop bound"
            how = " by the tensor data mover" if load.tile else ""
            lines.append(f"  line {load.line}: {load.name} {load.staged.shape} -> LDS{how}, {tail}")
        lines.append("  producer: " + ("; ".join(ast.unparse(p) for p in self.producer) or "addresses only"))
        if self.shared:
            lines.append("  computed twice: " + ", ".join(w.name for w in self.shared))
        if self.rolled_back:
            lines.append("  moved back after the loop: " + ", ".join(s.target.id for s in self.rolled_back))
        if self.once:
            return "\n".join([*lines, "  runs at most once: a branch, its tiles fetched at the top"])
        if s.mechanism == "partitions":
            return "\n".join([*lines, str(s)])
        if self.written_out is not None:
            lines.append(f"  written out: {self.written_out} tiles; only those that exist are fetched")
        lines.append(f"  prologue: tiles 0 to {s.prologue - 1}" if s.prologue > 1 else "  prologue: tile 0")
        fetch = "copy" if s.mechanism == "copies" else "load"
        wait = f"wait for all but {s.wait} groups, " if s.mechanism == "copies" and s.grouped else ""
        wait += f"wait for all but {s.tensor_wait} tensor copies, " if s.tensor_loads else ""
        lines.append(f"  steady state: {wait}{fetch} tile i + {s.ahead}, read tile i from slot i % {s.buffers}")
        if self.written_out is None:
            lines.append("  epilogue: none; tiles past the end are masked out")
        return "\n".join(lines)


def run_of_loads(plan: PipelinePlan, s: ast.stmt) -> tuple[int, int]:
    """The first and the last of the consecutive load statements that `s` belongs to, as indices of the plan's atoms."""
    loading = [load.statement for load in plan.loads]
    first = last = plan.atoms.index(s)

    def belongs(atom: ast.stmt) -> bool:
        return atom in loading and atom.col_offset == s.col_offset  # of the same block

    while first and belongs(plan.atoms[first - 1]):
        first -= 1
    while last + 1 < len(plan.atoms) and belongs(plan.atoms[last + 1]):
        last += 1
    return first, last


def loads_in(rw: "FunctionRewriter", statement: ast.AST) -> list[ast.Call]:
    """Staged loads in `statement`, outside of loops nested in it, in source order."""
    found: list[ast.Call] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.For, ast.While, ast.Lambda)):
            return
        if isinstance(node, ast.Call) and staged_of(rw, node) is not None:
            found.append(node)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(statement)
    return found


def staged_of(rw: "FunctionRewriter", node: ast.Call) -> Staged | None:
    visits = rw.visits(node)
    found = [rw.unit.staging.get((*rw.path, v)) for v in visits]
    if not found or found[0] is None:
        return None
    callee = callees.callee_of(rw, node)
    is_load = callee is not None and callee.row is not None and callee.row.kind == "load"
    return found[0] if is_load and rw.tensor(node) is not None else None


def plan_loop(rw: "FunctionRewriter", loop: ast.For) -> PipelinePlan | NotPipelined:
    """The pipeline of `loop`, or why there is none."""

    def no(reason: str) -> NotPipelined:
        return NotPipelined(loop.lineno, reason, wanted)

    wanted = False
    if rw.unrolled(loop):
        return no("it is unrolled at compile time")
    found = [c for s in loop.body if rw.taken(s) for c in loads_in(rw, s)]
    if not found:
        return no("Triton stages no load of its body through LDS")
    wanted = True
    bounds = loop_bounds(rw, loop, either_way=True)
    if bounds is None or not isinstance(loop.target, ast.Name) or loop.orelse:
        return no("it is not a loop over a range")
    low, high, step = bounds
    atoms = every_iteration(rw, loop.body)
    for call in found:
        if len(rw.visits(call)) != 1:
            return no(f"the load in line {call.lineno} is unrolled")
        holders = [a for a in atoms if call in loads_in(rw, a)]
        if not holders or isinstance(holders[0], (ast.If, ast.With)):
            return no(f"the load in line {call.lineno} is conditional")
    index = loop.target.id
    if any(d.name == index and loop in d.in_loop and d.node is not loop for w in rw.webs.all for d in w.definitions):
        return no("its index is assigned in the body too")

    tail = TailProof(rw, loop, low, high, step)
    tiles, not_tiles = _strided_tiles(rw, loop, bounds, found)
    # The producer: everything in the body that the loads' arguments depend on.
    plain = [c for c in found if c not in tiles]
    arguments = [a for c in plain for a in [*c.args, *(k.value for k in c.keywords)]]
    needed = {w.index for a in arguments for w in _used(rw, a)}
    producer: list[ast.stmt] = []
    grew = True
    while grew:
        grew = False
        for atom in atoms:
            defined = _defined(rw, atom)
            if atom in producer or not any(w.index in needed for w in defined):
                continue
            if not isinstance(atom, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or len(defined) != 1:
                return no(f"an address depends on the statement in line {atom.lineno}")
            if loads_in(rw, atom):
                return no(f"an address depends on the load in line {atom.lineno}")
            if not is_pure(rw, atom.value) and (what := why_not_ahead(rw, loop, tail, atom.value)):
                return no(f"an address depends on {what} in line {atom.lineno}")
            producer.append(atom)
            needed |= {w.index for w in _used(rw, atom)}
            grew = True
    producer.sort(key=atoms.index)

    # What the consumer needs of it, or what is used after the loop.
    inside = set()
    for call in found:
        for a in [*call.args, *(k.value for k in call.keywords)]:
            inside |= set(ast.walk(a))
    consumed = {
        w.index
        for atom in atoms
        if atom not in producer
        for n in ast.walk(atom)
        if n not in inside and isinstance(n, ast.Name) and (w := rw.webs.of_use.get(n)) is not None
    }
    # A value that both sides compute needs its inputs on both sides.
    for _ in producer:
        for atom in producer:
            if _defined(rw, atom)[0].index in consumed:
                consumed |= {w.index for w in _used(rw, atom)}
    shared: list[Web] = []
    moving: list[Web] = []
    rolled_back: list[ast.AugAssign] = []
    seen: set[int] = set()
    for atom in producer:
        (web,) = _defined(rw, atom)
        if web.index in seen:
            continue
        seen.add(web.index)
        carried = _carried(rw, web, atoms)
        after = any(loop not in loops and any(loop in d.in_loop for d in rw.webs.reaching[n]) for n, loops in web.uses)
        if not carried:
            if web.index in consumed:
                shared.append(web)
            if after:
                return no(f"`{web.name}` of the last iteration is used after the loop")
            continue
        moving.append(web)
        if web.index in consumed:
            return no(f"`{web.name}` moves and is used by what consumes the tiles")
        if after:
            own = [p for p in producer if _defined(rw, p)[0] is web]
            if not all(_invertible(rw, p, loop) for p in own):
                return no(f"`{web.name}` moves in a way that cannot be undone and is used after the loop")
            rolled_back += own

    loads = []
    ways, copies, buffers = _one_way([staged_of(rw, c) for c in found], [c in tiles for c in found])
    if copies and buffers < 2:
        return no("a copy needs two buffers")
    buffers = rw.unit.tuning.num_buffers or fitting(rw, zip(found, ways), buffers)
    if buffers < (2 if copies else 1):
        return no("LDS has no room for its tiles")
    span = constant_span(rw, low, high)
    trips = trips_of(rw, low, high, step, span and span.value)
    # Triton's pipeliner peels such a loop until nothing is left of it.
    descending = step is not None and int_of(rw, step) < 0
    few = trips is not None and not descending and 0 < trips <= buffers + (not copies)
    plain = replace(rw.unit.tuning, num_buffers=0) == Tuning()
    written_out = trips if few and plain and not _leaks(rw, loop) else None
    for call, staged in zip(found, ways):
        given = callees.bind(rw, call, callees.callee_of(rw, call))
        (statement,) = [a for a in atoms if call in loads_in(rw, a)]
        owner = callees.callee_of(rw, call).owner
        if owner is not None and descriptors.is_descriptor(rw.fact(owner)):
            offsets, bounds = given.get("offsets"), descriptors.bounds_of(rw, owner)
            name = _name(statement, call, {"pointer": owner})
            if tdm.uses_data_mover(rw, descriptors.origin_of(rw, owner)):
                if (
                    not isinstance(offsets, (ast.List, ast.Tuple))
                    or not isinstance(owner, ast.Name)
                    or tail.varies(owner)
                ):
                    return no(f"the descriptor load in line {call.lineno} is not a plain tile")
                whole = len(bounds) == len(offsets.elts)
                covered = written_out is not None or (whole and any(map(tail.ends, offsets.elts, bounds)))
                tile = DescriptorTile(owner, tuple(offsets.elts), tuple(not tail.varies(o) for o in offsets.elts))
                loads.append(PipelinedLoad(name, call.lineno, call, statement, staged, covered, False, tile))
                continue
            if not descriptors.fetchable(rw, owner) or not isinstance(offsets, (ast.List, ast.Tuple)):
                return no(f"the descriptor load in line {call.lineno} is not a plain tile")
            if staged.copy == "tensor":
                staged = replace(staged, copy="global", source=descriptors.fetch_layout(rw, call, owner))
            covered = written_out is not None or any(map(tail.ends, offsets.elts, bounds))
            loads.append(PipelinedLoad(name, call.lineno, call, statement, staged, covered, False))
            continue
        mask, other = given.get("mask"), given.get("other")
        masked = mask is not None and not callees.is_absent(rw, mask)
        if call in tiles:
            covered = written_out is not None or (masked and tail.implied(mask))
            name = _name(statement, call, given)
            loads.append(PipelinedLoad(name, call.lineno, call, statement, staged, covered, False, tiles[call]))
            continue
        if set(given) - {"pointer", "mask", "other", "cache_modifier", "eviction_policy", "volatile"}:
            return no(f"the load in line {call.lineno} has arguments that a copy cannot take")
        if masked and other is not None and not (callees.is_none(rw, other) or callees.is_zero(rw, other)) and copies:
            return no(f"the load in line {call.lineno} fills masked lanes with something other than 0")
        covered = written_out is not None or (masked and tail.implied(mask))
        shrinking = not masked or tail.shrinks(mask)
        name = _name(statement, call, given)
        loads.append(PipelinedLoad(name, call.lineno, call, statement, staged, covered, shrinking))
    tensor_loads = sum(load.tile is not None for load in loads)
    grouped = tensor_loads < len(loads)
    schedule = copy_schedule(buffers, tensor_loads, grouped) if copies else register_schedule(buffers)
    return PipelinePlan(
        loop,
        loop.target.id,
        index_dtype(rw, loop),
        low,
        high,
        step,
        schedule,
        tuple(loads),
        tuple(atoms),
        tuple(producer),
        tuple(shared),
        tuple(moving),
        tuple(rolled_back),
        frozenset(tail.assumed),
        tuple((call.lineno, reason) for call, reason in not_tiles.items()),
        written_out,
        descending=descending,
        span=span,
    )


def _leaks(rw: "FunctionRewriter", loop: ast.For) -> bool:
    """Whether a later loop assigns a name of this one: written out, this one would hand it on as a carried variable."""
    inside = set(ast.walk(loop))
    own = {d.name for web in rw.webs.all for d in web.definitions if d.node in inside}
    around = [
        n for n in ast.walk(rw.tree) if isinstance(n, (ast.For, ast.While)) and n is not loop and loop in ast.walk(n)
    ]
    return any(
        d.name in own and d.loop_depth and (around or d.node.lineno > loop.lineno)
        for web in rw.webs.all
        for d in web.definitions
        if d.node not in inside
    )


def _strided_tiles(
    rw, loop: ast.For, bounds: tuple, found: list[ast.Call]
) -> tuple[dict[ast.Call, StridedTile], dict[ast.Call, str]]:
    """The loads of a loop that the tensor data mover fetches, and for the others why not.

    All go another way where one of them goes through registers: such a loop has another order.
    """
    tiles: dict[ast.Call, StridedTile] = {}
    not_tiles: dict[ast.Call, str] = {}
    if not rw.unit.target.supports_tdm:
        return tiles, not_tiles
    low, _, step = bounds
    for call in found:
        callee, staged = callees.callee_of(rw, call), staged_of(rw, call)
        if callee.owner is not None or callee.row.kind != "load" or staged.copy == "tensor":
            continue
        try:
            tiles[call] = strided_tile(rw, loop, low, step, call, staged)
        except NotATile as reason:
            not_tiles[call] = str(reason)
            if staged.copy == "registers":
                others = {c: "another load of its loop goes through registers" for c in found if c is not call}
                return {}, others | not_tiles
    return tiles, not_tiles


def _one_way(staged: list[Staged], tiles: list[bool]) -> tuple[list[Staged], bool, int]:
    """(how each load is staged, by copies, buffers): one mechanism and one depth for all loads of a loop.

    Where Triton mixes copies with loads to registers, all of them go through registers, one slot less deep. Tiles that
    the tensor data mover fetches are copies, whatever Triton does.
    """
    if all(tile or s.copy != "registers" for s, tile in zip(staged, tiles)):
        return staged, True, min(s.buffers + (s.copy == "registers") for s in staged)
    buffers = min(s.buffers if s.copy == "registers" else s.buffers - 1 for s in staged)
    ways = [s if s.copy == "registers" else replace(s, copy="registers", stored=s.source) for s in staged]
    return ways, False, max(1, buffers)


def _used(rw, node: ast.AST) -> list[Web]:
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    webs = [w for n in names if (w := rw.webs.of_use.get(n)) is not None]
    return webs + (_defined(rw, node) if isinstance(node, ast.AugAssign) else [])


def _defined(rw, node: ast.AST) -> list[Web]:
    out = []
    for s in ast.walk(node):
        for name in {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}:
            if (web := rw.webs.of_definition.get((s, name))) is not None and web not in out:
                out.append(web)
    return out


def _carried(rw, web: Web, atoms: list[ast.stmt]) -> bool:
    """Whether an iteration starts with the value that the one before left in `web`."""
    for atom in atoms:
        if web in _used(rw, atom):
            return True
        if web in _defined(rw, atom):
            return not isinstance(atom, (ast.Assign, ast.AnnAssign))
    return False


def is_pure(rw, value: ast.expr | None) -> bool:
    """Whether computing `value` again, or not at all, makes no difference to memory."""
    for n in ast.walk(value) if value is not None else ():
        if isinstance(n, ast.Call) and isinstance(rw.fact(n), TensorFact):
            callee = callees.callee_of(rw, n)
            if callee is None or callee.row is None or callee.row.kind not in _PURE_KINDS:
                return False
        if isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield)):
            return False
    return True


def _invertible(rw, s: ast.stmt, loop: ast.For) -> bool:
    """Whether the move can be undone: an unconditional `x += c` or `x -= c` with `c` the same in every iteration."""
    if not (isinstance(s, ast.AugAssign) and isinstance(s.op, (ast.Add, ast.Sub)) and s in loop.body):
        return False
    return not varies(rw, loop, s.value)


def _name(statement: ast.stmt, call: ast.Call, given: dict[str, ast.expr]) -> str:
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        if statement.value is call or isinstance(statement.value, (ast.Call, ast.Attribute)):
            inner = statement.value
            while isinstance(inner, (ast.Call, ast.Attribute)) and inner is not call:
                inner = inner.func if isinstance(inner, ast.Call) else inner.value
            if inner is call:
                return statement.targets[0].id
    names = [n.id for n in ast.walk(given["pointer"]) if isinstance(n, ast.Name)]
    stem = names[0] if names else "tile"
    for suffix in ("_ptrs", "_ptr", "_pointers", "_pointer"):
        stem = stem.removesuffix(suffix)
    return stem
