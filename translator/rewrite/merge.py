"""Two translations of one function, joined into one where they differ only in what compile-time conditions leave out."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from translator.rewrite.contracts import is_untranslated
from translator.facts.source_text import SourceText, replace_spans

_LAYOUT = re.compile(r"gl\.(?:amd\.)?\w*Layout(?:\.\w+)?")


@dataclass(frozen=True)
class LayoutConstant:
    """A named layout at the top of a function: its statement (dedented, as formatted) and the comment above it."""

    name: str
    comment: str
    statement: str

    @property
    def value(self) -> str:
        return self.statement.partition(" = ")[2]


@dataclass(frozen=True)
class Parts:
    """The text of a function: what comes before its layout constants, the constants, and the rest."""

    head: str
    constants: tuple[LayoutConstant, ...]
    body: str
    indent: str

    def text(self) -> str:
        return self.head + constants_text(self.constants, self.indent) + self.body

    @property
    def plain(self) -> str:
        """The text without its layout constants."""
        return self.head + self.body


def constants_text(constants: tuple[LayoutConstant, ...], indent: str) -> str:
    lines = [line for c in constants for line in (c.comment, c.statement) if line]
    return "".join(f"{indent}{line}\n" if line else "\n" for block in lines for line in block.split("\n"))


def split(text: str) -> Parts:
    """Take a function apart at its layout constants."""
    tree = ast.parse(text).body[0]
    assert isinstance(tree, ast.FunctionDef)
    statements = tree.body[1:] if _is_docstring(tree.body[0]) else tree.body
    found = []
    for statement in statements:
        if not is_layout(statement):
            break
        found.append(statement)
    lines = text.splitlines(keepends=True)
    indent = " " * tree.body[0].col_offset
    if not found:
        at = _start(tree, lines)
        return Parts("".join(lines[:at]), (), "".join(lines[at:]), indent)
    start = at = _start(tree, lines)
    constants = []
    for statement in found:
        own = [line.removeprefix(indent) for line in lines[at : statement.end_lineno]]
        first = statement.lineno - 1 - at
        comment = "".join(own[:first]).strip("\n")
        constants.append(LayoutConstant(statement.target.id, comment, "".join(own[first:]).rstrip("\n")))
        at = statement.end_lineno
    return Parts("".join(lines[:start]), tuple(constants), "".join(lines[at:]), indent)


def _start(tree: ast.FunctionDef, lines: list[str]) -> int:
    """Index of the line on which the body starts, after the docstring, with the comments above the first statement."""
    first = tree.body[0]
    if _is_docstring(first):
        return first.end_lineno
    at = first.lineno - 1
    while lines[at - 1].lstrip().startswith("#"):
        at -= 1
    return at


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)


def is_layout(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and ast.unparse(statement.annotation) == "gl.constexpr"
        and isinstance(statement.value, ast.Call)
        and _LAYOUT.fullmatch(ast.unparse(statement.value.func)) is not None
    )


def merge(a: str, b: str) -> str | None:
    """One text for both translations of a function, or None if they differ in more than untaken branches."""
    if a == b:
        return a
    left, right = split(a), split(b)
    if left.head != right.head:
        return None
    plain = merge_plain(left.plain, right.plain)
    if plain is None:
        return None
    known = {c.name: c for c in left.constants}
    if any(c.name in known and known[c.name].value != c.value for c in right.constants):
        return None
    more = tuple(c for c in right.constants if c.name not in known)
    body = plain[len(left.head) :]
    if more and not left.constants:
        body = "\n" + body.lstrip("\n")
    return Parts(left.head, left.constants + more, body, left.indent).text()


def joined(texts: Iterable[str]) -> list[str]:
    """Translations of one function, those that can be one text as one."""
    kept: list[str] = []
    for text in texts:
        for i, known in enumerate(kept):
            if (both := merge(known, text)) is not None:
                kept[i] = both
                break
        else:
            kept.append(text)
    return kept


def merge_plain(a: str, b: str) -> str | None:
    """`merge` of texts without layout constants."""
    if a == b:
        return a
    left, right = _Text(a), _Text(b)
    if left.header(left.tree) != right.header(right.tree):
        return None
    edits = _blocks(left, left.tree.body, right, right.tree.body)
    return None if edits is None else replace_spans(a, 0, len(a), edits)


class _Text(SourceText):
    def __init__(self, text: str):
        super().__init__(text)
        self.tree = ast.parse(text).body[0]

    def block(self, statements: list[ast.stmt]) -> str:
        return self.text[self.span(statements[0])[0] : self.span(statements[-1])[1]] if statements else ""

    def header(self, s: ast.stmt) -> str:
        """The text of a compound statement up to its body."""
        return self.text[self.span(s)[0] : self.span(s.body[0])[0]].rstrip()


def _blocks(left: _Text, a: list[ast.stmt], right: _Text, b: list[ast.stmt]) -> list[tuple[int, int, str]] | None:
    """Edits to the left text that make block `a` what both blocks are, or None."""
    if left.block(a) == right.block(b):
        return []
    common = 0
    while common < min(len(a), len(b)) and not is_untranslated(a[common]) and not is_untranslated(b[common]):
        common += 1
    if bool(a) != bool(b):
        return None
    edits: list[tuple[int, int, str]] = []
    for s, t in zip(a[:common], b[:common]):
        inner = _statements(left, s, right, t)
        if inner is None:
            return None
        edits += inner
    rest_a, rest_b = a[common:], b[common:]
    if not rest_a and not rest_b:
        return edits
    if rest_b and is_untranslated(rest_b[0]) and rest_a:
        return edits
    if rest_a and is_untranslated(rest_a[0]) and rest_b:
        start, end = left.span(rest_a[0])[0], left.span(rest_a[-1])[1]
        return [*edits, (start, end, right.block(rest_b))]
    return None


def _statements(left: _Text, s: ast.stmt, right: _Text, t: ast.stmt) -> list[tuple[int, int, str]] | None:
    if left.of(s) == right.of(t):
        return []
    if type(s) is not type(t):
        return None
    if not isinstance(s, (ast.If, ast.For, ast.While, ast.With)):
        return _arms(left, s, right, t) or _casts(left, s, right, t)
    if _head(s) != _head(t):
        return None
    edits = _blocks(left, s.body, right, t.body)
    if edits is None or isinstance(s, ast.With):
        return edits
    other = _branches(left, s.orelse, right, t.orelse)
    return None if other is None else edits + other


def _arms(left: _Text, s: ast.stmt, right: _Text, t: ast.stmt) -> list[tuple[int, int, str]] | None:
    """Edits to a statement that take, of conditional expressions, the arms which only the other side has; None or empty
    where that does not make both sides the same."""
    ours, theirs = ([n for n in ast.walk(x) if isinstance(n, ast.IfExp)] for x in (s, t))
    if len(ours) != len(theirs):
        return None
    edits, back = [], []
    for mine, other in zip(ours, theirs):
        for a, b in ((mine.body, other.body), (mine.orelse, other.orelse)):
            if is_untranslated(a) and not is_untranslated(b):
                edits.append((*left.span(a), right.of(b)))
            elif is_untranslated(b) and not is_untranslated(a):
                back.append((*right.span(b), left.of(a)))
    first = replace_spans(left.text, *left.span(s), edits)
    second = replace_spans(right.text, *right.span(t), back)
    same = (edits or back) and _normal(first) == _normal(second)
    # An edit in place of nothing, so that "the same as it is" is not taken for "not the same".
    return (edits or [(left.span(s)[0], left.span(s)[0], "")]) if same else None


def _normal(text: str) -> str:
    return ast.unparse(ast.parse(textwrap.dedent(text)))


class _Uncast(ast.NodeTransformer):
    """Takes away casts to the element type of a pointer, `x.to(ptr.dtype.element_ty)`, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "to"
            and len(node.args) == 1
            and not node.keywords
        ):
            if re.fullmatch(r"\w+\.dtype\.element_ty", ast.unparse(node.args[0])):
                self.count += 1
                return node.func.value
        return node


def _casts(left: _Text, s: ast.stmt, right: _Text, t: ast.stmt) -> list[tuple[int, int, str]] | None:
    """A store's cast to the pointer's element type is not written where the value has it; with it, it is right for all."""
    bare, cast = _Uncast(), _Uncast()
    a = ast.unparse(bare.visit(ast.parse(textwrap.dedent(left.of(s)))))
    b = ast.unparse(cast.visit(ast.parse(textwrap.dedent(right.of(t)))))
    if a != b or (bare.count and cast.count):
        return None
    return [] if bare.count else [(*left.span(s), right.of(t))]


def _branches(left: _Text, a: list[ast.stmt], right: _Text, b: list[ast.stmt]) -> list[tuple[int, int, str]] | None:
    """`_blocks` for what follows an `if`, where one side may have `elif` and the other `else`."""
    chain_a = bool(a) and left.text.startswith("elif", left.span(a[0])[0])
    chain_b = bool(b) and right.text.startswith("elif", right.span(b[0])[0])
    if chain_a == chain_b:
        return _blocks(left, a, right, b)
    if chain_a and is_untranslated(b[0]):
        return []
    if chain_b and a and is_untranslated(a[0]):
        start = left.text.rindex("else", 0, left.span(a[0])[0])
        return [(start, left.span(a[-1])[1], right.block(b))]
    return None


def _head(s: ast.stmt) -> str:
    if isinstance(s, (ast.If, ast.While)):
        return ast.unparse(s.test)
    if isinstance(s, ast.For):
        return f"{ast.unparse(s.target)} in {ast.unparse(s.iter)}"
    return ", ".join(ast.unparse(item) for item in s.items)  # type: ignore[attr-defined]
