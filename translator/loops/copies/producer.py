"""The producer's side of a pipelined loop: LDS rings, what fills their slots, and the statements that addresses need."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gluonize.facts import callees
from gluonize.facts.products import products
from gluonize.gluon.code import code_of, replaced
from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.names import spelled_apart
from gluonize.gluon.nodes import Code, Commit, Fill, Load, Node, Slot, Store
from gluonize.gluon.written import Does, Written, binary, call, keyword, listed, name, operand, tuple_of
from gluonize.loops.copies import aligned, mover
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import PipelinedLoop, Ring
from gluonize.loops.loop.reads import tile_copies
from gluonize.loops.plan.tiles import copy_width
from gluonize.rules.gluon import copies_to_lds
from gluonize.write.accesses import pointers
from gluonize.write.accesses.accesses import both_masks, cache_argument, other_argument, streams_load
from gluonize.write.accesses.addresses import Addressing
from gluonize.write.descriptors import descriptors
from gluonize.write.state import shapes
from gluonize.write.state.gluon_modules import async_module
from gluonize.write.state.relations import Wants, operands_in
from gluonize.write.state.unit import Record
from gluonize.write.state.writing import Convert, Writing


@dataclass(frozen=True)
class Producer:
    """What writes the producer's side of a loop in one round."""

    writing: Writing
    addressing: Addressing
    loop: PipelinedLoop

    def allocate(self, ring: Ring) -> Code:
        """The ring, in LDS."""
        writing, facts = self.writing, self.writing.facts
        staged = ring.load.staged
        writing.names.suggest(staged.shared, f"{ring.load.name}_shared", 1, ring.load.line)
        tile = shapes.texts(facts, writing.emit, writing.rebound, ring.load.call, staged.shape)
        element = facts.tensor(ring.load.call).dtype
        own_type = dtype = f"gl.{products.DTYPE.get(element, element)}"
        pointer = callees.bound(facts, ring.fetch).get("pointer")
        if (
            pointer is not None
            and not facts.path
            and (access := pointers.access_of(writing, self.addressing, pointer, staged.source)) is not None
        ):
            # Element types that differ between launches then make no difference to the text.
            dtype = f"{spelled_apart(access.root)}.dtype.element_ty"
        shapes.tell(writing.names, staged.shared, staged.shape, tile, (own_type, dtype))
        if staged.source is not None:
            shapes.tell(writing.names, staged.source, staged.shape, tile)
        shape = listed(self.loop.buffers, *tile)
        made = call("gl.allocate_shared_memory", dtype, shape, writing.names.spell(staged.shared))
        return code_of(f"{ring.smem} = ", made)

    def fetch(self, ring: Ring, slot: str, tile: Node, condition: Written | None, indent: str = "") -> Node:
        """The statement that fetches one tile: to LDS slot `slot`, or to registers; `condition`: it is not past the end.

        indent: what is off the lines of its parts, which are the author's, but for the first.
        """
        target = Written((Slot(ring.smem, slot, tile),), ast.Call)
        code = replaced(self._code(ring, slot, target, condition), f"\n{indent}", "\n")
        if ring.load.tile is not None or ring.load.copied:
            return Fill(code, ring.load.tile is None)
        return Load(code, ring.next, tile)

    def _code(self, ring: Ring, slot: str, target: Written, condition: Written | None) -> Code:
        writing, facts, loop = self.writing, self.writing.facts, self.loop
        node, staged = ring.fetch, ring.load.staged
        if ring.load.tile is not None:
            other = callees.bound(facts, node).get("other")
            if callees.is_given(facts, other):
                writing.record.explain("the data mover needs no other=0: past the bounds of a tensor it reads zero")
            return mover.copy(writing, loop, ring, slot, target, None if ring.load.covered else condition).code
        given = callees.bound(facts, node)
        writing.names.suggest(staged.source, f"{ring.load.name}_load", 1, ring.load.line)
        owner = callees.callee_of(facts, node).owner
        if owner is not None:  # a tensor descriptor
            exists = None if ring.load.covered else condition
            if ring.load.stored:
                tile = descriptors.tile_fetch(writing, owner, given["offsets"], staged.source, exists)
                return code_of(ring.next, " = ", tile)
            copy_width.rest_on_multiples(facts, writing.record, ring.load.call)
            copies = tile_copies(facts, writing.record)
            return descriptors.tile_fetch(writing, owner, given["offsets"], staged.source, exists, target, copies).code
        pointer = given["pointer"]
        access = (
            pointers.access_of(writing, self.addressing, pointer, staged.source)
            if callees.is_plain_access(facts, given)
            else None
        )
        use_buffer = access is not None and staged.copy != "global"
        if use_buffer:
            access.rest_on_storage(writing.record)
            arguments = [access.base, access.offsets]
        elif access is not None:
            arguments = [binary(access.base, "+", operand(access.offsets))]
        else:
            arguments = [writing.emit(pointer, staged.source)]
        arguments += self._masks(ring, given, condition, use_buffer)
        word = "cache" if use_buffer and not ring.is_copied else "cache_modifier"
        arguments += cache_argument(writing, given, streams_load(writing, ring.load.call), word)
        if ring.load.copied:
            aligned.rest_on_alignment(facts, writing.record, ring.load.call, staged.source)
            by_pointers, by_offsets = copies_to_lds(facts.kernel.target)
            name = by_offsets if use_buffer and by_offsets else by_pointers
            return call(f"{async_module(writing.record)}.{name}", target, *arguments).code
        function = f"{writing.record.amd(facts.kernel.buffer_module)}.buffer_load" if use_buffer else "gl.load"
        loaded = call(function, *arguments, does=Does.NOTHING if use_buffer else Does.READS)
        if ring.held and not loop.only_holds:
            return code_of(ring.next, " = ", ring.next, "[1:] + " if slot == loop.free else " + ", tuple_of(loaded))
        return code_of(ring.next, " = ", loaded)

    def wants(self, ring: Ring) -> Wants:
        """In which layouts the fetch of a tile wants the parts of its address and its masks; offsets of descriptors are scalars."""
        facts, source = self.writing.facts, ring.load.staged.source
        callee = callees.callee_of(facts, ring.fetch)
        given = callees.bind(ring.fetch, callee)
        if ring.load.tile is not None or callee.owner is not None:
            return {}
        as_buffer, masks = callees.is_plain_access(facts, given), ("mask", "other")
        record = self.writing.record
        wants = pointers.pointer_wants(self.addressing, record, given["pointer"], source, as_buffer)
        fact = facts.tensor(ring.load.call)
        return wants | operands_in(facts, [a for k, a in given.items() if k in masks], fact, source)

    def _masks(
        self, ring: Ring, given: dict[str, ast.expr], condition: Written | None, use_buffer: bool
    ) -> list[Written]:
        """The arguments of a fetch that say which elements it leaves out, and what these are."""
        writing, facts, loop = self.writing, self.writing.facts, self.loop
        fact, layout = facts.tensor(ring.load.call), ring.load.staged.source
        arguments: list[Written] = []
        mask, other = given.get("mask"), given.get("other")
        masked = callees.is_given(facts, mask)
        mask_text = None
        ends = condition if not ring.load.covered and not ring.clipped else None
        if masked:
            mask_text = both_masks(writing.operand_in(mask, fact, layout), ends)
            if facts.tensor(mask) is None:
                mask_text = counts.as_value(facts, loop, mask_text, mask, ends is not None)
        elif ends is not None:
            mask_text = counts.as_value(facts, loop, ends)
        if mask_text is not None:
            arguments.append(keyword("mask", mask_text))
        return arguments + (other_argument(writing, other, fact, layout, use_buffer) if masked else [])


def commit(record: Record, loop: PipelinedLoop, fetched: list[Ring]) -> tuple[Node, ...]:
    """What closes a tile's commit group, where the last of its copies is among `fetched`; operands that are a tile apart have groups
    of their own."""
    grouped = [ring for ring in loop.rings if ring.load.copied]
    again = loop.copied_again
    sides = [[ring for ring in grouped if (ring in again) == early] for early in (False, True)]
    closes = loop.copies and any(side[-1] in fetched for side in sides if side)
    return (Commit(f"{async_module(record)}.commit_group()"),) if closes else ()


def stores(convert: Convert, names: LayoutNames, rings: list[Ring], slot: str, tile: Node) -> list[Node]:
    """Tiles in registers go to their slots."""
    return [_store(convert, names, ring, slot, tile) for ring in rings if ring.load.stored]


def _store(convert: Convert, names: LayoutNames, ring: Ring, slot: str, tile: Node) -> Node:
    staged, value = ring.load.staged, name(ring.next)
    if staged.stored != staged.source:
        names.suggest(staged.stored, f"{ring.load.name}_transposed", 1, ring.load.line)
        value = convert(value, staged.stored)
    return Store(code_of(Slot(ring.smem, slot, tile), ".store(", value, ")"), ring.next)
