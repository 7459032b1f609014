"""How workgroups of a cluster share what they load and store: as the values are used, for no value moves between workgroups.

Triton's passes share the tiles of tensor descriptors and of atomic operations by their first dimension, whatever they are used for:

    %b = tt.descriptor_load ... -> tensor<128x128xf16, #blocked>    CTAs have rows
    ttg.convert_layout %b : #blocked -> #mma                        and of the product columns

Here the tile is loaded by columns. So it is for what is loaded through pointers, and for what is stored, where nothing but such a
conversion stands between; pointers and masks are converted, for which Triton's passes make them anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gluonize.trace.model.cta_parts import moved, stays
from gluonize.trace.model.layouts import Bases, Blocked
from gluonize.trace.model.module import Module
from gluonize.trace.model.module_text import definitions, of_layout, with_ctas, with_lines, with_operand
from gluonize.trace.model.op import Op
from gluonize.trace.model.parse import parse_module
from gluonize.trace.model.types import Type
from gluonize.trace.passes.cluster_rows import module_of

_ACCESSES = ("tt.store", "tt.atomic_rmw")
_LOADS = ("tt.load", "tt.descriptor_load")


def with_tiles_as_used(module: Any) -> Any:
    """A module of TTGIR with layouts of workgroups, in which they share each tile of a descriptor as its values are used."""
    text = module.str()
    parsed = parse_module(text)
    changes = [*_loads(parsed), *_stores(parsed)]
    if not changes:
        return module
    named, lines = definitions(text), dict(enumerate(text.splitlines(), 1))
    made: list[str] = []
    for number, (kind, ctas, ops) in enumerate(changes):
        alias, new = kind.layout, f"{kind.layout}_tile{number}"
        made.append(with_ctas(f"{new} = {named[alias]}", lambda _, ctas=ctas: ctas))
        for op in ops:
            line = lines[op.line]
            through_pointers = op.name in (*_ACCESSES, "tt.load")
            lines[op.line] = _accessed(op, line, alias, new) if through_pointers else of_layout(line, kind, new)
    return module_of(with_lines(lines.values(), made), module.context)


def _accessed(op: Op, line: str, alias: str, new: str) -> str:
    """The line of an access through pointers with all of its tensors in the layout `new`: pointers and mask are converted before it, and
    what a load takes where the mask is off."""
    pointer = op.operand_types[0]
    if op.name == "tt.load":
        given = list(zip(op.operands, (pointer, pointer.of("i1"), op.type)))
    else:
        pointers, _, *masks = op.operands
        given = [(pointers, pointer), *((mask, pointer.of("i1")) for mask in masks)]
    before = ""
    for place, (name, kind) in enumerate(given):
        own = f"%{new[1:]}_{op.line}_{place}"
        before += f"{own} = ttg.convert_layout {name} : {kind.printed} -> {replace(kind, layout=new).printed}\n"
        line = with_operand(line, name, own)
    return before + line.replace(f", {alias}>", f", {new}>")


def _loads(module: Module) -> Iterator[tuple[Type, Bases, list[Op]]]:
    """Tiles that are loaded in one way and converted to another: their type, how they are needed, and what names them."""
    for op in module.walk():
        if op.name in _LOADS and op.type.is_tensor and isinstance(module.layout(op.type), Blocked):
            users = [other for other in module.walk() if op.results[0] in other.operands]
            needed = {moved(module, user)[1] for user in users if user.name == "ttg.convert_layout"}
            if all(user.name == "ttg.convert_layout" for user in users) and _crosses(module, users):
                whole = tuple((0,) * len(basis) for basis in module.layout(op.type).ctas)
                yield op.type, needed.pop() if len(needed) == 1 else whole, [op, *users]


def _stores(module: Module) -> Iterator[tuple[Type, Bases, list[Op]]]:
    """Tiles that are converted from one way to another and stored in that."""
    for op in module.walk():
        if op.name == "ttg.convert_layout" and isinstance(module.layout(op.type), Blocked):
            users = [other for other in module.walk() if op.results[0] in other.operands]
            written = users and all(_writes(module, user, op.results[0]) for user in users)
            if written and _crosses(module, [op]):
                yield op.type, moved(module, op)[0], [op, *users]


def _writes(module: Module, op: Op, value: str) -> bool:
    """Whether `op` does nothing with a value but store it, or add it to memory."""
    if op.name in _ACCESSES:
        return op.operands[1] == value and not any(set(op.results) & set(other.operands) for other in module.walk())
    return op.name == "tt.descriptor_store"


def _crosses(module: Module, conversions: list[Op]) -> bool:
    return any(not stays(*moved(module, op)) for op in conversions)


__all__ = ["with_tiles_as_used"]
