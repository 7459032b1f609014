"""A function of the output as a value: a concrete tree, read where its text is first complete. Later steps give other trees.

def kernel(x_ptr, N: gl.constexpr):                              header, with the docstring
    # 4 consecutive elements per lane.                           constants: layouts with names
    layout: gl.constexpr = gl.BlockedLayout(...)
                                                                 body: all else
    x = gl.load(x_ptr + gl.arange(0, N, layout))
"""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import black
import libcst as cst
from gluonize.diagnostics import InternalError
from gluonize.gluon.trees.author_names import told_apart
from gluonize.gluon.trees.walk import dotted, inside, mapped, stores, walk
from gluonize.rules.gluon import GIVE_LAYOUTS

LINE_LENGTH = 120
INDENT = "    "
JIT = "gluon.jit"  # the decorator of a function that is Gluon
Statement = cst.BaseStatement
Block = tuple[cst.BaseStatement, ...]  # definitions that stand together
BLANK = cst.EmptyLine(indent=False)


@dataclass(frozen=True)
class GluonFunction:
    """`module` has the function as its one statement; what stands around that belongs to it."""

    module: cst.Module

    @property
    def node(self) -> cst.FunctionDef:
        return self.module.body[0]

    @property
    def name(self) -> str:
        return self.node.name.value

    @functools.cached_property
    def text(self) -> str:
        return self.module.code

    @property
    def parameters(self) -> list[cst.Param]:
        given = self.node.params
        return [*given.posonly_params, *given.params, *given.kwonly_params]

    def handed_on(self, own: Container[str] = ()) -> list[str]:
        """The arguments that hand all parameters on to a function which has them too, but for those of its `own`."""
        named = {p.name.value for p in self.node.params.kwonly_params}
        given = [p.name.value for p in self.parameters if p.name.value not in own]
        return [f"{name}={name}" if name in named else name for name in given]

    @functools.cached_property
    def bound(self) -> frozenset[str]:
        """The names of parameters and variables."""
        return frozenset({n.name.value for n in walk(self.node) if isinstance(n, cst.Param)} | stores(self.node.body))

    @functools.cached_property
    def variables(self) -> dict[str, None]:
        """The names in the body, read or written, in the order in which they come first."""
        return dict.fromkeys(n.value for n in walk(self.node.body) if isinstance(n, cst.Name))

    @property
    def indent(self) -> int:
        """Columns before the statements of its body."""
        return len(self.block.indent or self.module.default_indent)

    # Parts -----------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def block(self) -> cst.IndentedBlock:
        block = self.node.body
        if isinstance(block, cst.IndentedBlock):
            return block
        line = cst.SimpleStatementLine(block.body, trailing_whitespace=block.trailing_whitespace)
        return cst.IndentedBlock([line])

    @functools.cached_property
    def _ends(self) -> tuple[int, int]:
        """Where in the function's block the docstring ends, and the layout constants."""
        block = self.block.body
        start = at = 1 if block and _is_docstring(block[0]) else 0
        while at < len(block) and is_layout(block[at]):
            at += 1
        return start, at

    @property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(self.block.body)

    @property
    def docstring(self) -> tuple[Statement, ...]:
        return tuple(self.block.body[: self._ends[0]])

    @property
    def constants(self) -> tuple[Statement, ...]:
        start, end = self._ends
        return tuple(self.block.body[start:end])

    @property
    def body(self) -> tuple[Statement, ...]:
        return tuple(self.block.body[self._ends[1] :])

    @functools.cached_property
    def header(self) -> str:
        """The text of the signature and the docstring."""
        block = self.block.with_changes(body=self.docstring or statements("pass"), footer=())
        return code(self.node.with_changes(body=block))

    # Other functions -------------------------------------------------------------------------------------------------

    def with_node(self, node: cst.FunctionDef) -> GluonFunction:
        return self if node is self.node else GluonFunction(self.module.with_changes(body=(node,)))

    def with_statements(self, *groups: Iterable[Statement]) -> GluonFunction:
        """The function with these statements after its docstring."""
        block = [*self.docstring, *(statement for group in groups for statement in group)]
        return self.with_node(self.node.with_changes(body=self.block.with_changes(body=block)))

    @property
    def plain(self) -> GluonFunction:
        """The function without its layout constants."""
        return self.with_statements(self.body) if self.constants else self

    def called(self, name: str) -> GluonFunction:
        """The function under another name."""
        return self.with_node(self.node.with_changes(name=cst.Name(name))) if name != self.name else self

    def defined(self, decorator: str) -> cst.FunctionDef:
        """Its definition for a file, under a decorator."""
        return self.written(decorators=[cst.Decorator(expression(decorator))])

    def written(self, **around: Any) -> cst.FunctionDef:
        """Its definition for a file that has 4 columns for an indentation. around: fields of the definition that are not its own."""
        return with_indents(self.node, self.module.default_indent, INDENT).with_changes(**around)

    def renaming(self, changed: Mapping[str, str]) -> GluonFunction:
        """The function with the given global names exchanged; a parameter or variable of the same name stays."""
        return self.exchanging({old: new for old, new in changed.items() if old != new and old not in self.bound})

    def exchanging(self, changed: Mapping[str, str]) -> GluonFunction:
        """The function with names exchanged, those of variables too."""
        if changed.keys().isdisjoint(self.variables):
            return self

        def change(n: cst.CSTNode) -> cst.CSTNode | None:
            return n.with_changes(value=changed[n.value]) if isinstance(n, cst.Name) and n.value in changed else None

        return self.with_node(mapped(self.node, change))

    def without(self, gone: Container[Statement]) -> GluonFunction:
        """The function without some of its statements; the comments above them stay."""

        def change(node: cst.CSTNode) -> cst.CSTNode | None:
            if not isinstance(node, cst.IndentedBlock):
                return None
            kept, above = [], []
            for s in node.body:
                if s in gone:
                    above += s.leading_lines
                else:
                    s = mapped(s, change)
                    kept.append(s.with_changes(leading_lines=[*above, *s.leading_lines]) if above else s)
                    above = []
            return node.with_changes(body=kept, footer=[*above, *node.footer])

        return self.with_node(mapped(self.node, change))

    def without_parameters(self, gone: Iterable[str]) -> tuple[GluonFunction, dict[str, str]]:
        """The function without some of its parameters, and their defaults."""
        gone, defaults = set(gone), {}
        changes = {}
        for group in ("params", "kwonly_params"):
            kept: list[cst.Param] = []
            for parameter in getattr(self.node.params, group):
                if parameter.name.value not in gone:
                    kept.append(parameter)
                    continue
                defaults[parameter.name.value] = code(parameter.default)
                if kept:
                    kept[-1] = kept[-1].with_changes(comma=_comma_of_last(kept[-1].comma, parameter.comma))
            changes[group] = kept
        if not defaults:
            return self, defaults
        return self.with_node(self.node.with_changes(params=self.node.params.with_changes(**changes))), defaults


def _comma_of_last(own: cst.Comma, left: cst.Comma | cst.MaybeSentinel) -> cst.Comma | cst.MaybeSentinel:
    """The comma after a parameter whose neighbour, which had the comma `left`, is gone."""
    if not isinstance(left, cst.Comma):
        return left
    before, after = own.whitespace_after, left.whitespace_after
    if isinstance(before, cst.ParenthesizedWhitespace) and isinstance(after, cst.ParenthesizedWhitespace):
        after = after.with_changes(first_line=before.first_line)  # its comment
    return own.with_changes(whitespace_after=after)


@functools.lru_cache(maxsize=1024)
def parsed(text: str) -> GluonFunction:
    """The function that is the text. Raises: InternalError where it is none."""
    try:
        return GluonFunction(told_apart(cst.parse_module(text), text))
    except cst.ParserSyntaxError as error:
        raise InternalError(f"a function of the output is not Python: {error}\n{text}") from error


@functools.lru_cache(maxsize=1024)
def statements(text: str) -> tuple[Statement, ...]:
    """The statements that are the text, with the comments above them."""
    block = textwrap.indent(text, "    ")
    module = told_apart(cst.parse_module(f"if True:\n{block}"), text)
    return tuple(module.body[0].body.body)


@functools.lru_cache(maxsize=1024)
def definitions(text: str) -> Block:
    """The statements of a file that are the text, with the comments above them."""
    module = told_apart(cst.parse_module(text), text)
    first, *rest = module.body
    every = with_lines_above(first, module.header), *rest
    return tuple(with_indents(s, module.default_indent, INDENT) for s in every)


@functools.lru_cache(maxsize=256)
def expression(text: str) -> cst.BaseExpression:
    """The expression that is the text."""
    return told_apart(cst.parse_expression(text), text)


def with_lines_above(statement: Statement, lines: Sequence[cst.EmptyLine]) -> Statement:
    """A statement with more lines above its own comments."""
    return statement.with_changes(leading_lines=[*lines, *statement.leading_lines]) if lines else statement


def with_indents(tree: Any, own: str, meant: str) -> Any:
    """A tree of a file with the indentation `own`, for a file in which blocks are indented by `meant` where they do not say."""
    if own == meant:
        return tree

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if not isinstance(node, cst.IndentedBlock) or node.indent is not None:
            return None
        return inside(node, change).with_changes(indent=own)

    return mapped(tree, change)


def shifted(tree: Any, columns: int) -> Any:
    """A tree for a block that is so much further to the right: its constants of several lines go along."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if not isinstance(node, (cst.SimpleString, cst.FormattedStringText)) or "\n" not in node.value:
            return None
        first, *rest = node.value.split("\n")
        return node.with_changes(value="\n".join([first, *(" " * columns + x if x.strip() else x for x in rest)]))

    return mapped(tree, change) if columns else tree


def wrapped(text: str, indent: int) -> str:
    """Lines that black has nothing against but their length."""
    fits = all(len(line) <= LINE_LENGTH - indent for line in text.splitlines())
    return text if fits else formatted(text, indent)


@functools.lru_cache(maxsize=4096)
def formatted(text: str, indent: int = 0, keep_commas: bool = True) -> str:
    """Lines of code, as black has them behind an indentation. keep_commas: whether what ends with a comma stays in several lines."""
    return black.format_str(text, mode=black.Mode(line_length=LINE_LENGTH - indent, magic_trailing_comma=keep_commas))


def call_in_block(name: str, arguments: Sequence[str]) -> str:
    """A call in a branch or a loop of a function's body, its arguments filling lines as a signature does."""
    line = f"    {name}({', '.join(arguments)})"
    if len(line) <= LINE_LENGTH - 8:
        return line
    filled_lines = textwrap.wrap(", ".join(arguments), LINE_LENGTH - 12)
    return "\n".join([f"    {name}(", *(f"        {part}" for part in filled_lines), "    )"])


def code(node: cst.CSTNode) -> str:
    """The text of a node, at no indentation."""
    return cst.Module([]).code_for_node(node)


def first_after_gap(block: Sequence[Statement]) -> list[Statement]:
    """The statements with a blank line above them."""
    first, *rest = block
    if first.leading_lines and is_blank(first.leading_lines[0]):
        return [first, *rest]
    return [first.with_changes(leading_lines=[BLANK, *first.leading_lines]), *rest]


def is_blank(line: cst.EmptyLine) -> bool:
    return line.comment is None and not line.indent and not line.whitespace.value


def _is_docstring(statement: cst.CSTNode) -> bool:
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))


def constant(statement: cst.CSTNode) -> cst.AnnAssign | None:
    """`name: gl.constexpr = value`, if a statement is that."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    named = isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name)
    return small if named and dotted(small.annotation.annotation) == "gl.constexpr" else None  # type: ignore[union-attr]


def layout_made(call: cst.CSTNode) -> str:
    """`BlockedLayout` of a call that makes a layout, `PaddedSharedLayout` of `gl.PaddedSharedLayout.with_identity_for(...)` too."""
    name = dotted(call.func) if isinstance(call, cst.Call) else ""
    if not name.startswith("gl."):
        return ""
    return next((part for part in name.removeprefix("gl.amd.").split(".") if part.endswith("Layout")), "")


def is_layout(statement: cst.CSTNode) -> bool:
    """Whether a statement gives a layout a name."""
    found = constant(statement)
    return found is not None and bool(layout_made(found.value) or gives_layout(found.value))


def gives_layout(call: cst.CSTNode) -> bool:
    """Whether a function that a rule of Triton's passes is written as gives a layout."""
    name = dotted(call.func).rpartition(".")[2] if isinstance(call, cst.Call) else ""
    return re.sub(r"_\d+$", "", name) in GIVE_LAYOUTS
