"""Tensor descriptors as bounds-masked accesses.

`tl.make_tensor_descriptor(base, shape, strides, block)` becomes the tuple `(base, shape, strides)`; its loads, stores,
gathers, scatters and atomics call small functions that are written into the output, one per rank and kind. Elements
outside of the tensor read as zero (or NaN where the source pads with it) and are not written. Where the target has a
tensor data mover that can do the same, descriptors are its own (`tdm.py`).
"""

from __future__ import annotations

import ast
from typing import Any

from gluonize.facts.callees import is_descriptor
from gluonize.facts.function import FunctionFacts
from gluonize.facts.made_descriptors import Origin, origin_of
from gluonize.gluon.written import Part, Written, call, indexed, literal, method, tuple_of
from gluonize.gluon.written import attribute as attribute_of
from gluonize.trace.front.trace import OpaqueFact, TensorFact
from gluonize.trace.model.layouts import Layout, Slice
from gluonize.write.descriptors import tdm, tdm_rows
from gluonize.write.descriptors.tile_functions import Copies, tile_function
from gluonize.write.state.relations import Wants
from gluonize.write.state.unit import Decided
from gluonize.write.state.writing import Asking, Emit, Writing


def block_of(fact: OpaqueFact) -> TensorFact:
    block = fact.detail.block_type
    return TensorFact(tuple(int(s) for s in block.shape), str(block.element_ty))


def emit_make(writing: Writing, node: ast.Call, callee, given: dict[str, ast.expr], want: Any) -> Written:
    facts = writing.facts
    if tdm.uses_data_mover(facts, writing.decided, Origin(facts, node)):
        return tdm.make_text(writing, node, given, block_of(facts.fact(node)).shape, _name_of(facts, node))
    shape, strides = (_tuple_text(writing.emit, given[k]) for k in ("shape", "strides"))
    return tuple_of(writing.emit(given["base"]), shape, strides)


def _name_of(facts: FunctionFacts, made: ast.Call) -> str:
    """What the variable that holds the descriptor is called."""
    names = [d.name for w in facts.webs.all for d in w.definitions if d.value is made]
    return stem(names[0]) if names else "tile"


def stem(name: str) -> str:
    """The name of a descriptor without what says that it is one."""
    for suffix in ("_descriptor", "_desc"):
        name = name.removesuffix(suffix)
    return name.removeprefix("desc_").lower()


def _tuple_text(emit: Emit, node: ast.expr) -> Written:
    items = node.elts if isinstance(node, (ast.List, ast.Tuple)) else None
    if items is None:
        return emit(node)
    return tuple_of(*(emit(e) for e in items))


def emit_method(writing: Writing, node: ast.Call, callee, given: dict[str, ast.expr], want: Any) -> Written:
    return _access(writing, node, *accessed(node, callee, given), want)


def accessed(node: ast.Call, callee, given) -> tuple[ast.expr, str, list[ast.expr], ast.expr | None]:
    """(the descriptor, how it is accessed, where, what is stored)."""
    if callee.name in ("gather", "scatter"):
        arguments = list(node.args)
        value = arguments.pop(0) if callee.name == "scatter" else None
        return callee.owner, callee.name, arguments, value
    return callee.owner, callee.name, [given["offsets"]], given.get("value")


def wants(asking: Asking, node: ast.Call, callee, given: dict[str, ast.expr], want: Any) -> Wants:
    """In which layouts an access by a descriptor, wanted in `want`, wants row numbers and what is stored."""
    if callee.name == "make_tensor_descriptor":
        return {}
    return _access_wants(asking, node, *accessed(node, callee, given), want)


def _access_wants(
    asking: Asking, node: ast.Call, owner: ast.expr, kind: str, indices: list[ast.expr], value, want
) -> Wants:
    facts = asking.facts
    if tdm.uses_data_mover(facts, asking.decided, origin_of(facts, owner)):
        rows = tdm_rows.wants(facts, node, indices) if kind in ("gather", "scatter") else {}
        return rows if value is None else rows | {value: asking.home(value)}
    layout = _accessed_in(asking, node, kind, indices, value, block_of(facts.fact(owner)), want)
    rows = {indices[0]: Slice(1, layout)} if kind in ("gather", "scatter") else {}
    return rows if value is None else rows | {value: layout}


def _accessed_in(writing: Writing, node: ast.Call, kind, indices, value, block: TensorFact, want) -> Layout:
    """The layout in which a tile is accessed without the data mover."""
    shape = _accessed_shape(writing.facts, kind, indices, block)
    if value is None:
        return _layout(writing.facts, node, shape, want)
    return _placed(writing.facts, node, shape) or writing.home(value)


def _access(
    writing: Writing, node: ast.Call, owner: ast.expr, kind: str, indices: list[ast.expr], value, want
) -> Written:
    facts = writing.facts
    block, origin = block_of(facts.fact(owner)), origin_of(facts, owner)
    texts = writing.texts(_access_wants(writing, node, owner, kind, indices, value, want))
    if tdm.uses_data_mover(facts, writing.decided, origin):
        if kind in ("gather", "scatter"):
            layout = None if value is not None else _layout(facts, node, facts.tensor(node).shape, want)
            return tdm_rows.access(writing, node, owner, indices, value, layout)
        tdm.rests_on(facts, writing.record, indices[0].elts)
        offsets = tdm.bounds_text(facts, writing.emit, indices[0])
        if value is not None:
            text = texts[value]
            if facts.fact(value).dtype != block.dtype:
                text = method(text, "to", attribute_of(writing.emit(owner), "dtype"))
            return tdm.store_text(writing, writing.emit(owner), offsets, text)
        layout = want if isinstance(want, Layout) else _layout(facts, node, block.shape, want)
        return tdm.load_text(writing, writing.emit(owner), offsets, layout, tdm.is_shared(facts, origin, block.shape))
    shape = _accessed_shape(facts, kind, indices, block)
    layout = _accessed_in(writing, node, kind, indices, value, block, want)
    rank = len(shape)
    root = descriptor_root(facts, owner)
    buffer = root is not None and root in facts.kernel.small_pointers and kind in ("load", "store")
    if buffer:
        writing.record.reaches(root)
    pad = _padding(facts, owner)
    name = writing.added(tile_function(facts, writing.record, kind, rank, buffer, pad))
    arguments: list[Part] = [writing.emit(owner)]
    if kind in ("gather", "scatter"):
        rows, column = indices
        arguments += [texts[rows], writing.emit(column)]
    else:
        arguments += _offset_texts(writing.emit, indices[0], rank)
    if value is not None:
        text = texts[value]
        if kind != "gather" and facts.fact(value).dtype != block.dtype:
            text = method(text, "to", attribute_of(indexed(writing.emit(owner), "0"), "dtype.element_ty"))
        arguments.append(text)
    arguments += _block_texts(facts, writing.emit, owner, shape, kind)
    arguments.append(writing.names.spell(layout))
    text = call(name, *arguments)
    if want is not None and isinstance(want, Layout) and want != layout:
        return writing.convert(text, want)
    return text


def tile_fetch(
    writing: Writing,
    owner: ast.expr,
    offsets: ast.expr,
    layout: Layout,
    condition: Written | None = None,
    slot: Written | None = None,
    copies: Copies | None = None,
) -> Written:
    """A call that loads a tile in `layout`, or copies it to LDS `slot`; nothing but zeros unless `condition`."""
    facts = writing.facts
    shape = block_of(facts.fact(owner)).shape
    root = descriptor_root(facts, owner)
    buffer = root is not None and root in facts.kernel.small_pointers
    if buffer:
        writing.record.reaches(root)
    kind = "copy" if slot is not None else "load"
    name = writing.added(
        tile_function(facts, writing.record, kind, len(shape), buffer, "zero", copies, condition is not None)
    )
    arguments: list[Part] = [slot] if slot is not None else []
    arguments += [writing.emit(owner), *_offset_texts(writing.emit, offsets, len(shape))]
    arguments += [condition] if condition is not None else []
    arguments += _block_texts(facts, writing.emit, owner, shape, "load")
    return call(name, *arguments, writing.names.spell(layout))


def bounds_of(facts: FunctionFacts, owner: ast.expr) -> list[ast.expr]:
    """The shape that the descriptor was made with, where it is in reach; else nothing."""
    return _elements(facts, owner, 1, "shape")


def _elements(facts: FunctionFacts, owner: ast.expr, position: int, name: str) -> list[ast.expr]:
    """The elements of what a descriptor was made with, where this function has them; else nothing."""
    origin = origin_of(facts, owner)
    given = origin.given(position, name) if origin is not None else None
    found = given[1] if given is not None and given[0] is facts else None
    return list(found.elts) if isinstance(found, (ast.List, ast.Tuple)) else []


def fetchable(facts: FunctionFacts, owner: ast.expr) -> bool:
    """Whether tiles can be fetched by accesses that read zeros outside of the tensor."""
    return origin_of(facts, owner) is not None and _padding(facts, owner) == "zero"


def fetch_layout(facts: FunctionFacts, node: ast.Call, owner: ast.expr) -> Layout:
    """The layout in which the load `node` of a tile is fetched without the data mover."""
    return _layout(facts, node, block_of(facts.fact(owner)).shape, None)


def _accessed_shape(facts: FunctionFacts, kind, indices, block: TensorFact) -> tuple[int, ...]:
    if kind in ("gather", "scatter"):
        rows = facts.tensor(indices[0])
        return (rows.shape[0], block.shape[-1])
    return block.shape


def _layout(facts: FunctionFacts, node: ast.Call, shape: tuple[int, ...], want) -> Layout:
    """The layout in which Triton accesses a tile; where that is not known, the wanted one."""
    placed = _placed(facts, node, shape)
    return placed or (want if isinstance(want, Layout) else facts.default_layout(shape))


def _placed(facts: FunctionFacts, node: ast.Call, shape: tuple[int, ...]) -> Layout | None:
    names = (
        "tt.load",
        "tt.descriptor_load",
        "tt.store",
        "tt.descriptor_store",
        "tt.atomic_rmw",
        "tt.descriptor_gather",
    )
    return facts.placed_in(node, names, shape)


def _offset_texts(emit: Emit, node: ast.expr, rank: int) -> list[Written]:
    if isinstance(node, (ast.List, ast.Tuple)):
        return [emit(e) for e in node.elts]
    text = emit(node)
    return [indexed(text, str(i)) for i in range(rank)]


def _block_texts(facts: FunctionFacts, emit: Emit, owner: ast.expr, shape: tuple[int, ...], kind: str) -> list[Part]:
    """Block sizes, by the names that the descriptor was made with where those are in reach."""
    block = _elements(facts, owner, 3, "block_shape") if kind not in ("gather", "scatter") else []
    return [emit(e) for e in block] or [str(s) for s in shape]


def descriptor_root(facts: FunctionFacts, owner: ast.expr) -> str | None:
    """The kernel's argument that the tensor of a descriptor is in."""
    from gluonize.write.accesses.addresses import root_parameter

    origin = origin_of(facts, owner)
    if origin is not None and isinstance(origin.node, ast.arg):
        return origin.node.arg
    base = origin.given(0, "base") if origin is not None else None
    return root_parameter(*base) if base is not None else None


def _padding(facts: FunctionFacts, owner: ast.expr) -> str:
    origin = origin_of(facts, owner)
    return origin.padding if origin is not None else "zero"


def attribute(facts: FunctionFacts, decided: Decided, emit: Emit, node: ast.Attribute) -> Written | None:
    """`desc.shape`, `desc.strides`, `desc.dtype`, `desc.block_shape` of a descriptor tuple."""
    fact = facts.fact(node.value)
    if not is_descriptor(fact) or tdm.uses_data_mover(facts, decided, origin_of(facts, node.value)):
        return None
    base = emit(node.value)
    if node.attr == "shape":
        return indexed(base, "1")
    if node.attr == "strides":
        return indexed(base, "2")
    if node.attr == "dtype":
        return attribute_of(indexed(base, "0"), "dtype.element_ty")
    if node.attr == "block_shape":
        return literal(list(block_of(fact).shape))
    return None
