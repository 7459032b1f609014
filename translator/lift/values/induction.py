"""What grows by the same number in each iteration: carried integers, and carried tensors and pointers that are moved on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from gluonize.lift.values.scalars import Scalar, apply, combine, from_terms, number, terms
from gluonize.lift.values.tensors import Graph, Node, Value
from gluonize.trace.model.op import Block, Op, Region
from gluonize.trace.model.types import Type

Made = Callable[[Op, list[Scalar]], Value]  # what an operation gives for integers
MOVES = ("arith.addi", "tt.addptr")
ALONE = ("tt.splat", "tt.get_program_id", "tt.get_num_programs")  # beside arithmetic: made of integers alone


# --- integers


def moved(first: Value, stride: Scalar | None, count: Scalar, value: Value) -> Value:
    """A carried integer that grows by the same in each iteration, told by the iteration."""
    if stride is None or not isinstance(first, Scalar) or not isinstance(value, Scalar):
        return value
    return combine("add", first, combine("mul", count, stride))


def strides_of(made_by: Made, body: Region, names: list[str], values: Mapping[str, Value]) -> dict[str, Scalar]:
    """What each carried integer grows by in an iteration, where that is one number."""
    block = body.blocks[-1]
    if len(body.blocks) > 1:
        return {}
    yielded = block.ops[-1].operands
    return _growing(made_by, block, {name: name for name in names}, dict(zip(names, yielded)), values)


def while_strides(made_by: Made, op: Op, values: Mapping[str, Value]) -> dict[int, Scalar]:
    """Of an `scf.while`, by the position of what is carried."""
    before, after = op.regions
    if len(before.blocks) > 1 or len(after.blocks) > 1:
        return {}
    names = [name for name, _ in op.bindings]
    passed = before.blocks[0].ops[-1].operands[1:]
    inner = [name for name, _ in after.blocks[0].arguments]
    same = {a: b for a, b in zip(inner, passed) if b in names}
    yielded = dict(zip(names, after.blocks[0].ops[-1].operands))
    grown = _growing(made_by, after.blocks[0], same, yielded, values)
    return {k: grown[name] for k, name in enumerate(names) if name in grown}


def _growing(
    made_by: Made, block: Block, carried: Mapping[str, str], yielded: Mapping[str, str], values
) -> dict[str, Scalar]:
    """carried: the name in the body -> what is carried; yielded: what is carried -> its next value."""
    made = {result: op for op in block.ops for result in op.results}
    out = {}
    for inner, name in carried.items():
        op = made.get(yielded[name])
        if yielded[name] == inner:
            out[name] = number(0)
        elif op is not None and op.name == "arith.addi" and inner in op.operands:
            other = op.operands[1] if op.operands[0] == inner else op.operands[0]
            constant = made[other] if other in made else None
            if constant is not None and constant.name == "arith.constant" and constant.constant.integer is not None:
                out[name] = number(constant.constant.integer)
            elif constant is not None and constant.name in ("tt.get_num_programs", "tt.get_program_id"):
                out[name] = made_by(constant, [])
            elif constant is None and isinstance(values.get(other), Scalar) and other not in carried:
                out[name] = values[other]
    return out


# --- tensors and pointers


def unmoved(x: Node) -> tuple[Node, Scalar]:
    """(base, n) of `base + n`, a tensor or pointer and the integer that is added to all of it."""
    if x.op == "arith.addi" and (n := spread(x.args[0])) is not None:
        return x.args[1], n  # type: ignore[return-value]
    if x.op == "tt.addptr" and (n := spread(x.args[1])) is not None:
        return x.args[0], n  # type: ignore[return-value]
    return x, number(0)


def spread(x: Value) -> Scalar | None:
    """The one integer of a tensor that has no other; an integer is itself."""
    if isinstance(x, Node) and x.op == "tt.splat" and isinstance(x.args[0], Scalar):
        return x.args[0]
    return x if isinstance(x, Scalar) else None


def moved_by(graph: Graph, base: Node, by: Scalar, like: Node) -> Node:
    """`base + by`, added as `like` adds."""
    pointers = base.type.kind == "ptr"
    kind = Type("int", "i64" if pointers else base.type.element, base.type.shape)
    offset: Value = by if base.type.shape is None else graph.node("tt.splat", (by,), kind, context=like.context)
    name, args = ("tt.addptr", (base, offset)) if pointers else ("arith.addi", (offset, base))
    return graph.node(name, args, base.type, (), like.name, like.place, like.context)


def added(graph: Graph, whole: Node) -> Node:
    """`(x + a) + b` as `x + (a + b)`. Offsets of pointers are added as 64-bit integers, as the pointers are."""
    outer, b = unmoved(whole)
    inner, a = unmoved(outer) if outer is not whole else (whole, number(0))
    if outer is whole or inner is outer:
        return whole
    if whole.type.kind == "ptr":
        a, b = wide(a), wide(b)
    return moved_by(graph, inner, combine("add", a, b), whole)


def wide(x: Scalar) -> Scalar:
    """As a 64-bit integer: what is one already stays, the rest of a sum is widened together."""
    found = terms(x.expr)
    narrow = {key: n for key, n in found.items() if not any(part[0] == "i64" for part in key)}
    rest = {key: n for key, n in found.items() if key not in narrow}
    return Scalar(x.value, apply("add", apply("i64", from_terms(narrow)), from_terms(rest)))


def steps_of(made_by: Made, op: Op, values: Mapping[str, Value]) -> dict[int, Scalar]:
    """By position, the integer that an iteration adds to a carried tensor or pointer with which it does nothing else."""
    body = op.regions[0]
    if len(body.blocks) > 1:
        return {}
    made = {result: inner for inner in body.blocks[0].ops for result in inner.results}
    yielded = body.blocks[0].ops[-1].operands
    out = {}
    for k, (name, _) in enumerate(op.for_loop.bindings):
        step = made.get(yielded[k])
        if step is None or step.name not in MOVES or name not in step.operands:
            continue
        others = [x for x in step.operands if x != name]
        found = _number(made_by, others[0], made, values) if len(others) == 1 else None
        if found is not None:
            out[k] = wide(found) if step.name == "tt.addptr" else found
    return out


def _number(made_by: Made, name: str, made: Mapping[str, Op], values: Mapping[str, Value]) -> Scalar | None:
    """The integer, spread or not, that a value of a loop's body is in each iteration; None for anything else."""
    op = made.get(name)
    if op is None:
        return spread(values.get(name))
    if op.name not in ALONE and not op.name.startswith("arith."):
        return None
    given = [_number(made_by, x, made, values) for x in op.operands]
    if any(x is None for x in given):
        return None
    if op.name == "tt.splat":
        return given[0]
    return spread(made_by(op, given)) if op.type.shape is None or not given else None  # type: ignore[arg-type]


class Moving:
    """The carried tensors and pointers of one loop that are moved on by a number, told by the iteration."""

    def __init__(self, graph: Graph, steps: Mapping[int, Scalar], first: Sequence[Value]):
        self.graph = graph
        self.first = {k: unmoved(first[k]) for k in steps if isinstance(first[k], Node)}
        self.steps = {k: steps[k] for k in self.first}

    def told(self, k: int, count: Scalar, value: Value, context: tuple) -> Value:
        """What is carried at position `k` to iteration `count`: the same number, said by the iteration."""
        if k not in self.steps:
            return value
        base, start = self.first[k]
        if base.type.kind == "ptr":
            start, count = wide(start), wide(count)
        at = combine("add", start, combine("mul", count, self.steps[k]))
        found, now = unmoved(value)
        assert found is base and now.value == at.value
        return moved_by(self.graph, base, at, replace(value, context=context))
