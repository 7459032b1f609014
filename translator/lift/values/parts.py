"""Parts of tensors: what is done to each part of one tensor alike is done to the tensor, and parts stored beside each other are one store."""

from __future__ import annotations

from dataclasses import replace

from gluonize.lift.values.scalars import Expr, apply
from gluonize.lift.values.tensors import Box, Graph, Node
from gluonize.lift.values.tree import StoreText, Text

ELEMENTWISE = ("arith.", "math.", "tt.fp_to_fp", "tt.bitcast")


def unsliced(graph: Graph, node: Node) -> tuple[Node, Box] | None:
    """The tensor of whose part in the box `node` is, elementwise operations made of the whole; None where it is no part."""
    if node.op == "part":
        return node.args[0], node.attrs[0]  # type: ignore[return-value]
    if not node.op.startswith(ELEMENTWISE) or node.op == "arith.constant":
        return None
    found = [unsliced(graph, x) if isinstance(x, Node) else None for x in node.args]
    boxes = {f[1] for f in found if f is not None}
    wholes = {f[0].type.shape for f in found if f is not None}
    if len(boxes) != 1 or len(wholes) != 1:
        return None
    (shape,) = wholes
    args: list[Node | object] = []
    for x, f in zip(node.args, found):
        if f is not None:
            args.append(f[0])
        elif isinstance(x, Node) and x.op in ("tt.splat", "arith.constant"):
            args.append(graph.node(x.op, x.args, replace(x.type, shape=shape), x.attrs, x.name, x.place))
        elif isinstance(x, Node) and x.type.shape:
            return None
        else:
            args.append(x)
    whole = graph.node(node.op, args, replace(node.type, shape=shape), node.attrs, node.name, node.place, node.context)
    return whole, boxes.pop()


def tiles(boxes: list[Box], shape: tuple[int, ...]) -> int | None:
    """The axis along which the boxes cover the shape, each element once; None where they do not."""
    for axis, extent in enumerate(shape):
        spans = sorted(box[axis] for box in boxes)
        whole = all(box[d] == (0, n) for box in boxes for d, n in enumerate(shape) if d != axis)
        ends = [0, *(high for _, high in spans)]
        if whole and ends[-1] == extent and all(low == end for (low, _), end in zip(spans, ends)):
            return axis
    return None


def merged(graph: Graph, tree: list[Text]) -> tuple[list[Text], dict[str, tuple[int, ...]]]:
    """Stores of all parts of a tensor through a descriptor as one store of the tensor; -> the blocks that descriptors then have."""
    blocks: dict[str, tuple[int, ...]] = {}
    shared = _loaded(tree)
    return _merged(graph, tree, shared, blocks), blocks


def _loaded(tree: list[Text]) -> set[str]:
    """Descriptors that are read, whose blocks stay as they are."""
    found: set[str] = set()
    seen: set[int] = set()

    def look(node: Node) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        if node.op.startswith("descriptor_"):
            found.add(node.args[0].name)  # type: ignore[union-attr]
        for x in node.args:
            if isinstance(x, Node):
                look(x)
        if node.op == "held":
            for x in node.attrs[0].parts:
                look(x)
        if node.op == "fold":
            for x in (*node.attrs[0].products, *([node.attrs[0].base] if node.attrs[0].base is not None else [])):
                look(x)

    def walk(level: list[Text]) -> None:
        for text in level:
            if isinstance(text, StoreText):
                for x in text.operands[1:]:
                    if isinstance(x, Node):
                        look(x)
            else:
                walk(text.body)

    walk(tree)
    return found


def _merged(graph: Graph, tree: list[Text], shared: set[str], blocks: dict[str, tuple[int, ...]]) -> list[Text]:
    out: list[Text] = []
    for text in tree:
        if not isinstance(text, StoreText):
            out.append(replace(text, body=_merged(graph, text.body, shared, blocks)))
            continue
        out.append(text)
        run = _trailing(out)
        if len(run) > 1 and (one := _one(graph, run, shared)) is not None:
            del out[-len(run) :]
            out.append(one)
            blocks[one.operands[0].name] = one.operands[-1].type.shape  # type: ignore[union-attr]
    return out


def _trailing(out: list[Text]) -> list[StoreText]:
    """The stores at the end through the descriptor of the last one."""
    run: list[StoreText] = []
    for text in reversed(out):
        if not isinstance(text, StoreText) or text.kind != "tile" or text.operands[0] is not out[-1].operands[0]:  # type: ignore[union-attr]
            break
        run.append(text)
    return run[::-1]


def _one(graph: Graph, run: list[StoreText], shared: set[str]) -> StoreText | None:
    """The stores as one, None where they are not all parts of one tensor at their places."""
    found = [unsliced(graph, s.operands[-1]) for s in run]  # type: ignore[arg-type]
    if any(f is None for f in found) or len({id(f[0]) for f in found if f}) != 1 or run[0].operands[0].op != "argument" or run[0].operands[0].name in shared:  # type: ignore[union-attr]
        return None
    whole, boxes = found[0][0], [f[1] for f in found if f]  # type: ignore[index]
    axis = tiles(boxes, whole.type.shape or ())
    if axis is None:
        return None
    first = min(range(len(run)), key=lambda i: boxes[i][axis])
    at = run[first].operands[1:-1]
    for store, box in zip(run, boxes):
        for d, (x, y) in enumerate(zip(store.operands[1:-1], at)):
            assert isinstance(x, Expr) and isinstance(y, Expr)
            if apply("sub", x, y) != apply("sub", *_numbers(box[d][0], boxes[first][d][0])):
                return None
    return replace(run[first], operands=(run[0].operands[0], *at, whole))


def _numbers(a: int, b: int) -> tuple[Expr, Expr]:
    from gluonize.lift.values.scalars import const

    return const(a), const(b)
