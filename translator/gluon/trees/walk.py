"""Going through concrete syntax trees by what is code in them: no white space, no comments, no parentheses, in the order of the text.

libcst's own visitors look up a method for every node and attribute; these functions look at the fields of a node that hold code.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import libcst as cst

# Names of fields that hold how code is written, or names that are no variables.
_NO_CODE = frozenset(
    "lpar rpar lbracket rbracket lbrace rbrace semicolon comma equal dot colon first_colon second_colon asynchronous header footer "
    "indent newline encoding default_indent default_newline has_trailing_newline posonly_ind start end".split()
)
_NAMED = (cst.FunctionDef, cst.ClassDef, cst.Param)
_NO_VARIABLES = {(cst.Attribute, "attr"), (cst.Arg, "keyword"), *((kind, "name") for kind in _NAMED)}
_IN_ORDER: dict[type, tuple[str, ...]] = {
    cst.IfExp: ("body", "test", "orelse"),
    cst.FunctionDef: ("decorators", "params", "returns", "body"),
    cst.Parameters: ("posonly_params", "params", "star_arg", "kwonly_params", "star_kwarg"),
}
_LITERALS = {"True", "False", "None"}  # which are names to libcst
_TARGETS = {
    cst.AssignTarget: "target",
    cst.AugAssign: "target",
    cst.AnnAssign: "target",
    cst.NamedExpr: "target",
    cst.For: "target",
    cst.CompFor: "target",
    cst.AsName: "name",
}


@functools.lru_cache(maxsize=None)
def _fields(kind: type) -> tuple[str, ...]:
    if kind in _IN_ORDER:
        return _IN_ORDER[kind]
    names = (f.name for f in dataclasses.fields(kind) if "whitespace" not in f.name and "lines" not in f.name)
    return tuple(n for n in names if n not in _NO_CODE and (kind, n) not in _NO_VARIABLES)


@functools.lru_cache(maxsize=None)
def _is_tree(kind: type) -> bool:
    """Whether values of a type are nodes; asking each of them is slow, since nodes have an abstract base."""
    return issubclass(kind, cst.CSTNode)


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The parts of a node that are code, in the order of the text."""
    found: list[cst.CSTNode] = []
    for name in _fields(node.__class__):
        value = getattr(node, name)
        if isinstance(value, (list, tuple)):
            found += value
        elif _is_tree(value.__class__):
            found.append(value)
    return found


def walk(node: cst.CSTNode) -> Iterator[Any]:
    """`node` and all code in it, in the order of the text. A `cst.Name` is a variable, but for the names in imports."""
    todo = [node]
    while todo:
        found = todo.pop()
        yield found
        todo += reversed(children(found))


def lines(block: cst.CSTNode) -> Iterator[cst.SimpleStatementLine]:
    """The simple statements of a block and of the blocks in it, but for those of functions and classes."""
    if isinstance(block, cst.SimpleStatementLine):
        yield block
    elif not isinstance(block, (cst.BaseExpression, cst.FunctionDef, cst.ClassDef)):
        for child in children(block):
            yield from lines(child)


def mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """The tree in which a node for which `change` gives another one is that, and nothing else is new; None: go on inside."""
    new = change(node)
    return inside(node, change) if new is None else new


def inside(node: Any, change: Callable[[Any], Any]) -> Any:
    """`node` with all in it `mapped`, itself not."""
    changes: dict[str, Any] = {}
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, (list, tuple)):
            every = [mapped(item, change) for item in value]
            if any(a is not b for a, b in zip(every, value)):
                changes[name] = every
        elif _is_tree(value.__class__):
            made = mapped(value, change)
            if made is not value:
                changes[name] = made
    return node.with_changes(**changes) if changes else node


def same(a: Any, b: Any) -> bool:
    """Whether two trees are the same code, however it is written."""
    if a is b:
        return True
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if type(a) is not type(b) or not isinstance(a, cst.CSTNode):
        return a == b
    own = ("name",) if isinstance(a, _NAMED) else ("attr",) if isinstance(a, cst.Attribute) else ()
    own = ("keyword",) if isinstance(a, cst.Arg) else own
    return all(same(getattr(a, name), getattr(b, name)) for name in (*own, *_fields(type(a))))


def names(node: cst.CSTNode) -> set[str]:
    """The variables in `node`, read or written."""
    return {n.value for n in walk(node) if isinstance(n, cst.Name)} - _LITERALS


def structure(node: cst.CSTNode) -> Iterator[Any]:
    """A statement or a block, and all in it but small statements and expressions, in the order of the text."""
    yield node
    if not isinstance(node, (cst.BaseExpression, cst.SimpleStatementLine, cst.SimpleStatementSuite)):
        for child in children(node):
            yield from structure(child)


def functions(node: cst.CSTNode) -> Iterator[cst.FunctionDef]:
    """The functions that are defined in a statement or a block, those in others too."""
    return (n for n in structure(node) if isinstance(n, cst.FunctionDef))


def stores(node: cst.CSTNode) -> set[str]:
    """The variables that are assigned anywhere in `node`."""
    return {name.value for name in assigned(node)}


def loads(node: cst.CSTNode) -> set[str]:
    """The variables that are read anywhere in `node`; what is augmented is read."""
    every = [*walk(node)]
    written = set(assigned(node)).difference(n.target for n in every if isinstance(n, cst.AugAssign))
    return {n.value for n in every if isinstance(n, cst.Name) and n not in written} - _LITERALS


def assigned(node: cst.CSTNode) -> Iterator[cst.Name]:
    """The names by which variables are assigned in `node`, in the order of the text."""
    for n in walk(node):
        if type(n) in _TARGETS:
            yield from targets(getattr(n, _TARGETS[type(n)]))


def targets(node: cst.CSTNode) -> Iterator[cst.Name]:
    """The names of variables in what stands left of `=`."""
    if isinstance(node, cst.Name):
        yield node
    elif isinstance(node, (cst.Tuple, cst.List)):
        for element in node.elements:
            yield from targets(element.value)


def dotted(node: cst.CSTNode) -> str:
    """`gl.amd.AMDMFMALayout` of an expression that is names with dots; empty for any other."""
    parts = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    return ".".join([node.value, *reversed(parts)]) if isinstance(node, cst.Name) else ""


def called(node: cst.CSTNode) -> str:
    """The last part of the name of what is called; empty where nothing is."""
    func = node.func if isinstance(node, cst.Call) else None
    if isinstance(func, cst.Attribute):
        return func.attr.value
    return func.value if isinstance(func, cst.Name) else ""
