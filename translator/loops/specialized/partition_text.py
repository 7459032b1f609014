"""The text of a partition: chosen statements of a function with the comments above them, and the call that runs it."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Mapping

import libcst as cst
from gluonize.gluon.trees.function import BLANK, LINE_LENGTH, GluonFunction, Statement, is_blank, statements
from gluonize.gluon.trees.statements import blocks_of, call_of, inside, is_call
from gluonize.gluon.trees.walk import loads, mapped, stores
from gluonize.rules import gluon

Rings = tuple[tuple[str, ...], ...]  # the names of the rings of each group
_COPIES = gluon.named(gluon.Effect.FILLS | gluon.Effect.SIGNALS, "async_copy", "tdm")
_HINTS = gluon.named(gluon.Effect.CHECKS)


def is_copy(s: Statement, rings: Rings) -> bool:
    """Whether a statement copies into one of the rings, by an operation or by a function that is given a slot, or tells when it is done."""
    call = call_of(s)
    into_slot = isinstance(call, cst.Call) and call.args and not stores(s) and loads(call.args[0]) & _names(rings)
    return is_call(s, _COPIES) or bool(into_slot)


def is_hint(s: Statement) -> bool:
    return is_call(s, _HINTS)


def copies_into(loop: cst.For, rings: Rings) -> bool:
    """Whether the loop, or one inside, copies into one of the rings."""
    return any(is_copy(s, rings) and loads(s) & _names(rings) for s in inside(loop.body.body))


def _names(rings: Rings) -> set[str]:
    return {name for group in rings for name in group}


def alone(s: Statement) -> Statement:
    """A statement with no more than the comments right above it."""
    above: list[cst.EmptyLine] = []
    for line in s.leading_lines:
        above = [*above, line] if line.comment is not None else []
    return s.with_changes(leading_lines=above)


def rendered(
    block: Iterable[Statement], chosen: Collection[Statement], extra: Mapping[Statement, tuple[list[str], list[str]]]
) -> list[Statement]:
    """The chosen ones among the statements of a block, with their comments; extra: lines before and after a statement."""
    out: list[Statement] = []
    for s in block:
        blocks = blocks_of(s)
        bodies = [rendered(b, chosen, extra) for b in blocks]
        if s not in chosen if not blocks else not any(bodies):
            continue
        first, last = extra.get(s, ([], []))
        out += [made for line in first for made in statements(line)]
        out.append(alone(_with_blocks(s, *bodies) if blocks else s))
        out += [made for line in last for made in statements(line)]
    return out


def _with_blocks(s: Statement, body: list[Statement], other: list[Statement] = ()) -> Statement:  # type: ignore[assignment]
    """A statement with blocks, with these instead."""
    s = s.with_changes(body=s.body.with_changes(body=body or statements("pass"), footer=()))
    if isinstance(s, cst.With):
        return s
    if isinstance(s.orelse, cst.If):
        return s.with_changes(orelse=other[0] if other else None)
    return s.with_changes(orelse=cst.Else(cst.IndentedBlock(other)) if other else None)


def without(function: GluonFunction, gone: Collection[Statement], loop: Statement, call: list[str]) -> GluonFunction:
    """The function without the statements `gone` and their comments, `call` for the loop, and no two blank lines in a row."""
    (run,) = statements("\n".join(call))

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if not isinstance(node, cst.IndentedBlock):
            return None
        kept, above = [], []
        for s in node.body:
            lines = [*above, *s.leading_lines]
            if s in gone:
                above = lines[: len(lines) - len(alone(s).leading_lines)]
                continue
            kept.append((run if s is loop else mapped(s, change)).with_changes(leading_lines=_collapsed(lines)))
            above = []
        return node.with_changes(body=kept, footer=[*above, *node.footer])

    return function.with_node(mapped(function.node, change))


def _collapsed(lines: list[cst.EmptyLine]) -> list[cst.EmptyLine]:
    return [line for i, line in enumerate(lines) if not (i and is_blank(line) and is_blank(lines[i - 1]))]


def after_a_blank_line(block: list[Statement]) -> list[Statement]:
    first, *rest = block
    return [first.with_changes(leading_lines=[BLANK, *first.leading_lines]), *rest]


def call_lines(name: str, arguments: list[str]) -> list[str]:
    """A partition in the list that `gl.warp_specialize` takes."""
    inner = ", ".join(arguments) + ("," if len(arguments) == 1 else "")
    line = f"        ({name}, ({inner})),"
    if len(line) <= LINE_LENGTH - 8:
        return [line]
    inner = [f"            ({inner}),"]
    if len(inner[0]) > LINE_LENGTH - 8:
        filled = textwrap.wrap(", ".join(arguments) + ",", LINE_LENGTH - 28, break_long_words=False)
        inner = ["            (", *(f"                {x}" for x in filled), "            ),"]
    return ["        (", f"            {name},", *inner, "        ),"]


def header_of(name: str, parameters: list[str]) -> str:
    """`def name(parameters):`, over several lines where it is long."""
    head = f"def {name}({', '.join(parameters)}):"
    if len(head) <= LINE_LENGTH:
        return head
    filled = textwrap.wrap(", ".join(parameters) + ",", LINE_LENGTH - 4, break_long_words=False)
    return "\n".join([f"def {name}(", *(f"    {line}" for line in _unbroken(filled)), "):"])


def docstring(text: str) -> list[str]:
    return textwrap.wrap(f'"""{text}"""', LINE_LENGTH - 4, initial_indent="    ", subsequent_indent="    ")


def _unbroken(lines: list[str]) -> list[str]:
    """Lines of parameters in which no annotation is cut from its name."""
    out: list[str] = []
    for line in lines:
        if out and out[-1].rstrip().endswith(":"):
            start, _, name = out[-1].rpartition(", ")
            out[-1] = start + ","
            line = f"{name} {line}"
        out.append(line)
    return out
