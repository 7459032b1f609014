"""What direct copies of tensors of pointers rest on: the elements that one copy takes stand next to each other, and are masked together.

Triton finds that out from what it is told of arguments, as is done here:

    a_ptr + rows[:, None] * stride_am + k[None, :], mask=k[None, :] < K    ->    stride_am, K are multiples of 16, a_ptr one of 16 bytes

A launch for which it does not find it has no such copy: its compile ends with an error. So it is refused by the name of the argument.
"""

from __future__ import annotations

import ast

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.operations import operation_of
from gluonize.facts.loops.loop_range import HINTS, int_of
from gluonize.facts.syntax import index_parts, is_new_axis
from gluonize.loops.plan.tiles.copy_width import both, fewest, multiple_by, start_of, write_down
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Blocked, Layout, Linear
from gluonize.write.accesses.addresses import is_bare_parameter
from gluonize.write.state.unit import Record

# What has to be a multiple of 16: integers, starts of tensors (`a_ptr.start`); None where that is not known to be enough.
Rests = frozenset[str] | None
_NOTHING: frozenset[str] = frozenset()
_THROUGH = frozenset("to cast to_tensor multiple_of max_contiguous max_constancy broadcast_to".split())
_ENDS = (ast.Lt, ast.GtE)  # a run of elements is on one side of a multiple of its length
_SWAPPED = {ast.Gt: ast.Lt, ast.LtE: ast.GtE}


def rest_on_alignment(facts: FunctionFacts, record: Record, call: ast.Call, layout: Layout) -> None:
    """Write down the arguments that have to be multiples of 16 for a load to become direct copies in `layout`."""
    elements = min(facts.kernel.target.direct_to_lds_bits) // bits_of(facts.tensor(call).dtype)
    axis = _fastest(layout)
    if elements <= 1 or axis is None:
        return
    axis -= facts.tensor(call).rank  # counted from the last one, as tensors of different ranks are broadcast
    given = callees.bound(facts, call)
    asked = _Alignment(facts, elements)
    pointer, mask = given["pointer"], given.get("mask")
    found = asked.run(pointer, axis)
    if callees.is_given(facts, mask):
        found = both(found, asked.together(mask, axis))
    write_down(record, found or (), "direct copies to LDS")


def _fastest(layout: Layout) -> int | None:
    """The dimension along which a lane has neighbours."""
    if isinstance(layout, Blocked):
        return layout.order[0]
    if isinstance(layout, Linear) and layout.register and any(layout.register[0]):
        return next(d for d, step in enumerate(layout.register[0]) if step)
    return None


class _Alignment:
    """Questions about groups of `elements` elements along a dimension, which is counted from the last one, the first of which is a multiple of that; each is answered by
    what the answer rests on."""

    def __init__(self, facts: FunctionFacts, elements: int):
        self._facts, self._elements = facts, elements
        self._asked: set[tuple] = set()

    def run(self, node: ast.expr, axis: int) -> Rests:
        """The integers or pointers of a group follow each other, and the first is a multiple of its length."""
        if self._size(node, axis) == 1:
            return None
        if isinstance(node, ast.BinOp):
            left, right = node.left, node.right
            if isinstance(node.op, ast.Add):
                return fewest(
                    both(self.run(left, axis), self.same_multiple(right, axis)),
                    both(self.same_multiple(left, axis), self.run(right, axis)),
                )
            if isinstance(node.op, (ast.Sub, ast.Mod)):
                return both(self.run(left, axis), self.same_multiple(right, axis))
            if isinstance(node.op, ast.Mult):
                if int_of(self._facts, right) == 1:
                    return self.run(left, axis)
                return self.run(right, axis) if int_of(self._facts, left) == 1 else None
            return None
        if isinstance(node, ast.Call) and (call := self._operation(node)) is not None and call.name == "arange":
            return multiple_by(self._facts, call.operands["start"], self._elements)
        if self._hinted(node) >= {"multiple_of", "max_contiguous"}:
            return _NOTHING
        return self._through(self.run, node, axis)

    def _hinted(self, node: ast.expr) -> frozenset[str]:
        """What the author says of a value, `tl.max_contiguous(tl.multiple_of(x, 64), 64)`, in groups that are whole there."""
        if not isinstance(node, ast.Call) or (callee := callees.callee_of(self._facts, node)) is None:
            return _NOTHING
        given = list(callees.bind(node, callee).values())
        if callee.row is None or callee.name not in HINTS or len(given) != 2:
            return _NOTHING
        whole = multiple_by(self._facts, given[1], self._elements) is not None
        return self._hinted(given[0]) | ({callee.name} if whole else _NOTHING)

    def same_multiple(self, node: ast.expr, axis: int) -> Rests:
        """The integers or pointers of a group are the same multiple of its length."""
        return both(self._multiple(node), self.together(node, axis))

    def together(self, node: ast.expr, axis: int) -> Rests:
        """The values of a group are the same."""
        if self._size(node, axis) == 1:
            return _NOTHING
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, op, right = node.left, type(node.ops[0]), node.comparators[0]
            if op in _SWAPPED:
                left, op, right = right, _SWAPPED[op], left
            ends = both(self.run(left, axis), self.same_multiple(right, axis)) if op in _ENDS else None
            return fewest(ends, both(self.together(left, axis), self.together(right, axis)))
        if isinstance(node, ast.BinOp):
            return both(self.together(node.left, axis), self.together(node.right, axis))
        if isinstance(node, ast.UnaryOp):
            return self.together(node.operand, axis)
        return self._through(self.together, node, axis)

    def _multiple(self, node: ast.expr, axis: int = 0) -> Rests:
        """Each integer or pointer is a multiple, whatever the dimension."""
        fact = self._facts.settled(node)
        if isinstance(fact, TensorFact) and fact.is_pointer and not fact.shape and isinstance(node, ast.Name):
            if is_bare_parameter(self._facts, node):
                return start_of(self._facts, node)
            return self._assigned(self._multiple, node, axis)
        if not isinstance(fact, TensorFact) or not fact.shape and not fact.is_pointer:
            return multiple_by(self._facts, node, self._elements)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            return both(self._multiple(node.left), self._multiple(node.right))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return fewest(self._multiple(node.left), self._multiple(node.right))
        return self._through(self._multiple, node, 0)

    def _through(self, question, node: ast.expr, axis: int) -> Rests:
        """The answer for what a name, an expanded tensor or a call that keeps elements stands for."""
        if isinstance(node, ast.Name):
            return self._assigned(question, node, axis)
        if isinstance(node, ast.Subscript) and self._facts.tensor(node.value) is not None:
            parts = index_parts(node)
            return question(node.value, -sum(not is_new_axis(part) for part in parts[axis:]))
        if isinstance(node, ast.Call) and (call := self._operation(node)) is not None:
            if call.name in _THROUGH and call.first is not None and self._rank(call.first) == self._rank(node):
                return question(call.first, axis)
        return None

    def _assigned(self, question, name: ast.Name, axis: int) -> Rests:
        """The answer for all values that a name may have; what is added to one along the way is the same multiple."""
        found: Rests = _NOTHING
        definitions = self._facts.webs.reaching.get(name, [])
        for definition in definitions:
            key = (question.__name__, id(definition.node), axis)
            if key in self._asked:
                continue
            if definition.value is None or not isinstance(definition.node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                return None
            moved = definition.augmented
            if moved and not isinstance(definition.node.op, (ast.Add, ast.Sub)):
                return None
            self._asked.add(key)
            found = both(
                found, self.same_multiple(definition.value, axis) if moved else question(definition.value, axis)
            )
            self._asked.discard(key)
        return found if definitions else None

    def _operation(self, node: ast.Call):
        return operation_of(node, self._facts.fact(node.func))

    def _rank(self, node: ast.expr) -> int:
        fact = self._facts.tensor(node)
        return fact.rank if fact is not None else 0

    def _size(self, node: ast.expr, axis: int) -> int:
        """How many elements a value has along a dimension; one where it is no tensor, or has fewer dimensions."""
        fact = self._facts.tensor(node)
        return fact.shape[axis] if fact is not None and -axis <= fact.rank else 1


__all__ = ["rest_on_alignment"]
