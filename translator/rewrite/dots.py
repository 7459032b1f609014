"""`tl.dot` as matrix instructions: MFMA on CDNA3/4, WMMA on RDNA and CDNA5, FMA where there is no instruction.

The instruction, the warp arrangement and the operand layouts are Triton's own choice for the target, read back from
its passes; what differs is written down here with its reason.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from translator.frontend.trace import ConstFact, TensorFact
from translator.rewrite import callees, fp8, invariant, moved_once, shapes
from translator.rewrite.splice import operand
from translator.rewrite.unit import Synthesized, added, refuse
from translator.ttgir.elements import bits_of
from translator.ttgir.layouts import Blocked, DotOperand, Layout, Mfma, Wmma

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

# MLIR element types and the Gluon dtype of the same name.
ELEMENT = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i32": "int32",
    "f8E4M3FN": "float8e4nv",
    "f8E5M2": "float8e5",
    "f8E4M3FNUZ": "float8e4b8",
    "f8E5M2FNUZ": "float8e5b16",
}
DTYPE = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "int8": "int8",
    "int32": "int32",
    "uint8": "uint8",
    "fp8e4nv": "float8e4nv",
    "fp8e5": "float8e5",
    "fp8e4b8": "float8e4b8",
    "fp8e5b16": "float8e5b16",
}
_TRITON = {"f16": "fp16", "f32": "fp32"}  # what operands are widened to
SCALED_FORMAT = {"fp8e4nv": "e4m3", "fp8e5": "e5m2"}
# Gluon's mfma has no precision; the operation under it has one.
_MFMA_TF32 = '''@builtin
def mfma_tf32(a, b, acc, _semantic=None):
    """`mfma` of fp32 operands in the precision that `tl.dot` has here unless it is told otherwise: TF32."""
    product = _semantic.dot(a, b, acc, input_precision="tf32", max_num_imprecise_acc=None, out_dtype=acc.dtype)
    return gl.tensor(product.handle, acc.type)
'''


def is_dot(rw: "FunctionRewriter", node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    callee = callees.callee_of(rw, node)
    return callee is not None and callee.row is not None and callee.row.kind == "dot"


def can_accumulate(rw, dot: ast.AST, other: ast.AST, result: TensorFact | None, widen: bool = False) -> bool:
    """Whether `other + dot` may use `other` as the accumulator: same type, and the dot has none of its own.

    widen: a narrower floating-point type will do, as the sum has the type of the dot.
    """
    if not is_dot(rw, dot) or result is None:
        return False
    given = callees.bind(rw, dot, callees.callee_of(rw, dot))
    acc = given.get("acc")
    if acc is not None and not callees.is_none(rw, acc):
        return False
    mine, its = rw.tensor(other), rw.tensor(dot)
    if isinstance(other, ast.Name) and mine is None:
        return False
    if mine is None or its is None or mine.shape != its.shape:
        return False
    return mine.dtype == its.dtype or (widen and mine.dtype in ("fp16", "bf16") and its.dtype == "fp32")


class DotPlan:
    """Layouts and operand dtypes of one dot."""

    def __init__(self, rw: "FunctionRewriter", node: ast.Call):
        self.node = node
        callee = callees.callee_of(rw, node)
        self.given = callees.bind(rw, node, callee)
        self.a, self.b = self.given["input"], self.given["other"]
        self.fact = rw.tensor(node)
        fa, fb = rw.tensor(self.a), rw.tensor(self.b)
        if fa is None or fb is None:
            raise refuse(rw.frame, node, "dot-operands", "operands of `tl.dot` have no known type")
        self.scaled = self.tf32 = False
        placed = rw.placed(node, "tt.dot")
        scaled = rw.placed(node, "tt.dot_scaled") or rw.placed(node, "amdg.dot_scaled")
        ops = placed or scaled or self._twins(rw, fa, fb)
        if not ops:
            self._unplaced(rw, fa, fb)
            return
        op = ops[0]
        self.scaled = ops[0].name != "tt.dot"
        types = [t for t in op.operands if isinstance(t.layout, DotOperand)]
        if len(types) < 2:
            raise refuse(rw.frame, node, "dot-layout", "no operand layouts for this `tl.dot`", op.op.text)
        self.result = op.results[0].layout
        self.a_layout, self.b_layout = types[0].layout, types[1].layout
        self.a_element, self.b_element = types[0].element, types[1].element
        self.acc_element = op.results[0].element
        self.tf32 = rw.unit.target.has_tf32 and "inputPrecision = tf32" in op.op.text and self.a_element == "f32"
        self._adapt(rw, fa)

    def _unplaced(self, rw, fa: TensorFact, fb: TensorFact) -> None:
        """Triton removed this dot (its result is never used) and has no other like it: multiply-adds always exist."""
        self.scaled = False
        self.result = rw.default_layout(self.fact.shape)
        self.a_layout, self.b_layout = DotOperand(0, self.result, 0), DotOperand(1, self.result, 0)
        spelled = {gluon: mlir for mlir, gluon in ELEMENT.items()}
        self.a_element, self.b_element = (spelled.get(DTYPE.get(f.dtype, ""), "f32") for f in (fa, fb))
        self.acc_element = spelled.get(DTYPE[self.fact.dtype], "f32")

    def _twins(self, rw, fa: TensorFact, fb: TensorFact) -> list:
        """Dots of the same shapes elsewhere: Triton merged this one with an equal one, or dropped it as unused."""
        shapes = (fa.shape, fb.shape)
        found = []
        for op in rw.unit.anchors.ops:
            if op.name in ("tt.dot", "tt.dot_scaled"):
                types = [t for t in op.operands if isinstance(t.layout, DotOperand)]
                if tuple(t.shape for t in types[:2]) == shapes and DTYPE.get(fa.dtype) == ELEMENT.get(types[0].element):
                    found.append(op)
        return found

    def _adapt(self, rw, fa: TensorFact) -> None:
        mma = self.result
        if isinstance(mma, Mfma) and fa.dtype == "fp32" and self.a_element in ("f32", "bf16") and not self.tf32:
            # Of an ieee product the instructions have a K of 2 (32-wide) or 4 (16-wide), one element per lane.
            wide = mma.instr_shape[0] == 32
            self._retarget(replace(mma, instr_shape=(*mma.instr_shape[:2], 2 if wide else 4)), 1)
            self.a_element = self.b_element = "f32"
        elif isinstance(mma, Wmma) and fa.dtype == "fp32" and self.a_element == "bf16":
            self._retarget(replace(mma, instr_shape=(16, 16, 4)), 2)
            self.a_element = self.b_element = "f32"

    def _retarget(self, mma: Layout, k_width: int) -> None:
        self.result = mma
        self.a_layout, self.b_layout = DotOperand(0, mma, k_width), DotOperand(1, mma, k_width)


def emit_dot(
    rw: "FunctionRewriter",
    node: ast.Call,
    want: Layout | None,
    accumulator: ast.expr | None = None,
    accumulator_text: str | None = None,
) -> str:
    plan = DotPlan(rw, node)
    fa, fb = rw.tensor(plan.a), rw.tensor(plan.b)
    if accumulator is None and accumulator_text is None:
        given = plan.given.get("acc")
        if given is not None and not callees.is_none(rw, given):
            accumulator = given
    _suggest_names(rw, plan)
    acc_dtype = ELEMENT[plan.acc_element]
    result_dtype = DTYPE[plan.fact.dtype]
    if accumulator is not None:
        acc = rw.emit(accumulator, plan.result)
        if DTYPE[rw.fact(accumulator).dtype] != acc_dtype:
            acc = f"{operand(acc)}.to(gl.{acc_dtype})"
    elif accumulator_text is not None:
        acc = accumulator_text if want == plan.result else rw.convert(accumulator_text, plan.result)
        if result_dtype != acc_dtype:
            acc = f"{operand(acc)}.to(gl.{acc_dtype})"
    else:
        shape = shapes.shape_text(rw, plan.node)
        acc = f"gl.zeros({shape}, gl.{acc_dtype}, layout={rw.names.spell(plan.result)})"
    a = _operand(rw, plan.a, fa, plan.a_element, plan.a_layout, node)
    b = _operand(rw, plan.b, fb, plan.b_element, plan.b_layout, node)
    text = _instruction(rw, plan, fa, fb, a, b, acc)
    if result_dtype != acc_dtype:
        text = f"{text}.to(gl.{result_dtype})"
    return text if want is None or want == plan.result else rw.convert(text, want)


def _operand(rw, node: ast.expr, fact: TensorFact, element: str, layout: Layout, dot: ast.Call) -> str:
    """The operand in the instruction's dtype and layout."""
    if DTYPE.get(fact.dtype) == ELEMENT[element]:
        before = invariant.operand_before_loop(rw, node, layout, DTYPE)
        return before or moved_once.moved_operand(rw, node, layout, dot)
    home = layout if rw.cheap(node) else rw.home(node)
    text = fp8.cast(rw, rw.emit(node, home), fact.dtype, _TRITON.get(element, ""), f"gl.{ELEMENT[element]}")
    return text if home == layout else rw.convert(text, layout)


_FILLED = "gl.allocate_shared_memory("  # in the text of an operand that is moved through LDS where it is used


def _instruction(rw, plan: DotPlan, fa, fb, a: str, b: str, acc: str) -> str:
    moved = "gl.convert_layout(" in acc or ".load(" in acc  # itself, or operands of the product that it is
    if moved and not (a.isidentifier() and b.isidentifier()):
        # Keywords are evaluated first: operands read before would be held across the barriers of the move.
        acc = f"acc={acc}"
    if isinstance(plan.result, Blocked):
        if ".load(" in a and ".load(" in b and _held(rw, plan, 1) < _held(rw, plan, 0):
            # What is read first is held across the barriers of the other read.
            return f"gl.dot_fma(acc={acc.removeprefix('acc=')}, b={b}, a={a})"
        return f"gl.dot_fma({a}, {b}, {acc})"
    if plan.scaled:
        if not rw.unit.target.has_scaled_dots:
            raise refuse(rw.frame, plan.node, "dot-scaled", "no scaled matrix instruction on this target")
        module = rw.record.amd(rw.unit.dot_module)
        name = "mfma_scaled" if isinstance(plan.result, Mfma) else "wmma_scaled"
        formats = [SCALED_FORMAT[f.dtype] for f in (fa, fb)]
        return f'{module}.{name}({a}, None, "{formats[0]}", {b}, None, "{formats[1]}", {acc})'
    if plan.tf32:
        rw.record.imports.add("from triton.language.core import builtin")
        return f"{added(rw, Synthesized('mfma_tf32', _MFMA_TF32))}({a}, {b}, {acc})"
    module = rw.record.amd(rw.unit.dot_module)
    name = "mfma" if isinstance(plan.result, Mfma) else "wmma"
    if all(_FILLED in text for text in (a, b)) and _tiles(rw, plan, 1) < _tiles(rw, plan, 0):
        # What is read first is held across the barriers of the other read.
        return f"{module}.{name}({a}, acc={acc.removeprefix('acc=')}, b={b})"
    return f"{module}.{name}({a}, {b}, {acc})"


def _tiles(rw, plan: DotPlan, which: int) -> int:
    """Rows or columns of tiles that a warp holds of an operand, on RDNA, where two operands fill the registers; else 0."""
    if not isinstance(plan.result, Wmma) or not rw.unit.target.has_few_registers:
        return 0
    dim = plan.result.rank - 2 + which
    warps = 2 ** sum(bool(base[dim]) for base in plan.result.warp_bases)
    return max(1, rw.tensor((plan.a, plan.b)[which]).shape[dim] // plan.result.instr_shape[which] // warps)


def multiplies(rw, statement: ast.AST) -> bool:
    """Whether there is a product in a statement."""
    return any(is_dot(rw, n) for n in ast.walk(statement))


def _held(rw, plan: DotPlan, which: int) -> int:
    """Bits of an operand of a multiply-add that a lane holds: whole rows or columns, in the type that they are read in."""
    node, layout = (plan.a, plan.b)[which], plan.result
    shape = rw.tensor(node).shape
    along = len(shape) - 1 - which
    held = 1
    for d, size in enumerate(shape):
        spread = layout.threads_per_warp[d] * layout.warps_per_cta[d]
        held *= size if d == along else max(layout.size_per_thread[d], size // spread)
    while (inner := callees.cast_of(rw, node)) is not None:
        node = inner
    return held * bits_of(rw.tensor(node).dtype)


def _suggest_names(rw, plan: DotPlan) -> None:
    kind = "dot" if isinstance(plan.result, Blocked) else "mma" if isinstance(plan.result, Mfma) else "wmma"
    rw.names.suggest(plan.result, kind, 1, plan.node.lineno)
    for node, layout in ((plan.a, plan.a_layout), (plan.b, plan.b_layout)):
        inner = node
        while isinstance(inner, (ast.Call, ast.Attribute)):
            inner = inner.func if isinstance(inner, ast.Call) else inner.value
        if isinstance(inner, ast.Name) and rw.tensor(inner) is not None:
            rw.names.suggest(layout, f"{inner.id.lower()}_operand", 1, plan.node.lineno)


__all__ = ["ConstFact", "DotPlan", "can_accumulate", "emit_dot", "is_dot"]
