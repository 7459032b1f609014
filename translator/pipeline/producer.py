"""The producer's side of a pipelined loop: LDS rings, what fills their slots, and the statements that addresses need."""

from __future__ import annotations

import ast

from translator.facts import callees, products
from translator.facts.source_text import replace_spans
from translator.gluon.tree import Commit, Fill, Load, Node, Slot, Store
from translator.layout.names import LayoutNames
from translator.pipeline import aligned_copies, copy_width, counts, mover_copies
from translator.pipeline.loop import PipelinedLoop, Ring, tile_copies
from translator.rewrite import descriptors, pointers, shapes
from translator.rewrite.accesses import both_masks
from translator.rewrite.emission import Convert, Emission
from translator.rewrite.gluon_modules import async_module
from translator.rewrite.splice import operand
from translator.rewrite.unit import Record


def allocate(rw: Emission, loop: PipelinedLoop, ring: Ring) -> str:
    staged = ring.load.staged
    rw.names.suggest(staged.shared, f"{ring.load.name}_shared", 1, ring.load.line)
    shape = ", ".join([loop.buffers, *shapes.texts(rw.facts, rw.emit, rw.rebound, ring.load.call, staged.shape)])
    dtype = f"gl.{products.DTYPE.get(rw.facts.tensor(ring.load.call).dtype, rw.facts.tensor(ring.load.call).dtype)}"
    pointer = callees.bind(rw.facts, ring.fetch, callees.callee_of(rw.facts, ring.fetch)).get("pointer")
    if (
        pointer is not None
        and not rw.facts.path
        and (access := pointers.access_of(rw, pointer, staged.source)) is not None
    ):
        # Element types that differ between launches then make no difference to the text.
        dtype = f"{access.root}.dtype.element_ty"
    return f"{ring.smem} = gl.allocate_shared_memory({dtype}, [{shape}], {rw.names.spell(staged.shared)})"


def fetch(
    rw: Emission, loop: PipelinedLoop, ring: Ring, slot: str, tile: Node, condition: str, indent: str = ""
) -> Node:
    """The statement that fetches one tile: to LDS slot `slot`, or to registers; `condition`: it is not past the end.

    indent: what is off the lines of its parts, which are the author's, but for the first.
    """
    target = rw.holes.put(Slot(ring.smem, slot, tile))
    text = _fetch_text(rw, loop, ring, slot, target, condition)
    code = rw.holes.code(text.replace(f"\n{indent}", "\n"))
    if ring.load.tile is not None or ring.load.copied:
        return Fill(code, ring.load.tile is None)
    return Load(code, ring.next, tile)


def _fetch_text(rw: Emission, loop: PipelinedLoop, ring: Ring, slot: str, target: str, condition: str) -> str:
    node, staged = ring.fetch, ring.load.staged
    if ring.load.tile is not None:
        other = callees.bind(rw.facts, node, callees.callee_of(rw.facts, node)).get("other")
        if other is not None and not callees.is_none(rw.facts, other):
            rw.record.explain("the data mover needs no other=0: past the bounds of a tensor it reads zero")
        return mover_copies.copy(rw, loop, ring, slot, target, "" if ring.load.covered else condition)
    given = callees.bind(rw.facts, node, callees.callee_of(rw.facts, node))
    rw.names.suggest(staged.source, f"{ring.load.name}_load", 1, ring.load.line)
    owner = callees.callee_of(rw.facts, node).owner
    if owner is not None:  # a tensor descriptor
        exists = "" if ring.load.covered else condition
        if ring.load.stored:
            return f"{ring.next} = {descriptors.tile_fetch(rw, owner, given['offsets'], staged.source, exists)}"
        copy_width.rest_on_multiples(rw.facts, rw.record, ring.load.call)
        return descriptors.tile_fetch(
            rw, owner, given["offsets"], staged.source, exists, target, tile_copies(rw.facts, rw.record)
        )
    pointer = given["pointer"]
    access = pointers.access_of(rw, pointer, staged.source) if callees.is_plain_access(rw.facts, node, given) else None
    use_buffer = access is not None and staged.copy != "global"
    if use_buffer:
        rw.record.reaches(access.root)
        arguments = [access.base, access.offsets]
    elif access is not None:
        arguments = [f"{access.base} + {operand(access.offsets)}"]
    else:
        arguments = [rw.emit(pointer, staged.source)]
    arguments += _masks(rw, loop, ring, given, condition, use_buffer)
    modifier = given.get("cache_modifier")
    if modifier is not None and not callees.is_empty(rw.facts, modifier):
        arguments.append(
            f"{'cache' if use_buffer and (ring.held or ring.load.stored) else 'cache_modifier'}={rw.emit(modifier)}"
        )
    if ring.load.copied:
        aligned_copies.rest_on_alignment(rw.facts, rw.record, ring.load.call, staged.source)
        name = "global_to_shared"
        if rw.facts.kernel.target.copies_take_buffers:
            name = "buffer_load_to_shared" if use_buffer else "global_load_to_shared"
        return f"{async_module(rw.record)}.{name}({target}, {', '.join(arguments)})"
    function = f"{rw.record.amd(rw.facts.kernel.buffer_module)}.buffer_load" if use_buffer else "gl.load"
    text = f"{function}({', '.join(arguments)})"
    if ring.held and not loop.only_holds:
        waiting = f"{ring.next}[1:]" if slot == loop.free else ring.next
        return f"{ring.next} = {waiting} + ({text},)"
    return f"{ring.next} = {text}"


def _masks(
    rw: Emission, loop: PipelinedLoop, ring: Ring, given: dict[str, ast.expr], condition: str, use_buffer: bool
) -> list[str]:
    """The arguments of a fetch that say which elements it leaves out, and what these are."""
    fact, layout, arguments = rw.facts.tensor(ring.load.call), ring.load.staged.source, []
    mask, other = given.get("mask"), given.get("other")
    masked = mask is not None and not callees.is_none(rw.facts, mask)
    mask_text = rw.operand_in(mask, fact, layout) if masked else ""
    ends = not ring.load.covered and not ring.clipped and condition
    if masked:
        mask_text = both_masks(mask_text, condition if ends else "")
        if rw.facts.tensor(mask) is None:
            mask_text = counts.as_value(rw.facts, loop, mask_text, mask, bool(ends))
    elif ends:
        mask_text = counts.as_value(rw.facts, loop, condition)
    if mask_text:
        arguments.append(f"mask={mask_text}")
    if masked and other is not None and not callees.is_none(rw.facts, other):
        # Lanes that a buffer access masks off read as zero; other accesses leave what was there.
        if not callees.is_zero(rw.facts, other):
            arguments.append(f"other={rw.operand_in(other, fact, layout)}")
        elif not use_buffer:
            arguments.append(f"other={rw.emit(other)}")
        else:
            rw.record.explain("buffer loads need no other=0: what their mask excludes reads as zero")
    return arguments


def commit(record: Record, loop: PipelinedLoop, fetched: list[Ring]) -> tuple[Node, ...]:
    """What closes a tile's commit group, where the last of its copies is the last of `fetched` that belongs to one."""
    grouped = [ring for ring in loop.rings if ring.load.copied]
    closes = loop.copies and bool(grouped) and grouped[-1] in fetched
    return (Commit(f"{async_module(record)}.commit_group()"),) if closes else ()


def stores(convert: Convert, names: LayoutNames, rings: list[Ring], slot: str, tile: Node) -> list[Node]:
    """Tiles in registers go to their slots."""
    return [_store(convert, names, ring, slot, tile) for ring in rings if ring.load.stored]


def _store(convert: Convert, names: LayoutNames, ring: Ring, slot: str, tile: Node) -> Node:
    staged, value = ring.load.staged, ring.next
    if staged.stored != staged.source:
        names.suggest(staged.stored, f"{ring.load.name}_transposed", 1, ring.load.line)
        value = convert(value, staged.stored)
    return Store((Slot(ring.smem, slot, tile), f".store({value})"), ring.next)


def render(rw: Emission, s: ast.stmt) -> str:
    """The text of a statement of the producer."""
    saved, rw.edits = rw.edits, []
    rw.plain_statement(s)
    start, end = rw.facts.source.span(s)
    target = s.targets[0] if isinstance(s, ast.Assign) else s.target
    if not any(a <= start for a, _, _ in rw.edits):
        rw.replace(target, target.id)
    text = replace_spans(rw.facts.source.text, start, end, rw.edits)
    rw.edits = saved
    return text
