"""Tensor descriptors of the tensor data mover (TDM): made once, loads through LDS, stores out of LDS.

A descriptor of the source becomes one of Gluon's with the LDS layout that Triton gives it. Outside of pipelined loops its
loads and stores call small functions that are written into the output. The hardware fills with zeros beyond a tensor's
end, not before its start: an access whose offset may be negative keeps all descriptors it shares a definition with as
bounds-masked accesses. Which ones these are is planned before anything is written (`plain.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gluonize.facts.function import FunctionFacts
from gluonize.facts.made_descriptors import Origin
from gluonize.facts.numbers.signs import obligations_of, sign_of
from gluonize.facts.syntax import unparsed
from gluonize.facts.webs import Web
from gluonize.gluon.code import code_of
from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.nodes import Code
from gluonize.gluon.written import Part, Written, call, keyword, listed, method
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.trace.model.layouts import Layout, SharedLayout
from gluonize.trace.model.shared_layouts import Padded, Swizzled
from gluonize.write.state.gluon_modules import all_workgroups
from gluonize.write.state.unit import Decided, Record, Synthesized
from gluonize.write.state.writing import Emit, Writing

# Which offsets of a tensor data mover's tiles count as not negative.
#
# The data mover fills with zeros beyond a tensor's end, not before its start. An offset that is not proved, and not made sure of by
# what is checked before the launch, is not given to it: its tile is loaded by pointers, masked by the bounds.


def why_not_at(facts: FunctionFacts, offsets: Sequence[ast.expr]) -> str:
    """Why the data mover may not take `offsets`; "" where it may."""
    negative = [offset for offset in offsets if not sign_of(facts, offset, exactly=True).holds]
    return f"offset `{unparsed(negative[0])}` may be negative" if negative else ""


def rests_on(facts: FunctionFacts, record: Record, offsets: Sequence[ast.expr]) -> None:
    """Records what the signs of `offsets` assume, which the data mover takes."""
    for offset in offsets:
        sign = sign_of(facts, offset, exactly=True)
        assert sign.holds, f"bug in gluonize: offset `{unparsed(offset)}` may be negative"
        record.obligations |= obligations_of(facts, offset, sign, "a tile of the data mover")


# The path of the visit that makes a descriptor, the name of the kernel's argument that holds one, () where that is not known.
Site = tuple[int | str, ...]


def module(record: Record) -> str:
    return record.of_target("tdm")


def fits(shared: SharedLayout | None) -> bool:
    """Whether the data mover writes this layout: rows in order, no swizzle, padding at one interval."""
    if isinstance(shared, Swizzled):
        return shared.max_phase == 1 and _descending(shared.order)
    return isinstance(shared, Padded) and len(shared.pairs) == 1 and not shared.offsets and _descending(shared.order)


def _descending(order: tuple[int, ...]) -> bool:
    return order == tuple(reversed(range(len(order))))


# Which descriptors ---------------------------------------------------------------------------------------------------


def site_of(origin: Origin | None) -> Site:
    if origin is None:
        return ()
    if isinstance(origin.node, ast.arg):
        return (origin.node.arg,)
    visits = origin.facts.visits(origin.node)
    return (*origin.facts.path, visits[0]) if visits else ()


def uses_data_mover(facts: FunctionFacts, decided: Decided, origin: Origin | None) -> bool:
    """Whether the descriptor that comes from `origin` (None: from somewhere) is one of the data mover."""
    plain = decided.plain_descriptors
    return facts.kernel.target.supports_tdm and () not in plain and site_of(origin) not in plain


def layout_of(origin: Origin, shape: tuple[int, ...]) -> SharedLayout:
    """The LDS layout of a descriptor's tiles: Triton's, where the data mover takes it. Descriptors that one variable may be share one."""
    facts = origin.facts
    if isinstance(origin.node, ast.arg):
        sites = [(origin.node.arg,)]
    else:
        sites = [(*facts.path, visit) for made in _made_alike(facts, origin.node) for visit in facts.visits(made)]
    ctas = facts.kernel.whole(len(shape))
    for site in sites:
        found = facts.kernel.descriptor_layouts.get(site)
        if fits(found) and found is not None:
            return found
        ctas = found.ctas if found is not None else ctas
    return Swizzled(1, 1, 1, tuple(reversed(range(len(shape)))), ctas)


def _made_alike(facts: FunctionFacts, origin: ast.Call) -> list[ast.Call]:
    """The calls that make what a variable may hold that may hold what `origin` makes, too."""
    calls: list[ast.AST] = [origin]
    held: list[Web] = []

    def of(web: Web) -> list[ast.AST]:
        return [d.value for d in web.definitions if d.value is not None]

    def variables(values: list[ast.AST]) -> list[Web]:
        return [facts.webs.of_use[v] for v in values if v in facts.webs.of_use]

    while True:
        copied = [w for web in held for w in variables(of(web))]
        more = [
            w
            for w in facts.webs.all
            if w in copied or set(of(w)) & {*calls} or any(v in held for v in variables(of(w)))
        ]
        more = [w for w in more if w not in held]
        if not more:
            return sorted(calls, key=lambda call: (call.lineno, call.col_offset))
        held += more
        calls += [v for w in more for v in of(w) if isinstance(v, ast.Call) and v not in calls]


def is_shared(facts: FunctionFacts, origin: Origin | None, shape: tuple[int, ...]) -> bool:
    """Whether several workgroups of a cluster have the same part of a descriptor's tiles, as far as that is known."""
    if facts.kernel.num_ctas == 1:
        return False
    return origin is None or not all(map(any, layout_of(origin, shape).ctas))


# Text ----------------------------------------------------------------------------------------------------------------


def make_text(
    writing: Writing, made: ast.Call, given: dict[str, ast.expr], shape: tuple[int, ...], name: str
) -> Written:
    """`tdm.make_tensor_descriptor(base, shape, strides, block_shape, layout=...)`."""
    facts = writing.facts
    layout = layout_of(Origin(facts, made), shape)
    writing.names.suggest(layout, f"{name}_shared", 1, made.lineno)
    arguments = [writing.emit(a) for a in made.args[:4]]
    for named in made.keywords:
        if named.arg == "shape":
            arguments.append(keyword("shape", bounds_text(facts, writing.emit, named.value)))
        elif named.arg != "padding_option":
            arguments.append(keyword(named.arg, writing.emit(named.value)))
    if len(made.args) > 1:
        arguments[1] = bounds_text(facts, writing.emit, made.args[1])
    arguments.append(keyword("layout", writing.names.spell(layout)))
    return call(f"{module(writing.record)}.make_tensor_descriptor", *arguments)


def argument_text(
    facts: FunctionFacts, names: LayoutNames, record: Record, argument: ast.arg, shape: tuple[int, ...], name: str
) -> Code:
    """The descriptor for the tuple (base, shape, strides) that an argument of the kernel holds."""
    layout = layout_of(Origin(facts, argument), shape)
    names.suggest(layout, f"{name}_shared", 1, argument.lineno)
    base, sizes, strides = (f"{argument.arg}[{i}]" for i in range(3))
    made = f"{argument.arg} = {module(record)}.make_tensor_descriptor({base}, {sizes}, {strides}, "
    return code_of(made, f"block_shape={list(shape)}, layout=", names.spell(layout), ")")


def bounds_text(facts: FunctionFacts, emit: Emit, node: ast.expr) -> Written:
    """Sizes or offsets as the data mover takes them: 32-bit integers."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        return emit(node)
    return listed(*(index_text(facts, emit, e) for e in node.elts))


def index_text(facts: FunctionFacts, emit: Emit, node: ast.expr) -> Written:
    fact = facts.fact(node)
    text = emit(node)
    wide = isinstance(fact, TensorFact) and fact.dtype in ("int64", "uint64")
    return method(text, "to", "gl.int32") if wide else text


def load_text(writing: Writing, desc: Part, offsets: Part, layout: Layout, shared: bool) -> Written:
    """A call that loads a tile. shared: whether several workgroups of a cluster have the same part of it."""
    tdm = module(writing.record)
    copy = [f"{tdm}.async_load(desc, offsets, smem)", f"{tdm}.async_wait(0)"]
    name = "load_shared_tile" if shared else "load_tile"
    if shared:
        alone = "# A copy comes to all workgroups that share the tile: each has left this LDS before, and waits for all copies."
        copy = [alone, "gl.barrier()", *all_workgroups(writing.record), *copy, *all_workgroups(writing.record)]
    copy_text = "\n    ".join(copy)
    text = f'''@gluon.jit
def {name}(desc, offsets, layout: gl.constexpr):
    """Load a tile through LDS; elements outside of the tensor read as zero."""
    smem = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    {copy_text}
    return smem.load(layout)
'''
    return call(writing.added(Synthesized(name, text)), desc, offsets, writing.names.spell(layout))


def store_text(writing: Writing, desc: Part, offsets: Part, value: Part) -> Written:
    tdm = module(writing.record)
    text = f'''@gluon.jit
def store_tile(desc, offsets, value):
    """Store a tile through LDS; elements outside of the tensor are left out."""
    smem = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout, value)
    {tdm}.async_store(desc, offsets, smem)
    {tdm}.async_wait(0)
'''
    return call(writing.added(Synthesized("store_tile", text)), desc, offsets, value)


# Copies of a pipelined loop ------------------------------------------------------------------------------------------


def position_text(record: Record, desc: Part, offsets: Sequence[Part]) -> Written:
    """The descriptor with its tile moved by `offsets` and its bounds shrunk by them."""
    moved = keyword("add_offsets", listed(*offsets))
    return call(f"{module(record)}.update_tensor_descriptor", desc, moved, keyword("clamp_bounds", "True"))


def moved_text(record: Record, desc: Part, offsets: Sequence[Part], condition: Written | None = None) -> Written:
    """The descriptor with its tile moved by `offsets` and its bounds as they are, copying nothing unless `condition`."""
    moved = keyword("add_offsets", listed(*offsets))
    return call(f"{module(record)}.update_tensor_descriptor", desc, moved, *_where(condition))


def copy_text(
    record: Record,
    desc: Part,
    offsets: Sequence[Part],
    slot: Written,
    condition: Written | None = None,
    barrier: str = "",
    cache: str = "",
) -> Written:
    """Issue the copy of the tile at `offsets` into LDS `slot`; under a false `condition` it copies nothing but counts.

    barrier: where each warp arrives once its part has landed. cache: what it says to the caches, a string of Gluon's.
    """
    said = [*_where(condition)]
    said += [keyword(name, value) for name, value in (("mbarrier", barrier), ("cache_modifier", cache)) if value]
    if all(offset == "0" for offset in offsets):
        return call(f"{module(record)}.async_load", desc, keyword("dest", slot), *said)
    return call(f"{module(record)}.async_load", desc, listed(*offsets), slot, *said)


def prefetch_text(record: Record, desc: Part, offsets: Sequence[Part], condition: Written) -> Written:
    """Ask for the tile at `offsets` in the L2 cache, under `condition`."""
    return call(f"{module(record)}.prefetch", desc, listed(*offsets), *_where(condition))


def _where(condition: Written | None) -> tuple[Written, ...]:
    return () if condition is None else (keyword("pred", condition),)


def constant_zero(facts: FunctionFacts, node: ast.expr) -> bool:
    fact = facts.settled(node)
    return isinstance(fact, ConstFact) and fact.value == 0
