"""Values of host expressions on a model of the inputs: what cannot be told is a model of its own."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from gluonize.read.evaluate.host_objects import UserClass, UserFunction
from gluonize.read.evaluate.host_values import HostName
from gluonize.read.evaluate.program import Program
from gluonize.read.launches.derive.host.calls import call_method, call_torch, described, describes
from gluonize.read.launches.derive.host.dtypes import allowed_types, is_torch_dtype, looked_up, same_dtype
from gluonize.read.launches.derive.host.model import (
    Descriptor,
    Dtype,
    Method,
    Model,
    Saved,
    Shape,
    as_number,
    has_model,
)
from gluonize.read.launches.derive.host.objects import maker, member
from gluonize.read.launches.derive.host.ranks import Rank
from gluonize.read.launches.derive.supposed import supposed_size, takes_other_branch
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import NoValue, Place

# What an exponent that nobody knows is supposed to be: a number of bits.
_EXPONENT = 4
# Host functions called by host functions that are followed, and nodes evaluated in one run.
_DEPTH = 4
_STEPS = 20_000


class TooLong(Exception):
    """The model run does too much."""


class HostExpressions:
    """Evaluates expressions; `steps` and `depth` bound what is done, `ranks` are what is known of tensors by name, `asked` the dimensions
    that they need for what is passed, `open_types` the types that tensors were compared with whose own is not shown."""

    program: Program
    steps: int
    depth: int
    ranks: Mapping[str, Rank]
    asked: Mapping[str, int]
    history: Any  # of `host_run.History`
    open_types: dict[str, set[str]]

    def called(self, function: UserFunction, bound: dict[str, Any], name: str) -> Any:
        """The result of a host function for these arguments."""
        raise NotImplementedError

    def step(self) -> None:
        self.steps += 1
        if self.steps > _STEPS:
            raise TooLong

    def value(self, node: ast.expr, env: dict[str, Any], scope: Scope | Frame, name: str = "?") -> Any:
        """The value of an expression; what cannot be told is a model called `name`."""
        self.step()
        return self._value(node, env, scope, name)

    def _value(self, node: ast.expr, env: dict[str, Any], scope: Scope | Frame, name: str) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            found = env[node.id] if node.id in env else self.looked_up(node, scope)
            return self.ranked(found, node.id) if isinstance(found, Model) else found
        if isinstance(node, ast.Attribute):
            found = self.attribute(self.value(node.value, env, scope), node, scope)
            if isinstance(found, Method) and isinstance(found.owner, Model) and not found.owner.is_tensor:
                found = found.owner.held.setdefault(node.attr, self.part(found.owner, node.attr))
            return self.ranked(found, ast.unparse(node)) if isinstance(found, Model) else found
        if isinstance(node, (ast.Tuple, ast.List)):
            items = []
            for item in node.elts:
                found = self.value(item.value if isinstance(item, ast.Starred) else item, env, scope)
                items += self.items(found) if isinstance(item, ast.Starred) else [found]
            return tuple(items) if isinstance(node, ast.Tuple) else items
        if isinstance(node, ast.Dict):
            items: dict[Any, Any] = {}
            for key, value in zip(node.keys, node.values):
                found = self.value(value, env, scope)
                spread = key is None and isinstance(found, dict)
                items |= found if spread else {key.value if isinstance(key, ast.Constant) else None: found}
            return items
        if isinstance(node, ast.BinOp):
            return self.binary(node, self.value(node.left, env, scope), self.value(node.right, env, scope), scope)
        if isinstance(node, ast.UnaryOp):
            operand = self.value(node.operand, env, scope)
            if isinstance(node.op, ast.Not):
                truth = self.truth(operand)
                return Model(name) if truth is None else not truth
            if isinstance(operand, Model) and operand.scalar == "float":
                return Model(name, scalar="float", why=operand.why)
            return self.plain(ast.UnaryOp(node.op, ast.Constant(operand)), [operand], scope, node, name)
        if isinstance(node, ast.BoolOp):
            return self.logical(node, env, scope, name)
        if isinstance(node, ast.Compare):
            return self.compare(node, env, scope, name)
        if isinstance(node, ast.IfExp):
            test = self.truth(self.value(node.test, env, scope))
            other = test is False or test is None and takes_other_branch()
            return self.value(node.orelse if other else node.body, env, scope, name)
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

    def ranked(self, found: Model, text: str) -> Model:
        """With the dimensions that host code shows of what it calls so."""
        if (found.dims is None or found.at_least) and text in self.ranks:
            found.with_rank(self.ranks[text].count)
            found.at_least = not self.ranks[text].exact
        elif len(found.dims or ()) < self.asked.get(text, 0):
            # What is launched asks more of it than it has: another branch of the host code made it.
            found.dims, found.axes, found.at_least = [None] * self.asked[text], (), True
        return found

    def part(self, owner: Model, name: str) -> Any:
        """An attribute of an object that nothing was assigned to: what its class has under that name."""
        found = member(self.program, owner.kind, name) if owner.kind is not None else None
        if isinstance(found, UserFunction):
            marks = [ast.unparse(mark) for mark in getattr(found.node, "decorator_list", ())]
            if any(mark.rpartition(".")[2] in ("property", "cached_property") for mark in marks):
                return self.method(owner, found, [], {}, name) if self.depth < _DEPTH else Model(name)
            return Method(owner, name)
        if found is not None and found.value is not None and owner.kind is not None:
            return self.value(found.value, {}, owner.kind.scope, name)
        return Model(name)

    def method(self, owner: Any, function: UserFunction, args: list[Any], named: dict[str, Any], name: str) -> Any:
        """What a method of an object of the program gives."""
        spec = function.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        marks = [ast.unparse(mark) for mark in getattr(function.node, "decorator_list", ())]
        given = args if "staticmethod" in marks else [owner, *args]
        return self.called(function, dict(zip(names, given)) | named, name)

    def object_of(self, kind: UserClass, args: list[Any], named: dict[str, Any], name: str) -> Model:
        """An object of a class of the program."""
        made = Model(name, kind=kind)
        if (function := maker(self.program, kind)) is not None and self.depth < _DEPTH:
            self.method(made, function, args, named, name)
        return made

    def looked_up(self, node: ast.Name, scope: Scope | Frame) -> Any:
        try:
            return scope.lookup(node.id)
        except (*NoValue, KeyError):
            return self.open_name(node.id, scope)

    def open_name(self, name: str, scope: Scope | Frame) -> Model:
        """A name whose value is not known: a floating-point number where each way to it in its module gives one."""
        home: Any = scope
        while (above := getattr(home, "parent", None) or getattr(home, "outer", None)) is not None:
            home = above
        made = home.bindings.by_name.get(name, ()) if isinstance(home, Scope) else ()
        if len(made) != 1 or made[0].kind != "assign" or made[0].path or made[0].value is None:
            return Model(name)
        try:
            floats = all(isinstance(self.program.evaluate(way, home), float) for way in _ways(made[0].value))
        except NoValue:
            return Model(name)
        return Model(name, scalar="float" if floats else "", why=f"{name} in line {made[0].node.lineno}")

    def frame(self, env: dict[str, Any], scope: Scope | Frame) -> Frame:
        frame = Frame(scope, scope.path, scope.module, scope.qualname)
        frame.locals.update(env)
        return frame

    def attribute(self, owner: Any, node: ast.Attribute, scope: Scope | Frame) -> Any:
        if isinstance(owner, Model):
            if node.attr in owner.held:
                return owner.held[node.attr]
            if owner.kind is not None:
                return Method(owner, node.attr)
            if node.attr == "saved_tensors" and self.history.saved is not None:
                return self.history.saved
            if node.attr == "shape":
                owner.is_tensor = True
                return Shape(owner)
            if node.attr == "dtype":
                owner.is_tensor = True
                return Dtype(owner)
            if node.attr in ("T", "mT"):
                return owner.turned("", None)
            if node.attr in ("data", "grad"):
                return owner.same()
            if node.attr == "ndim":
                return owner.rank() or Method(owner, "ndim")  # no number to compute with
            if node.attr in ("is_cuda",):
                return True
            return Method(owner, node.attr)
        if isinstance(owner, Descriptor):
            return {"base": owner.owner, "block_shape": owner.tile, "shape": Shape(owner.owner)}.get(
                node.attr, Model(node.attr)
            )
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
        if floats := [side for side in (left, right) if isinstance(side, Model) and side.scalar == "float"]:
            return Model("?", scalar="float", why=floats[0].why)
        if isinstance(node.op, (ast.LShift, ast.Pow)) and isinstance(right, Model) and right.number is None:
            right.number = supposed_size(_EXPONENT)
        both = as_number(left), as_number(right)
        try:
            found = self.program.evaluator.binary(node.op, *both, scope.place(node))
        except NoValue:
            return Model("?")
        made_up = isinstance(left, Model) or isinstance(right, Model)
        return Model("?") if made_up and isinstance(found, int) and abs(found) >= 2**63 else found

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
        if is_torch_dtype(left) or is_torch_dtype(right):
            return self.compare_types(op, left, right, name)
        if isinstance(left, (Shape, Method)) or isinstance(right, (Shape, Method)):
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

    def compare_types(self, op: ast.cmpop, left: Any, right: Any, name: str) -> Any:
        same = same_dtype(left, right)
        if same is None:
            for side in (left, right):
                if isinstance(side, Dtype):
                    self.open_types.setdefault(side.owner.root().name, set()).update(allowed_types([left, right]))
        if same is None or not isinstance(op, (ast.Eq, ast.Is, ast.In, ast.NotEq, ast.IsNot, ast.NotIn)):
            return Model(name)
        return same == isinstance(op, (ast.Eq, ast.Is, ast.In))

    def subscript(self, node: ast.Subscript, env: dict[str, Any], scope: Scope | Frame, name: str) -> Any:
        owner, index = self.value(node.value, env, scope), None
        owner = owner.alternatives[0] if isinstance(owner, Saved) else owner
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
                if isinstance(owner, dict) and isinstance(index, Dtype):
                    return looked_up(owner, index)
                return owner[index] if index is not None or isinstance(owner, dict) else list(owner)
            except (LookupError, TypeError):
                return Model(name)
        return Model(name)

    def call(self, node: ast.Call, env: dict[str, Any], scope: Scope | Frame, name: str) -> Any:
        if isinstance(node.func, ast.Attribute):
            owner = env.get("self") if is_super(node.func) else self.value(node.func.value, env, scope)
            function = self.attribute(owner, node.func, scope)
        else:
            function = self.value(node.func, env, scope)
        args: list[Any] = []
        for arg in node.args:
            found = self.value(arg.value if isinstance(arg, ast.Starred) else arg, env, scope, name)
            args += self.items(found) if isinstance(arg, ast.Starred) else [found]
        named = {k.arg: self.value(k.value, env, scope) for k in node.keywords if k.arg is not None}
        if isinstance(function, Method) and isinstance(function.owner, Model) and function.owner.kind is not None:
            above = scope if is_super(node.func) else None
            found = member(self.program, function.owner.kind, function.name, above)
            if isinstance(found, UserFunction) and self.depth < _DEPTH:
                return self.method(function.owner, found, args, named, name)
            return Model(name)
        if isinstance(function, UserClass):
            return self.object_of(function, args, named, name)
        if isinstance(function, Method):
            return call_method(function, args, named, name)
        if describes(function):
            return described(args, named, name)
        if isinstance(function, HostName):
            first = node.args[0] if node.args else None
            if function.dotted.endswith("_like") and isinstance(first, ast.Name) and args[0] is None:
                args[0] = env[first.id] = Model(first.id, is_tensor=True)  # it has to be there
            return call_torch(function, args, named, name, f"line {node.lineno}")
        if isinstance(function, UserFunction):
            function = _unwrapped(function)
            return self.user_call(function, args, named, node, scope, name)
        if function is dict and all(isinstance(arg, dict) for arg in args):
            return {name: value for given in (*args, named) for name, value in given.items()}
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
            return _is_instance(args, name)
        if function is len and args and isinstance(args[0], (Model, Shape)):
            owner = args[0].owner if isinstance(args[0], Shape) else args[0]
            if isinstance(args[0], Shape):
                return owner.rank() or Method(owner, "ndim")
            return owner.dim(0)
        numbers = [as_number(arg) for arg in args]
        known = [value for value in numbers if not has_model(value)]
        if function in (max, min) and known and len(numbers) > 1:
            numbers = known if len(known) > 1 else known * 2
        if any(map(has_model, numbers)):
            if function in (int, float):
                return Model(name, scalar=function.__name__, why=f"{function.__name__}(...)")
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
        return self.called(function, bound, name)

    def items(self, value: Any) -> list[Any]:
        if isinstance(value, Shape):
            return value.owner.sizes()
        return list(value) if isinstance(value, (tuple, list, range)) else []

    def truth(self, value: Any) -> bool | None:
        if isinstance(value, Dtype) or isinstance(value, HostName) and value.torch_dtype:
            return True  # `dtype or x.dtype`
        if isinstance(value, (Model, Shape, Method, HostName, Scope, UserFunction)):
            return None
        return bool(value)


def is_super(node: ast.expr) -> bool:
    """Whether it is `super().f`."""
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "super()"


def _unwrapped(function: UserFunction) -> UserFunction:
    """What a decorator's wrapper stands for: the function that `functools.wraps` names."""
    for decorator in getattr(function.node, "decorator_list", ()):
        if isinstance(decorator, ast.Call) and decorator.args and isinstance(named := decorator.args[0], ast.Name):
            if ast.unparse(decorator.func).rpartition(".")[2] == "wraps":
                try:
                    inner = function.scope.lookup(named.id)
                except (*NoValue, KeyError):
                    return function
                return _unwrapped(inner) if isinstance(inner, UserFunction) else function
    return function


def _is_instance(args: list[Any], name: str) -> Any:
    """`isinstance(x, torch.Tensor)` and of plain types."""
    if len(args) == 2 and isinstance(args[0], Descriptor):
        return describes(args[1])
    if len(args) != 2 or isinstance(args[0], Model) and not args[0].is_tensor:
        return Model(name)
    if isinstance(args[1], HostName):
        return isinstance(args[0], Model) if args[1].dotted == "torch.Tensor" else Model(name)
    if args[1] in (int, float, bool, str, tuple, list, dict):
        return isinstance(args[0], args[1])
    return Model(name)


def _ways(node: ast.expr) -> list[ast.expr]:
    """The values that an expression may have, by the branches of its conditional expressions."""
    return [*_ways(node.body), *_ways(node.orelse)] if isinstance(node, ast.IfExp) else [node]
