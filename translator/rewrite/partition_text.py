"""The text of a partition: chosen statements of a function with the comments above them, and the call that runs it."""

from __future__ import annotations

import ast
import textwrap

from translator.facts.source_text import first_line
from translator.facts.syntax import blocks_of, called, inside, loads
from translator.rewrite.gluon_function import LINE_LENGTH, parsed

# Calls that would not give the same value, or have an effect, if other warps made them too.
IMPURE = frozenset(
    "load store buffer_load buffer_store allocate_shared_memory gather histogram sum max_ reduce".split()
)
_COPIES = ("global_to_shared", "mbarrier_arrive", "async_load")


def is_copy(s: ast.stmt) -> bool:
    return isinstance(s, ast.Expr) and called(s.value) in _COPIES


def is_hint(s: ast.stmt) -> bool:
    return isinstance(s, ast.Expr) and called(s.value) in ("assume", "static_assert")


def copies_into(loop: ast.For, rings: tuple[tuple[str, ...], ...]) -> bool:
    """Whether the loop, or one inside, copies into one of the rings."""
    names = {name for group in rings for name in group}
    return any(is_copy(s) and loads(s) & names for s in inside(loop.body))


class Lines:
    """The lines of a function, by statement."""

    def __init__(self, text: str):
        self.lines = text.splitlines()

    def rendered(
        self,
        statements: list[ast.stmt],
        chosen: set[ast.stmt],
        indent: str,
        extra: dict[ast.stmt, tuple[list[str], list[str]]],
    ) -> list[str]:
        """The chosen ones among `statements`, with their comments; extra: lines before and after a statement."""
        out: list[str] = []
        for s in statements:
            blocks = blocks_of(s)
            if not blocks:
                if s not in chosen:
                    continue
                first, last = extra.get(s, ([], []))
                out += [*(indent + x for x in first), *self.of(s, indent), *(indent + x for x in last)]
                continue
            chained = [len(b) == 1 and self.is_elif(b[0]) for b in blocks]
            inner = [indent if c else indent + "    " for c in chained]
            bodies = [self.rendered(b, chosen, i, extra) for b, i in zip(blocks, inner)]
            if not any(bodies):
                continue
            first, last = extra.get(s, ([], []))
            head = self.header(s, indent)
            out += [*(indent + x for x in first), *head, *(bodies[0] or [indent + "    pass"])]
            if len(bodies) > 1 and bodies[1]:
                out += bodies[1] if chained[1] else [indent + "else:", *bodies[1]]
            out += [indent + x for x in last]
        return out

    def is_elif(self, s: ast.stmt) -> bool:
        return isinstance(s, ast.If) and self.lines[s.lineno - 1].startswith("elif", s.col_offset)

    def of(self, s: ast.stmt, indent: str) -> list[str]:
        """The lines of a statement, with the comments above it, at another indentation."""
        lines = self.lines[first_line(self.lines, s.lineno) - 1 : s.end_lineno]
        return [indent + line.removeprefix(" " * s.col_offset) if line.strip() else "" for line in lines]

    def header(self, s: ast.stmt, indent: str) -> list[str]:
        """The lines of a statement with blocks up to its first block, with the comments above it."""
        lines = self.lines[first_line(self.lines, s.lineno) - 1 : blocks_of(s)[0][0].lineno - 1]
        while lines and lines[-1].lstrip().startswith("#"):
            lines.pop()
        return [indent + line.removeprefix(" " * s.col_offset) if line.strip() else "" for line in lines]

    def without(self, gone: set[ast.stmt], loop: ast.stmt, call: list[str]) -> str:
        """The function without the statements `gone` and their comments, `call` for the loop."""
        last = {first_line(self.lines, s.lineno): s.end_lineno for s in gone}
        out, line = [], 1
        while line <= len(self.lines):
            if line in last:
                line = last[line] + 1
            elif line == loop.lineno:
                out += [" " * loop.col_offset + x for x in call]
                line = loop.end_lineno + 1
            else:
                out.append(self.lines[line - 1])
                line += 1
        return _collapsed(out) + "\n"


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


def _collapsed(lines: list[str]) -> str:
    """The lines with no more than one blank one in a row."""
    out: list[str] = []
    for line in lines:
        if line.strip() or not out or out[-1].strip():
            out.append(line)
    return "\n".join(out)


def renamed_lines(lines: list[str], names: dict[str, str]) -> list[str]:
    """The lines of a body with names replaced."""
    if not names:
        return lines
    function = parsed("def f():\n" + "\n".join(lines))
    return function.exchanging(names).text.splitlines()[1:]
