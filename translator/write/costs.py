"""What costs less: moving a value between lanes, or making it where it is wanted."""

from __future__ import annotations

import ast
import math
from collections.abc import Container

from gluonize.facts.callees import Callee, bind, callee_of, cast_of, kind_of
from gluonize.facts.function import FunctionFacts
from gluonize.facts.syntax import ELEMENTWISE_NODES
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import DotOperand, Layout, Mfma, Slice, Wmma
from gluonize.write.products.invariant import row_at_hand
from gluonize.write.state.statements import holds
from gluonize.write.state.writing import Cheap, HomeOf, StateOf

WIDEST_LOAD = 128  # bits per lane of one global load
# Loads of one element by a lane that cost less than moving it: a move is a store, a barrier and a read of LDS, each for all.
FEW_LOADS = 8
LEAST_GROWTH = 8  # of an outer product over its factors, or of a mask over its rows, for making it anew


def small_load(facts: FunctionFacts, is_cheap: Cheap, node: ast.Call) -> bool:
    """Whether a loop, or a kernel of matrix products without one, loads so little that loading again costs less than moving:
    less than an element per thread.

    The measure is Triton's own. Elsewhere a conversion is cheap, and reads better.
    """
    callee, fact = callee_of(facts, node), facts.tensor(node)
    if callee is None or callee.row is None or callee.row.kind != "load" or fact is None or callee.owner is not None:
        return False
    given = bind(node, callee)
    counts = node in facts.looped or facts.kernel.only_multiplies
    if not counts or set(given) - {"pointer", "mask", "other", "eviction_policy"}:
        return False
    return is_small(facts, fact) and all(is_cheap(argument) for argument in given.values())


def handed_over(facts: FunctionFacts, handed: str, node: ast.Call) -> bool:
    """Whether a call loads what another program has stored in the layout of its sums: in that layout it is loaded with as many bytes for each lane,
    and needs no more registers than a sum. handed: the parameter that it lies behind, "" for none."""
    callee = callee_of(facts, node) if handed else None
    if callee is None or callee.row is None or callee.row.kind != "load":
        return False
    return any(isinstance(n, ast.Name) and n.id == handed for n in ast.walk(node))


def is_small(facts: FunctionFacts, fact: TensorFact) -> bool:
    """Whether a tensor has less than an element per thread, where that is to matter."""
    if facts.kernel.loads_once:
        return False
    return math.prod(fact.shape) < facts.kernel.num_warps * facts.kernel.target.warp_size


def loaded_again(facts: FunctionFacts, node: ast.Call, layout: Layout) -> bool:
    """Whether a small load is made in `layout` too: where Triton makes it there, and in loops unless lanes load element by
    element (`FEW_LOADS`)."""
    fact = facts.tensor(node)
    if many_loads(layout, fact):
        return False
    return layout in facts.placed_layouts(node) or node in facts.looped and _single_elements(layout, fact) <= FEW_LOADS


def _single_elements(layout: Layout, fact: TensorFact) -> int:
    """How many loads of one element a lane makes along a dimension of RDNA3's product, of which it has every other one; 0 for
    other layouts."""
    wmma = layout.parent if isinstance(layout, Slice) else None
    if not isinstance(wmma, Wmma) or wmma.version != 1 or fact.rank != 1 or layout.dim != (0 if wmma.transposed else 1):
        return 0
    warps = math.prod(2 for basis in wmma.warp_bases if basis[1 - layout.dim])
    return fact.shape[0] // 2 // warps


def outer_product(facts: FunctionFacts, held: Container[ast.AST], staged: Container[ast.AST], node: ast.AST) -> bool:
    """Whether `node` is `x[:, None] * y[None, :]` of tiles that wait in registers, and Triton makes it in several layouts.

    Less is moved of the factors; what is in LDS is read anew in each layout in any case. With few registers, what a branch
    reads is moved: factors would be held up to it.
    """
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and len(facts.visits(node)) == 1):
        return False
    factors = [side.value for side in (node.left, node.right) if isinstance(side, ast.Subscript)]
    tiles = [fact for value in factors if (fact := facts.tensor(value)) is not None and not fact.is_pointer]
    size = math.prod(facts.tensor(node).shape)
    if len(tiles) < 2 or any(math.prod(fact.shape) * LEAST_GROWTH > size for fact in tiles):
        return False
    made = [facts.webs.definition_of(value) for value in factors]
    waits = all(d is not None and d.value is not None and _in_registers(facts, held, staged, d.value) for d in made)
    if not waits or len(facts.placed_layouts(node)) < 2:
        return False
    return not (facts.kernel.target.has_few_registers and _read_in_branch(facts, node))


def of_rows(facts: FunctionFacts, is_cheap: Cheap, node: ast.AST, whole: TensorFact | None = None) -> bool:
    """Whether `node` is index or mask arithmetic on `x[:, None]` and what costs nothing: of the row `x` less is moved. whole: the result
    that it is a part of, where it is.

    gl.convert_layout(valid[:, None] & (n[None, :] < N), l)     ->      gl.convert_layout(valid, rows)[:, None] & (n[None, :] < N)
    gl.convert_layout(row[:, None] * stride + n[None, :], l)    ->      gl.convert_layout(row, rows)[:, None] * stride + n[None, :]
    """
    fact = facts.tensor(node)
    if fact is None or fact.is_pointer or not fact.dtype.startswith(("int", "uint")):
        return False
    if not isinstance(node, ELEMENTWISE_NODES) or isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return False
    whole = whole or fact
    children = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return all(
        is_cheap(child) or of_rows(facts, is_cheap, child, whole) or _is_row(facts, child, whole) for child in children
    )


def _is_row(facts: FunctionFacts, node: ast.expr, result: TensorFact) -> bool:
    """Whether `node` is a variable of one dimension that was given others, of which `result` has many times the elements."""
    row = node.value if isinstance(node, ast.Subscript) else None
    fact = facts.tensor(row) if isinstance(row, ast.Name) else None
    if fact is None or fact.rank != 1 or fact.is_pointer:
        return False
    return math.prod(fact.shape) * LEAST_GROWTH <= math.prod(result.shape)


def spread(facts: FunctionFacts, node: ast.Call, callee: Callee) -> bool:
    """Whether `node` is `tl.broadcast_to(x, shape)` of many times the elements: of `x` less is moved than of the result."""
    if callee.name != "broadcast_to":
        return False
    sizes = [math.prod(f.shape) for a in bind(node, callee).values() if (f := facts.tensor(a)) is not None]
    return bool(sizes) and max(sizes) * LEAST_GROWTH <= math.prod(facts.tensor(node).shape)


def _in_registers(facts: FunctionFacts, held: Container[ast.AST], staged: Container[ast.AST], value: ast.expr) -> bool:
    """Whether `value` is made of a tile that waits in registers; with few registers none does, and tiles are loaded where they are used."""
    if any(n in held for n in ast.walk(value)):
        return True
    loads = [n for n in ast.walk(value) if isinstance(n, ast.Call) and kind_of(facts, n) == "load"]
    return facts.kernel.target.has_few_registers and bool(loads) and not any(n in staged for n in loads)


def _read_in_branch(facts: FunctionFacts, node: ast.AST) -> bool:
    """Whether a run-time branch that `node` does not stand in reads what it is assigned to, also under the same name again."""
    names = {w.name for w in facts.webs.all for d in w.definitions if d.value is not None and holds(d.value, node)}
    uses = {use for w in facts.webs.all if w.name in names for use, _ in w.uses}
    branches = [n for n in facts.nodes if isinstance(n, ast.If) and not isinstance(facts.fact(n.test), ConstFact)]
    inside = [{*ast.walk(branch)} for branch in branches]
    return any(node not in nodes and not uses.isdisjoint(nodes) for nodes in inside)


def many_loads(layout: Layout, fact: TensorFact) -> bool:
    """Whether a lane loads several times in the layout, which is that of a matrix operand or of it along K.

    Lanes then load what others have, and moving costs less.
    """
    if not (isinstance(layout, Slice) and isinstance(layout.parent, DotOperand)):
        return isinstance(layout, DotOperand)
    operand = layout.parent
    if layout.dim != operand.operand_index:
        return False
    if fact.rank != 1 or not isinstance(operand.parent, Mfma):
        return True
    instructions = max(1, fact.shape[0] // operand.parent.instr_shape[2])
    return instructions * operand.k_width * bits_of(fact.dtype) > WIDEST_LOAD


def common_home(
    facts: FunctionFacts,
    home_of: HomeOf,
    is_cheap: Cheap,
    loops: tuple[ast.AST, ...],
    state_of: StateOf,
    node: ast.AST,
    want: Layout,
) -> Layout | None:
    """The layout in which all tensors of an elementwise expression lie, where moving its result to `want` is one move
    instead of several: it is then computed there.

    before: gl.convert_layout(x, mma) * gl.convert_layout(y, mma)    after: gl.convert_layout(x * y, mma)
    """
    result = facts.tensor(node)
    moved: dict[str, int] = {}  # variable -> bits of its elements
    homes: set[Layout] = set()

    def lies(node: ast.expr) -> bool:
        """Whether the tensors in `node` have a layout of the whole shape."""
        fact = facts.tensor(node)
        if fact is None or is_cheap(node):
            return True
        if isinstance(node, ELEMENTWISE_NODES):
            # The last first: of a sum of many terms that is one term, and nobody goes down to the first for each of the sums in it.
            children = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            return all(lies(child) and len(homes) < 2 and want not in homes for child in reversed(children))
        if (inner := cast_of(facts, node)) is not None:
            return lies(inner)
        row, axis = _row(facts, node, result.rank)
        if row is not None:
            home = home_of(row)
            if row_at_hand(facts, loops, is_cheap, state_of, row):
                return True
            if isinstance(home, Slice) and home.dim == axis:
                homes.add(home.parent)
                return True
            return False
        web = facts.webs.of_use.get(node)
        if web is None or web.is_parameter or fact.shape != result.shape or fact.is_pointer:
            return False
        homes.add(home_of(node))
        if all(len(d.in_loop) == len(loops) for d in web.definitions):
            moved[node.id] = bits_of(fact.dtype)
        return True

    if not isinstance(node, ELEMENTWISE_NODES) or isinstance(want, DotOperand):  # operands are read from LDS
        return None
    if not lies(node) or len(homes) != 1 or want in homes:
        return None
    return next(iter(homes)) if len(moved) > 1 and bits_of(result.dtype) <= max(moved.values()) else None


def _row(facts: FunctionFacts, node: ast.expr, rank: int) -> tuple[ast.expr | None, int]:
    """The variable of one dimension that an operand of two is made of, and the dimension that it has not; None for others."""
    axis = 0
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        axis = next((i for i, part in enumerate(node.slice.elts) if isinstance(part, ast.Constant)), 0)
        node = node.value
    fact = facts.tensor(node)
    is_row = isinstance(node, ast.Name) and fact is not None and fact.rank == 1 and rank == 2 and not fact.is_pointer
    return (node, axis) if is_row else (None, 0)


def narrowed_home(facts: FunctionFacts, is_cheap: Cheap, home_of: HomeOf, node: ast.AST, want: Layout) -> Layout | None:
    """The layout of what the cast `node` makes narrower, where less is moved to `want` after the cast than before it.

    What a reduction left in a slice is held by many lanes, each of which would cast its copies.
    """
    value = cast_of(facts, node)
    before = facts.tensor(value) if value is not None and not is_cheap(node) else None
    if before is None or before.is_pointer or bits_of(before.dtype) <= bits_of(facts.tensor(node).dtype):
        return None
    home = home_of(value)
    return None if isinstance(home, Slice) and not isinstance(want, Slice) else home
