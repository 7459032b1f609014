"""Which statements of a body bind which names, and under which conditions; nothing is evaluated here."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
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

    `branch` is `then`/`else` for an if; `body`, `except N`, `else` or `finally` for a try; `body` for a `with`, which may end what it holds.
    """

    node: ast.If | ast.Try | ast.With
    branch: str


@dataclass(frozen=True)
class Binding:
    """One way in which a name gets its value. `path` says which element of a tuple target it is (of one with a star how many stand before and behind it), `position` orders
    the bindings of a body, and `reason` says why an `opaque` one cannot be evaluated. A `run` one has what the statement left in the
    name when it ran (`module_run.py`), if it did."""

    name: str
    kind: Literal["import", "from", "star", "def", "class", "assign", "augmented", "parameter", "run", "opaque"]
    node: ast.AST
    position: float
    guards: tuple[Guard, ...] = ()
    value: ast.expr | None = None
    path: tuple[int | tuple[int, int], ...] = ()
    alias: ast.alias | None = None
    reason: str = ""


@dataclass
class Bindings:
    """Every binding of a body by name, in order; star imports apart; `changed_by_functions` are the names that some
    function declares `global`, and the line. `unknown` are the statements that may bind names by text, with what matches those.
    """

    by_name: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[Binding] = field(default_factory=list)
    positions: dict[int, float] = field(default_factory=dict)
    changed_by_functions: dict[str, int] = field(default_factory=dict)
    unknown: list[tuple[float, ast.AST, re.Pattern[str]]] = field(default_factory=list)
    unknown_in_functions: list[tuple[ast.AST, re.Pattern[str]]] = field(default_factory=list)

    def put(self, binding: Binding) -> None:
        """Add what a name turned out to be bound to, in its place."""
        found = self.by_name.setdefault(binding.name, [])
        found.append(binding)
        found.sort(key=lambda b: b.position)


def index_bindings(body: list[ast.stmt], parameters: ast.arguments | None = None) -> Bindings:
    """The bindings of a module, class or function body; `parameters` of the function it belongs to come first."""
    indexer = _Indexer(names_of_own_module(body))
    if parameters is not None:
        indexer.parameters(parameters)
    indexer.body(body, ())
    indexer.global_names()
    return indexer.out


class _Indexer:
    def __init__(self, own: frozenset[str]) -> None:
        self.out = Bindings()
        self.own = own  # names that stand for the module itself
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
        self.count += 1
        self.out.positions[id(node)] = self.count
        for name in sorted(walrus_names(node)):
            self.add(name, "run", node, guards)
        self.out.unknown += [(self.count, node, names) for names in names_by_text(node, self.own)]
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
            self.body(node.body, (*guards, Guard(node, "body")) if isinstance(node, ast.With) else guards)
        elif isinstance(node, (ast.For, ast.While)):
            for name in sorted(stored_names(node)):
                self.add(name, "run", node, guards)
        elif isinstance(node, ast.AsyncFor) or type(node).__name__ in ("Match", "TryStar"):
            for name in sorted(stored_names(node)):
                reason = f"it is bound in a {type(node).__name__.lower()} statement"
                self.add(name, "opaque", node, guards, reason=reason)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, (ast.Name, ast.Tuple, ast.List)):
                    self.opaque(target, node, guards, "it is deleted")

    def opaque(self, target: ast.expr, node: ast.stmt, guards: tuple[Guard, ...], reason: str) -> None:
        for name in ast.walk(target):
            if isinstance(name, ast.Name) and _stored(name):
                self.add(name.id, "opaque", node, guards, reason=reason)

    def target(self, target: ast.expr, node: ast.stmt, guards: tuple[Guard, ...], value: ast.expr, path: tuple) -> None:
        if isinstance(target, ast.Name):
            self.add(target.id, "assign", node, guards, value=value, path=path)
        elif isinstance(target, (ast.Tuple, ast.List)):
            count = len(target.elts)
            star = next((n for n, item in enumerate(target.elts) if isinstance(item, ast.Starred)), count)
            for number, item in enumerate(target.elts):
                if isinstance(item, ast.Starred):
                    self.target(item.value, node, guards, value, (*path, (star, count - star - 1)))
                else:
                    self.target(item, node, guards, value, (*path, number if number < star else number - count))

    def global_names(self) -> None:
        """Note what functions and classes in the body declare `global` or bind by text, in the order in which they stand there."""
        for scope in self.scopes:
            names_module = self.own and any(isinstance(n, ast.Name) and n.id in self.own for n in ast.walk(scope))
            if not names_module and not _declares(scope):
                continue
            own = self.own | names_of_own_module(statements_in(scope))
            for inner in statements_in(scope):
                if isinstance(inner, ast.Global):
                    for name in inner.names:
                        self.out.changed_by_functions.setdefault(name, inner.lineno)
                if not isinstance(scope, ast.FunctionDef) or scope.name not in ("__getattr__", "__dir__"):
                    self.out.unknown_in_functions += [(inner, names) for names in names_by_text(inner, own)]


def names_of_own_module(statements: Iterable[ast.stmt]) -> frozenset[str]:
    """The names that are bound to the module itself, and to nothing else: `this = sys.modules[__name__]`."""
    kinds: dict[str, set[bool]] = {}
    for node in statements:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(target, ast.Name) and isinstance(node, ast.Assign):
            kinds.setdefault(target.id, set()).add(is_own_module(node.value) or _gives_module(node.value))
        elif not isinstance(node, (ast.If, ast.Try, ast.With, ast.FunctionDef, ast.ClassDef)):
            for name in stored_names(node):
                kinds.setdefault(name, set()).add(False)
    return frozenset(name for name, found in kinds.items() if found == {True})


def names_by_text(
    node: ast.stmt, own: frozenset[str] = frozenset(), needs_module: bool = False
) -> list[re.Pattern[str]]:
    """Of the names of its module that a statement may bind by their text (`globals()[...] = `, `exec`), what matches them.

    own: names that stand for the module itself; needs_module: what `exec` binds in a function is left out. Statements inside of it are
    left out. Reading the names of a module is no such thing.
    """
    out: list[re.Pattern[str]] = []
    inside = own_expressions(node)
    if not any(_names_its_module(found) or _is_one_of(found, own) for found in inside):
        return out
    owners = {id(child): parent for parent in inside for child in ast.iter_child_nodes(parent)}
    for found in inside:
        handed_on = _gives_module(found) and getattr(owners.get(id(found)), "func", None) is not found
        if not is_own_module(found) and not _is_one_of(found, own) and not handed_on:
            if isinstance(found, ast.Call) and isinstance(found.func, ast.Name) and found.func.id in ("exec", "eval"):
                if len(found.args) == 1 and not found.keywords and not needs_module:
                    out.append(re.compile(""))
            continue
        above = owners.get(id(found))
        if isinstance(above, ast.Assign) and all(isinstance(t, ast.Name) and t.id in own for t in above.targets):
            continue  # what is done with the name counts
        if isinstance(above, ast.Attribute):
            over = owners.get(id(above))
            if isinstance(above.ctx, ast.Store):
                out.append(re.compile(re.escape(above.attr) + "$"))
            elif above.attr in (
                "__dict__",
                "update",
                "setdefault",
                "pop",
                "popitem",
                "clear",
                "__setitem__",
                "__setattr__",
            ):
                out.append(re.compile(""))
            elif not isinstance(over, ast.Call) and isinstance(found, ast.Call):
                out.append(re.compile(""))
        elif isinstance(above, ast.Subscript) and found is above.value:
            if not isinstance(above.ctx, ast.Load):
                out.append(_pattern(above.slice))
        elif isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and found in above.args:
            if above.func.id == "setattr" and len(above.args) == 3:
                out.append(_pattern(above.args[1]))
            elif above.func.id not in (
                "getattr",
                "hasattr",
                "len",
                "list",
                "dict",
                "set",
                "sorted",
                "dir",
                "tuple",
                "id",
                "isinstance",
                "print",
                "repr",
                "type",
            ):
                out.append(re.compile(""))
        elif not isinstance(above, (ast.Compare, ast.For, ast.comprehension)):
            out.append(re.compile(""))
    return out


# What functions and frames call the names of their module.
_NAMESPACES = ("__globals__", "f_globals", "f_locals", "f_back")


def _is_one_of(node: ast.AST, names: frozenset[str]) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names


def _names_its_module(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in ("globals", "vars", "locals", "exec", "eval", "__name__")
    return isinstance(node, ast.Attribute) and node.attr in ("modules", *_NAMESPACES)


@functools.lru_cache(maxsize=4096)
def _declares(scope: ast.AST) -> bool:
    """Whether a function or class has anything in it that may bind names of its module."""
    return any(isinstance(inner, ast.Global) or _names_its_module(inner) for inner in ast.walk(scope))


def is_own_module(node: ast.AST) -> bool:
    """`globals()`, `vars()`, `locals()`, `sys.modules[__name__]`, `importlib.import_module(__name__)`, `function.__globals__`."""
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("globals", "vars", "locals"):
            return isinstance(node.func, ast.Name) and not node.args and not node.keywords
        of_modules = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "attr", "") == "modules"
        found = called in ("__import__", "import_module") or (called == "get" and of_modules)
        return found and bool(node.args) and _is_its_name(node.args[0])
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        return node.value.attr == "modules" and _is_its_name(node.slice)
    return isinstance(node, ast.Attribute) and node.attr in _NAMESPACES


def _is_its_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "__name__"


def _gives_module(node: ast.AST) -> bool:
    """Whether it is a function that gives the names of a module, or binds some: `globals`, not called."""
    return isinstance(node, ast.Name) and node.id in ("globals", "vars", "locals", "exec", "eval")


def _pattern(key: ast.expr) -> re.Pattern[str]:
    """What matches the texts that an expression may give."""
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return re.compile(re.escape(key.value) + "$")
    if isinstance(key, ast.JoinedStr):
        parts = [re.escape(str(p.value)) if isinstance(p, ast.Constant) else ".*" for p in key.values]
        return re.compile("".join(parts) + "$")
    return re.compile("")


def own_expressions(node: ast.stmt) -> list[ast.AST]:
    """The statement and the expressions in it, without the statements in it; lambdas are left out, comprehensions are not."""
    out: list[ast.AST] = []
    todo: list[ast.AST] = [node]
    while todo:
        current = todo.pop()
        out.append(current)
        for child in ast.iter_child_nodes(current):
            if not isinstance(child, (ast.stmt, ast.Lambda, ast.excepthandler, ast.arguments)):
                if type(child).__name__ != "match_case":
                    todo.append(child)
    return out


def walrus_names(node: ast.stmt) -> set[str]:
    """The names that `:=` binds in a statement."""
    return {n.target.id for n in own_expressions(node) if isinstance(n, ast.NamedExpr)}


def stored_names(node: ast.AST) -> set[str]:
    """The names that a statement and those in it bind, without what functions and classes in it do."""
    names = {n.id for n in _own_nodes(node) if isinstance(n, ast.Name) and _stored(n)}
    patterns = (n for n in _own_nodes(node) if isinstance(n, (ast.MatchAs, ast.MatchStar, ast.MatchMapping)))
    captured = (n.rest if isinstance(n, ast.MatchMapping) else n.name for n in patterns)
    return names.union(name for name in captured if name)


def statements_in(scope: ast.AST) -> Iterator[ast.stmt]:
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
    as functions) and of comprehensions (whose `:=` stores here)."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        for child in ast.iter_child_nodes(current):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield ast.Name(child.name, ast.Store())
            elif not isinstance(child, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                stack.append(child)
