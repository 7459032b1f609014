"""Matrix products: what Triton chose for each, and which sums they may add to."""

from __future__ import annotations

import ast
from dataclasses import replace

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.refusals import refuse
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.language import DTYPES
from gluonize.trace.model.layouts import DotOperand, Layout, Mfma, Wmma

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


def can_accumulate(
    facts: FunctionFacts, dot: ast.AST, other: ast.AST, result: TensorFact | None, widen: bool = False
) -> bool:
    """Whether `other + dot` may use `other` as the accumulator: same type, and the dot has none of its own.

    widen: a narrower floating-point type will do, as the sum has the type of the dot.
    """
    if not callees.is_dot(facts, dot) or result is None:
        return False
    given = callees.bound(facts, dot)
    acc = given.get("acc")
    if callees.is_given(facts, acc):
        return False
    mine, its = facts.tensor(other), facts.tensor(dot)
    if isinstance(other, ast.Name) and mine is None:
        return False
    if mine is None or its is None or mine.shape != its.shape:
        return False
    return mine.dtype == its.dtype or (widen and mine.dtype in ("fp16", "bf16") and its.dtype == "fp32")


class DotPlan:
    """Layouts and operand dtypes of one dot."""

    def __init__(self, facts: FunctionFacts, node: ast.Call):
        self.node = node
        callee = callees.callee_of(facts, node)
        self.given = callees.bind(node, callee)
        self.a, self.b = self.given["input"], self.given["other"]
        self.fact = facts.tensor(node)
        fa, fb = facts.tensor(self.a), facts.tensor(self.b)
        if fa is None or fb is None:
            raise refuse(facts.frame, node, "dot-operands", "operands of `tl.dot` have no known type")
        self.scaled = self.tf32 = False
        placed = facts.placed(node, "tt.dot")
        scaled = facts.placed(node, "tt.dot_scaled") or facts.placed(node, "amdg.dot_scaled")
        ops = placed or scaled or self._twins(facts, fa, fb)
        if not ops:
            self._unplaced(facts, fa, fb)
            return
        op = ops[0]
        self.scaled = ops[0].name != "tt.dot"
        types = [t for t in op.operands if isinstance(t.layout, DotOperand)]
        if len(types) < 2:
            raise refuse(facts.frame, node, "dot-layout", "no operand layouts for this `tl.dot`", op.op.text)
        self.result = op.results[0].layout
        self.a_layout, self.b_layout = types[0].layout, types[1].layout
        self.a_element, self.b_element = types[0].element, types[1].element
        self.acc_element = op.results[0].element
        self.tf32 = (
            facts.kernel.target.has_tf32
            and op.op.attribute("inputPrecision", "").startswith("tf32")
            and self.a_element == "f32"
        )
        self._adapt(fa)

    def _unplaced(self, facts: FunctionFacts, fa: TensorFact, fb: TensorFact) -> None:
        """Triton removed this dot (its result is never used) and has no other like it: multiply-adds always exist."""
        self.scaled = False
        self.result = facts.default_layout(self.fact.shape)
        self.a_layout, self.b_layout = DotOperand(0, self.result, 0), DotOperand(1, self.result, 0)
        spelled = {gluon: mlir for mlir, gluon in DTYPES.items()}
        self.a_element, self.b_element = (spelled.get(DTYPE.get(f.dtype, ""), "f32") for f in (fa, fb))
        self.acc_element = spelled.get(DTYPE[self.fact.dtype], "f32")

    def _twins(self, facts: FunctionFacts, fa: TensorFact, fb: TensorFact) -> list:
        """Dots of the same shapes elsewhere: Triton merged this one with an equal one, or dropped it as unused."""
        shapes = (fa.shape, fb.shape)
        found = []
        for op in facts.kernel.anchors.ops:
            if op.name in ("tt.dot", "tt.dot_scaled"):
                types = [t for t in op.operands if isinstance(t.layout, DotOperand)]
                if tuple(t.shape for t in types[:2]) == shapes and DTYPE.get(fa.dtype) == DTYPES.get(types[0].element):
                    found.append(op)
        return found

    def _adapt(self, fa: TensorFact) -> None:
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


def multiplies(facts: FunctionFacts, statement: ast.AST) -> bool:
    """Whether there is a product in a statement."""
    return any(callees.is_dot(facts, n) for n in ast.walk(statement))
