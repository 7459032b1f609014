"""The source that a module was compiled from, where it is still there: its lines, and what its expressions are made of."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Container, Iterator
from pathlib import Path

from gluonize.trace.model.locations import Place
from gluonize.trace.model.module import Module

_FOR = re.compile(r"\s*for (\w+) in ")
_TARGETS = re.compile(r"\s*(\w+(?:, \w+)+) = ")


class Sources:
    """The files that the places of a module are in."""

    def __init__(self, module: Module):
        self.module = module
        self._read: dict[str, Source] = {}

    def of(self, file: str) -> Source:
        """A file, or nothing in its place: where it is not there, and where variables stand in other lines than those of the module."""
        if file not in self._read:
            found = Source(_text(file))
            loops = {op.place for op in self.module.walk() if op.name == "scf.for"}
            places = {op.place for op in self.module.walk() if op.place.name and op.place.file == file} - loops
            agree = sum(found.assigns(place) for place in places)
            self._read[file] = found if 2 * agree >= len(places) else Source()
        return self._read[file]


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8") if file else ""
    except (OSError, UnicodeDecodeError):
        return ""


class Source:
    """A file of the source. lines: none where it is not there, or is another one than what was compiled."""

    def __init__(self, text: str = ""):
        self.lines = text.splitlines()
        self.constexprs: dict[str, None] = {}
        self.nodes: dict[tuple[int, int], list[ast.AST]] = defaultdict(list)
        self.statements: dict[int, ast.stmt] = {}
        self.functions: list[tuple[range, ast.FunctionDef]] = []  # with their lines
        self.ranges_of: dict[str, set[str]] = {}  # of variables: what the ranges go to that they are made of
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.arg)
                and node.annotation is not None
                and "constexpr" in ast.unparse(node.annotation)
            ):
                self.constexprs[node.arg] = None
            if isinstance(node, ast.expr):
                self.nodes[node.lineno, node.col_offset + 1].append(node)
            if isinstance(node, ast.FunctionDef):
                self.functions.append((range(node.lineno, (node.end_lineno or node.lineno) + 1), node))
            if isinstance(node, ast.stmt) and not hasattr(node, "body"):
                self.statements |= dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), node)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.ranges_of.setdefault(node.targets[0].id, set()).update(self._ends_in(node.value))
            if isinstance(node, (ast.For, ast.AugAssign)):
                self.nodes[node.lineno, node.col_offset + 1].append(
                    node.iter if isinstance(node, ast.For) else node.value
                )

    def function(self, line: int) -> tuple[str, list[str]]:
        """What the innermost function of a line and its parameters are called."""
        around = [(len(inside), node) for inside, node in self.functions if line in inside]
        if not around:
            return "", []
        node = min(around, key=lambda each: each[0])[1]
        return node.name, [each.arg for each in node.args.args]

    def range_ends(self, lines: Container[int]) -> set[str]:
        """The names that ranges go to, in functions with one of these lines."""
        nodes = [node for inside, node in self.functions if any(line in lines for line in inside)]
        return {name for node in nodes for inner in ast.walk(node) for name in _range_ends(inner)}

    def index_name(self, line: int) -> str:
        """What the index of the loop in a line is called."""
        found = _FOR.match(self.lines[line - 1]) if 0 < line <= len(self.lines) else None
        return found[1] if found else ""

    def targets(self, line: int, count: int) -> list[str]:
        """The variables of a line that gives so many of them their values at once."""
        found = _TARGETS.match(self.lines[line - 1]) if 0 < line <= len(self.lines) else None
        names = found[1].split(", ") if found else []
        return names if len(names) == count else []

    def assigns(self, place: Place) -> bool:
        """Whether the statement at a place gives the variable a value that the module names there."""
        inside = ast.walk(self.statements[place.line]) if place.line in self.statements else ()
        return any(isinstance(node, ast.Name) and node.id == place.name for node in inside)

    def _at(self, place: Place) -> list[ast.AST]:
        return self.nodes.get((place.line, place.column), [])

    def operands(self, place: Place, operator: type[ast.AST] | None) -> list[str]:
        """The parameter that is an operand, or an argument, of the expression at a place; none where numbers are there too."""
        parts: list[ast.expr] = []
        for node in self._at(place):
            if isinstance(node, ast.Call) and operator is None:
                parts += node.args
            elif isinstance(node, ast.BinOp) and operator is not None and isinstance(node.op, operator):
                parts += (node.left, node.right)
            elif isinstance(node, ast.Compare) and operator is ast.Compare:
                parts += (node.left, *node.comparators)
        names = {part.id for part in parts if isinstance(part, ast.Name) and part.id in self.constexprs}
        return [*names] if len(names) == 1 and not self.numbers(place) - {0} else []

    def mentioned(self, place: Place) -> set[str]:
        """The parameters in the expression at a place."""
        names = (inner.id for node in self._at(place) for inner in ast.walk(node) if isinstance(inner, ast.Name))
        return {name for name in names if name in self.constexprs}

    def lessened(self, place: Place) -> set[str]:
        """The parameters of which the expression at a place has one less: the last of a tile."""
        inside = (inner for node in self._at(place) for inner in ast.walk(node) if isinstance(inner, ast.BinOp))
        return {ast.unparse(inner).removesuffix(" - 1") for inner in inside if isinstance(inner.op, ast.Sub)}

    def numbers(self, place: Place) -> set[int]:
        """The numbers in the expression at a place."""
        inside = (inner for node in self._at(place) for inner in ast.walk(node) if isinstance(inner, ast.Constant))
        return {inner.value for inner in inside if isinstance(inner.value, int)}

    def ranges(self, place: Place) -> set[str]:
        """The parameter that all ranges go to of which the statement at a place is made."""
        statement = self.statements.get(place.line)
        names = self._ends_in(statement) if statement else set()
        return names & {*self.constexprs} if len(names) == 1 else set()

    def blocks(self, place: Place) -> list[str]:
        """What the sizes of a descriptor's blocks are called that is made at a place, "" for what is no name."""
        given = (
            keyword.value
            for node in self._at(place)
            if isinstance(node, ast.Call)
            for keyword in node.keywords
            if keyword.arg == "block_shape"
        )
        lists = [each.elts for each in given if isinstance(each, (ast.List, ast.Tuple))]
        return [each.id if isinstance(each, ast.Name) else "" for each in lists[0]] if lists else []

    def _ends_in(self, tree: ast.AST) -> set[str]:
        found: set[str] = set()
        for node in ast.walk(tree):
            found |= set(_range_ends(node))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found |= self.ranges_of.get(node.id, set())
        return found


def _range_ends(node: ast.AST) -> Iterator[str]:
    """The name that a range goes to, "" of one that goes to something else."""
    if isinstance(node, ast.Call) and len(node.args) > 1 and ast.unparse(node.func).endswith("arange"):
        yield node.args[1].id if isinstance(node.args[1], ast.Name) else ""
