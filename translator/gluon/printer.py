"""The text of a tree: the only place that knows how a node is spelled, and indentation."""

from __future__ import annotations

from collections.abc import Iterable

from translator.gluon.tree import (
    Assign,
    Authored,
    Code,
    ElementType,
    Line,
    Named,
    Node,
    Operand,
    Part,
    PerSlot,
    Permuted,
    Product,
    Read,
    Slot,
    Stage,
    Variable,
)

STEP = "    "


def printed(code: Code | Node) -> str:
    """The text of code or of a node; what a statement in the middle of code has more lines is indented as it is."""
    if isinstance(code, Node):
        return _printed(code)
    out = ""
    for part in code:
        text = part if isinstance(part, str) else _printed(part)
        if not isinstance(part, str) and "\n" in text:
            line = out[out.rfind("\n") + 1 :]
            text = text.replace("\n", "\n" + line[: len(line) - len(line.lstrip())])
        out += text
    return out


def _printed(node: Node) -> str:
    if isinstance(node, (Line, Stage, PerSlot)):
        return "\n".join(lines([node], ""))
    if isinstance(node, (Assign, Authored, Operand, Product)):
        return printed(node.code)
    if isinstance(node, Slot):
        return f"{node.ring}.index({node.index})"
    if isinstance(node, Permuted):
        return f"{printed(node.place)}.permute({list(node.order)})"
    if isinstance(node, Part):
        return f"{printed(node.place)}.slice({node.start}, {node.size}, {node.dim})"
    if isinstance(node, Read):
        place = printed(node.place)
        if node.relaxed:
            return f"{node.relaxed}.load_shared_relaxed({place}, {node.layout})"
        return f"{place}.load({node.layout})"
    if isinstance(node, ElementType):
        return f"{node.name}.dtype"
    assert isinstance(node, (Named, Variable)), f"bug in gluonize: {node} is not printed"
    return node.name


def lines(statements: Iterable[Node], indent: str) -> list[str]:
    """The lines of statements behind `indent`; empty lines stay empty."""
    out: list[str] = []
    for s in statements:
        if isinstance(s, Stage):
            out.append(f'{indent}with gl.amd.warp_pipeline_stage("{s.kind}", priority={s.priority}):')
            out += lines(s.body, indent + STEP)
        elif isinstance(s, PerSlot):
            out.append(f"{indent}for {s.slot} in gl.static_range({s.count}):")
            out += lines(s.body, indent + STEP)
        else:
            text = s.text if isinstance(s, Line) else _printed(s)
            own = "" if isinstance(s, Authored) and s.verbatim else indent
            out += [own + line if line else "" for line in text.split("\n")]
    return out
