"""Which statements of a body bind which names, and under which conditions; nothing is evaluated here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

# Methods that change their object: `NAME.append(...)` as a statement means that NAME is not what its assignment says.
MUTATING_METHODS = frozenset(
    {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse"}
    | {"update", "setdefault", "popitem", "add", "discard", "__setitem__", "difference_update", "intersection_update"}
)


@dataclass(frozen=True)
class Guard:
    """A condition for reaching a statement: a branch of an `if` or of a `try`.

    `branch` is `then`/`else` for an if; `body`, `except N`, `else` or `finally` for a try.
    """

    node: ast.If | ast.Try
    branch: str


@dataclass(frozen=True)
class Binding:
    """One way in which a name gets its value. `path` says which element of a tuple target it is, `position` orders
    the bindings of a body, and `reason` says why an `opaque` one cannot be evaluated."""

    name: str
    kind: Literal["import", "from", "star", "def", "class", "assign", "augmented", "parameter", "opaque"]
    node: ast.AST
    position: int
    guards: tuple[Guard, ...] = ()
    value: ast.expr | None = None
    path: tuple[int, ...] = ()
    alias: ast.alias | None = None
    reason: str = ""


@dataclass
class Bindings:
    """Every binding of a body by name, in order; star imports apart; `changed_by_functions` are the names that some
    function declares `global`."""

    by_name: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[Binding] = field(default_factory=list)
    positions: dict[int, int] = field(default_factory=dict)
    changed_by_functions: dict[str, int] = field(default_factory=dict)


def index_bindings(body: list[ast.stmt], parameters: ast.arguments | None = None) -> Bindings:
    """The bindings of a module, class or function body; `parameters` of the function it belongs to come first."""
    indexer = _Indexer()
    if parameters is not None:
        indexer.parameters(parameters)
    indexer.body(body, ())
    indexer.global_names()
    return indexer.out


class _Indexer:
    def __init__(self) -> None:
        self.out = Bindings()
        self.count = 0
        self.scopes: list[ast.AST] = []  # functions and classes that stand in it

    def add(self, name: str, kind: str, node: ast.AST, guards: tuple[Guard, ...], **more) -> None:
        self.count += 1
        binding = Binding(name, kind, node, self.count, guards, **more)  # type: ignore[arg-type]
        (self.out.stars if kind == "star" else self.out.by_name.setdefault(name, [])).append(binding)

    def parameters(self, args: ast.arguments) -> None:
        positional = [*args.posonlyargs, *args.args]
        defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
        for arg, default in [*zip(positional, defaults), *zip(args.kwonlyargs, args.kw_defaults)]:
            self.add(arg.arg, "parameter", arg, (), value=default)
        for arg in filter(None, (args.vararg, args.kwarg)):
            self.add(arg.arg, "parameter", arg, ())

    def body(self, statements: list[ast.stmt], guards: tuple[Guard, ...]) -> None:
        for statement in statements:
            self.statement(statement, guards)

    def statement(self, node: ast.stmt, guards: tuple[Guard, ...]) -> None:
        self.out.positions[id(node)] = self.count
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            kind = "class" if isinstance(node, ast.ClassDef) else "def"
            if isinstance(node, ast.AsyncFunctionDef):
                self.add(node.name, "opaque", node, guards, reason="it is an async function")
            else:
                self.add(node.name, kind, node, guards)
            self.scopes.append(node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                self.add(alias.asname or alias.name.partition(".")[0], "import", node, guards, alias=alias)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                kind = "star" if alias.name == "*" else "from"
                self.add(alias.asname or alias.name, kind, node, guards, alias=alias)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self.target(target, node, guards, node.value, ())
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.target(node.target, node, guards, node.value, ())
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):
                self.add(node.target.id, "augmented", node, guards, value=node.value)
            else:
                self.changed(node.target, node, guards)
        elif isinstance(node, ast.If):
            self.body(node.body, (*guards, Guard(node, "then")))
            self.body(node.orelse, (*guards, Guard(node, "else")))
        elif isinstance(node, ast.Try):
            self.body(node.body, (*guards, Guard(node, "body")))
            for number, handler in enumerate(node.handlers):
                branch = (*guards, Guard(node, f"except {number}"))
                if handler.name:
                    self.add(handler.name, "opaque", handler, branch, reason="it is a caught exception")
                self.body(handler.body, branch)
            self.body(node.orelse, (*guards, Guard(node, "else")))
            self.body(node.finalbody, guards)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self.opaque(item.optional_vars, node, guards, "it is bound by a with statement")
            self.body(node.body, guards)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)) or type(node).__name__ in ("Match", "TryStar"):
            for name in sorted({n.id for n in _own_nodes(node) if isinstance(n, ast.Name) and _stored(n)}):
                self.add(
                    name, "opaque", node, guards, reason=f"it is bound in a {type(node).__name__.lower()} statement"
                )
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self.opaque(target, node, guards, "it is deleted")
        elif isinstance(node, ast.Expr):
            self.expression(node, guards)

    def expression(self, node: ast.Expr, guards: tuple[Guard, ...]) -> None:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in MUTATING_METHODS:
            self.changed(call.func.value, node, guards)

    def changed(self, target: ast.expr, node: ast.stmt, guards: tuple[Guard, ...]) -> None:
        """`X[...] = v`, `X.a = v`, `X.append(v)`: X is no longer what it was assigned."""
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name):
            self.add(target.id, "opaque", node, guards, reason=f"it is changed at line {node.lineno}")

    def opaque(self, target: ast.expr, node: ast.stmt, guards: tuple[Guard, ...], reason: str) -> None:
        for name in ast.walk(target):
            if isinstance(name, ast.Name):
                self.add(name.id, "opaque", node, guards, reason=reason)

    def target(self, target: ast.expr, node: ast.stmt, guards: tuple[Guard, ...], value: ast.expr, path: tuple) -> None:
        if isinstance(target, ast.Name):
            self.add(target.id, "assign", node, guards, value=value, path=path)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if any(isinstance(item, ast.Starred) for item in target.elts):
                self.opaque(target, node, guards, "it is unpacked with a star")
                return
            for number, item in enumerate(target.elts):
                self.target(item, node, guards, value, (*path, number))
        else:
            self.changed(target, node, guards)

    def global_names(self) -> None:
        """Note what functions and classes in the body declare `global`, in the order in which they stand there."""
        for scope in self.scopes:
            for inner in _statements(scope):
                if isinstance(inner, ast.Global):
                    for name in inner.names:
                        self.out.changed_by_functions.setdefault(name, inner.lineno)


def _statements(scope: ast.AST) -> Iterator[ast.stmt]:
    """All statements in a function or a class, those of others in it too."""
    todo = [scope]
    while todo:
        node = todo.pop(0)
        for block in ("body", "orelse", "finalbody"):
            inner = getattr(node, block, ())
            yield from inner
            todo += inner
        todo += [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]


def _stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, (ast.Store, ast.Del))


def _own_nodes(node: ast.AST):
    """`node` and what is inside it, without the insides of nested functions and classes (whose names are stored here
    as functions)."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        for child in ast.iter_child_nodes(current):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield ast.Name(child.name, ast.Store())
            elif not isinstance(child, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                stack.append(child)
