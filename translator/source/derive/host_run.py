"""Host code run on a model of its inputs, up to a launch: nothing is executed, what is not known stays a model.

`x` of `def f(x): M, N = x.shape; y = torch.empty_like(x); k[grid](x, y, N, BLOCK=triton.next_power_of_2(N))` is a tensor whose
second dimension is a size that the name `N` stands for; so N and BLOCK agree, and y has the type of x.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from translator.source.derive.host_calls import call_method, call_torch
from translator.source.derive.host_model import Dtype, Method, Model, Shape, as_number, has_model
from translator.source.derive.sites import Site
from translator.source.host_objects import UserFunction
from translator.source.host_values import HostName
from translator.source.program import Program
from translator.source.scope import Frame, Scope
from translator.source.unresolved import NoValue, Place

_DEPTH = 3
_STEPS = 20_000
_TENSOR_USES = frozenset(
    "shape stride dtype device contiguous view reshape is_contiguous numel size ndim dim new_empty new_zeros element_size to "
    "is_cuda data_ptr clone transpose flatten unsqueeze squeeze T permute expand untyped_storage".split()
)


@dataclass
class HostState:
    """Where a launch was reached: the values of its arguments and of the host function's own."""

    arguments: dict[str, Any]
    options: dict[str, Any]
    parameters: dict[str, Any]
    contradicts: bool


class _Reached(Exception):
    """The launch is reached."""


class _Returned(Exception):
    def __init__(self, value: Any):
        self.value = value


class _TooLong(Exception):
    """The model run does too much."""


@dataclass
class HostRun:
    """One model run. `given` are values for parameters of the host function, instead of its defaults."""

    program: Program
    site: Site | None
    pointers: frozenset[str]
    given: dict[str, Any] = field(default_factory=dict)
    steps: int = 0
    depth: int = 0
    contradicts: bool = False

    def run(self) -> HostState | None:
        """The state at the launch; None when it is not reached."""
        assert self.site is not None, "a run to a launch needs one"
        env: dict[str, Any] = {}
        parameters: dict[str, Any] = {}
        try:
            for number, function in enumerate(self.site.functions):
                env |= (bound := self.parameters(function, self.site.scopes[number]))
                parameters |= bound
                inner = self.site.functions[number + 1] if number + 1 < len(self.site.functions) else None
                self.body(function.body, env, self.site.scopes[number], inner or self.site.call)
            if not self.site.functions:
                self.body(self.site.body, env, self.site.outer, self.site.call)
        except _Reached:
            pass
        except (_Returned, _TooLong, RecursionError):
            return None
        arguments = {n: self.value(x, env, self.site.inner) for n, x in self.site.arguments.items()}
        options = {n: self.value(x, env, self.site.inner) for n, x in self.site.keywords.items()}
        for spread in self.site.spread:
            found = self.value(spread, env, self.site.inner)
            for name, value in found.items() if isinstance(found, dict) else ():
                (arguments if name in self.site.names else options).setdefault(name, value)
        return HostState(arguments, options, parameters, self.contradicts)

    def parameters(self, function: ast.FunctionDef, scope: Scope | Frame) -> dict[str, Any]:
        spec = function.args
        positional = [*spec.posonlyargs, *spec.args]
        defaults = dict(zip([a.arg for a in positional][len(positional) - len(spec.defaults) :], spec.defaults))
        defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults) if d is not None}
        out: dict[str, Any] = {}
        for arg in (*positional, *spec.kwonlyargs):
            if arg.arg in self.given:
                out[arg.arg] = self.given[arg.arg]
                continue
            out[arg.arg] = Model(
                arg.arg, is_tensor=_is_tensor(arg, function), element=_annotated(arg), why="its annotation"
            )
            if arg.arg in defaults:
                value = self.value(defaults[arg.arg], {}, scope)
                out[arg.arg] = value if not has_model(value) else out[arg.arg]
        return out

    # --- statements

    def body(self, statements: list[ast.stmt], env: dict[str, Any], scope: Scope | Frame, goal: ast.AST | None) -> None:
        for statement in statements:
            self.statement(statement, env, scope, goal if goal is not None and _inside(goal, statement) else None)

    def statement(self, node: ast.stmt, env: dict[str, Any], scope: Scope | Frame, goal: ast.AST | None) -> None:
        self.steps += 1
        if self.steps > _STEPS:
            raise _TooLong
        if goal is node or (goal is not None and not isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try))):
            raise _Reached
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.assign(target, self.value(node.value, env, scope, _name_of(target)), env)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, self.value(node.value, env, scope, _name_of(node.target)), env)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            old = env.get(node.target.id, Model(node.target.id))
            env[node.target.id] = self.binary(node, old, self.value(node.value, env, scope), scope)
        elif isinstance(node, ast.If):
            self.branch(node, env, scope, goal)
        elif isinstance(node, ast.For):
            items = self.items(self.value(node.iter, env, scope))
            self.assign(node.target, items[0] if items else Model(_name_of(node.target)), env)
            self.body(node.body, env, scope, goal)
        elif isinstance(node, ast.While):
            self.body(node.body, env, scope, goal)
        elif isinstance(node, ast.With):
            self.body(node.body, env, scope, goal)
        elif isinstance(node, ast.Try):
            self.body([*node.body, *node.orelse, *node.finalbody], env, scope, goal)
            if goal is not None:
                for handler in node.handlers:
                    self.body(handler.body, env, scope, goal)
        elif isinstance(node, ast.Return):
            raise _Returned(self.value(node.value, env, scope) if node.value is not None else None)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.mutate(node.value, env, scope)
        elif isinstance(node, ast.FunctionDef):
            env[node.name] = UserFunction(node, self.frame(env, scope))

    def branch(self, node: ast.If, env: dict[str, Any], scope: Scope | Frame, goal: ast.AST | None) -> None:
        """The branch that the launch is in; else the one that the test says, and none of an unknown one that leaves."""
        test = self.truth(self.value(node.test, env, scope))
        if goal is not None:
            inside = any(_inside(goal, statement) for statement in node.body)
            if test is not None and test != inside:
                self.contradicts = True
            self.body(node.body if inside else node.orelse, env, scope, goal)
            return
        body = node.body if test else node.orelse
        if test is None:
            body = (
                node.orelse
                if _leaves(node.body)
                else node.body if not node.orelse and _fills(node.body) else node.orelse or node.body
            )
        if _leaves(body) and self.depth == 0:
            if test:
                self.contradicts = True
            return
        self.body(body, env, scope, None)

    def mutate(self, node: ast.Call, env: dict[str, Any], scope: Scope | Frame) -> None:
        """`xs.append(v)`, `d.update(...)` of what the run has made."""
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            owner = env.get(node.func.value.id)
            if isinstance(owner, list) and node.func.attr == "append" and node.args:
                owner.append(self.value(node.args[0], env, scope))
            elif isinstance(owner, dict) and node.func.attr == "update" and node.args:
                found = self.value(node.args[0], env, scope)
                owner.update(found if isinstance(found, dict) else {})

    def assign(self, target: ast.expr, value: Any, env: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            if isinstance(value, Model) and value.name == "?":
                value.name = target.id
            if isinstance(value, Model) and not self.depth and target.id in self.given:
                value = self.given[target.id]
            env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for inner, item in zip(target.elts, self.unpacked(target, value)):
                self.assign(inner, item, env)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            owner = env.get(target.value.id)
            if isinstance(owner, dict) and isinstance(target.slice, ast.Constant):
                owner[target.slice.value] = value

    def unpacked(self, target: ast.Tuple | ast.List, value: Any) -> list[Any]:
        count = len(target.elts)
        if isinstance(value, Shape):
            starred = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
            if not starred:
                return [
                    value.owner.dim(i, _name_of(t)) if value.owner.with_rank(count) else 0
                    for i, t in enumerate(target.elts)
                ]
            return [
                value.owner.dim(i if i < starred[0] else i - count, _name_of(t)) if i != starred[0] else [2]
                for i, t in enumerate(target.elts)
            ]
        items = list(value) if isinstance(value, (tuple, list)) else []
        if starred := [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]:
            first, rest = starred[0], count - starred[0] - 1
            items = (
                [*items[:first], items[first : len(items) - rest], *items[len(items) - rest :]]
                if len(items) >= count - 1
                else []
            )
        return items if len(items) == count else [Model(_name_of(t)) for t in target.elts]

    # --- expressions

    def value(self, node: ast.expr, env: dict[str, Any], scope: Scope | Frame, name: str = "?") -> Any:
        """The value of an expression; what cannot be told is a model called `name`."""
        self.steps += 1
        if self.steps > _STEPS:
            raise _TooLong
        found = self._value(node, env, scope, name)
        return found

    def _value(self, node: ast.expr, env: dict[str, Any], scope: Scope | Frame, name: str) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return env[node.id] if node.id in env else self.looked_up(node, scope)
        if isinstance(node, ast.Attribute):
            return self.attribute(self.value(node.value, env, scope), node, scope)
        if isinstance(node, (ast.Tuple, ast.List)):
            items = []
            for item in node.elts:
                found = self.value(item.value if isinstance(item, ast.Starred) else item, env, scope)
                items += self.items(found) if isinstance(item, ast.Starred) else [found]
            return tuple(items) if isinstance(node, ast.Tuple) else items
        if isinstance(node, ast.Dict):
            keys = [k.value if isinstance(k, ast.Constant) else None for k in node.keys]
            return {k: self.value(v, env, scope) for k, v in zip(keys, node.values)}
        if isinstance(node, ast.BinOp):
            return self.binary(node, self.value(node.left, env, scope), self.value(node.right, env, scope), scope)
        if isinstance(node, ast.UnaryOp):
            operand = self.value(node.operand, env, scope)
            if isinstance(node.op, ast.Not):
                truth = self.truth(operand)
                return Model(name) if truth is None else not truth
            return self.plain(ast.UnaryOp(node.op, ast.Constant(operand)), [operand], scope, node, name)
        if isinstance(node, ast.BoolOp):
            return self.logical(node, env, scope, name)
        if isinstance(node, ast.Compare):
            return self.compare(node, env, scope, name)
        if isinstance(node, ast.IfExp):
            test = self.truth(self.value(node.test, env, scope))
            return self.value(node.orelse if test is False else node.body, env, scope, name)
        if isinstance(node, ast.Subscript):
            return self.subscript(node, env, scope, name)
        if isinstance(node, ast.Call):
            return self.call(node, env, scope, name)
        if isinstance(node, ast.Lambda):
            return UserFunction(node, self.frame(env, scope))
        try:
            return self.program.evaluate(node, self.frame(env, scope))
        except NoValue:
            return Model(name)

    def looked_up(self, node: ast.Name, scope: Scope | Frame) -> Any:
        try:
            return scope.lookup(node.id)
        except (*NoValue, KeyError):
            return Model(node.id)

    def frame(self, env: dict[str, Any], scope: Scope | Frame) -> Frame:
        frame = Frame(scope, scope.path, scope.module, scope.qualname)
        frame.locals.update(env)
        return frame

    def attribute(self, owner: Any, node: ast.Attribute, scope: Scope | Frame) -> Any:
        if isinstance(owner, Model):
            if node.attr == "shape":
                owner.is_tensor = True
                return Shape(owner)
            if node.attr == "dtype":
                owner.is_tensor = True
                return Dtype(owner)
            if node.attr in ("T", "mT", "data", "grad"):
                return owner.same()
            if node.attr == "ndim":
                return len(owner.dims) if owner.dims is not None else Model("ndim")
            if node.attr in ("is_cuda",):
                return True
            return Method(owner, node.attr)
        if isinstance(owner, (Shape, Dtype, Method, tuple, list, dict, int, float, str, type(None))):
            return Method(owner, node.attr)
        try:
            return self.program.evaluator.attribute(owner, node.attr, scope.place(node))
        except NoValue:
            return Model(node.attr)

    def binary(self, node: Any, left: Any, right: Any, scope: Scope | Frame) -> Any:
        for side in (left, right):
            if isinstance(side, Model) and side.is_tensor:
                return side.same("?")
        if isinstance(left, Method) or isinstance(right, Method) or isinstance(left, Shape):
            return Model("?")
        both = as_number(left), as_number(right)
        try:
            return self.program.evaluator.binary(node.op, *both, scope.place(node))
        except NoValue:
            return Model("?")

    def plain(self, node: ast.expr, values: list[Any], scope: Scope | Frame, at: ast.AST, name: str) -> Any:
        if any(isinstance(v, (Method, Shape, Dtype)) or isinstance(v, Model) and v.is_tensor for v in values):
            return Model(name)
        try:
            return self.program.evaluate(ast.copy_location(ast.UnaryOp(node.op, ast.Constant(as_number(values[0]))), at), scope)  # type: ignore[attr-defined]
        except NoValue:
            return Model(name)

    def logical(self, node: ast.BoolOp, env: dict[str, Any], scope: Scope | Frame, name: str) -> Any:
        decides_on, unknown, value = isinstance(node.op, ast.Or), False, None
        for operand in node.values:
            value = self.value(operand, env, scope)
            truth = self.truth(value)
            if truth == decides_on:
                return value
            unknown |= truth is None
        return Model(name) if unknown else value

    def compare(self, node: ast.Compare, env: dict[str, Any], scope: Scope | Frame, name: str) -> Any:
        left, op, right = self.value(node.left, env, scope), node.ops[0], self.value(node.comparators[0], env, scope)
        if len(node.ops) != 1:
            return Model(name)
        if isinstance(op, (ast.Is, ast.IsNot)) and (left is None or right is None):
            return (left is right) == isinstance(op, ast.Is)
        if isinstance(left, (Shape, Dtype, Method)) or isinstance(right, (Shape, Dtype, Method)):
            return Model(name)
        if any(isinstance(side, Model) for side in (left, right)):
            other = right if isinstance(left, Model) else left
            if (
                not isinstance(as_number(left), int)
                or not isinstance(as_number(right), int)
                or isinstance(other, (bool, str))
            ):
                return Model(name)
        try:
            return self.program.evaluator.compare(op, as_number(left), as_number(right), scope.place(node))
        except NoValue:
            return Model(name)

    def subscript(self, node: ast.Subscript, env: dict[str, Any], scope: Scope | Frame, name: str) -> Any:
        owner, index = self.value(node.value, env, scope), None
        if not isinstance(node.slice, ast.Slice):
            index = as_number(self.value(node.slice, env, scope))
        if isinstance(owner, Shape):
            if isinstance(index, int):
                return owner.owner.dim(index, name)
            start = node.slice.lower if isinstance(node.slice, ast.Slice) else None
            count = (
                -start.operand.value
                if isinstance(start, ast.UnaryOp) and isinstance(start.operand, ast.Constant)
                else None
            )
            sizes = owner.owner.sizes() if count is None else [owner.owner.dim(i) for i in range(count, 0)]
            return sizes if count is not None or start is None else sizes[-1:]
        if isinstance(owner, Model):
            return owner.same(owner.name) if owner.is_tensor else Model(name)
        if isinstance(owner, (dict, list, tuple)):
            try:
                return owner[index] if index is not None or isinstance(owner, dict) else list(owner)
            except (LookupError, TypeError):
                return Model(name)
        return Model(name)

    def call(self, node: ast.Call, env: dict[str, Any], scope: Scope | Frame, name: str) -> Any:
        function = self.value(node.func, env, scope)
        args: list[Any] = []
        for arg in node.args:
            found = self.value(arg.value if isinstance(arg, ast.Starred) else arg, env, scope, name)
            args += self.items(found) if isinstance(arg, ast.Starred) else [found]
        named = {k.arg: self.value(k.value, env, scope) for k in node.keywords if k.arg is not None}
        if isinstance(function, Method):
            return call_method(function, args, named, name)
        if isinstance(function, HostName):
            return call_torch(function, args, named, name, f"line {node.lineno}")
        if isinstance(function, UserFunction):
            return self.user_call(function, args, named, node, scope, name)
        if function in (len, max, min, int, float, bool, isinstance, sum, abs, round):
            return self.builtin(function, args, node, scope, name)
        numbers = [as_number(arg) for arg in args]
        if any(map(has_model, [*numbers, *named.values()])):
            return Model(name)
        return self.applied(function, numbers, named, scope.place(node), name)

    def applied(self, function: Any, args: list[Any], named: dict[str, Any], place: Place, name: str) -> Any:
        try:
            return self.program.evaluator.calls.apply(function, args, named, place)
        except NoValue:
            return Model(name)

    def builtin(self, function: Any, args: list[Any], node: ast.Call, scope: Scope | Frame, name: str) -> Any:
        if function is isinstance:
            return Model(name)
        if function is len and args and isinstance(args[0], (Model, Shape)):
            owner = args[0].owner if isinstance(args[0], Shape) else args[0]
            if isinstance(args[0], Shape):
                return len(owner.dims) if owner.dims is not None else Model(name)
            return owner.dim(0)
        numbers = [as_number(arg) for arg in args]
        known = [value for value in numbers if not has_model(value)]
        if function in (max, min) and known and len(numbers) > 1:
            numbers = known if len(known) > 1 else known * 2
        if any(map(has_model, numbers)):
            return args[0] if args and isinstance(args[0], Model) else Model(name)
        return self.applied(function, numbers, {}, scope.place(node), name)

    def user_call(
        self, function: UserFunction, args: list[Any], named: dict[str, Any], node: ast.AST, scope: Scope | Frame, name: str
    ) -> Any:  # fmt: skip
        if not has_model(args) and not has_model(named):
            return self.applied(function, args, named, scope.place(node), name)
        if self.depth >= _DEPTH:
            return Model(name)
        spec = function.node.args
        bound = dict(zip([a.arg for a in (*spec.posonlyargs, *spec.args)], args)) | named
        inner = HostRun(self.program, self.site, self.pointers, bound, self.steps, self.depth + 1)
        env = inner.parameters(function.node, function.scope)  # type: ignore[arg-type]
        try:
            if isinstance(function.node, ast.Lambda):
                return inner.value(function.node.body, env, function.scope, name)
            inner.body(function.node.body, env, function.scope, None)
        except _Returned as found:
            return found.value
        finally:
            self.steps = inner.steps
        return Model(name)

    def items(self, value: Any) -> list[Any]:
        if isinstance(value, Shape):
            return value.owner.sizes()
        return list(value) if isinstance(value, (tuple, list, range)) else []

    def truth(self, value: Any) -> bool | None:
        if isinstance(value, (Model, Shape, Dtype, Method, HostName, Scope, UserFunction)):
            return None
        return bool(value)


def _is_tensor(arg: ast.arg, function: ast.FunctionDef | ast.Lambda) -> bool:
    if arg.annotation is not None and "Tensor" in ast.unparse(arg.annotation):
        return True
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in _TENSOR_USES
        and isinstance(node.value, ast.Name)
        and node.value.id == arg.arg
        for node in ast.walk(function)
    )


def _annotated(arg: ast.arg) -> str:
    text = ast.unparse(arg.annotation) if arg.annotation is not None else ""
    kinds = {
        "LongTensor": "i64",
        "IntTensor": "i32",
        "BoolTensor": "u1",
        "ByteTensor": "u8",
        "FloatTensor": "fp32",
        "HalfTensor": "fp16",
    }
    return next((kind for word, kind in kinds.items() if word in text), "")


def _inside(goal: ast.AST, node: ast.AST) -> bool:
    return any(inner is goal for inner in ast.walk(node))


def _name_of(target: ast.AST) -> str:
    if isinstance(target, ast.Starred):
        return _name_of(target.value)
    return target.id if isinstance(target, ast.Name) else "?"


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _fills(body: list[ast.stmt]) -> bool:
    """Whether a branch gives values to names that may have none: what most conditional assignments are for."""
    return all(isinstance(statement, (ast.Assign, ast.AnnAssign)) for statement in body)
