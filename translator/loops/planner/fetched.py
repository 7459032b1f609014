"""How the loads of a pipelined loop are fetched: by copies, by the tensor data mover, or through registers."""

from __future__ import annotations

import ast
from dataclasses import replace

from gluonize.decide.layouts.gluon_values import linear
from gluonize.decide.readback.staging import Staged
from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.made_descriptors import origin_of
from gluonize.loops.plan.tiles.copy_width import source_layout, wide_enough
from gluonize.loops.plan.tiles.strided import StridedTile, strided_tile
from gluonize.loops.plan.tiles.terms import NotATile
from gluonize.loops.planner import lds_room
from gluonize.read.text.moved_lines import file_line
from gluonize.trace.model.layouts import Linear, Slice
from gluonize.trace.model.shared_layouts import Padded, Swizzled
from gluonize.write.descriptors import descriptors, tdm
from gluonize.write.state.unit import Decided

_THROUGH_REGISTERS = "another load of its loop goes through registers"


def loads_in(facts: FunctionFacts, statement: ast.AST) -> list[ast.Call]:
    """Staged loads in `statement`, outside of loops nested in it, in source order."""
    found: list[ast.Call] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.For, ast.While, ast.Lambda)):
            return
        if isinstance(node, ast.Call) and staged_of(facts, node) is not None:
            found.append(node)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(statement)
    return found


def loaded_by_helpers(facts: FunctionFacts, statements: list[ast.stmt]) -> list[str]:
    """The calls in `statements`, outside of loops in them, by which a helper loads what Triton fetches ahead: `load` in line 7."""
    found: list[str] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.For, ast.While, ast.Lambda)):
            return
        if isinstance(node, ast.Call) and any(
            path[: len(facts.path)] == facts.path and path[len(facts.path)] in facts.visits(node)
            for path in facts.kernel.staging
            if len(path) > len(facts.path) + 1
        ):
            inner, _ = facts.callee(node)
            if inner is not None and (
                any(loads_in(inner, s) for s in inner.tree.body) or loaded_by_helpers(inner, inner.tree.body)
            ):
                found.append(f"`{inner.frame.fn.__name__}` in line {file_line(facts.frame.fn, node.lineno)}")
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in statements:
        if facts.taken(statement):
            visit(statement)
    return found


def staged_of(facts: FunctionFacts, node: ast.Call) -> Staged | None:
    visits = facts.visits(node)
    found = [facts.kernel.staging.get((*facts.path, v)) for v in visits]
    if not found or found[0] is None:
        return None
    callee = callees.callee_of(facts, node)
    is_load = callee is not None and callee.row is not None and callee.row.kind == "load"
    if not is_load or facts.tensor(node) is None or (found[0].copy == "held" and callee.owner is not None):
        return None
    return _of_shape(found[0], facts.tensor(node).shape)


def _of_shape(staged: Staged, shape: tuple[int, ...]) -> Staged | None:
    """`staged` for tiles of this shape, of which Triton leaves out unit dimensions at the front; None where it stages
    something else."""
    units = len(shape) - len(staged.shape)
    if units == 0:
        return staged
    if units < 0 or shape != (1,) * units + staged.shape:
        return None
    shared = staged.shared
    if shared is not None:
        order = (*(d + units for d in getattr(shared, "order", ())), *reversed(range(units)))
        ctas = tuple((*(0,) * units, *basis) for basis in shared.ctas)
        if isinstance(shared, Swizzled):
            shared = replace(shared, order=order, ctas=ctas)
        elif isinstance(shared, Padded) and not shared.offsets:
            shared = replace(shared, order=order, shape=shape, ctas=ctas)
        else:
            shared = Swizzled(1, 1, 1, tuple(reversed(range(len(shape)))), ctas)
    return replace(staged, shape=shape, shared=shared, exchanged=None)


def fetched_as(facts: FunctionFacts, decided: Decided, call: ast.Call) -> Staged:
    """How Triton stages a load, but for tiles of descriptors that are bounds-masked accesses here and of the tensor data
    mover there: they are copied, or go through registers where a row may start between two of the narrowest copies."""
    staged, callee = staged_of(facts, call), callees.callee_of(facts, call)
    if staged.copy != "tensor" or tdm.uses_data_mover(facts, decided, origin_of(facts, callee.owner)):
        return staged
    offsets = callees.bind(call, callee).get("offsets")
    if isinstance(offsets, (ast.List, ast.Tuple)) and wide_enough(facts, callee.owner, offsets.elts):
        return replace(staged, copy="global", source=source_layout(facts, call, callee.owner))
    source = descriptors.fetch_layout(facts, call, callee.owner)
    return replace(staged, copy="registers", source=source, stored=source, buffers=max(1, staged.buffers - 1))


def is_held(facts: FunctionFacts, call: ast.Call) -> bool:
    """Whether Triton keeps a load that runs ahead in registers."""
    return staged_of(facts, call).copy == "held"


def waits_repeated(facts: FunctionFacts, call: ast.Call) -> bool:
    """Whether what waits in registers is a vector of which every lane has several elements, as a product's rows or columns have it: all
    lanes together hold it many times over, and twice while the next one is loaded."""
    staged = staged_of(facts, call)
    layout, shape = staged.source, staged.shape
    if len(shape) != 1 or not isinstance(layout, Slice):
        return False
    whole = (1, *shape) if layout.dim == 0 else (*shape, 1)
    found = layout.parent if isinstance(layout.parent, Linear) else linear(layout.parent, whole)
    along = 1 - layout.dim
    return found is not None and len({basis[along] for basis in found.register} - {0}) > 0


def strided_tiles(
    facts: FunctionFacts,
    decided: Decided,
    loop: ast.For,
    bounds: tuple,
    found: list[ast.Call],
    in_registers: frozenset[ast.Call] = frozenset(),
) -> tuple[dict[ast.Call, StridedTile], dict[ast.Call, str]]:
    """The loads of a loop that the tensor data mover fetches, and for the others why not.

    All go another way where one of them goes through registers: such a loop has another order. in_registers: those for
    which LDS has no room (`gluonize.loops.planner.lds_room`).
    """
    tiles: dict[ast.Call, StridedTile] = {}
    not_tiles: dict[ast.Call, str] = {}
    if not facts.kernel.target.supports_tdm:
        return tiles, not_tiles
    low, _, step = bounds
    for call in found:
        callee, staged = callees.callee_of(facts, call), staged_of(facts, call)
        if staged.copy == "tensor" and fetched_as(facts, decided, call).copy == "registers":
            return {}, {c: _THROUGH_REGISTERS for c in found if c is not call}
        if callee.owner is not None or callee.row.kind != "load" or staged.copy == "tensor":
            continue
        if call in in_registers:
            not_tiles[call] = lds_room.REASON
            continue
        if staged.copy == "global" and decided.choices.asks("tile-copies", "lanes"):
            not_tiles[call] = "its lanes are asked to copy it (tile-copies=lanes)"
            continue
        if is_held(facts, call) and _shares_its_variable(facts, call):
            not_tiles[call] = "its variable is assigned elsewhere too, and it waits in registers"
            continue
        try:
            tiles[call] = strided_tile(facts, decided.choices, loop, low, step, call, staged)
        except NotATile as reason:
            not_tiles[call] = str(reason)
            if staged.copy == "registers":
                others = {c: _THROUGH_REGISTERS for c in found if c is not call}
                return {}, others | not_tiles
    return tiles, not_tiles


def _shares_its_variable(facts: FunctionFacts, call: ast.Call) -> bool:
    """Whether the variable that a load is assigned to has other values too: what is used then is in registers."""
    return any(d.value is call and len(web.definitions) > 1 for web in facts.webs.all for d in web.definitions)


def one_way(staged: list[Staged], tiles: list[bool], mixes: bool) -> tuple[list[Staged], bool, int]:
    """(how each load is staged, by copies, buffers): one depth for all loads of a loop, and one mechanism, unless it `mixes`.

    Where Triton mixes copies with loads to registers and the loop must not, all go through registers, one slot less deep.
    Tiles that the tensor data mover fetches are copies, whatever Triton does.
    """
    if mixes and any(s.copy != "registers" for s in staged) and min(s.buffers for s in staged) > 1 and not any(tiles):
        return staged, True, min(s.buffers for s in staged)
    if all(tile or s.copy != "registers" for s, tile in zip(staged, tiles)):
        return staged, True, min(s.buffers + (s.copy in ("registers", "held")) for s in staged)
    buffers = min(s.buffers if s.copy == "registers" else s.buffers - 1 for s in staged)
    ways = [s if s.copy == "registers" else replace(s, copy="registers", stored=s.source) for s in staged]
    return ways, False, max(1, buffers)
