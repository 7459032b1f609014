"""Where the values of a kernel come from: which arguments, and which of them are what is loaded from.

A small abstract interpretation of the kernel and the jit functions that it calls: every expression has the origins of its
value, joined over all assignments and calls, until nothing changes any more. `uses.py` reads what is done with them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gluonize.read.kernels.load import LoadedKernel
from gluonize.read.launches.derive.kernel.address_calls import ADDRESS_CALLS, DESCRIPTOR_METHODS, POINTER_MAKERS

_ROUNDS = 8
# Results that have the type of their operands; others are numbers of their own.
_KEEPS = frozenset(
    "where minimum maximum min max sum reshape view broadcast_to expand_dims trans permute cdiv multiple_of max_contiguous "
    "cumsum cumprod join cat interleave flip sort gather clamp abs ravel split broadcast max_constancy associative_scan reduce topk "
    "zeros_like xor_sum reduce_or".split()
)


@dataclass(frozen=True)
class Origin:
    """An argument (`loaded` false), or what is loaded from it. `plain`: its type has not been converted since."""

    name: str
    loaded: bool = False
    plain: bool = True


Origins = frozenset[Origin]
# Where indices that the kernel makes itself come from: `tl.arange` and `tl.program_id`.
INDEX = Origin("tl.arange")
_NONE: Origins = frozenset()


@dataclass(frozen=True)
class Value:
    """The origins of a value, those that are its leftmost term (the base, if it is an address), and of a tuple's items."""

    origins: Origins = _NONE
    bases: Origins = _NONE
    items: tuple[Value, ...] | None = None

    def joined(self, other: Value) -> Value:
        items = self.items if self.items is not None else other.items
        if self.items is not None and other.items is not None and len(self.items) == len(other.items):
            items = tuple(a.joined(b) for a, b in zip(self.items, other.items))
        return Value(self.origins | other.origins, self.bases | other.bases, items)


@dataclass
class JitSource:
    """One jit function: its definition, and what the names in it mean."""

    name: str
    node: ast.FunctionDef
    names: dict[str, Any]

    @property
    def parameters(self) -> list[str]:
        spec = self.node.args
        return [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]


@dataclass
class Flow:
    """The values of a kernel: `of(node)` for every expression, `pointers` among its arguments, `functions` with helpers."""

    functions: dict[str, JitSource]
    kernel: JitSource
    values: dict[int, Value] = field(default_factory=dict)
    pointers: set[str] = field(default_factory=set)
    variables: dict[tuple[str, str], Value] = field(default_factory=dict)
    results: dict[str, Value] = field(default_factory=dict)

    def of(self, node: ast.AST | None) -> Value:
        return self.values.get(id(node), Value())

    def is_address(self, value: Value) -> bool:
        return any(not origin.loaded and origin.name in self.pointers for origin in value.bases)

    def helper(self, function: JitSource, call: ast.Call) -> JitSource | None:
        """The jit function that a call is of, if it is one by name."""
        found = self._named(function, call.func)
        key = getattr(found, "src", None)
        return self.functions.get(key) if isinstance(key, str) else None

    def callee(self, function: JitSource, call: ast.Call) -> str:
        """The plain name of what is called: `load` for `tl.load`, under any alias; methods of values by their name."""
        if isinstance(call.func, ast.Name):
            found = function.names.get(call.func.id)
            return getattr(found, "__name__", "") or call.func.id
        return call.func.attr if isinstance(call.func, ast.Attribute) else ""

    def is_method(self, function: JitSource, call: ast.Call) -> bool:
        """Whether a call is of a method of a value, not of a member of a module."""
        root = call.func
        while isinstance(root, ast.Attribute):
            root = root.value
        return isinstance(call.func, ast.Attribute) and not (
            isinstance(root, ast.Name)
            and root.id in function.names
            and root.id not in function.parameters
            and (function.name, root.id) not in self.variables
        )

    def _named(self, function: JitSource, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return function.names.get(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(self._named(function, node.value), node.attr, None)
        return None


def trace_origins(loaded: LoadedKernel) -> Flow:
    """The origins of every expression of a kernel and its helpers. Nothing is executed."""
    sources: dict[str, JitSource] = {}
    names: dict[str, dict[str, Any]] = {}
    for item in loaded.reached:
        names.setdefault(item.user, {})[item.name] = item.value
    for fn in (loaded.fn, *(helper.value for helper in loaded.helpers)):
        (node,) = fn.parse().body
        user = f"{fn.__module__}:{fn.__qualname__}"
        sources[fn.src] = JitSource(fn.__qualname__, node, names.get(user, {}))
    flow = Flow(sources, sources[loaded.fn.src])
    for name in flow.kernel.parameters:
        flow.variables[flow.kernel.name, name] = Value(frozenset([Origin(name)]), frozenset([Origin(name)]))
    for _ in range(_ROUNDS):
        before = dict(flow.variables), set(flow.pointers), dict(flow.results)
        for function in sources.values():
            _Pass(flow, function).statements(function.node.body)
        if before == (flow.variables, flow.pointers, flow.results):
            break
    return flow


class _Pass:
    """One pass over one function: joins what it finds into the flow."""

    def __init__(self, flow: Flow, function: JitSource):
        self.flow, self.function = flow, function
        self.env: dict[str, Value] = {}  # what names hold here; the flow's variables hold all that they ever do

    def statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = self.value(node.value)
            for target in node.targets:
                self.assign(target, value)
        elif isinstance(node, ast.AugAssign):
            left = self.value(_as_read(node.target))
            self.assign(node.target, self.binary(node.op, left, self.value(node.value)))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, self.value(node.value))
        elif isinstance(node, ast.For):
            self.value(node.iter)
            bounds = node.iter.args if isinstance(node.iter, ast.Call) else []
            origins = frozenset(o for bound in bounds for o in self.flow.of(bound).origins)
            self.assign(node.target, Value(frozenset(Origin(o.name, o.loaded, False) for o in origins)))
            self.loop(node)
        elif isinstance(node, ast.While):
            self.loop(node)
        elif isinstance(node, ast.If):
            self.value(node.test)
            self.branches(node)
        elif isinstance(node, ast.Return) and node.value is not None:
            name = self.function.name
            self.flow.results[name] = self.flow.results.get(name, Value()).joined(self.value(node.value))
        elif isinstance(node, (ast.Expr, ast.Assert)):
            self.value(node.value if isinstance(node, ast.Expr) else node.test)
        elif isinstance(node, ast.With):
            self.statements(node.body)

    def loop(self, node: ast.For | ast.While) -> None:
        """A body that runs many times: what it assigns may hold anything that it ever does."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and inner.id in self.env:
                known = self.flow.variables.get((self.function.name, inner.id), Value())
                self.env[inner.id] = self.env[inner.id].joined(known)
        if isinstance(node, ast.While):
            self.value(node.test)
        before = dict(self.env)
        self.statements(node.body + node.orelse)
        self.join(before)

    def branches(self, node: ast.If) -> None:
        before = dict(self.env)
        self.statements(node.body)
        after, self.env = self.env, before
        self.statements(node.orelse)
        self.join(after)

    def join(self, other: dict[str, Value]) -> None:
        for name, value in other.items():
            self.env[name] = self.env[name].joined(value) if name in self.env else value

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.env[target.id] = value
            key = self.function.name, target.id
            self.flow.variables[key] = self.flow.variables.get(key, Value()).joined(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = value.items or ()
            for index, inner in enumerate(target.elts):
                self.assign(inner, items[index] if index < len(items) else Value(value.origins))

    def value(self, node: ast.expr) -> Value:
        found = self._value(node)
        self.flow.values[id(node)] = found
        return found

    def _value(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Name):
            return self.env.get(node.id, self.flow.variables.get((self.function.name, node.id), Value()))
        if isinstance(node, ast.BinOp):
            return self.binary(node.op, self.value(node.left), self.value(node.right))
        if isinstance(node, ast.UnaryOp):
            operand = self.value(node.operand)
            return Value() if isinstance(node.op, ast.Not) else Value(operand.origins)
        if isinstance(node, ast.IfExp):
            self.value(node.test)
            return self.value(node.body).joined(self.value(node.orelse))
        if isinstance(node, (ast.Tuple, ast.List)):
            items = tuple(map(self.value, node.elts))
            return Value(frozenset(o for item in items for o in item.origins), _NONE, items)
        if isinstance(node, ast.Subscript):
            owner = self.value(node.value)
            self.value(node.slice)
            if owner.items is not None and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
                return (
                    owner.items[node.slice.value] if -len(owner.items) <= node.slice.value < len(owner.items) else owner
                )
            return owner
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            return owner if node.attr in ("T", "value") else Value()
        if isinstance(node, ast.Call):
            return self.call(node)
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.expr):
                self.value(inner)
        return Value()  # comparisons and truths are no numbers of the operands' types

    def binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        origins = left.origins | right.origins
        if not isinstance(op, (ast.Add, ast.Sub)):
            return Value(origins)
        for side in (left, right):
            if self.flow.is_address(side):
                return Value(frozenset(o for o in side.origins if not o.loaded or o in side.bases), side.bases)
        return Value(origins, left.bases)

    def call(self, node: ast.Call) -> Value:
        name = self.flow.callee(self.function, node)
        method = self.flow.is_method(self.function, node)
        given = [self.value(arg.value if isinstance(arg, ast.Starred) else arg) for arg in node.args]
        named = {k.arg: self.value(k.value) for k in node.keywords if k.arg is not None}
        owner = self.value(node.func.value) if method and isinstance(node.func, ast.Attribute) else None
        if isinstance(node.func, ast.Name):
            self.value(node.func)  # an argument, where a launch says which function is called
        if (helper := self.flow.helper(self.function, node)) is not None:
            return self.helper_call(helper, given, named)
        operands = [*([owner] if owner is not None else []), *given, *named.values()]
        first = operands[0] if operands else Value()
        base = named.get("base") or named.get("pointer") or named.get("ptr") or first
        if name in ADDRESS_CALLS or (owner is not None and name in DESCRIPTOR_METHODS):
            for origin in base.bases:
                if not origin.loaded:
                    self.flow.pointers.add(origin.name)
            return Value(frozenset(Origin(o.name, True) for o in base.bases if not o.loaded), _NONE)
        if name in POINTER_MAKERS:
            if name != "advance":
                self.flow.pointers |= {origin.name for origin in base.bases if not origin.loaded}
            return Value(base.bases, base.bases)
        if name in ("to", "cast"):
            bases = first.bases if self.flow.is_address(first) or _to_pointer(node) else _NONE
            kinds = frozenset(Origin(o.name, False, False) for x in operands[1:] for o in x.origins if not o.loaded)
            return Value(frozenset(Origin(o.name, o.loaded, bool(bases)) for o in first.origins) | kinds, bases)
        if name in ("arange", "program_id"):
            return Value(frozenset({INDEX}))
        if name in _KEEPS:
            kept = (
                operands[1:]
                if name == "where"
                else operands[:1] if name in ("broadcast_to", "reshape", "view") else operands
            )
            return Value(*(frozenset(o for x in kept for o in part(x)) for part in (_origins, _bases)))
        return Value()

    def helper_call(self, helper: JitSource, given: list[Value], named: dict[str, Value]) -> Value:
        for name, value in (*zip(helper.parameters, given), *named.items()):
            key = helper.name, name
            self.flow.variables[key] = self.flow.variables.get(key, Value()).joined(value)
        return self.flow.results.get(helper.name, Value())


def expressions(flow: Flow) -> Iterator[tuple[JitSource, ast.AST, tuple[tuple[ast.expr, bool], ...]]]:
    """Every node of the kernel and its helpers, with its function and the tests that it is under (and their outcomes)."""
    for function in flow.functions.values():
        stack: list[tuple[ast.AST, tuple[tuple[ast.expr, bool], ...]]] = [(s, ()) for s in reversed(function.node.body)]
        while stack:
            node, guards = stack.pop()
            yield function, node, guards
            for name, child in reversed(list(ast.iter_fields(node))):
                inner = guards
                if isinstance(node, (ast.If, ast.IfExp)) and name in ("body", "orelse"):
                    inner = (*guards, (node.test, name == "body"))
                children = child if isinstance(child, list) else [child]
                stack.extend((x, inner) for x in reversed(children) if isinstance(x, ast.AST))


def _origins(value: Value) -> Origins:
    return value.origins


def _bases(value: Value) -> Origins:
    return value.bases


def _as_read(target: ast.expr) -> ast.expr:
    return target


def _to_pointer(node: ast.Call) -> bool:
    return any("pointer_type" in ast.unparse(arg) for arg in (*node.args, *(k.value for k in node.keywords)))
