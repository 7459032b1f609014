"""Which block pointers a name may stand for where it is read: the definitions that reach it, in one function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from gluonize.read.block_pointers.builtin_calls import given, name_of
from gluonize.read.block_pointers.normal_form import own_expressions

Environment = dict[str, frozenset["Definition"]]


@dataclass(eq=False)
class Definition:
    """Where a name gets a value. kind: make, advance, copy, call, parameter or none for block pointers, other for all else.

    value: what is assigned; statement: that assigns it; position: of a helper's results the one that it is, None for the only one;
    before: what reaches the name of a block pointer that an advance or a copy starts from.
    """

    name: str
    kind: str
    value: ast.expr | None = None
    statement: ast.stmt | None = None
    position: int | None = None
    before: frozenset["Definition"] = frozenset()


@dataclass
class Flow:
    """reaching: by use of a name, its definitions; definitions: of block pointers, in the order of the text; statement_of: by use,
    what it stands in."""

    reaching: dict[ast.Name, frozenset[Definition]] = field(default_factory=dict)
    definitions: dict[tuple, Definition] = field(default_factory=dict)
    statement_of: dict[ast.AST, ast.stmt] = field(default_factory=dict)

    def is_pointer(self, node: ast.AST) -> bool:
        """Whether a name may be a block pointer where it is read."""
        return isinstance(node, ast.Name) and any(d.kind not in ("other", "none") for d in self.reaching.get(node, ()))


Results = Callable[[Flow, ast.stmt, ast.Call], Collection[int | None]]


def read_flow(tree: ast.FunctionDef, pointers: Collection[str], results: Results) -> Flow:
    """pointers: parameters that are block pointers; results: which results of a call are, by their positions (None: the only one)."""
    walk = _Walk(Flow(), results)
    parameters = {a.arg: Definition(a.arg, "parameter" if a.arg in pointers else "other") for a in arguments(tree)}
    walk.flow.definitions |= {("parameter", name): d for name, d in parameters.items()}
    walk.block(tree.body, {name: frozenset({d}) for name, d in parameters.items()})
    return walk.flow


def arguments(tree: ast.FunctionDef) -> list[ast.arg]:
    return [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]


class _Walk:
    def __init__(self, flow: Flow, results: Results):
        self.flow, self.results = flow, results

    def block(self, body: list[ast.stmt], env: Environment) -> Environment | None:
        """What reaches the end of a block; None where it returns before."""
        for s in body:
            after = self.statement(s, env)
            if after is None:
                return None
            env = after
        return env

    def statement(self, s: ast.stmt, env: Environment) -> Environment | None:
        if isinstance(s, ast.For | ast.While):
            return self.loop(s, env)
        for expression in own_expressions(s):
            self.reads(s, expression, env)
        if isinstance(s, ast.If):
            return _joined(self.block(s.body, env), self.block(s.orelse, env))
        if isinstance(s, ast.With):
            return self.block(s.body, env)
        if isinstance(s, ast.Return):
            return None
        return env | {name: frozenset({d}) for name, d in self.assigned(s, env)}

    def loop(self, s: ast.For | ast.While, env: Environment) -> Environment:
        if isinstance(s, ast.For):
            self.reads(s, s.iter, env)
        while True:
            inside = dict(env)
            if isinstance(s, ast.For):
                inside |= {n.id: frozenset({self.known(s, n.id, "other")}) for n in _names(s.target)}
            else:
                self.reads(s, s.test, inside)
            after = _joined(env, self.block(s.body, inside))
            assert after is not None
            if after == env:
                break
            env = after
        return self.block(s.orelse, env) or env

    def reads(self, s: ast.stmt, expression: ast.expr, env: Environment) -> None:
        calls = []
        for n in ast.walk(expression):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
                self.flow.reaching[n] = self.flow.reaching.get(n, frozenset()) | env.get(n.id, frozenset())
                self.flow.statement_of[n] = s
            elif isinstance(n, ast.Call):
                calls.append(n)
        for call in calls:
            if name_of(call) not in ("make_block_ptr", "advance"):
                self.results(self.flow, s, call)

    def assigned(self, s: ast.stmt, env: Environment) -> Iterator[tuple[str, Definition]]:
        """The names that a statement gives values to, and which."""
        if not isinstance(s, ast.Assign) or len(s.targets) != 1:
            targets = s.targets if isinstance(s, ast.Assign) else [getattr(s, "target", None)]
            for target in targets:
                yield from ((n.id, self.known(s, n.id, "other")) for n in _names(target))
            return
        (target,) = s.targets
        positions = self.results(self.flow, s, s.value) if isinstance(s.value, ast.Call) else ()
        if isinstance(target, ast.Name):
            yield target.id, self.of_value(s, target.id, s.value, env, positions)
            return
        elements = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        for n in _names(target):
            position = next((i for i, e in enumerate(elements) if e is n), None)
            kind = "call" if position is not None and position in positions else "other"
            yield n.id, self.known(s, n.id, kind, s.value if kind == "call" else None, position)

    def of_value(self, s: ast.stmt, name: str, value: ast.expr, env: Environment, positions) -> Definition:
        called = name_of(value)
        if called == "make_block_ptr":
            return self.known(s, name, "make", value)
        if called == "advance":
            base = given(value).get("base")  # type: ignore[arg-type]
            before = env.get(base.id, frozenset()) if isinstance(base, ast.Name) else frozenset()
            return self.known(s, name, "advance", value, before=before)
        if isinstance(value, ast.Name) and self.flow.is_pointer(value):
            return self.known(s, name, "copy", value, before=env.get(value.id, frozenset()))
        if isinstance(value, ast.Constant) and value.value is None:
            return self.known(s, name, "none", value)
        if None in positions:
            return self.known(s, name, "call", value)
        return self.known(s, name, "other")

    def known(self, s: ast.stmt, name: str, kind: str, value=None, position=None, before=frozenset()) -> Definition:
        """The definition of a name in a statement, the same one in each round of a loop."""
        d = self.flow.definitions.setdefault((s, name), Definition(name, kind, value, s, position))
        if kind != "other":
            d.kind, d.value, d.position = kind, value, position
        d.before |= before
        return d


def _names(target: ast.AST | None) -> list[ast.Name]:
    return [n for n in ast.walk(target) if isinstance(n, ast.Name)] if target is not None else []


def _joined(a: Environment | None, b: Environment | None) -> Environment | None:
    """What may reach a place from two others."""
    if a is None or b is None:
        return a if b is None else b
    return {name: a.get(name, frozenset()) | b.get(name, frozenset()) for name in a.keys() | b.keys()}


__all__ = ["Definition", "Flow", "arguments", "read_flow"]
