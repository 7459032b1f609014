"""Def-use webs: which assignments and which uses of a variable must share one type.

Gluon types carry layouts, and a variable that is reassigned in a loop or in a branch must keep its type. A web is a
maximal set of definitions of one name connected by common uses, by a loop that carries the name, or by a branch that
redefines it. Each web gets its layouts as a whole; unrelated reuses of a name stay independent.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field


class UnrolledLoop(ast.For):
    """A `static_range` loop written out: `bodies` holds one copy of the body per iteration, `rounds` the numbers of the iterations that
    Triton came to, `values` those of its variable.

    Loops are written out when a tensor changes its shape, and so its layout, from iteration to iteration, or another function is called.
    why: which of these, in words.
    """

    why: str
    bodies: list[list[ast.stmt]]
    values: list[int]
    rounds: list[int]


def written_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is in it; of a loop that is written out, its iterations."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, UnrolledLoop):
            todo += [node.target, node.iter, *(s for body in node.bodies for s in body)]
        else:
            todo += ast.iter_child_nodes(node)


@dataclass(frozen=True)
class Definition:
    """One binding of a name: `value` is the bound expression (None for parameters, loop indices and tuple parts)."""

    name: str
    node: ast.AST
    value: ast.expr | None
    loop_depth: int
    in_loop: tuple[ast.AST, ...] = ()
    augmented: bool = False


@dataclass
class Web:
    """uses: the names that read it and the loops around each; moves: likewise the targets of `x += c`, which read it too."""

    index: int
    name: str
    definitions: list[Definition] = field(default_factory=list)
    uses: list[tuple[ast.Name, tuple[ast.AST, ...]]] = field(default_factory=list)
    moves: list[tuple[ast.Name, tuple[ast.AST, ...]]] = field(default_factory=list)

    @property
    def reads(self) -> list[tuple[ast.Name, tuple[ast.AST, ...]]]:
        """All that reads it. What asks whether a value is still needed asks these."""
        return [*self.uses, *self.moves]

    @property
    def in_expression(self) -> bool:
        """Whether an expression gives it a value, `(x := value)`: no other statement can stand beside that."""
        return any(isinstance(d.node, ast.NamedExpr) for d in self.definitions)

    @property
    def is_parameter(self) -> bool:
        return any(isinstance(d.node, ast.arg) for d in self.definitions)


@dataclass(frozen=True)
class Webs:
    """The variables of a function. reaching: the definitions that a read may see; entering: those that a run of a loop may start from."""

    all: tuple[Web, ...] = ()
    of_use: Mapping[ast.Name, Web] = field(default_factory=dict)
    of_definition: Mapping[tuple[ast.AST, str], Web] = field(default_factory=dict)
    reaching: Mapping[ast.Name, list[Definition]] = field(default_factory=dict)
    entering: Mapping[ast.AST, list[Definition]] = field(default_factory=dict)

    def with_more(self, more: Webs) -> Webs:
        """These and those of further syntax."""
        of_use, of_definition = {**self.of_use, **more.of_use}, {**self.of_definition, **more.of_definition}
        entering = {**self.entering, **more.entering}
        return Webs((*self.all, *more.all), of_use, of_definition, {**self.reaching, **more.reaching}, entering)

    def definition_of(self, use: ast.AST) -> Definition | None:
        """The one definition that `use` may see; None where there are several, or `use` is no name."""
        definitions = self.reaching.get(use, [])
        return definitions[0] if len(definitions) == 1 else None

    def single_of(self, use: ast.AST) -> Definition | None:
        """The one definition of the variable that `use` reads; None where it has several, or `use` is no name."""
        web = self.of_use.get(use)
        return web.definitions[0] if web is not None and len(web.definitions) == 1 else None

    def value_of(self, use: ast.AST) -> ast.expr | None:
        """The one expression that a name stands for, if it has just one."""
        d = self.definition_of(use)
        plain = d is not None and not d.augmented and isinstance(d.node, (ast.Assign, ast.AnnAssign))
        return d.value if plain else None

    def goes_on(self, loop: ast.AST, web: Web) -> bool:
        """Whether a run of `loop` may start from the value that the run before gave `web`."""
        return any(loop in d.in_loop and d in web.definitions for d in self.entering.get(loop, []))

    def read_behind(self, loop: ast.AST, web: Web) -> bool:
        """Whether a value that `loop` gives to `web` may be read outside of it."""
        return any(loop not in loops and any(loop in d.in_loop for d in self.reaching[n]) for n, loops in web.reads)


class _Builder:
    def __init__(self, taken, unrolled, dynamic):
        self.taken, self.unrolled, self.dynamic = taken, unrolled, dynamic
        self.definitions: list[Definition] = []
        self.index: dict[tuple[ast.AST, str], int] = {}
        self.parent: list[int] = []
        self.use_defs: dict[ast.Name, set[int]] = {}
        self.use_loops: dict[ast.Name, tuple[ast.AST, ...]] = {}
        self.moves: set[ast.Name] = set()
        self.entering: dict[ast.AST, set[int]] = {}
        self.loops: list[ast.AST] = []

    def find(self, i: int) -> int:
        while self.parent[i] != i:
            self.parent[i] = self.parent[self.parent[i]]
            i = self.parent[i]
        return i

    def union(self, items) -> None:
        items = list(items)
        for other in items[1:]:
            a, b = sorted((self.find(items[0]), self.find(other)))
            self.parent[b] = a

    def define(self, env, name, node, value, augmented=False) -> None:
        key = (node, name)
        if key not in self.index:
            self.index[key] = len(self.definitions)
            self.parent.append(len(self.definitions))
            self.definitions.append(Definition(name, node, value, len(self.loops), tuple(self.loops), augmented))
        env[name] = {self.index[key]}

    def expression(self, env, node: ast.AST | None) -> None:
        if node is None:
            return
        for child in _walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load) and child.id in env:
                self.use_defs.setdefault(child, set()).update(env[child.id])
                self.use_loops[child] = tuple(self.loops)
                self.union(self.use_defs[child])
            elif isinstance(child, ast.NamedExpr):
                self.define(env, child.target.id, child, child.value)

    def target(self, env, target, statement, value) -> None:
        if isinstance(target, ast.Name):
            self.define(env, target.id, statement, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for i, element in enumerate(target.elts):
                part = value.elts[i] if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
                self.target(env, element, statement, part)

    def block(self, env, statements) -> None:
        for statement in statements:
            self.statement(env, statement)

    def statement(self, env, s: ast.stmt) -> None:
        if isinstance(s, ast.Assign):
            self.expression(env, s.value)
            self.target(env, s.targets[0], s, s.value)
        elif isinstance(s, ast.AnnAssign):
            self.expression(env, s.value)
            if s.value is not None:
                self.target(env, s.target, s, s.value)
        elif isinstance(s, ast.AugAssign):
            self.expression(env, s.value)
            if isinstance(s.target, ast.Name):
                before = env.get(s.target.id, set())
                if before:
                    self.use_defs.setdefault(s.target, set()).update(before)
                    self.use_loops[s.target] = tuple(self.loops)
                    self.moves.add(s.target)
                self.define(env, s.target.id, s, s.value, augmented=True)
                self.union([*before, *env[s.target.id]])
        elif isinstance(s, ast.If):
            self.expression(env, s.test)
            self.branches(env, s)
        elif isinstance(s, UnrolledLoop):
            for iteration in s.bodies:
                self.block(env, iteration)
        elif isinstance(s, (ast.For, ast.While)):
            self.loop(env, s)
        elif isinstance(s, ast.With):
            for item in s.items:
                self.expression(env, item.context_expr)
            self.block(env, s.body)
        elif isinstance(s, (ast.Return, ast.Expr)):
            self.expression(env, s.value)
        elif isinstance(s, ast.Assert):
            self.expression(env, s.test)

    def branches(self, env, s: ast.If) -> None:
        body, orelse = self.taken(s.body[0]), bool(s.orelse) and self.taken(s.orelse[0])
        then_env, else_env = _copy(env), _copy(env)
        if body:
            self.block(then_env, s.body)
        if orelse:
            self.block(else_env, s.orelse)
        dynamic = self.dynamic(s)
        if _returns(s.body) and not _returns(s.orelse):
            then_env = else_env
        elif s.orelse and _returns(s.orelse):
            else_env = then_env
        if not body and not orelse:
            return
        if dynamic:
            # Triton keeps a name after a run-time branch if it was live before or both sides define it.
            merged = {}
            for name in {*then_env, *else_env}:
                a, b = then_env.get(name, set()), else_env.get(name, set())
                if a and b:
                    merged[name] = a | b
                    before = env.get(name, set())
                    if a != b or a != before:
                        self.union([*a, *b, *before])  # the branch must keep the type that the name came with
        elif body and orelse:  # one text for several specializations, which take different branches
            merged = {name: then_env.get(name, set()) | else_env.get(name, set()) for name in {*then_env, *else_env}}
        else:
            merged = then_env if body else else_env
        env.clear()
        env.update(merged)

    def loop(self, env, s: ast.For | ast.While) -> None:
        if isinstance(s, ast.For):
            self.expression(env, s.iter)
        before = _copy(env)
        self.entering.setdefault(s, set()).update(*before.values())
        self.loops.append(s)
        static = isinstance(s, ast.For) and self.unrolled(s)
        for _ in range(2):
            # A name that only the loop defines is new in each iteration, but for a loop that is written out.
            inner = _copy(env if static else {name: env[name] for name in before})
            if isinstance(s, ast.For):
                self.target(inner, s.target, s, None)
            else:
                self.expression(inner, s.test)
            self.block(inner, s.body)
            for name, defs in inner.items():
                env[name] = env.get(name, set()) | defs
        self.loops.pop()
        for name, defs in before.items():
            if env[name] != defs:
                self.union([*defs, *env[name]])
        if not static:
            for name in [n for n in env if n not in before]:
                del env[name]  # defined in the loop only: not visible after it


def _walk(node: ast.AST):
    """Children in evaluation order; a lambda's own parameters are not the kernel's variables."""
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)
    yield node


def _copy(env):
    return {k: set(v) for k, v in env.items()}


def _returns(body) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return)


def build_webs(
    function: ast.FunctionDef,
    taken: Callable[[ast.AST], bool],
    unrolled: Callable[[ast.For], bool],
    dynamic: Callable[[ast.If], bool],
) -> Webs:
    """Webs of `function`.

    `taken(statement)`: whether the traced specialization reached it; `unrolled(loop)`: whether it is a `static_range`;
    `dynamic(branch)`: whether its condition is only known at run time.
    """
    builder = _Builder(taken, unrolled, dynamic)
    env: dict[str, set[int]] = {}
    for arg in [*function.args.args, *function.args.kwonlyargs]:
        builder.define(env, arg.arg, arg, None)
    builder.block(env, function.body)
    groups: dict[int, Web] = {}
    for i, definition in enumerate(builder.definitions):
        root = builder.find(i)
        web = groups.setdefault(root, Web(len(groups), definition.name))
        web.definitions.append(definition)
    of_use: dict[ast.Name, Web] = {}
    for use, defs in builder.use_defs.items():
        web = groups[builder.find(min(defs))]
        if use in builder.moves:
            web.moves.append((use, builder.use_loops[use]))
            continue
        web.uses.append((use, builder.use_loops[use]))
        of_use[use] = web
    of_definition = {(d.node, d.name): groups[builder.find(i)] for i, d in enumerate(builder.definitions)}
    reaching = {use: [builder.definitions[i] for i in sorted(defs)] for use, defs in builder.use_defs.items()}
    entering = {loop: [builder.definitions[i] for i in sorted(defs)] for loop, defs in builder.entering.items()}
    return Webs(tuple(groups.values()), of_use, of_definition, reaching, entering)
