"""The text of a tree: the only place that knows how a node is spelled, and indentation."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gluonize.gluon import nodes
from gluonize.gluon.nodes import Code, Node
from gluonize.gluon.written import OPERATORS, Written, name
from gluonize.read.files.string_lines import inside_strings

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
    if isinstance(
        node, (nodes.Assign, nodes.Authored, nodes.Operand, nodes.Product, nodes.Fill, nodes.Load, nodes.Store)
    ):
        return printed(node.code)
    if isinstance(node, (nodes.Line, nodes.Number, nodes.Current, nodes.Commit)):
        return node.text
    if isinstance(node, (nodes.Named, nodes.Variable)):
        return node.name
    if isinstance(node, nodes.ElementType):
        return f"{name(node.name)}.dtype"
    if isinstance(node, nodes.Choose):
        return f"{node.target} = {printed(node.number)}"
    if isinstance(node, nodes.Wait):
        return f"{node.function}({printed(node.left)})"
    if isinstance(node, nodes.Barrier):
        return "gl.barrier()"
    if isinstance(node, (nodes.Binary, nodes.Least, nodes.Previous)):
        return _number(node)
    if isinstance(node, (nodes.Stage, nodes.Repeat, nodes.When)):
        return "\n".join(lines([node], ""))
    return _in_lds(node)


def written(node: Node) -> Written:
    """The text of a number, a place or a read, with what others have to know of it."""
    if isinstance(node, (nodes.Number, nodes.Current)):
        return node.text if isinstance(node.text, Written) else name(node.text)
    if isinstance(node, nodes.Binary):
        return Written(_number(node), OPERATORS[node.op])
    if isinstance(node, (nodes.Named, nodes.Variable)):
        return name(node.name)
    return Written(_printed(node), ast.Attribute if isinstance(node, nodes.ElementType) else ast.Call)


def _number(node: Node) -> str:
    if isinstance(node, nodes.Least):
        return f"min({printed(node.left)}, {printed(node.right)})"
    if isinstance(node, nodes.Previous):
        slot, count = printed(node.slot), printed(node.count)
        return (
            f"{node.function}({slot}, {count})" if node.function else f"gl.where({slot} == 0, {count} - 1, {slot} - 1)"
        )
    left = printed(node.left)
    binds = {"%": nodes.Binary, "*": (nodes.Binary, nodes.Least)}.get(node.op, ())
    return f"{f'({left})' if isinstance(node.left, binds) else left} {node.op} {printed(node.right)}"


def _in_lds(node: Node) -> str:
    if isinstance(node, nodes.Slot):
        return f"{node.ring}.index({node.index})"
    place = printed(node.place)
    if isinstance(node, nodes.Permuted):
        return f"{place}.permute({list(node.order)})"
    if isinstance(node, nodes.Part):
        return f"{place}.slice({node.start}, {node.size}, {node.dim})"
    assert isinstance(node, nodes.Read), f"bug in gluonize: {node} is not printed"
    if node.relaxed:
        return f"{node.relaxed}.load_shared_relaxed({place}, {node.layout})"
    return f"{place}.load({node.layout})"


def lines(statements: Iterable[Node], indent: str, deeper: str = "") -> list[str]:
    """The lines of statements behind `indent`; empty lines stay empty. deeper: what of it is not that of the author."""
    out: list[str] = []
    for s in statements:
        if isinstance(s, (nodes.Stage, nodes.Repeat, nodes.When)):
            out += [indent + _head(s), *lines(s.body, indent + STEP, deeper + STEP)]
        else:
            own = _printed(s).split("\n")
            if isinstance(s, nodes.Authored) and s.verbatim:
                kept = inside_strings("\n".join(own)) if deeper else ()
                out += [
                    line if not line or number in kept else inserted(line, indent.removesuffix(deeper), deeper)
                    for number, line in enumerate(own, 1)
                ]
            else:
                out += [line and indent + line for line in own]
    return out


def origins(statements: Iterable[Node]) -> list[int]:
    """For each of `lines` the line of the source that it came from, 0 for none."""
    out: list[int] = []
    for s in statements:
        if isinstance(s, (nodes.Stage, nodes.Repeat, nodes.When)):
            out += [0, *origins(s.body)]
        else:
            count = _printed(s).count("\n") + 1
            out += s.lines if len(s.lines) == count else (s.lines[:1] or (0,)) * count
    return out


def inserted(line: str, indent: str, deeper: str) -> str:
    """A line with `deeper` behind its part of `indent`, which may be of tabs; in front of one that begins left of that."""
    return indent + deeper + line.removeprefix(indent) if line.startswith(indent) else deeper + line


def _head(block: Node) -> str:
    if isinstance(block, nodes.Stage):
        return f'with gl.amd.warp_pipeline_stage("{block.kind}", priority={block.priority}):'
    if isinstance(block, nodes.Repeat):
        return f"for {block.name} in gl.static_range({printed(block.count)}):"
    return f"if {printed(block.tile)} < {printed(block.count)}:"
