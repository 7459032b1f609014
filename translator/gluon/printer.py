"""The text of a tree: the only place that knows how a node is spelled, and indentation."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gluonize.gluon import nodes
from gluonize.gluon.code import begins, code_of, joined, lines_of, outline, replaced, without_prefix
from gluonize.gluon.nodes import Code, Node, Unnamed
from gluonize.gluon.written import OPERATORS, Written, name
from gluonize.read.text.string_lines import inside_strings

STEP = "    "


def printed(code: Code | Node) -> Code:
    """The text of code or of a node, in which names that are not given yet stand as they are. Where a statement in the middle of code
    has several lines, those behind the first are indented like it."""
    return opened(code_of(code), ())


def opened(code: Code, kept: tuple[type[Node], ...]) -> Code:
    """Code with the spelling of its nodes in their place, but for those of some kinds, and for names that are not given yet."""
    out: Code = ("",)
    for part in code:
        if isinstance(part, (str, Unnamed, *kept)):
            out = code_of(out, part)
            continue
        inner = opened(spelled(part), kept)
        line = outline(out).rpartition("\n")[2]
        if indent := line[: len(line) - len(line.lstrip())]:
            inner = replaced(inner, "\n", "\n" + indent)
        out = code_of(out, inner)
    return out


def spelled(node: Node) -> Code:
    """How a node is spelled, in text and the nodes that are its parts."""
    if isinstance(
        node,
        (nodes.Assign, nodes.Authored, nodes.Operand, nodes.Product, nodes.Fill, nodes.Load, nodes.Store, nodes.Line),
    ):
        return node.code
    if isinstance(node, (nodes.Number, nodes.Current, nodes.Commit)):
        return code_of(node.text)
    if isinstance(node, (nodes.Named, nodes.Variable)):
        return code_of(node.name)
    if isinstance(node, nodes.ElementType):
        return code_of(name(node.name), ".dtype")
    if isinstance(node, Unnamed):
        return (node,)
    if isinstance(node, nodes.Choose):
        return code_of(f"{node.target} = ", node.number)
    if isinstance(node, nodes.Wait):
        return code_of(f"{node.function}(", node.left, ")")
    if isinstance(node, nodes.Barrier):
        return ("gl.barrier()",)
    if isinstance(node, (nodes.Binary, nodes.Least, nodes.Previous)):
        return _number(node)
    if isinstance(node, (nodes.Stage, nodes.Repeat, nodes.When)):
        return joined("\n", lines([node], ""))
    return _in_lds(node)


def written(node: Node) -> Written:
    """The text of a number, a place or a read, with what others have to know of it."""
    if isinstance(node, (nodes.Number, nodes.Current)):
        return name(node.text)
    if isinstance(node, nodes.Binary):
        return Written(opened(_number(node), ()), OPERATORS[node.op])
    if isinstance(node, (nodes.Named, nodes.Variable)):
        return name(node.name)
    form = ast.Attribute if isinstance(node, nodes.ElementType) else ast.Call
    return Written(opened((node,), ()), form)


def _number(node: Node) -> Code:
    if isinstance(node, nodes.Least):
        return code_of("min(", node.left, ", ", node.right, ")")
    if isinstance(node, nodes.Previous):
        slot, count = node.slot, node.count
        if node.function:
            return code_of(f"{node.function}(", slot, ", ", count, ")")
        return code_of("gl.where(", slot, " == 0, ", count, " - 1, ", slot, " - 1)")
    assert isinstance(node, nodes.Binary)
    binds = {"%": nodes.Binary, "*": (nodes.Binary, nodes.Least)}.get(node.op, ())
    left = ("(", node.left, ")") if isinstance(node.left, binds) else (node.left,)
    return code_of(*left, f" {node.op} ", node.right)


def _in_lds(node: Node) -> Code:
    if isinstance(node, nodes.Slot):
        return code_of(f"{node.ring}.index(", node.index, ")")
    assert isinstance(node, (nodes.Permuted, nodes.Part, nodes.Read)), f"bug in gluonize: {node} is not printed"
    if isinstance(node, nodes.Permuted):
        return code_of(node.place, f".permute({list(node.order)})")
    if isinstance(node, nodes.Part):
        return code_of(node.place, f".slice({node.start}, {node.size}, {node.dim})")
    if node.relaxed:
        return code_of(f"{node.relaxed}.load_shared_relaxed(", node.place, ", ", node.layout, ")")
    return code_of(node.place, ".load(", node.layout, ")")


def lines(statements: Iterable[Node], indent: str, deeper: str = "") -> list[Code]:
    """The lines of statements behind `indent`; empty lines stay empty. deeper: the part of `indent` that is not the author's."""
    out: list[Code] = []
    for s in statements:
        if isinstance(s, (nodes.Stage, nodes.Repeat, nodes.When)):
            out += [code_of(indent, _head(s)), *lines(s.body, indent + STEP, deeper + STEP)]
            continue
        text = printed(s)
        if isinstance(s, nodes.Authored) and s.verbatim:
            kept = inside_strings(outline(text)) if deeper else ()
            out += [
                line if line == ("",) or number in kept else inserted(line, indent.removesuffix(deeper), deeper)
                for number, line in enumerate(lines_of(text), 1)
            ]
        else:
            out += [line if line == ("",) else code_of(indent, line) for line in lines_of(text)]
    return out


def origins(statements: Iterable[Node]) -> list[int]:
    """For each of `lines` the line of the source that it came from, 0 for none."""
    out: list[int] = []
    for s in statements:
        if isinstance(s, (nodes.Stage, nodes.Repeat, nodes.When)):
            out += [0, *origins(s.body)]
        else:
            count = outline(printed(s)).count("\n") + 1
            out += s.lines if len(s.lines) == count else (s.lines[:1] or (0,)) * count
    return out


def inserted(line: Code, indent: str, deeper: str) -> Code:
    """A line with `deeper` behind its part of `indent`, which may be of tabs; in front of one that begins left of that."""
    if begins(line, indent):
        return code_of(indent, deeper, without_prefix(line, indent))
    return code_of(deeper, line)


def _head(block: Node) -> Code:
    if isinstance(block, nodes.Stage):
        return (f'with gl.amd.warp_pipeline_stage("{block.kind}", priority={block.priority}):',)
    if isinstance(block, nodes.Repeat):
        return code_of(f"for {block.name} in gl.static_range(", printed(block.count), "):")
    return code_of("if ", printed(block.tile), " < ", printed(block.count), ":")
