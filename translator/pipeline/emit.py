"""Write a pipelined loop: LDS rings and the prologue before it, copies ahead and reads in place, waits, and the end.

The author's statements stay where they are. A staged load becomes a read of its LDS slot; right before it the same
load, taken from a copy of its syntax with the loop index renamed, fetches the tile ahead. Statements that addresses
need run ahead too, once more in the prologue; those that the consumer needs as well are written twice.
"""

from __future__ import annotations

import ast
import contextlib
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from translator.frontend.trace import TensorFact
from translator.pipeline.body import alternating, late_read, statement_texts
from translator.pipeline.loop import PipelinedLoop, Ring, async_module, barrier_module, permuted_read
from translator.pipeline import slices, unroll
from translator.pipeline.plan import NotPipelined, PipelinePlan, run_of_loads
from translator.pipeline.prepare import fresh, prepare
from translator.pipeline.loop_range import is_index
from translator.rewrite import calls, descriptors, dots, pointers, tdm
from translator.rewrite.splice import operand, replace_spans
from translator.rewrite.unit import refuse
from translator.rewrite.webs import Web

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter


def _tile_number(rw: "FunctionRewriter", loop: PipelinedLoop) -> str:
    """The number of the iteration, not negative."""
    if loop.counter:
        return loop.counter
    if loop.written_out:
        return loop.tile
    step = loop.plan.step
    return loop.plan.index if step is None else f"{loop.plan.index} // {operand(rw.emit(step))}"


def _distance(rw: "FunctionRewriter", loop: PipelinedLoop) -> str:
    """What the index of the tile ahead is greater by."""
    tiles = f"{loop.buffers} - 1" if loop.copies else loop.buffers
    if loop.plan.step is None:
        return tiles
    return f"{operand(tiles)} * {operand(rw.emit(loop.plan.step))}"


def _tiles(rw: "FunctionRewriter", loop: PipelinedLoop) -> str:
    """The number of iterations of a loop that is written out."""
    high, low = rw.emit(loop.plan.high), loop.plan.low
    span = high if low is None else f"{operand(high)} - {operand(rw.emit(low))}"
    return span if loop.plan.step is None else f"gl.cdiv({span}, {rw.emit(loop.plan.step)})"


def _fetched_before(rw: "FunctionRewriter", loop: PipelinedLoop) -> str:
    """How many tiles the prologue fetches."""
    tiles = f"{loop.buffers} - 1" if loop.copies else loop.buffers
    return f"min({tiles}, {_tiles(rw, loop)})" if loop.written_out else tiles


def _where_fetched(rw: "FunctionRewriter", loop: PipelinedLoop, lines: list[str]) -> list[str]:
    """`lines`, of a loop that is written out only for the tiles that are not fetched before it."""
    if not loop.written_out or not lines:
        return lines
    ahead = f"{loop.buffers} - 1" if loop.copies else loop.buffers
    return [f"if {loop.tile} + {ahead} < {_tiles(rw, loop)}:", *("    " + line for line in lines)]


def _fetch(rw: "FunctionRewriter", loop: PipelinedLoop, ring: Ring, slot: str, condition: str) -> str:
    """The statement that fetches one tile: to LDS slot `slot`, or to registers; `condition`: it is not past the end."""
    node, staged, fact = ring.fetch, ring.load.staged, rw.tensor(ring.load.call)
    if ring.load.tile is not None:
        return ring.load.tile.copy(rw, loop, ring, slot, "" if ring.load.covered else condition)
    given = calls.bind(rw, node, calls.callee_of(rw, node))
    rw.names.suggest(staged.source, f"{ring.load.name}_load", 1, ring.load.line)
    owner = calls.callee_of(rw, node).owner
    if owner is not None:  # a tensor descriptor
        if not loop.copies:
            return f"{ring.next} = {descriptors.tile_fetch(rw, owner, given['offsets'], staged.source)}"
        name = "global_to_shared" if rw.unit.target.family == "cdna5" else "buffer_load_to_shared"
        target = f"{ring.smem}.index({slot})"
        return descriptors.tile_fetch(rw, owner, given["offsets"], staged.source, target, f"{async_module(rw)}.{name}")
    pointer = given["pointer"]
    access = pointers.access_of(rw, pointer, staged.source) if calls._is_plain_access(rw, node, given) else None
    arguments: list[str] = []
    use_buffer = access is not None and staged.copy != "global"
    if use_buffer:
        rw.record.buffer_pointers.add(access.root)
        arguments += [access.base, access.offsets]
    elif access is not None:
        arguments.append(f"{access.base} + {operand(access.offsets)}")
    else:
        arguments.append(rw.emit(pointer, staged.source))
    mask, other = given.get("mask"), given.get("other")
    masked = mask is not None and not calls._is_none(rw, mask)
    mask_text = rw.operand_in(mask, fact, staged.source) if masked else ""
    if not ring.load.covered and condition:
        mask_text = f"{_grouped(mask_text)} & ({condition})" if masked else condition
    if mask_text:
        arguments.append(f"mask={mask_text}")
    if masked and other is not None and not calls._is_none(rw, other):
        # Lanes that a buffer access masks off read as zero; other accesses leave what was there.
        if not calls._is_zero(rw, other):
            arguments.append(f"other={rw.operand_in(other, fact, staged.source)}")
        elif not use_buffer:
            arguments.append(f"other={rw.emit(other)}")
    modifier = given.get("cache_modifier")
    if modifier is not None and not calls._is_empty(rw, modifier):
        arguments.append(f"{'cache' if use_buffer and not loop.copies else 'cache_modifier'}={rw.emit(modifier)}")
    if loop.copies:
        name = "buffer_load_to_shared" if use_buffer else "global_load_to_shared"
        if rw.unit.target.family == "cdna5":
            name = "global_to_shared"
        return f"{async_module(rw)}.{name}({ring.smem}.index({slot}), {', '.join(arguments)})"
    function = f"{rw.record.amd(rw.unit.buffer_module)}.buffer_load" if use_buffer else "gl.load"
    text = f"{function}({', '.join(arguments)})"
    return f"{ring.next} = {text}"


def _grouped(text: str) -> str:
    node = ast.parse(text, mode="eval").body
    bare = isinstance(node, (ast.Name, ast.Call, ast.Subscript, ast.Attribute)) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd)
    )
    return text if bare else operand(text)


def _store(rw: "FunctionRewriter", ring: Ring, slot: str) -> str:
    staged, value = ring.load.staged, ring.next
    if staged.stored != staged.source:
        rw.names.suggest(staged.stored, f"{ring.load.name}_transposed", 1, ring.load.line)
        value = rw.convert(value, staged.stored)
    return f"{ring.smem}.index({slot}).store({value})"


def _allocate(rw: "FunctionRewriter", loop: PipelinedLoop, ring: Ring) -> str:
    staged = ring.load.staged
    rw.names.suggest(staged.shared, f"{ring.load.name}_shared", 1, ring.load.line)
    shape = ", ".join([loop.buffers, *map(str, staged.shape)])
    dtype = f"gl.{dots.DTYPE.get(rw.tensor(ring.load.call).dtype, rw.tensor(ring.load.call).dtype)}"
    pointer = calls.bind(rw, ring.fetch, calls.callee_of(rw, ring.fetch)).get("pointer")
    if pointer is not None and not rw.path and (access := pointers.access_of(rw, pointer, staged.source)) is not None:
        # Element types that differ between launches then make no difference to the text.
        dtype = f"{access.root}.dtype.element_ty"
    return f"{ring.smem} = gl.allocate_shared_memory({dtype}, [{shape}], {rw.names.spell(staged.shared)})"


def _rename(loop: PipelinedLoop, index: str) -> None:
    loop.at = index
    for name in loop.index_names:
        name.id = index


@contextlib.contextmanager
def _names_of_prologue(rw: "FunctionRewriter", loop: PipelinedLoop) -> Iterator[None]:
    """Names of their own for what each tile computes anew: a name that the loop assigns too would be carried by it."""
    webs = {web.index: web for _, web in loop.own_names}
    names = {i: web.name for i, web in webs.items()}
    added = {}
    for i, web in webs.items():
        web.name = fresh(rw, f"{names[i]}_{loop.tile}")
    for name, web in loop.own_names:
        name.id = web.name
    for key, web in list(rw.webs.of_definition.items()):
        if web.index in webs and (key[0], web.name) not in rw.webs.of_definition:
            added[key[0], web.name] = web
    rw.webs.of_definition.update(added)
    yield
    for key in added:
        del rw.webs.of_definition[key]
    for i, web in webs.items():
        web.name = names[i]
    for name, web in loop.own_names:
        name.id = web.name


def _render(rw: "FunctionRewriter", s: ast.stmt) -> str:
    """The text of a statement of the producer."""
    saved, rw.edits = rw.edits, []
    rw.plain_statement(s)
    start, end = rw.source.span(s)
    target = s.targets[0] if isinstance(s, ast.Assign) else s.target
    if not any(a <= start for a, _, _ in rw.edits):
        rw.replace(target, target.id)
    text = replace_spans(rw.source.text, start, end, rw.edits)
    rw.edits = saved
    return text


def emit_statement(rw: "FunctionRewriter", s: ast.stmt) -> bool:
    """Emit a statement of a pipelined loop's body; False when it is an ordinary one."""
    loop = rw.pipelined_statements.get(s)
    if loop is None:
        return False
    _rename(loop, loop.ahead)
    indent = "\n" + rw.source.indent(s)
    if s in loop.ahead_of:
        made = loop.ahead_of[s]
        web = rw.webs.of_definition[(s, (s.targets[0] if isinstance(s, ast.Assign) else s.target).id)]
        if web in loop.plan.shared:
            rw.plain_statement(s)
            end = rw.source.span(s)[1]
            rw.edits.append((end, end, indent + _render(rw, made)))
        else:
            rw.replace(s, _render(rw, made))
        return True
    if loop.sliced is not None and s is loop.sliced.statement:
        rw.replace(s, indent.join(slices.accumulate(rw, loop, loop.sliced)))
        return True
    _consumer_statement(rw, s)
    fetched = _group(rw, loop, s)
    if fetched:
        condition = "" if loop.specialized else _condition(rw, loop, loop.ahead)
        lines = [_fetch(rw, loop, ring, loop.free, condition) for ring in fetched]
        if loop.specialized:
            ready, _ = loop.barriers[loop.group_of(fetched[0])]
            if any(ring.load.tile is None for ring in fetched):
                lines.append(f"{async_module(rw)}.mbarrier_arrive({ready}.index({loop.slot}))")
        elif _closes_group(loop, fetched):
            lines.append(f"{async_module(rw)}.commit_group()")
        lines = _where_fetched(rw, loop, lines)
        start, end = rw.source.span(s)
        if loop.copies:
            rw.edits.append((start, start, "".join(line + indent for line in lines)))
        else:
            rw.edits.append((end, end, "".join(indent + line for line in lines)))
    return True


def _closes_group(loop: PipelinedLoop, fetched: list[Ring]) -> bool:
    """Whether the last copy of a tile's commit group is the last of `fetched` that belongs to one."""
    grouped = [ring for ring in loop.rings if ring.load.tile is None]
    return loop.copies and bool(grouped) and grouped[-1] in fetched


def _consumer_statement(rw: "FunctionRewriter", s: ast.stmt) -> None:
    """A statement with staged loads; a tile that is only read permuted is named where it lies, in LDS."""
    if isinstance(s, ast.Assign) and s.value in rw.staged and isinstance(s.targets[0], ast.Name):
        web = rw.webs.of_definition[(s, s.targets[0].id)]
        if not rw.state(web).variants and web.uses:
            rw.replace(s.value, rw.staged[s.value].slot())
            return
    rw.plain_statement(s)


def _group(rw: "FunctionRewriter", loop: PipelinedLoop, s: ast.stmt) -> list[Ring]:
    """The rings to fetch at `s`, for the run of load statements that it belongs to.

    Copies go before the run: LDS is read while they are in flight. Loads to registers go after it: the tile that they
    replace is on its way to the matrix cores by then, which frees registers.
    """
    first, last = run_of_loads(loop.plan, s)
    atoms = loop.plan.atoms
    if _loads_meet(rw, loop):
        return loop.rings if s is loop.rings[-1].load.statement else []
    if s is not atoms[first if loop.copies else last]:
        return []
    run = atoms[first : last + 1]
    return [ring for ring in loop.rings if ring.load.statement in run]


def _loads_meet(rw: "FunctionRewriter", loop: PipelinedLoop) -> bool:
    """Whether all tiles ahead are loaded after the last read, so that fewer registers wait for the end of the body.

    On RDNA, where attention does not fit 256 registers: its loop has 1077 instructions instead of 1124 on gfx1100 and 653
    instead of 695 on gfx1201 (flash_attention fixture, not causal). Addresses must not change between the reads.
    """
    if loop.copies or not rw.unit.target.family.startswith("rdna"):
        return False
    atoms, statements = loop.plan.atoms, [load.statement for load in loop.plan.loads]
    places = [atoms.index(s) for s in statements]
    between = atoms[min(places) : max(places)]
    same_block = len({s.col_offset for s in statements}) == 1
    return same_block and statements[-1] is atoms[max(places)] and not any(s in loop.ahead_of for s in between)


def _condition(rw: "FunctionRewriter", loop: PipelinedLoop, index: str) -> str:
    return f"{index} < {operand(rw.emit(loop.plan.high))}"


def emit_loop(rw: "FunctionRewriter", s: ast.For) -> bool:
    """Emit a pipelined loop; False when the loop is an ordinary one."""
    loop = rw.pipelined_loops.get(s)
    if (reason := rw.whole.get(s)) is not None:
        rw.record.choose(f"`for {ast.unparse(s.target)}` is not warp-specialized: {reason}")
    if loop is None:
        for kept in rw.plans:
            if isinstance(kept, NotPipelined) and kept.wanted and kept.line == s.lineno:
                rw.record.choose(f"`for {ast.unparse(s.target)}` is not software-pipelined: {kept.reason}")
        return False
    plan = loop.plan
    rw.record.choose(_chosen(plan, loop))
    for line, reason in plan.not_tiles:
        rw.record.choose(f"the load in line {line} is not one for the tensor data mover: {reason}")
    rw.record.non_negative |= plan.assumed | loop.assumed
    rw.loops = (*rw.loops, s)
    inner, outer = rw.source.indent(s.body[0]), rw.source.indent(s)
    top = _line_start(rw, _first_line(rw, s))
    if loop.stages:
        rw.record.choose(
            f"warps of `for {plan.index}` alternate between memory and compute in {len(loop.stages)} stages"
        )
        _alternate(rw, loop, s, top, inner)
    elif loop.first:
        rw.record.choose(f"`for {plan.index}` is written once per buffer: slots are literals")
        _unrolled(rw, loop, s, top, inner)
    else:
        rw.block(s.body)
        rw.edits.append((top, top, _block(_top_lines(rw, loop), inner)))
    rw.loops = rw.loops[:-1]
    if loop.first:
        start, end = rw.source.span(s.target)[0], rw.source.span(s.iter)[1]
        rw.edits.append((start, end, unroll.header(rw, loop)))
    elif loop.written_out:
        rw.replace(s.target, loop.tile)
        rw.replace(s.iter, f"gl.static_range({_tiles(rw, loop)})")
    else:
        rw.replace(s.iter, calls.emit_iterator(rw, s.iter))
    first = _comment_start(rw, s)
    before = _line_start(rw, first)
    gap = [""] if first > 1 and rw.source.lines[first - 2].strip() else []
    first_lines = _shared_state(rw, loop) if loop.specialized else _prologue(rw, loop)
    rw.edits.append((before, before, _block([*gap, *first_lines, ""], outer)))
    after = _tail_lines(rw, loop, inner) + [outer + line for line in _after_lines(rw, loop)]
    if after:
        end = rw.source.line_end(s)
        rw.edits.append((end, end, "".join("\n" + line for line in after)))
    return True


def _alternate(rw: "FunctionRewriter", loop: PipelinedLoop, s: ast.For, top: int, indent: str) -> None:
    """The body in stages that two groups of warps alternate in (`translator.pipeline.body`)."""
    texts = statement_texts(rw, s, top)
    loop.late_read = late_read(texts, loop.stages)
    waits = _wait_lines(rw, loop)
    if not loop.copies:
        texts.append("\n".join(indent + _store(rw, ring, loop.slot) for ring in loop.rings))
    texts[-1] += f"\n{indent}{loop.counter} += 1" if loop.counter else ""
    lines = [indent + line if line else "" for line in _top_lines(rw, loop) if line not in waits]
    if waits:
        waits = ["# The tile of the next iteration has landed: the other warps read it a stage earlier.", *waits[1:]]
    lines += alternating(texts, loop.stages, indent, waits)
    rw.edits.append((top, rw.source.line_end(s), "\n".join(lines)))


def _unrolled(rw: "FunctionRewriter", loop: PipelinedLoop, s: ast.For, top: int, indent: str) -> None:
    """The body once per buffer (`translator.pipeline.unroll`)."""
    texts = statement_texts(rw, s, top)
    lines = [f"for {loop.slot} in gl.static_range({loop.buffers}):"]
    lines += ["    " + line if line else "" for line in _top_lines(rw, loop)]
    text = _block(lines, indent) + textwrap.indent("\n".join(text for text in texts if text), "    ")
    rw.edits.append((top, rw.source.line_end(s), text))


def check_stages(rw: "FunctionRewriter") -> None:
    """Raises: TranslationError for a loop whose compute stages read LDS; asked when the text is final."""
    for loop in rw.pipelined_loops.values():
        if loop.late_read:
            what = "this loop cannot alternate warps between memory and compute"
            why = f"`{loop.late_read}` is read from LDS where it is used, not where it is loaded"
            raise refuse(rw.frame, loop.plan.loop, "ping-pong", what, why, "leave --strategy out")


def _wait_lines(rw: "FunctionRewriter", loop: PipelinedLoop) -> list[str]:
    """A comment and the waits for one tile; nothing where the compiler waits."""
    if not loop.copies:
        return []
    lines = ["# This tile has landed, and every warp is done with the slot that the next copy fills."]
    schedule, tiles = loop.plan.schedule, f"{loop.buffers} - 2"
    if loop.written_out:
        tiles = f"min({tiles}, {_tiles(rw, loop)} - 1 - {loop.tile})"
    if schedule.grouped:
        lines.append(f"{async_module(rw)}.wait_group({tiles})")
    if schedule.tensor_loads:
        count = tiles if schedule.tensor_loads == 1 else f"({tiles}) * {schedule.tensor_loads}"
        lines.append(f"{tdm.module(rw)}.async_wait({count})")
    return lines


def _chosen(plan: PipelinePlan, loop: PipelinedLoop) -> str:
    """One line on how a loop is written, as `translate` prints it."""
    tiles = ", ".join(f"`{load.name}`" for load in plan.loads)
    schedule = plan.schedule
    slots = f"{schedule.buffers} LDS buffer{'s' if schedule.buffers > 1 else ''}"
    if loop.specialized:
        copying = (
            "one more warp copies" if schedule.producer_warps == 1 else f"{schedule.producer_warps} more warps copy"
        )
        warps = f"{copying} {tiles} into {slots} each"
        return f"`for {plan.index}` is warp-specialized: {warps}, the kernel's {schedule.consumer_warps} warps compute"
    how = "direct copies" if loop.copies else "loads to registers"
    if loop.copies and schedule.tensor_loads:
        how = "the tensor data mover" + (" and direct copies" if schedule.grouped else "")
    ahead = f"{schedule.ahead} tile{'s' if schedule.ahead > 1 else ''} ahead"
    return f"`for {plan.index}` is software-pipelined: {tiles} by {how} {ahead}, {slots} each"


def _shared_state(rw: "FunctionRewriter", loop: PipelinedLoop) -> list[str]:
    """What the partitions of a loop share: rings, and two barriers for each slot."""
    schedule, module = loop.plan.schedule, barrier_module(rw)
    lines: list[str] = []
    for ring in loop.rings:
        lines += [_allocate(rw, loop, ring)] if ring.load.tile is None else ring.load.tile.before(rw, loop, ring)
    lines += ["", "# A slot is ready when all copies into it have landed, and empty when every lane has read it."]
    for pair in loop.barriers:
        lines += [
            f"{name} = gl.allocate_shared_memory(gl.int64, [{loop.buffers}, 1], {module}.MBarrierLayout())"
            for name in pair
        ]
    lines.append(f"for {loop.tile} in gl.static_range({loop.buffers}):")
    for group, (ready, empty) in enumerate(loop.barriers):
        lines.append(f"    {module}.init({ready}.index({loop.tile}), {schedule.spelled_ready_count(group)})")
        lines.append(f"    {module}.init({empty}.index({loop.tile}), {schedule.consumer_warps} * {schedule.lanes})")
    return [*lines, "gl.barrier()"]


def _top_written_out(rw: "FunctionRewriter", loop: PipelinedLoop, index_used: bool) -> list[str]:
    """The loop index as a value, where it is used, and the slots of a loop that is written out."""
    lines = []
    if index_used:
        typed = f"gl.to_tensor({_prologue_index(rw, loop)})"
        typed = typed if loop.plan.index_dtype == "int32" else f"{typed}.to(gl.{loop.plan.index_dtype})"
        lines.append(f"{loop.plan.index} = {typed}")
    lines.append(f"{loop.slot} = {loop.tile} % {loop.buffers}")
    if loop.copies:
        lines.append(f"{loop.free} = ({loop.tile} + {loop.buffers} - 1) % {loop.buffers}")
    return lines


def _top_lines(rw: "FunctionRewriter", loop: PipelinedLoop) -> list[str]:
    plan = loop.plan
    lines = []
    counts = any(load.tile is not None and load.tile.counts_tiles for load in plan.loads)
    uses_ahead = bool(loop.index_names or counts or not all(load.covered for load in plan.loads))
    if loop.first:
        lines += unroll.top_lines(rw, loop)
    elif loop.written_out:
        lines += _top_written_out(rw, loop, uses_ahead or _index_used(rw, loop))
    else:
        number = _tile_number(rw, loop)
        if loop.counter or plan.step is not None:
            lines.append(f"gl.assume({loop.counter or plan.index} >= 0)")
        lines.append(f"{loop.slot} = {number} % {loop.buffers}")
        if loop.specialized:
            return [*lines, f"{loop.phase} = ({number} // {loop.buffers}) & 1"]
        if loop.copies:
            lines.append(f"{loop.free} = gl.where({loop.slot} == 0, {loop.buffers} - 1, {loop.slot} - 1)")
    lines += _wait_lines(rw, loop)
    if uses_ahead:
        lines.append(f"{loop.ahead} = {plan.index} + {_distance(rw, loop)}")
    return lines


def _tail_lines(rw: "FunctionRewriter", loop: PipelinedLoop, indent: str) -> list[str]:
    if loop.stages:
        return []
    counting = [f"{indent}{loop.counter} += 1"] if loop.counter else []
    if loop.copies:
        return counting
    stores = _where_fetched(rw, loop, [_store(rw, ring, loop.slot) for ring in loop.rings])
    return [indent + line for line in stores] + counting


def _index_used(rw: "FunctionRewriter", loop: PipelinedLoop) -> bool:
    """Whether a statement that stays reads the loop index."""
    moved = {n for s in loop.ahead_of if not _computed_here(rw, loop, s) for n in ast.walk(s)}
    moved |= {n for load in loop.plan.loads for n in ast.walk(load.call)}
    return any(
        isinstance(n, ast.Name) and n not in moved and is_index(rw, loop.plan.loop, n)
        for s in loop.plan.loop.body
        for n in ast.walk(s)
    )


def _computed_here(rw: "FunctionRewriter", loop: PipelinedLoop, s: ast.stmt) -> bool:
    """Whether the consumer has a statement of the producer too."""
    target = s.targets[0] if isinstance(s, ast.Assign) else s.target
    return rw.webs.of_definition[(s, target.id)] in loop.plan.shared


def _after_lines(rw: "FunctionRewriter", loop: PipelinedLoop) -> list[str]:
    lines = []
    if loop.copies and not loop.specialized and not loop.written_out:
        lines += [
            "# Copies past the last tile must not land in LDS that is used for something else.",
            *([f"{async_module(rw)}.wait_group(0)"] if loop.plan.schedule.grouped else []),
            *([f"{tdm.module(rw)}.async_wait(0)"] if loop.plan.schedule.tensor_loads else []),
        ]
    if loop.sliced is not None:
        lines += slices.join(rw, loop.sliced)
    tiles = operand(_fetched_before(rw, loop))
    if loop.specialized and loop.plan.rolled_back:
        # The moves happen in the producer.
        tiles = fresh(rw, "tiles")
        lines.append(f"{tiles} = {_trips(rw, loop)}")
    for s in loop.plan.rolled_back:
        web = rw.webs.of_definition[(s, s.target.id)]
        forward, back = ("+", "-") if isinstance(s.op, ast.Add) else ("-", "+")
        for line in _moves(rw, s, web):
            target, value = line.split(f" {forward}= ", 1)
            lines.append(f"{target} {forward if loop.specialized else back}= {tiles} * {operand(value)}")
    return lines


def _trips(rw: "FunctionRewriter", loop: PipelinedLoop) -> str:
    """How often a loop runs."""
    plan = loop.plan
    distance = operand(rw.emit(plan.high))
    if plan.low is not None:
        distance = f"{distance} - {operand(rw.emit(plan.low))}"
    count = distance if plan.step is None else f"gl.cdiv({distance}, {rw.emit(plan.step)})"
    return f"gl.maximum({count}, 0)"


def _moves(rw: "FunctionRewriter", s: ast.AugAssign, web: Web) -> list[str]:
    return [line.strip() for line in _render(rw, s).splitlines()]


def _prologue(rw: "FunctionRewriter", loop: PipelinedLoop) -> list[str]:
    plan = loop.plan
    lines = []
    for ring in loop.rings:
        tile = ring.load.tile
        lines += tile.before(rw, loop, ring) if tile is not None else [_allocate(rw, loop, ring)]
    tiles = _fetched_before(rw, loop)
    what = "copied" if loop.copies else "loaded"
    tail = " Tiles past the end are masked out and still counted." if loop.copies and not loop.written_out else ""
    lines.append("")
    lines.append(f"# Prologue: the first tiles are {what} before the loop.{tail}")
    lines.append(f"for {loop.tile} in gl.static_range({tiles}):")
    index = _prologue_index(rw, loop)
    _rename(loop, index)
    body: list[str] = []
    if loop.index_names and not _plain_index(rw, loop):
        typed = f"gl.to_tensor({index})"
        text = typed if plan.index_dtype == "int32" else f"{typed}.to(gl.{plan.index_dtype})"
        index = fresh(rw, f"{plan.index}_{loop.tile}")
        body.append(f"{index} = {text}")
        _rename(loop, index)
    condition = _condition(rw, loop, index)
    fetched: list[Ring] = []
    with _names_of_prologue(rw, loop):
        for atom in plan.atoms:
            if atom in loop.ahead_of:
                body.append(_render(rw, loop.ahead_of[atom]).replace("\n" + rw.source.indent(atom), "\n"))
            for ring in loop.rings:
                if ring.load.statement is atom:
                    body.append(_fetch(rw, loop, ring, loop.tile, condition))
                    fetched.append(ring)
                    if _closes_group(loop, [ring]):
                        body.append(f"{async_module(rw)}.commit_group()")
    if not loop.copies:
        body += [_store(rw, ring, loop.tile) for ring in fetched]
    lines += ["    " + line.replace("\n", "\n    ") for line in body]
    if loop.stages:
        lines += _wait_lines(rw, loop)[1:]
    if loop.sliced is not None:
        m, n = loop.sliced.parts
        rw.record.choose(f"`{loop.sliced.web.name}` is kept in {m} x {n} slices")
        lines += slices.take_apart(rw, loop.sliced)
    return [*lines, f"{loop.counter} = 0"] if loop.counter else lines


def _prologue_index(rw: "FunctionRewriter", loop: PipelinedLoop) -> str:
    plan = loop.plan
    text = loop.tile if plan.step is None else f"{loop.tile} * {operand(rw.emit(plan.step))}"
    return text if plan.low is None else f"{operand(rw.emit(plan.low))} + {text}"


def _plain_index(rw: "FunctionRewriter", loop: PipelinedLoop) -> bool:
    """Whether the producer's copies take a compile-time number for the loop index."""
    if loop.plan.index_dtype != "int32":
        return False
    names = set(loop.index_names)

    def plain(node: ast.AST, meets: bool) -> bool:
        """`meets`: the value of `node` is combined with a run-time value."""
        if node in names:
            return meets
        if isinstance(node, (ast.BinOp, ast.Compare)):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
            run_time = [_has_run_time(rw, side, names) for side in sides]
            return all(plain(x, meets or any(run_time[:i] + run_time[i + 1 :])) for i, x in enumerate(sides))
        return all(plain(child, False) for child in ast.iter_child_nodes(node))

    # The data mover takes numbers as they are; what is called may not.
    tiles = [ring.fetch for ring in loop.rings if ring.load.tile is not None]
    if any(n is not tile and isinstance(n, ast.Call) for tile in tiles for n in ast.walk(tile)):
        return False
    made = [*loop.ahead_of.values(), *(ring.fetch for ring in loop.rings if ring.load.tile is None)]
    return all(plain(s.value if isinstance(s, ast.stmt) else s, False) for s in made)


def _has_run_time(rw: "FunctionRewriter", node: ast.AST, index_names: set[ast.Name]) -> bool:
    """Whether part of `node` is a run-time value whatever the loop index is."""
    if isinstance(node, (ast.Name, ast.Call)) and isinstance(rw.fact(node), TensorFact):
        return node not in index_names and not any(n in index_names for n in ast.walk(node))
    return any(_has_run_time(rw, child, index_names) for child in ast.iter_child_nodes(node))


def _block(lines: list[str], indent: str) -> str:
    return "".join((indent + line.replace("\n", "\n" + indent) if line else "") + "\n" for line in lines)


def _line_start(rw: "FunctionRewriter", line: int) -> int:
    return rw.source.offset(line, 0)


def _first_line(rw: "FunctionRewriter", s: ast.For) -> int:
    """The line of the first statement of the body, or of the comments above it."""
    return _comment_start(rw, s.body[0], s.iter.end_lineno)


def _comment_start(rw: "FunctionRewriter", s: ast.stmt, above: int = 0) -> int:
    line = s.lineno
    while line - 1 > above and rw.source.lines[line - 2].lstrip().startswith("#"):
        line -= 1
    return line


__all__ = ["emit_loop", "emit_statement", "permuted_read", "prepare"]
