"""The forms in which host code launches a kernel: which calls do, and with which arguments.

k[grid](x, y)                                  wrap_triton(k)[grid](x, y)           k.run(x, y, grid=grid)
run = k[grid]; run(x, y)                       partial(k[grid], x)(y)               getattr(kernels, "k")[grid](x, y)
{"fwd": k}["fwd"][grid](x, y)                  (k if fast else other)[grid](x, y)   kernel = k; kernel[grid](x, y)
for kernel in (k, other): kernel[grid](x, y)   partial(k.run, grid=grid)(x, y)      self.kernel = k; self.kernel[grid](x, y)
def launch(kernel, x): kernel[grid](x)         pick()[grid](x, y)                   globals()["k"][grid](x, y)
launch(k, x)                                   def pick(): return k
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_DEPTH = 6  # names that stand for names


@dataclass(frozen=True)
class _Passing:
    """A function that launches a kernel which it is handed with all else that it is called with: `def f(kernel, grid, *args, **options):
    kernel[grid](*args, **options)`. names: of its parameters, kernel: of that one."""

    names: tuple[str, ...]
    kernel: str
    launch: ast.Call


@dataclass
class LaunchForms:
    """The launches of a kernel in one module. names: what the kernel is called; body: of the module."""

    names: tuple[str, ...]
    body: list[ast.stmt]
    aliases: dict[str, list[tuple[ast.FunctionDef | None, ast.expr]]] = field(default_factory=dict)
    passing: dict[str, _Passing] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the names that are given something in which the kernel is mentioned, with the function that they are given it in."""
        self.passing = {function.name: found for function in _functions(self.body) if (found := _passes(function))}
        assigned = [*_assignments(self.body, None), *_handed_on(self.body)]
        known = set(self.names)
        while more := [entry for entry in assigned if entry[1] not in self.aliases and _mentions(entry[2], known)]:
            for function, name, value in more:
                self.aliases.setdefault(name, []).append((function, value))
            known |= self.aliases.keys()

    def launch(self, call: ast.Call, functions: tuple[ast.FunctionDef, ...]) -> ast.Call | None:
        """The call with all arguments that the kernel gets; None of one that does not launch it. functions: around the call."""
        func = call.func
        if (passing := self.passing.get(_last_name(func))) is not None:
            return self._passed(call, passing, functions)
        if functions and (own := self.passing.get(functions[-1].name)) is not None and call is own.launch:
            return None  # what it launches, and with what, stands at its calls
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

    def _passed(self, call: ast.Call, passing: _Passing, functions: tuple[ast.FunctionDef, ...]) -> ast.Call | None:
        """The launch that a function makes with what it is called with."""
        given = dict(zip(passing.names, call.args))
        given |= {k.arg: k.value for k in call.keywords if k.arg in passing.names}
        kernel = given.get(passing.kernel)
        if kernel is None or not self.is_kernel(kernel, functions):
            return None
        keywords = [k for k in call.keywords if k.arg not in passing.names]
        grid = passing.launch.func.slice  # type: ignore[attr-defined]
        grid = given.get(grid.id) if isinstance(grid, ast.Name) else None
        keywords += [ast.keyword("grid", grid)] if grid is not None else []
        return ast.copy_location(ast.Call(call.func, call.args[len(passing.names) :], keywords), call)

    def _prepared(
        self, node: ast.expr, functions: tuple[ast.FunctionDef, ...], depth: int = 0
    ) -> tuple[list[ast.expr], list[ast.keyword]] | None:
        """The arguments that what is called has been given already: none for `k[grid]`; None where it launches nothing."""
        if isinstance(node, ast.Subscript) and self.is_kernel(node.value, functions):
            return [], []
        if isinstance(node, ast.Call) and _last_name(node.func) == "partial" and node.args:
            first = node.args[0]
            runs = isinstance(first, ast.Attribute) and first.attr == "run" and self.is_kernel(first.value, functions)
            inner = ([], []) if runs else self._prepared(first, functions, depth)
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
            if _last_name(node.func) == "getattr" and len(node.args) > 1:
                return any(map(self._is_name, self._texts(node.args[1], functions)))
            if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
                items = self._items(node.func.value, node.args[0], functions)
                return any(self.is_kernel(item, functions, depth + 1) for item in items)
            if _last_name(node.func) == "cast" and len(node.args) == 2:  # typing.cast
                return self.is_kernel(node.args[1], functions, depth + 1)
            given = self._values(f"{_last_name(node.func)}()", functions)
            if any(self.is_kernel(value, functions, depth + 1) for value in given):
                return True
            return bool(node.args) and self.is_kernel(node.args[0], functions, depth + 1)  # a wrapper of it
        return False

    def _is_name(self, text: object) -> bool:
        return text in self.names or text in self.aliases

    def _texts(self, node: ast.expr, functions: tuple[ast.FunctionDef, ...]) -> list[object]:
        """The texts that an expression may be, as far as they are constants."""
        values = self._values(node.id, functions) if isinstance(node, ast.Name) else [node]
        return [value.value for value in values if isinstance(value, ast.Constant)]

    def _items(
        self, owner: ast.expr, key: ast.expr, functions: tuple[ast.FunctionDef, ...]
    ) -> Iterator[ast.expr]:  # fmt: skip
        """The values that a dict, list or tuple of the module may have under a key."""
        values = self._values(owner.id, functions) if isinstance(owner, ast.Name) else [owner]
        if isinstance(owner, ast.Attribute):
            values = self._values(owner.attr, functions)
        elif isinstance(owner, ast.Call) and _last_name(owner.func) in ("globals", "vars", "locals"):
            values = []
            yield from (ast.Name(str(text), ast.Load()) for text in self._texts(key, functions))
        elif isinstance(owner, ast.Call):
            values = self._values(f"{_last_name(owner.func)}()", functions)
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
                elif isinstance(target, ast.Attribute):
                    yield None, target.attr, value  # of an object, wherever it is asked for
                elif isinstance(target, ast.Subscript) and _last_name(target.value):
                    inside = function if isinstance(target.value, ast.Name) else None
                    yield inside, _last_name(target.value), ast.Dict([target.slice], [value])
        elif isinstance(node, (ast.For, ast.comprehension)):
            of_items = isinstance(node.iter, ast.Call) and _last_name(node.iter.func) in ("values", "items")
            source = node.iter.func.value if of_items else node.iter  # type: ignore[attr-defined]
            last = node.target.elts[-1] if isinstance(node.target, ast.Tuple) and of_items else node.target
            if isinstance(last, ast.Name):
                yield function, last.id, ast.Subscript(source, ast.Name(last.id, ast.Load()), ast.Load())
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield function, node.target.id, node.value
        todo += list(ast.iter_child_nodes(node))


def _handed_on(body: list[ast.stmt]) -> Iterator[tuple[ast.FunctionDef | None, str, ast.expr]]:
    """(function, name, value) of the arguments that calls hand the functions of a module, and of their defaults; (None, "f()", value) of what
    functions return."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    functions = _functions(body)
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    for function in functions:
        spec = function.args
        names = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        for name, value in zip(names[len(names) - len(spec.defaults) :], spec.defaults):
            yield function, name, value
        for name, value in zip((arg.arg for arg in spec.kwonlyargs), spec.kw_defaults):
            if value is not None:
                yield function, name, value
        for inner in ast.walk(function):
            if isinstance(inner, ast.Return) and inner.value is not None:
                yield None, f"{function.name}()", inner.value
        skipped = 1 if names[:1] in (["self"], ["cls"]) else 0
        every = {*names, *(arg.arg for arg in spec.kwonlyargs)}
        for call in calls:
            if _last_name(call.func) == function.name:
                plain = itertools.takewhile(lambda value: not isinstance(value, ast.Starred), call.args)
                yield from ((function, name, value) for name, value in zip(names[skipped:], plain))
                yield from ((function, k.arg, k.value) for k in call.keywords if k.arg in every)


def _functions(body: list[ast.stmt]) -> list[ast.FunctionDef]:
    return [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.FunctionDef)]


def _passes(function: ast.FunctionDef) -> _Passing | None:
    spec = function.args
    names = tuple(arg.arg for arg in (*spec.posonlyargs, *spec.args))
    if spec.vararg is None or spec.kwonlyargs:
        return None
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        kernel = call.func.value if isinstance(call.func, ast.Subscript) else None
        spread = [x.value.id for x in call.args if isinstance(x, ast.Starred) and isinstance(x.value, ast.Name)]
        all_of_it = len(call.args) == 1 and spread == [spec.vararg.arg]
        options = [k.value.id for k in call.keywords if k.arg is None and isinstance(k.value, ast.Name)]
        same = options == ([spec.kwarg.arg] if spec.kwarg is not None else []) and len(options) == len(call.keywords)
        if all_of_it and same and isinstance(kernel, ast.Name) and kernel.id in names:
            return _Passing(names, kernel.id, call)
    return None


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
    ) or any(f"{_last_name(inner.func)}()" in names for inner in ast.walk(node) if isinstance(inner, ast.Call))


def _last_name(node: ast.AST) -> str:
    """`f` of `f` and of `module.f`; "" of anything else."""
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


__all__ = ["LaunchForms", "pairs_given", "stripped"]
