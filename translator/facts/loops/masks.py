"""Selections of a loop that keep everything in most iterations, as masks of attention do away from the diagonal.

rows = row + tl.arange(0, M)              a block is kept whole where its last column is not beyond its first row:
for n in range(0, end, N):                two numbers decide that, and the mask need not be made
    cols = n + tl.arange(0, N)
    x = tl.where(rows[:, None] >= cols[None, :], x, float("-inf"))
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.operations import SAME_ELEMENTS, operation_of
from gluonize.facts.loops.loop_range import int_of
from gluonize.facts.variables.definitions import assigned_fact
from gluonize.trace.front.trace import ConstFact, TensorFact

_TURNED = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}


@dataclass(frozen=True)
class Run:
    """Consecutive 32-bit numbers. start: what the first is the sum of, as (sign, number). size: how many there are, None for one."""

    start: tuple[tuple[str, ast.expr], ...]
    size: ast.expr | None = None

    def plus(self, other: Run, sign: str) -> Run | None:
        """The sums, or differences, with the numbers of another run; None where they are no run."""
        if self.size is not None and other.size is not None or sign == "-" and other.size is not None:
            return None
        turned = {"+": "-", "-": "+"}
        return Run(
            (*self.start, *((turned[s] if sign == "-" else s, node) for s, node in other.start)),
            self.size or other.size,
        )


@dataclass(frozen=True)
class Ordered:
    """A mask that is true where the number of `low` is less than that of `high`, or, unless `strict`, the same."""

    low: Run
    high: Run
    strict: bool


@dataclass(frozen=True)
class Selection:
    """`tl.where(mask, x, other)`: it is `x` where all of the mask, in its parts `masks`, is true. kept: `x`."""

    call: ast.Call
    kept: ast.expr
    masks: tuple[Ordered, ...]

    @property
    def numbers(self) -> list[ast.expr]:
        """What the masks compare."""
        return [node for m in self.masks for run in (m.low, m.high) for _, node in run.start]


def is_of_itself(s: ast.stmt, selection: Selection) -> bool:
    """Whether a statement is `x = tl.where(mask, x, other)`, which does nothing where all of the mask is true."""
    plain = isinstance(s, ast.Assign) and len(s.targets) == 1 and s.value is selection.call
    return plain and isinstance(selection.kept, ast.Name) and ast.unparse(s.targets[0]) == selection.kept.id


def selection_of(facts: FunctionFacts, call: ast.AST, loop: ast.AST) -> Selection | None:
    """The selection that an expression in `loop` is; None where it is none, or its mask is the same in all iterations."""
    operation = operation_of(call, facts.fact(call.func)) if isinstance(call, ast.Call) else None
    if operation is None or operation.name != "where" or getattr(call, "iteration", None) is not None:
        return None
    kept, mask = operation.operands.get("x"), operation.operands.get("condition")
    if kept is None or mask is None or not _stands_for(facts, kept, call):
        return None
    masks = tuple(_ordered(facts, part) for part in _parts(facts, mask))
    if not all(masks) or not any(_changes(facts, loop, m) for m in masks):
        return None
    return Selection(call, kept, masks)


def _stands_for(facts: FunctionFacts, kept: ast.expr, call: ast.Call) -> bool:
    """Whether `kept` may be written for a selection that keeps all of it: it is such a tensor, or a number that is added to one."""
    fact, parent = facts.tensor(call), facts.parents.get(call)
    if fact is None or facts.tensor(kept) == fact:
        return fact is not None
    if not isinstance(parent, ast.BinOp | ast.AugAssign) or not isinstance(parent.op, ast.Add | ast.Sub):
        return False
    if isinstance(parent, ast.AugAssign):
        other = assigned_fact(facts, parent)
    else:
        other = facts.tensor(parent.right if parent.left is call else parent.left)
    return isinstance(facts.settled(kept), ConstFact) and other == fact


def _parts(facts: FunctionFacts, mask: ast.expr) -> list[ast.expr]:
    """What a mask is the conjunction of."""
    inner = _under(facts, mask)
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.BitAnd):
        return [*_parts(facts, inner.left), *_parts(facts, inner.right)]
    return [inner]


def is_mask(facts: FunctionFacts, node: ast.expr) -> bool:
    """Whether an expression is a mask of which all is known, and nothing but its value."""
    return all(_ordered(facts, part) is not None for part in _parts(facts, node))


def _ordered(facts: FunctionFacts, mask: ast.expr) -> Ordered | None:
    if not isinstance(mask, ast.Compare) or len(mask.ops) != 1:
        return None
    low, high, kind = mask.left, mask.comparators[0], type(mask.ops[0])
    if kind in _TURNED:
        low, high, kind = high, low, _TURNED[kind]
    runs = _run(facts, low), _run(facts, high)
    if kind not in (ast.Lt, ast.LtE) or runs[0] is None or runs[1] is None:
        return None
    return Ordered(runs[0], runs[1], kind is ast.Lt)


def _run(facts: FunctionFacts, node: ast.expr) -> Run | None:
    """The run that an expression is: a sum of numbers, and of one `arange` at most."""
    fact = facts.fact(node)
    if not (isinstance(fact, TensorFact) and fact.shape):
        return Run((("+", node),)) if is_number(facts, node) else None
    node = _under(facts, node)
    if isinstance(node, ast.Call) and (operation := operation_of(node, facts.fact(node.func))) is not None:
        first, last = operation.operands.get("start"), operation.operands.get("end")
        if operation.name == "arange" and first is not None and last is not None and int_of(facts, first) == 0:
            return Run((), last)
    if (
        not isinstance(node, ast.BinOp)
        or not isinstance(node.op, ast.Add | ast.Sub)
        or facts.fact(node).dtype != "int32"
    ):
        return None
    left, right = _run(facts, node.left), _run(facts, node.right)
    return left.plus(right, "+" if isinstance(node.op, ast.Add) else "-") if left and right else None


def _under(facts: FunctionFacts, node: ast.expr) -> ast.expr:
    """The expression that gives the elements of a tensor, under variables, new axes and hints."""
    while True:
        inner: ast.expr | None = None
        if isinstance(node, ast.Name):
            inner = facts.webs.value_of(node)
        elif isinstance(node, ast.Subscript) and facts.tensor(node.value) is not None:
            inner = node.value
        elif isinstance(node, ast.Call) and (operation := operation_of(node, facts.fact(node.func))) is not None:
            inner = operation.first if operation.name in SAME_ELEMENTS else None
        if inner is None:
            return node
        node = inner


def is_number(facts: FunctionFacts, node: ast.expr) -> bool:
    """Whether an expression is the same 32-bit number wherever it stands in an iteration: its variables have one value each."""
    fact = facts.settled(node)
    if isinstance(fact, ConstFact):
        return type(fact.value) is int and -(2**31) <= fact.value < 2**31
    if not isinstance(fact, TensorFact) or fact.shape or fact.dtype != "int32":
        return False
    calls = (n for n in ast.walk(node) if isinstance(n, ast.Call))
    if any(callees.kind_of(facts, call) not in callees.PURE_KINDS for call in calls):
        return False
    return all(_is_fixed(facts, n) for n in ast.walk(node) if isinstance(n, ast.Name) and n in facts.webs.of_use)


def _is_fixed(facts: FunctionFacts, name: ast.Name) -> bool:
    """Whether a variable has one value wherever what is made of it here can be read: one definition, or that of a loop which has no
    other in it."""
    every = [d for w in facts.webs.all if w.name == name.id for d in w.definitions]
    own = facts.webs.definition_of(name)
    if own is None or len(every) == 1:
        return own is not None
    return isinstance(own.node, ast.For) and not any(own.node in d.in_loop for d in every if d.node is not own.node)


def _changes(facts: FunctionFacts, loop: ast.AST, mask: Ordered) -> bool:
    """Whether one of the numbers that a mask compares may be another in the next iteration."""
    for _, node in (*mask.low.start, *mask.high.start):
        webs = (facts.webs.of_use.get(n) for n in ast.walk(node) if isinstance(n, ast.Name))
        if any(loop in d.in_loop or d.node is loop for web in webs if web is not None for d in web.definitions):
            return True
    return False


__all__ = ["Ordered", "Run", "Selection", "is_mask", "is_number", "is_of_itself", "selection_of"]
