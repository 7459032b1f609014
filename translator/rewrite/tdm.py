"""Tensor descriptors of the tensor data mover (TDM): made once, loads through LDS, stores out of LDS.

A descriptor of the source becomes one of Gluon's with the LDS layout that Triton gives it. Outside of pipelined loops its
loads and stores call small functions that are written into the output. The hardware fills with zeros beyond a tensor's
end, not before its start: an access whose offset may be negative keeps all descriptors it shares a definition with as
bounds-masked accesses (`NotForTheDataMover`, caught in `kernel.py`).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from translator.frontend.trace import ConstFact, TensorFact
from translator.layout.model import Layout, SharedLayout
from translator.layout.shared import Padded, Swizzled
from translator.rewrite.ranges import NonNegative
from translator.rewrite.splice import operand

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

Site = tuple[int, ...]  # path of the visit that makes a descriptor; () for one that cannot be told


@dataclass(frozen=True)
class Synthesized:
    """A function of the output that has no source of its own."""

    name: str
    text: str


class NotForTheDataMover(Exception):
    """The descriptors made at `site` (all of them for ()) have to stay bounds-masked accesses."""

    def __init__(self, site: Site, reason: str):
        super().__init__(reason)
        self.site, self.reason = site, reason


class _LikelyNonNegative(NonNegative):
    """As `NonNegative`, but values read from memory and a helper's parameters count as indices, which are not negative.

    A sum with a difference or a negative constant in it is still refused.
    """

    def call(self, node: ast.Call) -> bool:
        callee = self.rewriter.fact(node.func)
        name = getattr(getattr(callee, "value", None), "__name__", "") or getattr(callee, "name", "")
        return name == "load" or super().call(node)

    def definition(self, web: Any, d: Any) -> bool:
        if isinstance(d.node, ast.arg) and self.rewriter.path:
            return True
        return super().definition(web, d)


def module(rw: "FunctionRewriter") -> str:
    rw.record.imports.add(f"from triton.experimental.gluon.language.amd.{rw.unit.target.family} import tdm")
    return "tdm"


def fits(shared: SharedLayout | None) -> bool:
    """Whether the data mover writes this layout: rows in order, no swizzle, padding at one interval."""
    if isinstance(shared, Swizzled):
        return shared.max_phase == 1 and _descending(shared.order)
    return isinstance(shared, Padded) and len(shared.pairs) == 1 and not shared.offsets and _descending(shared.order)


def _descending(order: tuple[int, ...]) -> bool:
    return order == tuple(reversed(range(len(order))))


# Which descriptors ---------------------------------------------------------------------------------------------------


def site_of(rw: "FunctionRewriter", made: ast.Call | None) -> Site:
    visits = rw.visits(made) if made is not None else []
    return (*rw.path, visits[0]) if visits else ()


def uses_data_mover(rw: "FunctionRewriter", made: ast.Call | None) -> bool:
    """Whether the descriptor made by `made` (None: somewhere) is one of the data mover."""
    plain = rw.unit.plain_descriptors
    if not rw.unit.target.supports_tdm or () in plain:
        return False
    if made is None and plain:
        raise NotForTheDataMover((), "descriptors of different kinds reach one access")
    return site_of(rw, made) not in plain


def keep_plain(rw: "FunctionRewriter", made: ast.Call | None, reason: str) -> NotForTheDataMover:
    return NotForTheDataMover(site_of(rw, made), reason)


def layout_of(rw: "FunctionRewriter", made: ast.Call, shape: tuple[int, ...]) -> SharedLayout:
    """The LDS layout of a descriptor's tiles: Triton's, where the data mover takes it."""
    for visit in rw.visits(made):
        found = rw.unit.descriptor_layouts.get((*rw.path, visit))
        if fits(found) and found is not None:
            return found
    return Swizzled(1, 1, 1, tuple(reversed(range(len(shape)))))


def check_offsets(rw: "FunctionRewriter", made: ast.Call | None, offsets: list[ast.expr]) -> None:
    """Raises: NotForTheDataMover when an offset may be negative."""
    for offset in offsets:
        proof = _LikelyNonNegative(rw)
        if not proof.holds(offset):
            raise keep_plain(rw, made, f"offset `{ast.unparse(offset)}` may be negative")
        rw.record.non_negative |= proof.assumed


# Text ----------------------------------------------------------------------------------------------------------------


def make_text(
    rw: "FunctionRewriter", made: ast.Call, given: dict[str, ast.expr], shape: tuple[int, ...], name: str
) -> str:
    """`tdm.make_tensor_descriptor(base, shape, strides, block_shape, layout=...)`."""
    layout = layout_of(rw, made, shape)
    rw.names.suggest(layout, f"{name}_shared", 1, made.lineno)
    arguments = [rw.emit(a) for a in made.args[:4]]
    for keyword in made.keywords:
        if keyword.arg == "shape":
            arguments.append(f"shape={bounds_text(rw, keyword.value)}")
        elif keyword.arg != "padding_option":
            arguments.append(f"{keyword.arg}={rw.emit(keyword.value)}")
    if len(made.args) > 1:
        arguments[1] = bounds_text(rw, made.args[1])
    arguments.append(f"layout={rw.names.spell(layout)}")
    return f"{module(rw)}.make_tensor_descriptor({', '.join(arguments)})"


def bounds_text(rw: "FunctionRewriter", node: ast.expr) -> str:
    """Sizes or offsets as the data mover takes them: 32-bit integers."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        return rw.emit(node)
    return "[" + ", ".join(index_text(rw, e) for e in node.elts) + "]"


def index_text(rw: "FunctionRewriter", node: ast.expr) -> str:
    fact = rw.fact(node)
    text = rw.emit(node)
    wide = isinstance(fact, TensorFact) and fact.dtype in ("int64", "uint64")
    return f"{operand(text)}.to(gl.int32)" if wide else text


def load_text(rw: "FunctionRewriter", desc: str, offsets: str, layout: Layout) -> str:
    tdm = module(rw)
    text = f'''@gluon.jit
def load_tile(desc, offsets, layout: gl.constexpr):
    """Load a tile through LDS; elements outside of the tensor read as zero."""
    smem = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    {tdm}.async_load(desc, offsets, smem)
    {tdm}.async_wait(0)
    return smem.load(layout)
'''
    _need(rw, "load_tile", text)
    return f"load_tile({desc}, {offsets}, {rw.names.spell(layout)})"


def store_text(rw: "FunctionRewriter", desc: str, offsets: str, value: str) -> str:
    tdm = module(rw)
    text = f'''@gluon.jit
def store_tile(desc, offsets, value):
    """Store a tile through LDS; elements outside of the tensor are left out."""
    smem = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout, value)
    {tdm}.async_store(desc, offsets, smem)
    {tdm}.async_wait(0)
'''
    _need(rw, "store_tile", text)
    return f"store_tile({desc}, {offsets}, {value})"


def _need(rw: "FunctionRewriter", name: str, text: str) -> None:
    rw.record.globals_needed[name] = (Synthesized(name, text), rw.frame.fn)


# Copies of a pipelined loop ------------------------------------------------------------------------------------------


def position_text(rw: "FunctionRewriter", desc: str, offsets: list[str]) -> str:
    """The descriptor with its tile moved by `offsets` and its bounds shrunk by them."""
    return f"{module(rw)}.update_tensor_descriptor({desc}, add_offsets=[{', '.join(offsets)}], clamp_bounds=True)"


def moved_text(rw: "FunctionRewriter", desc: str, offsets: list[str], condition: str = "") -> str:
    """The descriptor with its tile moved by `offsets` and its bounds as they are, copying nothing unless `condition`."""
    predicate = f", pred={condition}" if condition else ""
    return f"{module(rw)}.update_tensor_descriptor({desc}, add_offsets=[{', '.join(offsets)}]{predicate})"


def copy_text(
    rw: "FunctionRewriter", desc: str, offsets: list[str], slot: str, condition: str = "", barrier: str = ""
) -> str:
    """Issue the copy of the tile at `offsets` into LDS `slot`; under a false `condition` it copies nothing but counts.

    barrier: where each warp arrives once its part has landed.
    """
    predicate = f", pred={condition}" if condition else ""
    predicate += f", mbarrier={barrier}" if barrier else ""
    if all(offset == "0" for offset in offsets):
        return f"{module(rw)}.async_load({desc}, dest={slot}{predicate})"
    return f"{module(rw)}.async_load({desc}, [{', '.join(offsets)}], {slot}{predicate})"


def constant_zero(rw: "FunctionRewriter", node: ast.expr) -> bool:
    fact = rw.fact(node)
    return isinstance(fact, ConstFact) and fact.value == 0
