"""The author's file as a concrete tree, and the file that it becomes: one pass that puts what is new where it belongs.

What no edit names stays as it is, comments and white space included. A statement of the top level is known by its index.
"""

from __future__ import annotations

import ast
import bisect
import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst
from gluonize.gluon.imports import Import
from gluonize.gluon.trees.function import BLANK, INDENT, Block, Statement, code, with_indents, with_lines_above
from gluonize.gluon.trees.origins import AsWritten, marked
from gluonize.gluon.trees.walk import functions, inside, mapped, structure
from gluonize.output.file.import_aliases import Aliases
from gluonize.output.file.parts import parts, read_tree
from gluonize.read.files.modules import ParsedFile
from gluonize.read.names.file_names import FileNames
from libcst.metadata import MetadataWrapper, PositionProvider

Change = Callable[[Any], cst.CSTNode]  # from a node, with what is in it changed, to what it becomes
Changes = dict[cst.CSTNode, Change]


@dataclass
class FileEdits:
    """What becomes of a file. changes, above, below: of statements of the top level, by index; above, below: blocks around one.

    left_out: those that go, with the comments right above them.
    imports: new ones; constants: statements under them. dropped: names that imports bind for nothing, and dotted modules. header: comments. aliases:
    for what is new.
    """

    changes: dict[int, Changes] = field(default_factory=dict)
    above: dict[int, list[Block]] = field(default_factory=dict)
    below: dict[int, list[Block]] = field(default_factory=dict)
    left_out: set[int] = field(default_factory=set)
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

    def placed(self, block: Iterable[Statement]) -> Block:
        """What is new, with the names that Gluon's modules have here."""
        return tuple(self.aliases.within(s) for s in block)

    def change(self, top: int, changes: Mapping[cst.CSTNode, Change]) -> None:
        self.changes.setdefault(top, {}).update(changes)


@dataclass(frozen=True)
class Function:
    """A function of a file, in both trees, and its statement of the top level."""

    written: ast.FunctionDef | ast.AsyncFunctionDef
    node: cst.FunctionDef
    top: int


class AuthorFile:
    """A file as the front end has read it, and as a concrete tree of what may change.

    lines: of the `def`s that something becomes of; None: anything may change. Reading text into a concrete tree takes long: of
    the top level only these functions and imports are trees, the rest stays text.
    Raises: TranslationError `source-syntax` for what libcst does not know.
    """

    def __init__(self, source: ParsedFile, names: FileNames, lines: Collection[int] | None = None):
        self.source, self.names = source, names
        self.statements: list[Statement] = []
        self._ends: list[int] = []  # of each its last line
        self.first_lines: Sequence[cst.EmptyLine] = ()
        self.footer: Sequence[cst.EmptyLine] = ()
        self.ends_line = True
        for part in parts(source, lines):
            if not part.tree:
                self.statements.append(AsWritten(part.text, self.footer, (source.path, part.first)))
                self._ends.append(part.ends[-1])
                self.footer, self.ends_line = (), True
                continue
            module = read_tree(part.text, source.path)
            written = ast.parse(part.text).body
            known = marked(module.body, written, lambda line, first=part.first: (source.path, first + line - 1))
            above = module.header
            if not self.statements:  # what stands above the first statement belongs to the module, for libcst
                self.first_lines = _first_lines(above)
                above = above[len(self.first_lines) :]
            body = [with_indents(s, module.default_indent, INDENT) for s in known]
            self.statements += [with_lines_above(body[0], above), *body[1:]]
            self._ends += part.ends
            self.footer, self.ends_line = module.footer, module.has_trailing_newline

    # What is where ---------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _functions(self) -> dict[int, Function]:
        """The functions of the file that are trees, by the lines of their `def`s."""
        out = {}
        for top, s in enumerate(self.statements):
            if not isinstance(s, AsWritten):
                first = self._ends[top - 1] if top else 0
                written = [f for f in self.names.functions if first < f.lineno <= self._ends[top]]
                pairs = zip(written, functions(s), strict=True)  # both are in the order of the text
                out |= {f.lineno: Function(f, node, top) for f, node in pairs}
        return out

    def function_at(self, line: int) -> Function:
        """The function whose `def` is on a line."""
        return self._functions[line]

    def top(self, line: int) -> int:
        """The index of the statement of the top level that is on a line."""
        return bisect.bisect_left(self._ends, line)

    def node(self, found: ast.expr) -> cst.BaseExpression:
        """The node of an expression: a call, or names with dots."""
        ends = (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)
        return self._expressions[type(found).__name__, *(self._column(*end) for end in ends)]  # type: ignore[arg-type]

    def _column(self, line: int, byte: int) -> tuple[int, int]:
        return line, len(self._lines[line - 1].encode()[:byte].decode())

    @functools.cached_property
    def _lines(self) -> list[str]:
        return self.source.text.split("\n")

    @functools.cached_property
    def _expressions(self) -> dict[tuple, cst.BaseExpression]:
        module = read_tree(self.source.text, self.source.path)
        places = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
        known = ((n, p) for n, p in places.items() if isinstance(n, (cst.Call, cst.Attribute, cst.Name)))
        return {(type(n).__name__, (p.start.line, p.start.column), (p.end.line, p.end.column)): n for n, p in known}

    # What it becomes -------------------------------------------------------------------------------------------------

    def edited(self, edits: FileEdits) -> cst.Module:
        """The file with edits."""
        after_imports = self._after_imports()
        imports = self._imports(edits)
        out: list[Statement] = []
        left: list[cst.EmptyLine] = []
        for index, s in enumerate(self.statements):
            if index == after_imports:
                out += imports
            if index in edits.left_out:
                left = [*left, *_section_above(s)]
                continue
            changes = edits.changes.get(index, {})
            changed = with_lines_above(_changed(s, changes) if changes else s, left)
            left = _blank_end(s) if s in changes else []
            if index == after_imports:
                changed = changed if changed.leading_lines or not out else with_lines_above(changed, (BLANK,))
            out += _under([edits.placed(block) for block in edits.above.get(index, ())], changed)
            out += [s for block in edits.below.get(index, ()) for s in apart(edits.placed(block))]
        if after_imports == len(self.statements):
            out += imports
        out, lines = _without_imports(out, edits.dropped, imports)
        footer = [*left, *lines, *self.footer]
        header = [cst.EmptyLine(comment=cst.Comment(line)) for line in edits.header.split("\n")]
        at = 1 if self._has_docstring else 0
        header = [BLANK, *header] if at else header
        if at < len(out):
            out[at] = with_lines_above(out[at], header)
        else:
            footer = [*header, *footer]
        return cst.Module(out, self.first_lines, footer, has_trailing_newline=self.ends_line)

    @property
    def _has_docstring(self) -> bool:
        return ast.get_docstring(self.source.tree, clean=False) is not None

    def _after_imports(self) -> int:
        """Where more imports go: after the imports above the first definition, else after the docstring."""
        found = 1 if self._has_docstring else 0
        for s in self.source.tree.body:
            if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                break
            if isinstance(s, (ast.Import, ast.ImportFrom)):
                found = self.top(s.lineno) + 1
        return found

    def _imports(self, edits: FileEdits) -> list[Statement]:
        """The new imports, and the constants under them."""
        first, *rest = [line.statement for line in edits.imports] or [None]
        gap = [BLANK] if self._after_imports() == self._has_docstring else []
        lines = [with_lines_above(first, gap), *rest] if first is not None else []
        above = [BLANK] if edits.constants else []
        constants = edits.placed(edits.constants)
        return lines + [with_lines_above(s, above if not i else ()) for i, s in enumerate(constants)]


def apart(block: Block) -> Block:
    """A block with two blank lines above it."""
    first, *rest = block
    return with_lines_above(first, (BLANK, BLANK)), *rest


def _under(blocks: Sequence[Block], s: Statement) -> Iterable[Statement]:
    """Blocks above a statement and the comments right above it."""
    if not blocks:
        return (s,)
    lines, at = list(s.leading_lines), _own_comments(s)
    first, *rest = blocks[0]
    own = s.with_changes(leading_lines=lines[at:])
    more = [part for block in (*blocks[1:], (own,)) for part in apart(block)]
    return with_lines_above(first, lines[:at]), *rest, *more


def _own_comments(s: Statement) -> int:
    """Where among the lines above a statement the comments begin that stand right above it."""
    lines = s.leading_lines
    at = len(lines)
    while at and lines[at - 1].comment is not None and not lines[at - 1].whitespace.value:
        at -= 1
    return at


def _section_above(s: Statement) -> list[cst.EmptyLine]:
    """What stands above a statement and is not about it, without blank lines at the end."""
    lines = list(s.leading_lines[: _own_comments(s)])
    while lines and lines[-1].comment is None:
        lines.pop()
    return lines


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


def _without_imports(
    statements: list[Statement], gone: Collection[str], new: list[Statement]
) -> tuple[list[Statement], list[cst.EmptyLine]]:
    """The statements without imports of the names but for those that are new, and the lines above those that are gone at the end."""
    out: list[Statement] = []
    above: list[cst.EmptyLine] = []
    for s in statements:
        if _imports_of(s) and not any(s is one for one in new):
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
    names = [alias for alias in small.names if _bound(alias) not in dropped and _module(small, alias) not in dropped]
    if len(names) == len(small.names):
        return small
    if not names:
        return None
    names = [cst.ImportAlias(alias.name, alias.asname) for alias in names]
    return small.with_changes(
        names=names, **({"lpar": None, "rpar": None} if isinstance(small, cst.ImportFrom) else {})
    )


def _module(small: cst.Import | cst.ImportFrom, alias: cst.ImportAlias) -> str:
    """The dotted module that `import a.b` imports without a name of its own, "" for any other import."""
    return alias.evaluated_name if isinstance(small, cst.Import) and alias.asname is None else ""


def _bound(alias: cst.ImportAlias) -> str:
    return alias.evaluated_alias or alias.evaluated_name.partition(".")[0]


__all__ = ["AuthorFile", "Change", "FileEdits", "apart"]
