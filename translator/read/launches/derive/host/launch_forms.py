"""The forms in which host code launches a kernel: which calls do, and with which arguments.

k[grid](x, y)                                  wrap_triton(k)[grid](x, y)           k.run(x, y, grid=grid)
run = k[grid]; run(x, y)                       partial(k[grid], x)(y)               getattr(kernels, "k")[grid](x, y)
{"fwd": k}["fwd"][grid](x, y)                  (k if fast else other)[grid](x, y)   kernel = k; kernel[grid](x, y)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_DEPTH = 6  # names that stand for names


@dataclass
class LaunchForms:
    """The launches of a kernel in one module. names: what the kernel is called; body: of the module."""

    names: tuple[str, ...]
    body: list[ast.stmt]
    aliases: dict[str, list[tuple[ast.FunctionDef | None, ast.expr]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the names that are given something in which the kernel is mentioned, with the function that they are given it in."""
        assigned = list(_assignments(self.body, None))
        known = set(self.names)
        while more := [entry for entry in assigned if entry[1] not in self.aliases and _mentions(entry[2], known)]:
            for function, name, value in more:
                self.aliases.setdefault(name, []).append((function, value))
            known |= self.aliases.keys()

    def launch(self, call: ast.Call, functions: tuple[ast.FunctionDef, ...]) -> ast.Call | None:
        """The call with all arguments that the kernel gets; None of one that does not launch it. functions: around the call."""
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == "run" and any(k.arg == "grid" for k in call.keywords):
            return call if self.is_kernel(func.value, functions) else None
        given = self._prepared(func, functions)
        if given is None:
            return None
        args, keywords = given
        later = {k.arg for k in call.keywords}
        kept = [k for k in keywords if k.arg is None or k.arg not in later]
        if not args and not kept:
            return call
        merged = ast.Call(func, [*args, *call.args], [*kept, *call.keywords])
        return ast.copy_location(merged, call)

    def _prepared(
        self, node: ast.expr, functions: tuple[ast.FunctionDef, ...], depth: int = 0
    ) -> tuple[list[ast.expr], list[ast.keyword]] | None:
        """The arguments that what is called has been given already: none for `k[grid]`; None where it launches nothing."""
        if isinstance(node, ast.Subscript) and self.is_kernel(node.value, functions):
            return [], []
        if isinstance(node, ast.Call) and _last_name(node.func) == "partial" and node.args:
            inner = self._prepared(node.args[0], functions, depth)
            return ([*inner[0], *node.args[1:]], [*inner[1], *node.keywords]) if inner is not None else None
        if isinstance(node, ast.Name) and node.id in self.aliases and depth < _DEPTH:
            found = (self._prepared(value, functions, depth + 1) for value in self._values(node.id, functions))
            return next((given for given in found if given is not None), None)
        return None

    def is_kernel(self, node: ast.expr, functions: tuple[ast.FunctionDef, ...], depth: int = 0) -> bool:
        """Whether an expression is the kernel, or may be."""
        if _last_name(node) in self.names:
            return True
        if depth > _DEPTH:
            return False
        if isinstance(node, ast.Attribute) and node.attr == "fn":  # without the outermost of its decorators
            return self.is_kernel(node.value, functions, depth + 1)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return any(self.is_kernel(v, functions, depth + 1) for v in self._values(_last_name(node), functions))
        if isinstance(node, ast.IfExp):
            return any(self.is_kernel(side, functions, depth + 1) for side in (node.body, node.orelse))
        if isinstance(node, ast.Subscript):
            return any(self.is_kernel(x, functions, depth + 1) for x in self._items(node.value, node.slice, functions))
        if isinstance(node, ast.Call):
            if _last_name(node.func) == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                return self.is_kernel(ast.Name(str(node.args[1].value), ast.Load()), functions, depth + 1)
            if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
                items = self._items(node.func.value, node.args[0], functions)
                return any(self.is_kernel(item, functions, depth + 1) for item in items)
            if _last_name(node.func) == "cast" and len(node.args) == 2:  # typing.cast
                return self.is_kernel(node.args[1], functions, depth + 1)
            return bool(node.args) and self.is_kernel(node.args[0], functions, depth + 1)  # a wrapper of it
        return False

    def _items(
        self, owner: ast.expr, key: ast.expr, functions: tuple[ast.FunctionDef, ...]
    ) -> Iterator[ast.expr]:  # fmt: skip
        """The values that a dict, list or tuple of the module may have under a key."""
        values = self._values(owner.id, functions) if isinstance(owner, ast.Name) else [owner]
        for value in values:
            if isinstance(value, ast.Dict):
                same = [v for k, v in zip(value.keys, value.values) if k is not None and ast.dump(k) == ast.dump(key)]
                yield from same if isinstance(key, ast.Constant) else value.values
            elif isinstance(value, (ast.List, ast.Tuple)):
                yield from value.elts

    def _values(self, name: str, functions: tuple[ast.FunctionDef, ...]) -> list[ast.expr]:
        """What a name is given, in the innermost function that gives it something."""
        given = self.aliases.get(name, [])
        for function in (*reversed(functions), None):
            if found := [value for where, value in given if where is function]:
                return found
        return []


def stripped(call: ast.AST) -> int:
    """How many decorators of a kernel a launch goes around: one in `kernel.fn[grid](...)`."""
    func = getattr(call, "func", None)
    node = func.value if isinstance(func, ast.Subscript) else func
    count = 0
    while isinstance(node, ast.Attribute) and node.attr == "fn":
        node, count = node.value, count + 1
    return count


def _assignments(
    body: Iterable[ast.stmt], function: ast.FunctionDef | None
) -> Iterator[tuple[ast.FunctionDef | None, str, ast.expr]]:
    """(function, name, value) of everything that names are given, `d["key"] = value` as a dict of that one item."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.FunctionDef):
            yield from _assignments(node.body, node)
            continue
        if isinstance(node, ast.Assign):
            pairs = [pair for target in node.targets for pair in pairs_given(target, node.value)]
            for target, value in pairs:
                if isinstance(target, ast.Name):
                    yield function, target.id, value
                elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    yield function, target.value.id, ast.Dict([target.slice], [value])
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield function, node.target.id, node.value
        todo += list(ast.iter_child_nodes(node))


def pairs_given(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Names and what they are given: item by item where both sides are tuples."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def _mentions(node: ast.expr, names: set[str]) -> bool:
    return any(
        _last_name(inner) in names or isinstance(inner, ast.Constant) and inner.value in names
        for inner in ast.walk(node)
        if isinstance(inner, (ast.Name, ast.Attribute)) or isinstance(inner, ast.Constant) and type(inner.value) is str
    )


def _last_name(node: ast.AST) -> str:
    """`f` of `f` and of `module.f`; "" of anything else."""
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


__all__ = ["LaunchForms", "pairs_given", "stripped"]
