"""The author's file as a concrete tree, and the file that it becomes: one pass that puts what is new where it belongs.

What no edit names stays as it is, comments and white space included. A statement of the top level is known by its index.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from translator.diagnostics import Diagnostic, TranslationError
from translator.rewrite.gluon_function import BLANK, INDENT, Block, Statement, code, with_indents, with_lines_above
from translator.rewrite.import_aliases import Aliases
from translator.rewrite.import_lines import Import
from translator.rewrite.tree_walk import functions, inside, mapped, structure
from translator.source.file_names import FileNames
from translator.source.module_file import ParsedFile

Change = Callable[[Any], cst.CSTNode]  # from a node, with what is in it changed, to what it becomes
Changes = dict[cst.CSTNode, Change]


@dataclass
class Edits:
    """What becomes of a file. changes, above, below: of statements of the top level, by index; above, below: blocks around one.

    imports: new ones; constants: statements under them. dropped: names that imports bind for nothing. header: comments. aliases:
    for what is new.
    """

    changes: dict[int, Changes] = field(default_factory=dict)
    above: dict[int, list[Block]] = field(default_factory=dict)
    below: dict[int, list[Block]] = field(default_factory=dict)
    imports: Sequence[Import] = ()
    constants: Sequence[Statement] = ()
    dropped: Collection[str] = ()
    header: str = ""
    aliases: Aliases = Aliases({})

    @property
    def added(self) -> list[Statement]:
        """The new statements of the top level."""
        blocks = [block for around in (self.above, self.below) for every in around.values() for block in every]
        return [s for block in blocks for s in block] + [*self.constants]

    def change(self, top: int, changes: Mapping[cst.CSTNode, Change]) -> None:
        self.changes.setdefault(top, {}).update(changes)


@dataclass(frozen=True)
class Function:
    """A function of a file, in both trees, and its statement of the top level."""

    written: ast.FunctionDef | ast.AsyncFunctionDef
    node: cst.FunctionDef
    top: int


@functools.lru_cache(maxsize=8)  # a concrete tree takes hundreds of times its text
def _module(text: str, path: str) -> cst.Module:
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise TranslationError(
            Diagnostic("source-syntax", f"libcst cannot read the file: {error.message}", path, error.raw_line)
        ) from error


class AuthorFile:
    """A file as the front end has read it, and as a concrete tree."""

    def __init__(self, source: ParsedFile):
        self.source, self.names = source, FileNames(source.tree)
        self.module = _module(source.text, source.path)
        first, *rest = self.module.body
        # What stands above the first statement belongs to the module, for libcst.
        self.first_lines = _first_lines(self.module.header)
        self.statements = [with_lines_above(first, self.module.header[len(self.first_lines) :]), *rest]

    # What is where ---------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _functions(self) -> dict[int, Function]:
        """The functions of the file by the lines of their `def`s."""
        found = [(top, f) for top, s in enumerate(self.statements) for f in functions(s)]
        pairs = zip(self.names.functions, found, strict=True)  # both are in the order of the text
        return {written.lineno: Function(written, node, top) for written, (top, node) in pairs}

    def function_at(self, line: int) -> Function:
        """The function whose `def` is on a line."""
        return self._functions[line]

    def top(self, line: int) -> int:
        """The index of the statement of the top level that is on a line."""
        place = 0
        for index, s in enumerate(self.statements):
            place += len(s.body) if isinstance(s, cst.SimpleStatementLine) else 1
            if line <= (self.source.tree.body[place - 1].end_lineno or 0):
                return index
        raise AssertionError(f"bug in gluonize: {self.source.path} has no line {line}")

    def node(self, found: ast.expr) -> cst.BaseExpression:
        """The node of an expression: a call, or names with dots."""
        ends = (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)
        return self._expressions[type(found).__name__, *(self._column(*end) for end in ends)]  # type: ignore[arg-type]

    def _column(self, line: int, byte: int) -> tuple[int, int]:
        return line, len(self.source.text.split("\n")[line - 1].encode()[:byte].decode())

    @functools.cached_property
    def _expressions(self) -> dict[tuple, cst.BaseExpression]:
        places = MetadataWrapper(self.module, unsafe_skip_copy=True).resolve(PositionProvider)
        known = ((n, p) for n, p in places.items() if isinstance(n, (cst.Call, cst.Attribute, cst.Name)))
        return {(type(n).__name__, (p.start.line, p.start.column), (p.end.line, p.end.column)): n for n, p in known}

    # What it becomes -------------------------------------------------------------------------------------------------

    def edited(self, edits: Edits) -> cst.Module:
        """The file with edits."""
        after_imports = self._after_imports()
        out: list[Statement] = []
        left: list[cst.EmptyLine] = []
        for index, s in enumerate(self.statements):
            changes = edits.changes.get(index, {})
            changed = with_lines_above(_changed(s, changes) if changes else s, left)
            left = _blank_end(s) if s in changes else []
            if index == after_imports:
                out += self._imports(edits)
                changed = changed if changed.leading_lines or not out else with_lines_above(changed, (BLANK,))
            out += _under(self._ours(edits, edits.above.get(index, ())), changed)
            out += [s for block in self._ours(edits, edits.below.get(index, ())) for s in apart(block)]
        if after_imports == len(self.statements):
            out += self._imports(edits)
        out, lines = _without_imports(out, edits.dropped)
        footer = [*left, *lines, *self.module.footer]
        header = [cst.EmptyLine(comment=cst.Comment(line)) for line in edits.header.split("\n")]
        at = 1 if self._has_docstring else 0
        header = [BLANK, *header] if at else header
        if at < len(out):
            out[at] = with_lines_above(out[at], header)
        else:
            footer = [*header, *footer]
        return self.module.with_changes(header=self.first_lines, body=out, footer=footer)

    def _ours(self, edits: Edits, blocks: Iterable[Block]) -> list[Block]:
        return [tuple(self.ours(edits.aliases.within(s)) for s in block) for block in blocks]

    def ours(self, tree: Any) -> Any:
        """A tree that has 4 columns for an indentation, for this file."""
        return with_indents(tree, INDENT, self.module.default_indent)

    @property
    def _has_docstring(self) -> bool:
        return ast.get_docstring(self.source.tree, clean=False) is not None

    def _after_imports(self) -> int:
        """Where more imports go: after the imports above the first definition, else after the docstring."""
        found = 1 if self._has_docstring else 0
        for index, s in enumerate(self.statements):
            if isinstance(s, (cst.FunctionDef, cst.ClassDef)):
                break
            if _imports_of(s):
                found = index + 1
        return found

    def _imports(self, edits: Edits) -> list[Statement]:
        """The new imports, and the constants under them."""
        first, *rest = [line.statement for line in edits.imports] or [None]
        gap = [BLANK] if self._after_imports() == self._has_docstring else []
        lines = [with_lines_above(first, gap), *rest] if first is not None else []
        above = [BLANK] if edits.constants else []
        constants = [self.ours(edits.aliases.within(s)) for s in edits.constants]
        return lines + [with_lines_above(s, above if not i else ()) for i, s in enumerate(constants)]


def apart(block: Block) -> Block:
    """A block with two blank lines above it."""
    first, *rest = block
    return with_lines_above(first, (BLANK, BLANK)), *rest


def _under(blocks: Sequence[Block], s: Statement) -> Iterable[Statement]:
    """Blocks above a statement and the comments right above it."""
    if not blocks:
        return (s,)
    lines = list(s.leading_lines)
    at = len(lines)
    while at and lines[at - 1].comment is not None and not lines[at - 1].whitespace.value:
        at -= 1
    first, *rest = blocks[0]
    own = s.with_changes(leading_lines=lines[at:])
    more = [part for block in (*blocks[1:], (own,)) for part in apart(block)]
    return with_lines_above(first, lines[:at]), *rest, *more


def _changed(s: Statement, changes: Changes) -> Any:
    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        return changes[node](inside(node, change)) if node in changes else None

    return mapped(s, change)


def _blank_end(s: Statement) -> list[cst.EmptyLine]:
    """The lines of nothing but white space that end a function, for libcst: they stay when it is replaced."""
    found: list[cst.EmptyLine] = []
    if any(block.footer for block in structure(s) if isinstance(block, cst.IndentedBlock)):
        for line in itertools.takewhile(lambda line: not line.strip(), reversed(code(s).split("\n")[:-1])):
            found.insert(0, cst.EmptyLine(indent=False, whitespace=cst.SimpleWhitespace(line)))
    return found


def _first_lines(header: Sequence[cst.EmptyLine]) -> Sequence[cst.EmptyLine]:
    """Of the lines at the top those that have to stay there: for the shell, and for the encoding."""
    at = 0
    for is_first in (lambda c: c.startswith("#!"), lambda c: "coding:" in c or "coding=" in c):
        comment = header[at].comment if at < len(header) else None
        at += comment is not None and is_first(comment.value)
    return header[:at]


def _imports_of(s: cst.CSTNode) -> list[cst.Import | cst.ImportFrom]:
    body = s.body if isinstance(s, cst.SimpleStatementLine) else ()
    return [small for small in body if isinstance(small, (cst.Import, cst.ImportFrom))]


def _without_imports(statements: list[Statement], gone: Collection[str]) -> tuple[list[Statement], list[cst.EmptyLine]]:
    """The statements without imports of the names, and the lines above those that are gone at the end."""
    out: list[Statement] = []
    above: list[cst.EmptyLine] = []
    for s in statements:
        if _imports_of(s):
            kept = [small for small in (_kept(small, gone) for small in s.body) if small is not None]
            if not kept:
                above += s.leading_lines
                continue
            s = s if tuple(kept) == tuple(s.body) else s.with_changes(body=kept)
        out.append(with_lines_above(s, above))
        above = []
    return out, above


def _kept(small: cst.BaseSmallStatement, dropped: Collection[str]) -> cst.BaseSmallStatement | None:
    """A statement without the imports of the names; None where nothing is left."""
    if not isinstance(small, (cst.Import, cst.ImportFrom)) or isinstance(small.names, cst.ImportStar):
        return small
    names = [alias for alias in small.names if _bound(alias) not in dropped]
    if len(names) == len(small.names):
        return small
    if not names:
        return None
    names = [cst.ImportAlias(alias.name, alias.asname) for alias in names]
    return small.with_changes(
        names=names, **({"lpar": None, "rpar": None} if isinstance(small, cst.ImportFrom) else {})
    )


def _bound(alias: cst.ImportAlias) -> str:
    return alias.evaluated_alias or alias.evaluated_name.partition(".")[0]


__all__ = ["AuthorFile", "Change", "Edits", "apart"]
