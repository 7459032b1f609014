"""`tl.dot` as matrix instructions: MFMA on CDNA3/4, WMMA on RDNA and CDNA5, FMA where there is no instruction.

The instruction, the warp arrangement and the operand layouts are Triton's own choice for the target, read back from
its passes; what differs is written down here with its reason.
"""

from __future__ import annotations

import ast

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.products import products
from gluonize.facts.products.products import DTYPE, DotPlan
from gluonize.facts.refusals import refuse
from gluonize.facts.variables.definitions import assigned_fact
from gluonize.gluon.layout_names import LayoutNames, product_role
from gluonize.gluon.nodes import Name, Named, Operand, Product, Read, Slot, beside, walk
from gluonize.gluon.own_builtins import BUILTIN, MFMA_TF32
from gluonize.gluon.written import Does, Written, call, keyword, method
from gluonize.gluon.written import name as variable
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.language import DTYPES
from gluonize.trace.model.layouts import Blocked, Layout, Mfma, Wmma
from gluonize.write.products import fp8, invariant, moved_once
from gluonize.write.state import shapes
from gluonize.write.state.relations import Wants
from gluonize.write.state.site import Site, Spot
from gluonize.write.state.unit import Synthesized
from gluonize.write.state.writing import Writing, added

_TRITON = {"f16": "fp16", "f32": "fp32"}  # what operands are widened to
SCALED_FORMAT = {"fp8e4nv": "e4m3", "fp8e5": "e5m2"}
# Which of the instructions a product has follows from its layout: the scaled one is deeper.
_MULTIPLY_FP8 = '''@gluon.jit
def multiply_fp8(a, b, a_format: gl.constexpr, b_format: gl.constexpr, acc):
    """`acc` with the product of `a` and `b`, by the instruction for scaled operands where the layout has its depth."""
    depth: gl.constexpr = acc.type.layout.instr_shape[2]
    if depth >= 64:
        return {module}.mfma_scaled(a, None, a_format, b, None, b_format, acc)
    else:
        return {module}.mfma(a, b, acc)
'''


def emit_dot(
    site: Site,
    node: ast.Call,
    want: Layout | None,
    accumulator: ast.expr | None = None,
    accumulator_text: Name | None = None,
) -> Written:
    """A product, which comes in layout `want`. accumulator: the expression that it is added to; accumulator_text: the variable, where
    that is known by its name in the output."""
    plan = DotPlan(site.facts, node)
    fa, fb = site.facts.tensor(plan.a), site.facts.tensor(plan.b)
    if accumulator_text is None:
        accumulator = accumulator or _given_accumulator(site.facts, plan)
    _suggest_names(site.facts, site.names, plan)
    acc_dtype = DTYPES[plan.acc_element]
    result_dtype = DTYPE[plan.fact.dtype]
    if accumulator is not None:
        acc = site.emit(accumulator, plan.result)
        if DTYPE[site.facts.fact(accumulator).dtype] != acc_dtype:
            acc = method(acc, "to", f"gl.{acc_dtype}")
    elif accumulator_text is not None:
        acc = variable(accumulator_text)
        acc = acc if want == plan.result else site.convert(acc, plan.result)
        if result_dtype != acc_dtype:
            acc = method(acc, "to", f"gl.{acc_dtype}")
    else:
        shape = shapes.shape_text(site.facts, site.emit, site.rebound, plan.node)
        acc = call("gl.zeros", shape, f"gl.{acc_dtype}", keyword("layout", site.names.spell(plan.result)))
    a = _operand(site, plan.a, fa, plan.a_element, plan.a_layout, node)
    b = _operand(site, plan.b, fb, plan.b_element, plan.b_layout, node)
    text = _instruction(site, plan, fa, fb, a, b, acc)
    if result_dtype != acc_dtype:
        text = method(text, "to", f"gl.{result_dtype}")
    return text if want is None or want == plan.result else site.convert(text, want)


def _given_accumulator(facts: FunctionFacts, plan: DotPlan) -> ast.expr | None:
    given = plan.given.get("acc")
    return given if callees.is_given(facts, given) else None


def dot_wants(site: Spot, node: ast.Call, accumulator: ast.expr | None = None, in_place: bool = False) -> Wants:
    """In which layouts a product wants its accumulator, which it may be added to in place, and its operands."""
    plan = DotPlan(site.facts, node)
    wants: Wants = {}
    if not in_place and (acc := accumulator or _given_accumulator(site.facts, plan)) is not None:
        wants[acc] = plan.result
    for operand, element, layout in ((plan.a, plan.a_element, plan.a_layout), (plan.b, plan.b_element, plan.b_layout)):
        wants |= operand_wants(site, operand, element, layout, node)
    return wants


def operand_wants(site: Spot, node: ast.expr, element: str, layout: Layout, dot: ast.Call) -> Wants:
    """In which layout the instruction wants what its operand is made of."""
    if DTYPE.get(site.facts.tensor(node).dtype) != DTYPES[element]:
        return {node: layout if site.cheap(node) else site.home(node)}
    before = invariant.unchanging_operand(site, node, layout, DTYPE)
    return {before[0]: None} if before is not None else moved_once.wants(site, node, layout, dot)


def _operand(site: Site, node: ast.expr, fact: TensorFact, element: str, layout: Layout, dot: ast.Call) -> Written:
    """The operand in the instruction's dtype and layout."""
    if DTYPE.get(fact.dtype) == DTYPES[element]:
        before = invariant.operand_before_loop(site, node, layout, DTYPE)
        return before or moved_once.moved_operand(site, node, layout, dot)
    home = operand_wants(site, node, element, layout, dot)[node]
    text = fp8.cast(site, site.emit(node, home), fact.dtype, _TRITON.get(element, ""), f"gl.{DTYPES[element]}")
    return text if home == layout else site.convert(text, layout)


def _instruction(site: Site, plan: DotPlan, fa, fb, a: Written, b: Written, acc: Written) -> Written:
    moves = acc.does & (Does.CONVERTS | Does.READS)  # itself, or operands of the product that it is
    given = acc
    if moves and not (a.is_name and b.is_name):
        # Keywords are evaluated first: operands read before would be held across the barriers of the move.
        given = keyword("acc", acc)
    if isinstance(plan.result, Blocked):
        if a.does & b.does & Does.READS and _held(site.facts, plan, 1) < _held(site.facts, plan, 0):
            # What is read first is held across the barriers of the other read.
            return call("gl.dot_fma", keyword("acc", acc), keyword("b", b), keyword("a", a))
        return call("gl.dot_fma", a, b, given)
    pinned = registers(site, plan.result)
    filled = a.does & b.does & Does.FILLS
    a, b = (_as_operand(site, node, text) for node, text in ((plan.a, a), (plan.b, b)))
    if site.facts.kernel.loose and _is_scaled_for_some_sizes(site.facts, plan, fa, fb) and not pinned:
        text = _MULTIPLY_FP8.format(module=site.record.amd(site.facts.kernel.dot_module))
        name = added(site.facts, site.record, Synthesized("multiply_fp8", text))
        formats = (f'"{SCALED_FORMAT[f.dtype]}"' for f in (fa, fb))
        return _product(site, plan, call(name, a, b, *formats, given))
    if plan.scaled:
        if not site.facts.kernel.target.has_scaled_dots:
            raise refuse(site.facts.frame, plan.node, "dot-scaled", "no scaled matrix instruction on this target")
        module = site.record.amd(site.facts.kernel.dot_module)
        name = f"{site.facts.kernel.target.matrix_kind}_scaled"
        formats = [SCALED_FORMAT[f.dtype] for f in (fa, fb)]
        arguments = (a, "None", f'"{formats[0]}"', b, "None", f'"{formats[1]}"', given, *pinned)
        return _product(site, plan, call(f"{module}.{name}", *arguments))
    if plan.tf32:
        site.record.imports.add(BUILTIN)
        return call(added(site.facts, site.record, Synthesized("mfma_tf32", MFMA_TF32)), a, b, given)
    module = site.record.amd(site.facts.kernel.dot_module)
    name = site.facts.kernel.target.matrix_kind
    if filled and _tiles(site.facts, plan, 1) < _tiles(site.facts, plan, 0):
        # What is read first is held across the barriers of the other read.
        return _product(site, plan, call(f"{module}.{name}", a, keyword("acc", acc), keyword("b", b), *pinned))
    return _product(site, plan, call(f"{module}.{name}", a, b, given, *pinned))


def _is_scaled_for_some_sizes(facts: FunctionFacts, plan: DotPlan, fa: TensorFact, fb: TensorFact) -> bool:
    fp8 = fa.dtype in SCALED_FORMAT and fb.dtype in SCALED_FORMAT
    return fp8 and isinstance(plan.result, Mfma) and facts.kernel.target.has_scaled_dots


def registers(writing: Writing, result: Layout) -> tuple[Written, ...]:
    """The argument of a matrix instruction that says in which registers its accumulator is; none where the compiler decides."""
    value = writing.decided.choices.value("accumulator-registers", writing.facts.kernel.target)
    if value == "compiler" or not isinstance(result, Mfma):
        return ()
    return (keyword("cd_regclass", f'"{value[0]}"'),)


def _as_operand(site: Site, node: ast.expr, text: Written) -> Written:
    """An operand, which is the text `text`; its stem is the variable under casts and transposes, or the ring it is read from."""
    if not site.pipelined:
        return text
    code, stem = text.code, node
    while not isinstance(stem, ast.Name):
        stem = callees.cast_of(site.facts, stem) or callees.transposed_by(site.facts, stem)
        if stem is None:
            break
    read = next((n for n in walk(code) if isinstance(n, Read)), None)
    place = next((n for n in walk(read) if isinstance(n, (Slot, Named))), None)
    own = place.ring if isinstance(place, Slot) else place.name if place is not None else ""
    return site.expression(
        Operand(code, own or (stem.id if stem is not None else "dot"), beside(site.reads(node), code)), text
    )


def _product(site: Site, plan: DotPlan, text: Written) -> Written:
    if not site.pipelined:
        return text
    return site.expression(Product(text.code, site.reads(plan.node, (plan.a, plan.b))), text)


def _tiles(facts: FunctionFacts, plan: DotPlan, which: int) -> int:
    """Rows or columns of tiles that a warp holds of an operand, on RDNA, where two operands fill the registers; else 0."""
    if not isinstance(plan.result, Wmma) or not facts.kernel.target.has_few_registers:
        return 0
    dim = plan.result.rank - 2 + which
    warps = 2 ** sum(bool(base[dim]) for base in plan.result.warp_bases)
    return max(1, facts.tensor((plan.a, plan.b)[which]).shape[dim] // plan.result.instr_shape[which] // warps)


def _held(facts: FunctionFacts, plan: DotPlan, which: int) -> int:
    """Bits of an operand of a multiply-add that a lane holds: whole rows or columns, in the type that they are read in."""
    node, layout = (plan.a, plan.b)[which], plan.result
    shape = facts.tensor(node).shape
    along = len(shape) - 1 - which
    held = 1
    for d, size in enumerate(shape):
        spread = layout.threads_per_warp[d] * layout.warps_per_cta[d]
        held *= size if d == along else max(layout.size_per_thread[d], size // spread)
    while (inner := callees.cast_of(facts, node)) is not None:
        node = inner
    return held * bits_of(facts.tensor(node).dtype)


def _suggest_names(facts: FunctionFacts, names: LayoutNames, plan: DotPlan) -> None:
    names.suggest(plan.result, product_role(plan.result), 1, plan.node.lineno)
    for node, layout in ((plan.a, plan.a_layout), (plan.b, plan.b_layout)):
        inner = node
        while isinstance(inner, (ast.Call, ast.Attribute)):
            inner = inner.func if isinstance(inner, ast.Call) else inner.value
        if isinstance(inner, ast.Name) and facts.tensor(inner) is not None:
            names.suggest(layout, f"{inner.id.lower()}_operand", 1, plan.node.lineno)


def fused(facts: FunctionFacts, node: ast.AST) -> tuple[ast.Call, ast.expr] | None:
    """(the product, the accumulator) of `acc + tl.dot(a, b)`, which is one matrix operation."""
    fact = facts.tensor(node)
    if fact is None or not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return None
    for dot, other in ((node.right, node.left), (node.left, node.right)):
        if products.can_accumulate(facts, dot, other, fact, widen=True):
            return dot, other
    return None


def fused_wants(site: Spot, node: ast.AST) -> Wants | None:
    """What an addition that is a matrix operation wants; None for others."""
    found = fused(site.facts, node)
    return None if found is None else dot_wants(site, *found)


def fused_dot(site: Site, node: ast.AST, want: Layout | None) -> Written | None:
    """`acc + tl.dot(a, b)` as one matrix operation with `acc` as accumulator."""
    found = fused(site.facts, node)
    return None if found is None else emit_dot(site, found[0], want, accumulator=found[1])


def accumulates(facts: FunctionFacts, s: ast.AugAssign) -> bool:
    """Whether `acc += tl.dot(a, b)` is one matrix operation."""
    return isinstance(s.op, ast.Add) and products.can_accumulate(facts, s.value, s.target, assigned_fact(facts, s))


def accumulated_wants(site: Spot, s: ast.AugAssign) -> Wants:
    """What such an operation wants of its operands."""
    return dot_wants(site, s.value, in_place=True)


def accumulated_dot(site: Site, s: ast.AugAssign, variant: Name, layout: Layout) -> Written | None:
    """`acc += tl.dot(a, b)` as one matrix operation."""
    return emit_dot(site, s.value, layout, accumulator_text=variant) if accumulates(site.facts, s) else None
