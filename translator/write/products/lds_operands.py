"""Matrix operands through LDS where Triton takes them there: one allocation, read as often as there are dots.

`tl.dot(x, ...)` and `tl.dot(..., tl.trans(x))` read the same buffer, the second one permuted.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container
from dataclasses import dataclass

from gluonize.decide.readback.operands import OperandInLds
from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.products import products
from gluonize.facts.variables.origins import definitions_of, origins_of, untransposed
from gluonize.facts.webs import Web
from gluonize.gluon.code import assignment, code_of
from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.nodes import Code, Name, Named, Node, Permuted, Read as TileRead
from gluonize.gluon.written import Does, Written, attribute, call, method, name as variable
from gluonize.trace.model.language import DTYPES
from gluonize.trace.model.layouts import DotOperand, Layout, SharedLayout
from gluonize.write.products import invariant
from gluonize.write.state import shapes
from gluonize.write.state.call_text import with_function
from gluonize.write.state.fresh_names import FreshNames
from gluonize.write.state.site import Site
from gluonize.write.state.statements import statement_of, statements_after
from gluonize.write.state.variables import OperandBuffer, OperandRead, WebState
from gluonize.write.state.writing import StateOf


@dataclass(frozen=True)
class Through:
    """How an operand goes through LDS: `value`, as it lies, is stored as `shared` and read so. stored: the layout that a transpose within
    lanes gives it first. web, buffer: of a variable, whose buffer other operands may share. permuted: the expression that is the value
    transposed before it is stored; cast: the one that is what was read, cast."""

    value: ast.expr
    shared: SharedLayout
    read: OperandRead
    stored: Layout | None = None
    web: Web | None = None
    buffer: OperandBuffer | None = None
    permuted: ast.expr | None = None
    cast: ast.expr | None = None


def through_lds(site: Site, node: ast.expr, layout: Layout, dot: ast.Call) -> Through | None:
    """How `node`, an operand of `dot` in operand layout, goes through LDS; None where Triton converts it in registers."""
    if not isinstance(layout, DotOperand):
        return None
    value, transposed = untransposed(site.facts, node)
    read = layout, transposed
    if _invariant(site.facts, site.loops, value):
        return None
    if not transposed and site.home(value) == layout:
        return None  # it is there already
    found = _in_lds(site.facts, site.staged, site.state, value, read)
    if found is None:
        return (
            _transposed_in_registers(site, node, value, layout, dot)
            if transposed
            else _cast_from_lds(site, value, read)
        )
    if transposed and found.read and read not in found.read and _converts(site):
        return None  # as Triton does, where it stores the value for the other read alone
    if not transposed and found.read and read not in found.read and site.home(value) == layout.parent:
        return None  # Triton has a product become an operand of the same instruction without LDS
    stored = _stored(site, value, found)
    web = site.facts.webs.of_use.get(value)
    if web is None or len(web.definitions) != 1 or not _assigned(web.definitions[0]):
        return Through(value, found.shared, read, stored)
    state = site.state(web)
    unlike = bool(found.read) and read not in found.read  # Triton stores the value once more for this read
    nearby = unlike and _read_nearby(site.facts, site.state, value, web, (found.shared, None, stored))
    buffer = found.shared, read if unlike and not nearby else None, stored
    if nearby:
        state.at_once.add(buffer)
        # Before the other read was seen, this one had a buffer of its own.
        state.operands.pop((found.shared, read, stored), None)
    if found.at_once and not site.facts.kernel.loops:
        state.at_once.add(buffer)
    if state.home is None:
        state.home = site.web_home(web) or site.facts.default_layout(site.facts.tensor(value).shape)
    uses = state.operands.setdefault(buffer, {}).setdefault(read, set())
    if value not in uses:
        uses.add(value)
        site.demand_more()
    if len(uses) == 1 and not _at_once(state, buffer):
        site.names.suggest(buffer[0], f"{value.id.lower()}_shared", 2, value.lineno)
        if len(state.operands[buffer]) > 1:
            _buffer_name(site.fresh, state, buffer)
    return Through(value, found.shared, read, stored, web, buffer)


def operand_through_lds(site: Site, node: ast.expr, layout: Layout, dot: ast.Call) -> Written | None:
    """`node`, an operand of `dot`, in operand layout, read from LDS; None where Triton converts it in registers."""
    made = through_lds(site, node, layout, dot)
    if made is None:
        return None
    if made.buffer is not None:
        return _variable(site, made.value, made.web, made.buffer, made.read)
    text = site.emit(made.value, site.home(made.value))
    if made.permuted is not None:
        text = call("gl.permute", text, "[1, 0]")
        return _read(site.expression, site.names, allocation(site, text, made.shared, made.permuted), made.read)
    if made.cast is not None:
        read = _read(site.expression, site.names, allocation(site, text, made.shared, made.value), made.read)
        return with_function(site, made.cast, callees.callee_of(site.facts, made.cast), {made.value: read})
    site.names.suggest(made.shared, f"{_stem(made.value, made.read)}_shared", 2, made.value.lineno)
    return _read(site.expression, site.names, allocation(site, text, made.shared, made.value, made.stored), made.read)


def _converts(site: Site) -> bool:
    return site.decided.choices.asks("transposed-operands", "converted")


def _read_nearby(facts: FunctionFacts, state_of: StateOf, value: ast.expr, web: Web, buffer: OperandBuffer) -> bool:
    """Whether a statement near that of `value` reads `buffer`: in the same block, with no product or helper between them.

    One store then serves both reads and saves the two barriers of another; all is read at once, so that no LDS is held while
    more of it is filled. In kernels without a loop any distance is near, but where registers are few: what is read is held in them.
    """
    uses = set().union(*state_of(web).operands.get(buffer, {}).values()) - {value}
    definition = web.definitions[0].node
    touched = [
        (any(n is value for n in inside), any(n in uses for n in inside), any(_takes_lds(facts, n) for n in inside))
        for inside in (list(ast.walk(s)) for s in statements_after(facts.tree, definition))
    ]
    here = next((i for i, (own, _, _) in enumerate(touched) if own), None)
    if here is None:
        return False
    between = [touched[min(here, i) + 1 : max(here, i)] for i, (_, other, _) in enumerate(touched) if other]
    if not facts.kernel.loops and not facts.kernel.target.has_few_registers:
        return bool(between)
    return any(not any(takes for _, _, takes in rows) for rows in between)


def _takes_lds(facts: FunctionFacts, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (callees.is_dot(facts, node) or callees.is_helper(facts, node))


def _cast_from_lds(site: Site, value: ast.expr, read: OperandRead) -> Through | None:
    """The operand as a cast of what Triton takes through LDS: half of the LDS and of the reads where the cast widens."""
    inner = callees.cast_of(site.facts, value)
    if inner is None or site.cheap(inner) or _is_staged(site.facts, site.staged, inner):
        return None
    if (fact := site.facts.tensor(inner)) is None:
        return None
    found = next((x for x in _allocations(site.facts, [value], fact.shape, fact.dtype) if read in x.read), None)
    return None if found is None else Through(inner, found.shared, read, cast=value)


def moved_through_lds(site: Site, web: Web, layout: Layout, use: ast.Name | None = None) -> Written | None:
    """A variable in operand layout, where Triton moves it or, at `use`, what is made of it through LDS.

    A value that is scaled or cast on its way to a dot moves before that, with fewer bits.
    """
    if not isinstance(layout, DotOperand):
        return None
    origins = definitions_of(site.facts, web)
    shapes_of_it = {fact.shape for origin in origins if (fact := site.facts.tensor(origin)) is not None}
    if use is not None:
        origins += [n for n in ast.walk(statement_of(site.facts, use)) if isinstance(n, ast.expr)]
    for found in _allocations_at(site.facts, origins):
        if shapes_of_it == {found.shape} and (layout, False) in found.read:
            return _read(
                site.expression, site.names, allocation(site, variable(web.name), found.shared), (layout, False)
            )
    return None


def _stored(site: Site, value: ast.expr, found: OperandInLds) -> Layout | None:
    """The layout that a transpose within lanes gives the value before it is stored; None where it lies as it is stored."""
    if found.loaded is None or site.home(value) != found.loaded and not _loaded_as(site, value, found.loaded):
        return None
    return found.stored


def _loaded_as(site: Site, value: ast.expr, layout: Layout) -> bool:
    """Have the variable that a load defines loaded in `layout`; False where `value` is no such variable."""
    web = site.facts.webs.of_use.get(value)
    load = site.facts.webs.value_of(value) if site.facts.webs.single_of(value) is not None else None
    callee = callees.callee_of(site.facts, load) if isinstance(load, ast.Call) else None
    if callee is None or callee.row is None or callee.row.kind != "load" or callee.owner is not None:
        return False
    site.load_in(load, web, layout)
    return True


def _stem(value: ast.expr, read: OperandRead) -> Name:
    """What an operand is called: the variable that is one, also under a method; else by its place in the product."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value
    named = isinstance(value, ast.Name) and value.id not in ("tl", "triton")
    return value.id.lower() if named else "ab"[getattr(read[0], "operand_index", 0)]  # type: ignore[attr-defined]


def _invariant(facts: FunctionFacts, loops: tuple[ast.AST, ...], value: ast.expr) -> bool:
    """Whether a loop reads a value from before it: then one conversion before the loop serves every iteration."""
    web = facts.webs.of_use.get(value)
    outside = web is not None and all(len(d.in_loop) < len(loops) for d in web.definitions)
    return outside and invariant.repeats(facts, loops, web)


def _transposed_in_registers(
    site: Site, node: ast.expr, value: ast.expr, layout: Layout, dot: ast.Call
) -> Through | None:
    """`node`, which is `value` transposed, where Triton's allocation is that of `node`: LDS holds its rows as rows.

    What is moved for the instruction's sake alone has the place of the instruction.
    """
    read, fact = (layout, False), site.facts.tensor(node)
    if isinstance(node, ast.Name) or _is_staged(site.facts, site.staged, value):
        return None
    found = _in_lds(site.facts, site.staged, site.state, node, read)
    if found is None:
        found = next((x for x in _allocations(site.facts, [dot], fact.shape, fact.dtype) if read in x.read), None)
    return None if found is None else Through(value, found.shared, read, permuted=node)


def _is_staged(facts: FunctionFacts, staged: Container[ast.AST], value: ast.expr) -> bool:
    """Whether a value is a pipelined load, which has buffers of its own."""
    return any(origin in staged for origin in origins_of(facts, value))


def _in_lds(
    facts: FunctionFacts, staged: Container[ast.AST], state_of: StateOf, value: ast.expr, read: OperandRead
) -> OperandInLds | None:
    """Triton's allocation for `value`, the one that has this `read` if there are several."""
    fact = facts.tensor(value)
    if fact is None:
        return None
    if isinstance(value, ast.Name):
        web = facts.webs.of_use.get(value)
        if web is None or web.is_parameter:
            return None
        state = state_of(web)
        if state.cheap or state.split:
            return None
    if _is_staged(facts, staged, value):
        return None
    found = _allocations(facts, origins_of(facts, value), fact.shape, fact.dtype)
    return next((x for x in found if read in x.read), found[0] if found else None)


def _allocations_at(facts: FunctionFacts, origins: list[ast.AST]) -> list[OperandInLds]:
    """Triton's allocations at the places that `origins` have."""
    paths = [(*facts.path, visit) for origin in origins for visit in facts.visits(origin)]
    return [x for path in paths for x in facts.kernel.operands_in_lds.get(path, ())]


def _allocations(
    facts: FunctionFacts, origins: list[ast.AST], shape: tuple[int, ...], dtype: str
) -> list[OperandInLds]:
    """Triton's allocations of this shape and type at the places that `origins` have."""
    found = [x for x in _allocations_at(facts, origins) if x.shape == shape]
    return [x for x in found if DTYPES.get(x.element) == products.DTYPE.get(dtype, dtype).removeprefix("u")]


def _variable(site: Site, value: ast.Name, web: Web, buffer: OperandBuffer, read: OperandRead) -> Written:
    """The operand that a variable is; one allocation serves several layouts, one read several dots."""
    state = site.state(web)
    if len(state.operands[buffer][read]) > 1 or _at_once(state, buffer):
        return variable(_operand_name(site.names, web, read))
    return _read(site.expression, site.names, _buffer(site, variable(value.id), web, buffer), read)


def definitions(site: Site, s: ast.stmt, web: Web) -> list[Code]:
    """Define the buffers and operands of `web` that are used more than once, each before the first statement that needs it.

    Buffers that are never live together share LDS, so they are filled as late as can be, and before one that is held on
    those that are read at once. What has to stand right after the definition `s` is returned.
    """
    near: list[Code] = []
    for buffer, reads in site.state(web).operands.items():
        lines: list[tuple[set[ast.AST], Code]] = []
        at_once = _at_once(site.state(web), buffer)
        every = set().union(*reads.values())
        if len(reads) > 1:
            site.names.suggest(buffer[0], f"{web.name.lower()}_shared", 1, s.lineno)
            filled = allocation(site, variable(web.name), buffer[0], stored=buffer[2])
            name = _buffer_name(site.fresh, site.state(web), buffer)
            lines.append((every, site.statement(assignment(name, filled, frozenset({web.name})))))
        for read, uses in reads.items():
            if len(uses) > 1 or at_once:
                text = _read(site.expression, site.names, _buffer(site, variable(web.name), web, buffer), read)
                line = code_of(_operand_name(site.names, web, read), " = ", text)
                lines.append((every if at_once else uses, line))
        after = statements_after(site.facts.tree, s)
        places = [_first_of(after, uses) for uses, _ in lines]
        if None in places:  # what is read right behind the definition is filled there
            places[0] = None
        near += [line for (_, line), first in zip(lines, places) if first is None]
        if at_once and None not in places:
            site.edits.insert_before(places[0], *(line for _, line in lines))
            edit = site.edits.pop()
            held = (i for i, other in enumerate(site.edits) if other in site.edits.held and other[0] == edit[0])
            site.edits.insert(next(held, len(site.edits)), edit)
            continue
        for (_, line), first in zip(lines, places):
            if first is not None:
                site.edits.insert_before(first, line)
                site.edits.held.append(site.edits[-1])
    return near


def _at_once(state: WebState, buffer: OperandBuffer) -> bool:
    """Whether a buffer that is read in several layouts is read in all of them before others are filled."""
    return buffer in state.at_once and len(state.operands[buffer]) > 1


def _first_of(after: list[ast.stmt], uses: set[ast.AST]) -> ast.stmt | None:
    """The first statement with one of `uses`, if it is a plain one and others stand between."""
    first = next((i for i, s in enumerate(after) if any(n in uses for n in ast.walk(s))), 0)
    return after[first] if first and isinstance(after[first], (ast.Assign, ast.AugAssign)) else None


def _read(expression: Callable[[Node], Written], names: LayoutNames, buffer: Written, read: OperandRead) -> Written:
    layout, transposed = read
    if buffer.is_name:
        place = Permuted(Named(buffer.as_name), (1, 0)) if transposed else Named(buffer.as_name)
        return expression(TileRead(place, names.spell(layout).code))
    tile = method(buffer, "permute", "[1, 0]") if transposed else buffer
    return method(tile, "load", names.spell(layout), does=Does.READS)


def _buffer(site: Site, name: Written, web: Web, buffer: OperandBuffer) -> Written:
    """The expression of the filled buffer: a variable, or an allocation in place where it is read in one layout only."""
    if len(site.state(web).operands[buffer]) > 1:
        return variable(_buffer_name(site.fresh, site.state(web), buffer))
    return allocation(site, name, buffer[0], stored=buffer[2])


def _buffer_name(fresh: FreshNames, state: WebState, buffer: OperandBuffer) -> str:
    n = list(state.operands).index(buffer)
    name = f"{state.web.name}_smem{f'_{n + 1}' if n else ''}"
    return fresh.of((state.web.index, name), name)


def _operand_name(names: LayoutNames, web: Web, read: OperandRead) -> Name:
    layout, transposed = read
    return names.variant(f"{web.name}_t" if transposed else web.name, layout)


def _assigned(definition) -> bool:
    """Whether the definition is one statement after which a buffer can be filled."""
    return isinstance(definition.node, (ast.Assign, ast.AnnAssign))


def _own_name(name: Written) -> str:
    """What a variable is called by the author, for names of layouts that it has."""
    found = name.as_name
    return (found if isinstance(found, str) else found.of.variable).lower()


def allocation(
    site: Site, text: Written, shared, value: ast.expr | None = None, stored: Layout | None = None
) -> Written:
    """LDS filled with `text`, which is `value` emitted where it is no variable; `stored`: transposed within lanes first."""
    filled = text
    if stored is not None:
        site.names.suggest(stored, f"{_own_name(text)}_stored" if text.is_name else "stored", 2)
        filled = site.convert(text, stored)
    site.record.filled |= {*site.loops}
    if text.is_name:
        site.names.suggest(shared, f"{_own_name(text)}_shared", 3)
        dtype, shape = attribute(text, "dtype"), attribute(text, "shape")
        return call("gl.allocate_shared_memory", dtype, shape, site.names.spell(shared), filled, does=Does.FILLS)
    assert value is not None, f"bug in gluonize: no type for {text}"
    dtype, shape = products.DTYPE[site.facts.tensor(value).dtype], shapes.shape_text(
        site.facts, site.emit, site.rebound, value
    )
    return call("gl.allocate_shared_memory", f"gl.{dtype}", shape, site.names.spell(shared), filled, does=Does.FILLS)


__all__ = ["allocation", "definitions", "moved_through_lds", "operand_through_lds", "through_lds"]
