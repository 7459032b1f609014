"""The text of a whole file, addressed by its syntax tree, and edits to it that leave everything else as it is."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence

from translator.diagnostics import InternalError
from translator.facts.source_text import SourceText, replace_spans

_FIRST_LINES = re.compile(r"(?:#!.*\n)?(?:#.*coding[:=].*\n)?")


class FileText(SourceText):
    def __init__(self, text: str):
        self.text = text
        # The tokenizer ends lines at newlines only; str.splitlines has more ideas.
        self.lines = re.findall(r"[^\n]*\n|[^\n]+$", text)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.tree = ast.parse(text)

    @classmethod
    def of_output(cls, text: str) -> FileText:
        """A file that was put together here. Raises: InternalError where it is not Python."""
        try:
            return cls(text)
        except SyntaxError as error:
            raise InternalError(f"the output is not a Python module: {error}") from error

    # What is where ---------------------------------------------------------------------------------------------------

    @property
    def bound(self) -> set[str]:
        """The names that the file's top level binds."""
        found = set(self.imported)
        for node in self.top_level():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
        return found

    @property
    def bound_anywhere(self) -> set[str]:
        """The names that any scope of the file binds, its functions' arguments included."""
        found = set(self.bound)
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.alias):
                found.add(node.asname or node.name.split(".")[0])
        return found

    @property
    def imported(self) -> dict[str, str]:
        """Names that top-level imports bind, and what to: `pkg.module` or `pkg.module:name`."""
        out = {}
        for node in self.top_level():
            if isinstance(node, ast.Import):
                for alias in node.names:
                    out[alias.asname or alias.name.split(".")[0]] = (
                        alias.name if alias.asname else alias.name.split(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    out[alias.asname or alias.name] = f"{'.' * node.level}{node.module or ''}:{alias.name}"
        return out

    def top_level(self) -> list[ast.AST]:
        """Every node that runs when the file is imported, functions' bodies left out."""
        out: list[ast.AST] = []
        todo: list[ast.AST] = list(self.tree.body)
        while todo:
            node = todo.pop(0)
            out.append(node)
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                todo = [*ast.iter_child_nodes(node), *todo]
        return out

    def function_at(self, line: int) -> ast.FunctionDef:
        """The function whose `def` is on this line."""
        return next(n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef) and n.lineno == line)

    def top_statement(self, node: ast.AST) -> ast.stmt:
        """The statement of the file's top level that holds the node."""
        return next(s for s in self.tree.body if s.lineno <= node.lineno <= s.end_lineno)  # type: ignore[attr-defined, operator]

    def names_outside(self, def_lines: set[int]) -> set[str]:
        """The names that code mentions outside the bodies of the functions on the given lines."""
        found: set[str] = set()
        todo: list[ast.AST] = [self.tree]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.FunctionDef) and node.lineno in def_lines:
                todo += node.decorator_list
                continue
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            todo += ast.iter_child_nodes(node)
        return found

    # Positions -------------------------------------------------------------------------------------------------------

    def start_with_comments(self, statement: ast.stmt) -> int:
        """The offset of the line where a statement starts, with its decorators and the comments right above them."""
        line = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        while line > 1 and self.lines[line - 2].startswith("#"):
            line -= 1
        return self.starts[line - 1]

    def end(self, statement: ast.stmt) -> int:
        """The offset after the last line of a statement, without its newline."""
        at = self.starts[statement.end_lineno]  # type: ignore[index]
        return at - 1 if self.text[at - 1 : at] == "\n" else at

    def def_span(self, node: ast.FunctionDef) -> tuple[int, int]:
        """A function from `def` to its last line, comments inside its end included, as Triton takes its source."""
        start = self.offset(node.lineno, node.col_offset)
        line = node.end_lineno or 0
        found = line
        for number in range(line, len(self.lines)):
            text = self.lines[number]
            if text.strip() and not (
                text.lstrip().startswith("#") and len(text) - len(text.lstrip()) > node.col_offset
            ):
                break
            if text.strip():
                found = number + 1
        at = self.starts[found]
        return start, at - 1 if self.text[at - 1 : at] == "\n" else at

    def indented(self, text: str, columns: int) -> str:
        """A function's text for a `def` in this column; the first line is already there."""
        if not columns:
            return text
        return textwrap.indent(text, " " * columns).lstrip(" ")

    def after_imports(self) -> tuple[int, str]:
        """Where more imports go: after the imports above the first definition, else after the docstring."""
        imports = []
        for statement in self.tree.body:
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                break
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                imports.append(statement)
        if imports:
            return self.end(imports[-1]), ""
        if self.docstring is not None:
            return self.end(self.docstring), "\n"
        return len(_FIRST_LINES.match(self.text)[0]), ""  # type: ignore[index]

    @property
    def docstring(self) -> ast.stmt | None:
        first = self.tree.body[0] if self.tree.body else None
        is_text = isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str)
        return first if is_text else None

    def header_edit(self, header: str) -> tuple[int, int, str]:
        """The header under the docstring, or at the top."""
        if self.docstring is not None:
            at = self.end(self.docstring)
            return at, at, f"\n\n{header}"
        at = len(_FIRST_LINES.match(self.text)[0])  # type: ignore[index]
        return at, at, f"{header}\n"

    def imports(self, line: str) -> bool:
        """Whether the top level already has what an import line brings."""
        node = ast.parse(line).body[0]
        held = self.imported
        if isinstance(node, ast.ImportFrom):
            return all(held.get(a.asname or a.name) == f"{node.module}:{a.name}" for a in node.names)
        return all(held.get(a.asname or a.name.split(".")[0]) == a.name for a in node.names)  # type: ignore[attr-defined]

    def edited(self, edits: Sequence[tuple[int, int, str]]) -> str:
        """The text with edits, those at one place in the order given."""
        ordered = [edit for _, edit in sorted(enumerate(edits), key=lambda pair: (pair[1][0], pair[1][1], pair[0]))]
        joined: list[tuple[int, int, str]] = []
        for start, end, new in ordered:
            if joined and joined[-1][:2] == (start, end) == (start, start):
                joined[-1] = (start, end, joined[-1][2] + new)
            else:
                joined.append((start, end, new))
        return replace_spans(self.text, 0, len(self.text), joined)


def binds(imported: str | None, module: str) -> bool:
    """Whether an import (`pkg.module` or `pkg:module`) binds the module of this name."""
    return imported is not None and imported.replace(":", ".") == module


def _names_read(tree: ast.AST) -> set[str]:
    """The names that code reads, those in annotations that are strings too."""
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    for node in ast.walk(tree):
        for written in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(written, ast.Constant) and isinstance(written.value, str):
                found |= set(re.findall(r"[^\W\d]\w*", written.value))
    return found


def unused_imports(before: FileText, text: str, superseded: set[str]) -> str:
    """Drop imports that only replaced code used, and imports whose name a copy has taken."""
    after = FileText.of_output(text)
    used_before, used_after = _names_read(before.tree), _names_read(after.tree)
    exported = {n.value for n in ast.walk(after.tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    edits = []
    for statement in after.tree.body:
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        module = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
        keep = []
        for alias in statement.names:
            name = alias.asname or alias.name.split(".")[0]
            gone = name in used_before and name not in used_after and name not in exported
            if not (gone or (name in superseded and name in before.imported)):
                keep.append(alias)
        if len(keep) == len(statement.names):
            continue
        start, end = after.span(statement)
        if keep:
            prefix = (
                f"from {'.' * statement.level}{module} import " if isinstance(statement, ast.ImportFrom) else "import "
            )
            names = ", ".join(a.name + (f" as {a.asname}" if a.asname else "") for a in keep)
            edits.append((start, end, prefix + names))
        else:
            edits.append((after.starts[statement.lineno - 1], after.starts[statement.end_lineno or 0], ""))
    return after.edited(edits) if edits else text
