"""The names of a file: what its top level binds and imports, and what its code reads. Facts of its syntax tree, asked once each."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property

_WORD = re.compile(r"[^\W\d]\w*")
_ANY_WORD = re.compile(r"\w+")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Reads:
    """Names that code reads, and text that may be another name for something: constants."""

    names: frozenset[str]
    texts: frozenset[str]


def words_in(text: str) -> frozenset[str]:
    """Every word of a text, whatever it is there."""
    return frozenset(_ANY_WORD.findall(text))


@dataclass(frozen=True)
class FileNames:
    tree: ast.Module

    @cached_property
    def _nodes(self) -> tuple[tuple[ast.AST, int], ...]:
        """Every node, what stands in it behind it; each with the number of the next that does not."""
        nodes: list[ast.AST] = []
        ends: list[int] = []
        todo: list[ast.AST | int] = [self.tree]
        while todo:
            found = todo.pop()
            if isinstance(found, int):  # all that stands in this one has been passed
                ends[found] = len(nodes)
                continue
            todo.append(len(nodes))
            todo += reversed([*ast.iter_child_nodes(found)])
            nodes.append(found)
            ends.append(0)
        return tuple(zip(nodes, ends))

    def _outside(self, gone: Container[ast.AST]) -> Iterator[ast.AST]:
        """Every node that is not in one of `gone`."""
        at, nodes = 0, self._nodes
        while at < len(nodes):
            node, end = nodes[at]
            if node in gone:
                at = end
            else:
                yield node
                at += 1

    @cached_property
    def every(self) -> tuple[ast.AST, ...]:
        """Every node."""
        return tuple(node for node, _ in self._nodes)

    @cached_property
    def methods(self) -> frozenset[int]:
        """The lines of the `def`s that are called on an object of their class."""
        inside = (
            s for c in self.every if isinstance(c, ast.ClassDef) for s in c.body if isinstance(s, ast.FunctionDef)
        )
        return frozenset(f.lineno for f in inside if f.args.args and f.args.args[0].arg == "self")

    @cached_property
    def top_level(self) -> tuple[ast.AST, ...]:
        """Every node that runs when the file is imported, functions' bodies left out."""
        out: list[ast.AST] = []
        todo: list[ast.AST] = [*reversed(self.tree.body)]
        while todo:
            node = todo.pop()
            out.append(node)
            if not isinstance(node, (*_DEFINITIONS, ast.Lambda)):
                todo += reversed([*ast.iter_child_nodes(node)])
        return tuple(out)

    @cached_property
    def imported(self) -> dict[str, str]:
        """Names that top-level imports bind, and what to: `pkg.module` or `pkg.module:name`."""
        out = {}
        for node in self.top_level:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.split(".")[0]
                    out[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    out[alias.asname or alias.name] = f"{'.' * node.level}{node.module or ''}:{alias.name}"
        return out

    @cached_property
    def defined(self) -> frozenset[str]:
        """The names that the top level binds by anything but imports."""
        return frozenset(_defined(self.top_level))

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that the top level binds."""
        return self.defined | self.imported.keys()

    @cached_property
    def bound_anywhere(self) -> frozenset[str]:
        """The names that any scope of the file binds, its functions' arguments included."""
        found = self.bound.union(_defined(self.every), (n.arg for n in self.every if isinstance(n, ast.arg)))
        return found.union(n.asname or n.name.split(".")[0] for n in self.every if isinstance(n, ast.alias))

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """Every name in the file."""
        return self.bound_anywhere.union(n.id for n in self.every if isinstance(n, ast.Name))

    @cached_property
    def jit_names(self) -> frozenset[str]:
        """The names under which the file has `triton.jit`."""
        names = {"triton.jit"}
        for node in self.every:
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "triton":
                names |= {alias.asname or alias.name for alias in node.names if alias.name == "jit"}
            elif isinstance(node, ast.Import):
                names |= {f"{alias.asname or alias.name}.jit" for alias in node.names if alias.name == "triton"}
            elif isinstance(node, ast.Assign) and isinstance(value := node.value, ast.Attribute):
                if value.attr == "jit" and isinstance(value.value, ast.Name) and value.value.id == "triton":
                    names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        return frozenset(names)

    @cached_property
    def functions(self) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
        """Every function of the file, in the order of the text."""
        found = (n for n in self.every if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
        return tuple(sorted(found, key=lambda n: n.lineno))

    @cached_property
    def read(self) -> frozenset[str]:
        """The names that the file's code reads."""
        return self._every_read.names

    @cached_property
    def texts(self) -> frozenset[str]:
        """Text that may name something of the file: constants, and each word of annotations that are text."""
        return self._every_read.texts.union(*map(_annotated, self.every))

    @cached_property
    def _every_read(self) -> Reads:
        return self.read_without(())

    def read_without(self, gone: Container[ast.AST]) -> Reads:
        """What code reads outside of some nodes, in annotations that are text too."""
        names: set[str] = set()
        texts: set[str] = set()
        for node in self._outside(gone):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                names.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            names.update(_annotated(node))
        return Reads(frozenset(names), frozenset(texts))

    def mentioned_outside(self, lines: Container[int]) -> set[str]:
        """The names that code mentions, as attributes too, outside the bodies of the functions on the given lines."""
        gone = {part for f in self.functions if f.lineno in lines for part in (f.args, f.returns, *f.body)}
        found: set[str] = set()
        for node in self._outside(gone):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
        return found


@functools.lru_cache(maxsize=16)
def file_names(tree: ast.Module) -> FileNames:
    """The names of a file that has been parsed; kept, since launches of one file ask for them one after another."""
    return FileNames(tree)


def _annotated(node: ast.AST) -> list[str]:
    """The words of a node's annotations that are text."""
    annotations = (getattr(node, "annotation", None), getattr(node, "returns", None))
    texts = (a.value for a in annotations if isinstance(a, ast.Constant) and isinstance(a.value, str))
    return [word for text in texts for word in _WORD.findall(text)]


def _defined(nodes: list[ast.AST] | tuple[ast.AST, ...]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, _DEFINITIONS):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


__all__ = ["FileNames", "Reads", "file_names"]
