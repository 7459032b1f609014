"""A Python text as review units: statements, headers of compound statements, comments, single leftover lines.

Units are what a reviewer compares. Every non-blank line of a text belongs to exactly one unit; blank lines to none.
"""

from __future__ import annotations

import ast
import copy
import re
from dataclasses import dataclass, field
from functools import cached_property

from gluonize.read.text.parsed import parsed_text

_WORD = re.compile(r"[A-Za-z_]\w*|\d+\.?\d*|[-+*/%<>=!&|^~@]+")
_TRITON_ALIAS = re.compile(r"\b(?:tl|triton\.language)\.")


@dataclass(frozen=True)
class Unit:
    """Lines `first` to `last` (from 1, inclusive) of a text.

    kind: `comment`, `docstring`, `decorator`, `line` (such as `else:`), or the AST class of the statement. targets:
    names that it binds. function: index into `Text.functions` of the top-level function or class it is in, -1 outside.
    """

    first: int
    last: int
    kind: str
    lines: tuple[str, ...]
    targets: tuple[str, ...] = ()
    function: int = -1
    depth: int = 0
    node: ast.AST | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The lines joined, without indentation and runs of spaces."""
        return " ".join(" ".join(self.lines).split())

    @property
    def spelled(self) -> str:
        """The text as Gluon spells Triton's module: what differs from `text` by the module's name only."""
        return _TRITON_ALIAS.sub("gl.", self.text).replace("@triton.jit", "@gluon.jit")

    @cached_property
    def words(self) -> dict[str, int]:
        """How often each word occurs in `spelled`."""
        return words_of(self.spelled)

    @cached_property
    def value_words(self) -> dict[str, int]:
        """The words of what a statement assigns, layouts left out."""
        value = copy.deepcopy(getattr(self.node, "value", None))
        if not isinstance(value, ast.AST):
            return {}
        for call in ast.walk(value):
            if isinstance(call, ast.Call):
                call.keywords = [k for k in call.keywords if k.arg != "layout"]
        return words_of(_TRITON_ALIAS.sub("gl.", ast.unparse(value)))


def words_of(text: str) -> dict[str, int]:
    """How often each word occurs; names count by their parts, so that `a_ptrs` resembles `a_ptr`."""
    found: dict[str, int] = {}
    for word in _WORD.findall(text):
        for part in word.split("_"):
            part = part[:-1] if len(part) > 3 and part.endswith("s") else part
            if part:
                found[part] = found.get(part, 0) + 1
    return found


@dataclass(frozen=True)
class Function:
    """A top-level function or class: its lines with decorators, and its name."""

    name: str
    first: int
    last: int
    kernel: bool


@dataclass(frozen=True)
class Text:
    """A text and its units, in order."""

    lines: tuple[str, ...]
    units: tuple[Unit, ...]
    functions: tuple[Function, ...]

    def of_function(self, index: int) -> list[Unit]:
        return [u for u in self.units if u.function == index]

    def lines_of(self, index: int) -> tuple[str, ...]:
        """The lines of a function."""
        return self.lines[self.functions[index].first - 1 : self.functions[index].last]


def read_units(text: str) -> Text:
    """Units of a Python text. Raises: SyntaxError."""
    lines = tuple(text.splitlines())
    tree = parsed_text(text)
    units: list[Unit] = []
    functions: list[Function] = []

    def add(first: int, last: int, kind: str, targets=(), function: int = -1, depth: int = 0, node=None) -> None:
        units.append(Unit(first, last, kind, lines[first - 1 : last], tuple(targets), function, depth, node))

    def visit(body: list[ast.stmt], function: int, depth: int) -> None:
        for s in body:
            inner = function
            if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                first = min([d.lineno for d in s.decorator_list] + [s.lineno])
                if function < 0:
                    inner = len(functions)
                    functions.append(Function(s.name, first, s.end_lineno or s.lineno, _is_kernel(s)))
                for d in s.decorator_list:
                    add(d.lineno, d.end_lineno or d.lineno, "decorator", (), inner, depth)
            blocks = _blocks(s)
            if not blocks or blocks[0][0].lineno == s.lineno:
                kind = type(s).__name__
                if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str):
                    kind = "docstring"
                add(s.lineno, s.end_lineno or s.lineno, kind, _targets(s), inner, depth, s)
                continue
            add(s.lineno, _header_end(s, blocks[0][0], lines), type(s).__name__, _targets(s), inner, depth, s)
            for block in blocks:
                visit(block, inner, depth + 1)

    visit(tree.body, -1, 0)
    units = _with_leftovers(units, lines, functions)
    return Text(lines, tuple(units), tuple(functions))


def _is_kernel(s: ast.stmt) -> bool:
    return any("jit" in ast.unparse(d) for d in s.decorator_list)


def _blocks(s: ast.stmt) -> list[list[ast.stmt]]:
    found = [getattr(s, name, None) for name in ("body", "orelse", "finalbody")]
    handlers = [h.body for h in getattr(s, "handlers", [])]
    cases = [c.body for c in getattr(s, "cases", [])]
    return [b for b in [*found, *handlers, *cases] if b]


def _header_end(s: ast.stmt, first: ast.stmt, lines: tuple[str, ...]) -> int:
    """The line on which the header of a compound statement ends with its colon."""
    start = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))])
    end = s.lineno
    for line in range(s.lineno, start):
        code = lines[line - 1].split("#")[0].rstrip()
        if code.endswith(":"):
            return line
        end = line if code.strip() else end
    return end


def _targets(s: ast.stmt) -> list[str]:
    if isinstance(s, (ast.FunctionDef, ast.ClassDef)):
        return [s.name]
    nodes = getattr(s, "targets", None) or [getattr(s, "target", None)]
    return [n.id for t in nodes if t is not None for n in ast.walk(t) if isinstance(n, ast.Name)]


def _with_leftovers(units: list[Unit], lines: tuple[str, ...], functions: list[Function]) -> list[Unit]:
    """The units plus one for every non-blank line that none has; a line that several have stays with the first."""
    covered: set[int] = set()
    kept = []
    for unit in sorted(units, key=lambda u: (u.first, u.depth)):
        if unit.first in covered:
            continue
        covered |= set(range(unit.first, unit.last + 1))
        kept.append(unit)
    for number, line in enumerate(lines, 1):
        if line.strip() and number not in covered:
            owner = next((i for i, f in enumerate(functions) if f.first <= number <= f.last), -1)
            kind = "comment" if line.lstrip().startswith("#") else "line"
            kept.append(Unit(number, number, kind, (line,), (), owner, (len(line) - len(line.lstrip())) // 4))
    return sorted(kept, key=lambda u: u.first)
