"""Functions of numbers that operations on tensors are made with: of two elements for a reduction or scan, of each element for a map.

Such a function is told as one expression per result, of nodes `param` with their number. Small tensors in it are told element by
element, so that what it does with pairs is what it does with each of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gluonize.lift.machine.machine import NotLifted, Run
from gluonize.lift.values.scalars import OPERATIONS, Scalar, number
from gluonize.lift.values.tensors import Graph, Node, Value
from gluonize.trace.model.op import Block, Op
from gluonize.trace.model.types import Type

MOST_ELEMENTS = 64  # of a tensor inside a function
Elements = list  # of one value of a function: one node or number per element, the last axis first


@dataclass(frozen=True)
class Function:
    """results: of `params` numbers. key: says the same as the results, in any run."""

    params: int
    key: str
    results: tuple[Node, ...] = field(compare=False)


def function_of(run: Run, op: Op) -> Function:
    """The function that is the region of `op`. Raises: NotLifted for one that does something else than compute."""
    (block,) = op.regions[0].blocks if len(op.regions[0].blocks) == 1 else (None,)
    if block is None:
        raise NotLifted("a function with branches that are left early", op)
    values: dict[str, Elements] = {}
    for i, (name, kind) in enumerate(block.arguments):
        values[name] = [run.graph.node("param", (), replace(kind, layout=""), (i,))]
    results = _told(run, block, values, _constants(run))
    kinds = block.ops[-1].operand_types or [kind for _, kind in block.arguments]
    nodes = tuple(_node(run.graph, x[0], kind) for x, kind in zip(results, kinds))
    return Function(len(block.arguments), " ".join(map(_key, nodes)), nodes)


def _constants(run: Run) -> Mapping[str, Op]:
    """The constants of the module, which may stand outside of the functions that use them."""
    return {op.results[0]: op for op in run.module.walk() if op.name in ("arith.constant", "tt.make_range")}


def _told(run: Run, block: Block, values: dict, outside: Mapping[str, Op]) -> list[Elements]:
    """What the block gives back. Raises: NotLifted."""

    def value(name: str, op: Op) -> Elements:
        if name not in values:
            if name not in outside:
                raise NotLifted("a function that uses a value from outside", op)
            values[name] = _one(run, outside[name], [])[0]
        return values[name]

    for op in block.ops[:-1]:
        if op.name == "scf.if":
            condition = value(op.condition, op)[0]
            both = [_told(run, r.blocks[0], dict(values), outside) for r in op.regions if r.blocks]
            if len(both) != 2:
                raise NotLifted("a function that does something only in one case", op)
            for name, yes, no, kind in zip(op.results, *both, op.result_types):
                values[name] = [_chosen(run.graph, condition, a, b, kind) for a, b in zip(yes, no)]
            continue
        made = _one(run, op, [value(x, op) for x in op.operands])
        values.update(zip(op.results, made))
    return [value(x, block.ops[-1]) for x in block.ops[-1].operands]


def _chosen(graph: Graph, condition: Value, yes: Value, no: Value, kind: Type) -> Value:
    if isinstance(condition, Scalar):
        return yes if condition.value else no
    plain = replace(kind, shape=None, layout="")
    return graph.node("arith.select", (condition, _node(graph, yes, kind), _node(graph, no, kind)), plain)


def _one(run: Run, op: Op, given: list[Elements]) -> list[Elements]:
    """One operation, element by element. Raises: NotLifted."""
    size = math.prod(op.type.shape or ()) if op.results else 0
    if size > MOST_ELEMENTS:
        raise NotLifted("a function with a large tensor in it", op)
    name = op.name
    if name == "tt.make_range":
        return [[number(n) for n in range(int(op.attribute("start")), int(op.attribute("end")))]]
    if name == "tt.splat":
        return [given[0] * size]
    if name in ("tt.expand_dims", "tt.reshape", "tt.unsplat", "ttg.convert_layout", "gluon.set_auto_layout"):
        return [given[0]]
    if name == "tt.join":
        return [[x for pair in zip(*given) for x in pair]]
    if name == "tt.split":
        return [given[0][0::2], given[0][1::2]]
    if not name.startswith(("arith.", "math.", "ttng.packed", "tt.precise", "tt.fp_to_fp", "tt.bitcast", "tt.mulhiui")):
        raise NotLifted(f"a function with {name} in it", op)
    lanes = [list(lane) for lane in zip(*given)] or [[]]
    made = [_element(run, op, lane) for lane in lanes]
    return [made * size if not given else made]


def _element(run: Run, op: Op, lane: list[Value]) -> Value:
    handler = run.handlers.get(op.name)
    assert handler is not None, f"bug in gluonize: {op.name} has no meaning"
    (out,) = handler(run, op, lane)
    if not isinstance(out, Node):
        return out
    if out.op == "tt.splat":
        return out.args[0]
    if out.op == "arith.select" and isinstance(out.args[0], Scalar):
        return out.args[1] if out.args[0].value else out.args[2]
    if out.op == "arith.cmpi" and all(isinstance(x, Scalar) for x in out.args):
        how = out.attrs[0] if out.attrs[0] in OPERATIONS else out.attrs[0][1:]
        return number(OPERATIONS[how](*(x.value for x in out.args)))  # type: ignore[union-attr]
    return _alone(run.graph, out)


def _alone(graph: Graph, node: Node) -> Node:
    """The operation on one element, with constants as nodes."""
    kinds = [x.type for x in node.args if isinstance(x, Node) and x.type.element != "i1"] or [node.type]
    args = [_node(graph, x, kinds[0]) for x in node.args]
    return graph.node(node.op, args, replace(node.type, shape=None, layout=""), node.attrs, "", node.place)


def _node(graph: Graph, x: Value, kind: Type) -> Node:
    """A number of a function as a node."""
    plain = replace(kind, shape=None, layout="")
    return graph.node("arith.constant", (), plain, (str(x.value),)) if isinstance(x, Scalar) else x


def _key(x: Node) -> str:
    return f"{x.op}:{x.type.element}{list(x.attrs)}({', '.join(map(_key, x.args))})"


# --- what functions are used for


def params_of(node: Node) -> frozenset[int]:
    """The numbers of the parameters that it needs."""
    if node.op == "param":
        return frozenset({int(node.attrs[0])})
    return frozenset().union(*(params_of(x) for x in node.args if isinstance(x, Node)))


def plain_operation(result: Node, first: int, second: int) -> str | None:
    """The name of the one operation on parameters `first` and `second` that a result is; None for anything else."""
    numbers = [x.attrs[0] for x in result.args if isinstance(x, Node) and x.op == "param"]
    same = len(numbers) == len(result.args) == 2 and sorted(numbers) == [first, second]
    return result.op if same and not result.attrs else None


def mapped(graph: Graph, node: Node, given: Mapping[int, Node], memo: dict[int, Node], place, context: tuple) -> Node:
    """A result of a function for each element of the tensors that are `given` for its parameters."""
    if node.op == "param":
        return given[node.attrs[0]]
    if id(node) in memo:
        return memo[id(node)]
    kind = replace(node.type, shape=next(iter(given.values())).type.shape)
    args = [mapped(graph, x, given, memo, place, context) for x in node.args]  # type: ignore[arg-type]
    if node.op == "arith.constant" and node.type.kind == "int":
        made = graph.node("tt.splat", (number(int(node.attrs[0])),), kind)
    else:
        made = graph.node(node.op, args, kind, node.attrs, node.name, place, context)
    memo[id(node)] = made
    return made
