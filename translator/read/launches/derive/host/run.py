"""Host code run on a model of its inputs, up to a launch: nothing is executed, what is not known stays a model.

`x` of `def f(x): M, N = x.shape; y = torch.empty_like(x); k[grid](x, y, N, BLOCK=triton.next_power_of_2(N))` is a tensor whose
second dimension is a size that the name `N` stands for; so N and BLOCK agree, and y has the type of x.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gluonize.read.evaluate.host_objects import UserFunction
from gluonize.read.evaluate.program import Program
from gluonize.read.launches.derive.host.address_terms import Terms
from gluonize.read.launches.derive.host.dtypes import allowed_types, chosen_type, denied
from gluonize.read.launches.derive.host.expressions import HostExpressions, TooLong, is_super
from gluonize.read.launches.derive.host.history import History
from gluonize.read.launches.derive.host.model import Descriptor, Dtype, Model, Saved, Shape, fresh, has_model
from gluonize.read.launches.derive.host.parameters import annotated_type, is_tensor, may_be_none
from gluonize.read.launches.derive.host.ranks import Rank, ranks_asked, ranks_by_use, ranks_shown
from gluonize.read.launches.derive.host.sites import Site
from gluonize.read.launches.derive.kernel.branches import inside, leaves, likely, raises, with_errors
from gluonize.read.launches.derive.kernel.documented import documented_types
from gluonize.read.launches.derive.supposed import in_other_sizes, takes_other_branch
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import NoValue


@dataclass
class HostState:
    """Where a launch was reached: the values of its arguments and of the host function's own."""

    arguments: dict[str, Any]
    options: dict[str, Any]
    parameters: dict[str, Any]
    contradicts: bool
    objects: dict[str, Model] = field(default_factory=dict)  # those that attributes were assigned to, by name
    grid: Any = None
    open_types: Mapping[str, set[str]] = field(
        default_factory=dict
    )  # of parameters: what types they were compared with


class _Reached(Exception):
    """The launch is reached."""


class _Returned(Exception):
    def __init__(self, value: Any):
        self.value = value


@dataclass
class HostRun(HostExpressions):
    """One model run. `given` are values for parameters of the host function, instead of its defaults, and for sizes of its tensors, by
    the text that asks for them: `x.shape[1]`."""

    program: Program
    site: Site | None
    pointers: frozenset[str]
    given: dict[str, Any] = field(default_factory=dict)
    steps: int = 0
    depth: int = 0
    contradicts: bool = False
    history: History = field(default_factory=History)
    may_lack: bool = False  # parameters that callers leave None are None: what is computed in their place shows types
    terms: Mapping[str, Terms] = field(default_factory=dict)  # of the addresses of each pointer of the kernel
    left_out: frozenset[str] = frozenset()  # arguments that configurations and heuristics give
    picked: Mapping[ast.For, int] = field(
        default_factory=dict
    )  # the item of each loop around the launch, by its number
    loops: dict[ast.For, list] = field(default_factory=dict)  # the loops around the launch, with their items
    open_types: dict[str, set[str]] = field(default_factory=dict)

    @functools.cached_property
    def ranks(self) -> dict[str, Rank]:
        """The rank of tensors by name, as far as the host functions around the launch and the addresses of the kernel show it."""
        functions = self.site.functions if self.site is not None and not self.depth else ()
        shown = {k: v for function in functions for k, v in ranks_shown(function).items()}
        for name, count in ranks_by_use(self.site.arguments, self.terms).items() if functions else ():
            if not (known := shown.get(name, Rank(0))).exact:
                shown[name] = Rank(max(count, known.count))
        return shown

    @functools.cached_property
    def asked(self) -> dict[str, int]:
        """The dimensions that what is passed needs tensors to have, by name: three for `x.stride(2)`."""
        return ranks_asked(self.site.arguments.values()) if self.site is not None and not self.depth else {}

    def run(self) -> HostState | None:
        """The state at the launch; None when it is not reached."""
        assert self.site is not None, "a run to a launch needs one"
        if in_other_sizes() and self.history.other is not None:
            self.history = replace(self.history.other, passed=self.history.passed)
        env: dict[str, Any] = {}
        parameters: dict[str, Any] = {}
        try:
            for number, function in enumerate(self.site.functions):
                env |= (bound := self.parameters(function, self.site.scopes[number]))
                if not number:
                    self.tell(bound)
                    self.resize(bound)
                    env |= bound
                parameters |= bound
                inner = self.site.functions[number + 1] if number + 1 < len(self.site.functions) else None
                self.body(function.body, env, self.site.scopes[number], inner or self.site.call)
            if not self.site.functions:
                self.body(self.site.body, env, self.site.outer, self.site.call)
        except _Reached:
            pass
        except (_Returned, TooLong, RecursionError):
            return None
        # A size that is asked for in place is what the kernel's own name for it says.
        named = {n: n if size_asked_for(x) is not None else "?" for n, x in self.site.arguments.items()}
        arguments = {n: self.value(x, env, self.site.inner, named[n]) for n, x in self.site.arguments.items()}
        arguments |= self.spread_out(env)
        options = {n: self.value(x, env, self.site.inner) for n, x in self.site.keywords.items()}
        for spread in self.site.spread:
            found = self.value(spread, env, self.site.inner)
            for name, value in found.items() if isinstance(found, dict) else ():
                (arguments if name in self.site.names else options).setdefault(name, value)
        objects = {name: value for name, value in env.items() if isinstance(value, Model) and value.held}
        launched = getattr(self.site.call, "func", None)
        grid = self.value(launched.slice, env, self.site.inner) if isinstance(launched, ast.Subscript) else None
        open_types = {name: types for name, types in self.open_types.items() if name in parameters}
        return HostState(arguments, options, parameters, self.contradicts, objects, grid, open_types)

    def spread_out(self, env: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the launch from the first `*x.stride()` on; none where they do not fit what is given by name."""
        given = list(self.site.positional)
        first = next((i for i, arg in enumerate(given) if isinstance(arg, ast.Starred)), len(given))
        by_position = {id(value): name for name, value in self.site.arguments.items()}
        if any(by_position.get(id(arg)) != name for arg, name in zip(given[:first], self.site.names)):
            return {}
        values: list[Any] = []
        self.count_spread(given[first:], self.site.names[first:], env)
        for arg in given[first:]:
            found = self.value(arg.value if isinstance(arg, ast.Starred) else arg, env, self.site.inner)
            if isinstance(arg, ast.Starred) and not (items := self.items(found)):
                break
            values += items if isinstance(arg, ast.Starred) else [found]
        names = self.site.names[first : first + len(values)]
        fits = len(names) == len(values) and self.site.arguments.keys().isdisjoint(names)
        return dict(zip(names, values)) if fits else {}

    def count_spread(self, given: list[ast.expr], names: tuple[str, ...], env: dict[str, Any]) -> None:
        """The rank of tensors whose strides or sizes are spread, where nothing else says it: it leaves an argument for each."""
        assert self.site is not None
        count, owners = 0, []
        for arg in given:
            owner = self._spread_owner(arg, env)
            if owner is not None and owner.rank() is None:
                owners.append(owner)
            elif isinstance(arg, ast.Starred):
                count += len(self.items(self.value(arg.value, env, self.site.inner)))
            else:
                count += 1
        left = sum(n not in self.left_out and n not in self.site.arguments for n in names) - count
        if owners and left > 0 and left % len(owners) == 0:
            for owner in owners:
                owner.with_rank(left // len(owners))
                owner.at_least = False

    def _spread_owner(self, arg: ast.expr, env: dict[str, Any]) -> Model | None:
        """The tensor of `*x.stride()`, `*x.size()`, `*x.shape`; None of anything else."""
        inner = arg.value if isinstance(arg, ast.Starred) else None
        inner = inner.func if isinstance(inner, ast.Call) and not inner.args else inner
        if isinstance(inner, ast.Attribute) and inner.attr in ("stride", "size", "shape") and self.site is not None:
            owner = self.value(inner.value, env, self.site.inner)
            return owner if isinstance(owner, Model) else None
        return None

    def parameters(self, function: ast.FunctionDef, scope: Scope | Frame) -> dict[str, Any]:
        spec = function.args
        positional = [*spec.posonlyargs, *spec.args]
        defaults = dict(zip([a.arg for a in positional][len(positional) - len(spec.defaults) :], spec.defaults))
        defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults) if d is not None}
        out: dict[str, Any] = {}
        copies: dict[int, Any] = {}
        said = documented_types(function) if isinstance(function, ast.FunctionDef) else {}
        for arg in (*positional, *spec.kwonlyargs):
            if arg.arg in self.given:
                # Sizes that one run asks it for are not known in another.
                given = self.given[arg.arg] if self.depth else fresh(self.given[arg.arg], copies)
                out[arg.arg] = replace(given, dims=copy.copy(given.dims)) if isinstance(given, Model) else given
                continue
            tensor, text = is_tensor(arg, function), ast.unparse(arg.annotation) if arg.annotation is not None else ""
            scalar = next((kind for kind in ("float", "bool", "int") if text.split(" | ")[0] == kind), "")
            out[arg.arg] = Model(arg.arg, annotated_type(arg), is_tensor=tensor, why="its annotation", scalar=scalar)
            out[arg.arg].optional = may_be_none(arg, function)
            if tensor and not out[arg.arg].element and arg.arg in said:
                out[arg.arg].element, out[arg.arg].why = said[arg.arg], f"the docstring of {function.name}"
                out[arg.arg].confidence = "use"
            if arg.arg in defaults:
                value = self.value(defaults[arg.arg], {}, scope)
                out[arg.arg] = value if not has_model(value) else out[arg.arg]
        return out

    def resize(self, bound: dict[str, Any]) -> None:
        """Give tensors among the parameters the sizes that are given for `x.shape[1]` or `x.size(1)`."""
        for text, size in self.given.items():
            found = size_asked_for(ast.parse(text, mode="eval").body) if not text.isidentifier() else None
            if found is not None and isinstance(model := bound.get(found[0]), Model):
                name, index = found
                model.is_tensor, model.at_least = True, model.at_least or model.dims is None
                model.with_rank(index + 1 if index >= 0 else max(-index, 2 if model.dims is None else 0))[index] = size

    def tell(self, bound: dict[str, Any]) -> None:
        """Give parameters what callers pass: types, None, and tensors where the default is None."""
        copies: dict[int, Any] = {}
        for name, found in self.history.passed.items():
            if name not in bound or name in self.given:
                continue
            if found.known and found.dims is None:
                other = found.other if in_other_sizes() and found.other is not None else found.value
                bound[name] = fresh(other, copies)
                continue
            if found.absent and self.may_lack and not found.element:
                bound[name] = None
            elif bound[name] is None and found.present:
                bound[name] = Model(name, is_tensor=True)
            if found.dims is not None and isinstance(bound[name], Model):
                bound[name].is_tensor, bound[name].dims = True, list(found.dims)
            if not (found.element or found.like or found.present):
                continue
            model, other = bound[name], bound.get(found.like)
            if not isinstance(model, Model) or model.element or model.scalar:
                continue
            model.is_tensor = True
            if found.element:
                model.element, model.why, model.confidence = found.element, found.why, "use"
                model.agreed = found.agreed
            elif isinstance(other, Model):
                model.like = other

    def called(self, function: UserFunction, bound: dict[str, Any], name: str) -> Any:
        inner = HostRun(self.program, self.site, self.pointers, bound, self.steps, self.depth + 1)
        inner.open_types = self.open_types
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

    # --- statements

    def body(self, statements: list[ast.stmt], env: dict[str, Any], scope: Scope | Frame, goal: ast.AST | None) -> None:
        for statement in with_errors(statements):
            self.statement(statement, env, scope, goal if goal is not None and inside(goal, statement) else None)

    def statement(self, node: ast.stmt, env: dict[str, Any], scope: Scope | Frame, goal: ast.AST | None) -> None:
        self.step()
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
        elif isinstance(node, ast.Assert):
            self.asserted(node.test, env, scope)
        elif isinstance(node, ast.If):
            self.branch(node, env, scope, goal)
        elif isinstance(node, ast.For):
            items = self.items(self.value(node.iter, env, scope))
            if goal is not None and items:
                self.loops[node] = items
            number = self.picked.get(node, -1 if takes_other_branch() else 0)
            item = items[number] if number < len(items) and items else Model(_name_of(node.target))
            self.assign(node.target, item, env)
            self.body(node.body, env, scope, goal)
        elif isinstance(node, ast.While):
            self.body(node.body, env, scope, goal)
        elif isinstance(node, ast.With):
            self.body(node.body, env, scope, goal)
        elif isinstance(node, ast.Try):
            fails = goal is not None
            try:
                self.body([*node.body, *node.orelse, *node.finalbody], env, scope, goal)
            except _Returned:
                if self.depth or not node.handlers:
                    raise
                fails = True  # a launch behind what returns where it works is reached where it does not
            if fails:
                for handler in node.handlers:
                    self.body(handler.body, env, scope, goal)
        elif isinstance(node, ast.Return):
            raise _Returned(self.value(node.value, env, scope) if node.value is not None else None)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.mutate(node.value, env, scope)
        elif isinstance(node, ast.FunctionDef):
            env[node.name] = UserFunction(node, self.frame(env, scope))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            env |= self.imported(node, scope)

    def imported(self, node: ast.Import | ast.ImportFrom, scope: Scope | Frame) -> dict[str, Any]:
        """What an import inside a function binds; nothing where it cannot be read."""
        frame = self.frame({}, scope)
        try:
            self.program.evaluator.calls.interpreter.bind_imports(node, frame)
        except NoValue:
            pass
        return dict(frame.locals)

    def asserted(self, test: ast.expr, env: dict[str, Any], scope: Scope | Frame) -> None:
        """`assert x.dtype == torch.float16 and y.dtype in (torch.int32, torch.int64)`: the types of tensors."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for part in test.values:
                self.asserted(part, env, scope)
        elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot) and isinstance(test.left, ast.Name):
            other = test.comparators[0]
            if (
                isinstance(other, ast.Constant)
                and other.value is None
                and test.left.id in env
                and env[test.left.id] is None
            ):
                env[test.left.id] = Model(test.left.id, is_tensor=True, why=f"`{ast.unparse(test)[:48]}` has to hold")
        elif isinstance(test, ast.Compare):
            sides = [self.value(x, env, scope) for x in (test.left, *test.comparators)]
            if all(isinstance(op, (ast.Eq, ast.Is, ast.In)) for op in test.ops):
                allowed = allowed_types(sides)
                for owner in [side.owner.root() for side in sides if isinstance(side, Dtype)]:
                    if allowed and not owner.element:
                        owner.element, owner.why = chosen_type(allowed), f"`{ast.unparse(test)[:48]}` has to hold"
                        owner.confidence = "read" if len(set(allowed)) == 1 else "use"

    def branch(self, node: ast.If, env: dict[str, Any], scope: Scope | Frame, goal: ast.AST | None) -> None:
        """The branch that the launch is in; else the one that the test says, and none of an unknown one that leaves, unless
        what it leaves is an error."""
        if goal is None and raises(node.body) and (holds := denied(node.test)) is not None:
            self.asserted(holds, env, scope)
        test = self.truth(self.value(node.test, env, scope))
        if goal is not None:
            within = any(inside(goal, statement) for statement in node.body)
            if test is not None and test != within:
                self.contradicts = True
            self.body(node.body if within else node.orelse, env, scope, goal)
            return
        body = node.body if test else node.orelse
        if test is None:
            body = likely(node)
            if takes_other_branch() and not raises(other := node.orelse if body is node.body else node.body):
                body = other
        if leaves(body) and self.depth == 0:
            if test:
                self.contradicts = True
            return
        self.body(body, env, scope, None)

    def mutate(self, node: ast.Call, env: dict[str, Any], scope: Scope | Frame) -> None:
        """`xs.append(v)`, `d.update(...)` of what the run has made, and methods of objects of the program."""
        owner = _held(node.func.value, env) if isinstance(node.func, ast.Attribute) else None
        if is_super(node.func) or isinstance(owner, Model) and owner.kind is not None:
            self.value(node, env, scope)
            named = node.args[0] if len(node.args) > 1 else None
            if isinstance(owner, Model) and node.func.attr == "register_buffer" and isinstance(named, ast.Constant):  # type: ignore[attr-defined]
                owner.held[named.value] = self.value(node.args[1], env, scope, str(named.value))
        elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            owner = env.get(node.func.value.id)
            if isinstance(owner, list) and node.func.attr == "append" and node.args:
                owner.append(self.value(node.args[0], env, scope))
            elif isinstance(owner, dict) and node.func.attr == "update":
                found = self.value(node.args[0], env, scope) if node.args else {}
                owner.update(found if isinstance(found, dict) else {})
                owner.update({k.arg: self.value(k.value, env, scope, k.arg) for k in node.keywords if k.arg})

    def assign(self, target: ast.expr, value: Any, env: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            if isinstance(value, Model) and value.name == "?":
                value.name = target.id
            if not self.depth and target.id in self.given:
                given = self.given[target.id]
                made = isinstance(given, Model) and isinstance(value, Model) and value.is_tensor
                value = value if made else given  # `q = q.transpose(1, 2)` is made of the one that is given
            env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for inner, item in zip(target.elts, self.unpacked(target, value)):
                self.assign(inner, item, env)
        elif isinstance(target, ast.Attribute) and isinstance(owner := _held(target.value, env), Descriptor):
            owner.tile = value if target.attr == "block_shape" else owner.tile
        elif isinstance(target, ast.Attribute):
            if isinstance(target.value, ast.Name) and target.value.id not in env:
                env[target.value.id] = Model(target.value.id)
            if isinstance(owner := _held(target.value, env), Model):
                if isinstance(value, Model) and value.name == "?":
                    value.name = target.attr
                owner.held[target.attr] = value
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            owner = env.get(target.value.id)
            if isinstance(owner, dict) and isinstance(target.slice, ast.Constant):
                owner[target.slice.value] = value

    def dim(self, owner: Model, index: int, name: str) -> int:
        """A dimension that the host calls `name`; what is given for that name is its size."""
        size = self.given.get(name)
        if type(size) is int and not self.depth:
            owner.with_rank(index + 1 if index >= 0 else -index)[index] = size
        return owner.dim(index, name)

    def unpacked(self, target: ast.Tuple | ast.List, value: Any) -> list[Any]:
        count = len(target.elts)
        if isinstance(value, Shape):
            starred = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
            if not starred:
                value.owner.with_rank(count)
                value.owner.at_least = False
                return [self.dim(value.owner, i, _name_of(t)) for i, t in enumerate(target.elts)]
            return [
                self.dim(value.owner, i if i < starred[0] else i - count, _name_of(t)) if i != starred[0] else [2]
                for i, t in enumerate(target.elts)
            ]
        if isinstance(value, Saved):
            value = value.of_length(count)
        items = list(value) if isinstance(value, (tuple, list)) else []
        if starred := [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]:
            first, rest = starred[0], count - starred[0] - 1
            items = (
                [*items[:first], items[first : len(items) - rest], *items[len(items) - rest :]]
                if len(items) >= count - 1
                else []
            )
        return items if len(items) == count else [Model(_name_of(t)) for t in target.elts]


def size_asked_for(node: ast.expr) -> tuple[str, int] | None:
    """The name and the number of the dimension of `x.shape[1]` and `x.size(1)`; None of anything else."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        owner, index = node.value.value, node.slice
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "size" and len(node.args) == 1:
        owner, index = node.func.value, node.args[0]  # type: ignore[attr-defined]
    else:
        return None
    try:
        number = ast.literal_eval(index)
    except ValueError:
        return None
    return (owner.id, number) if isinstance(owner, ast.Name) and type(number) is int else None


def _held(node: ast.expr, env: dict[str, Any]) -> Any:
    """What `name`, `name["key"]` and `name.part` stand for; None of anything else."""
    if isinstance(node, ast.Name):
        return env.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _held(node.value, env)
        return owner.held.get(node.attr) if isinstance(owner, Model) else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        owner = _held(node.value, env)
        return owner.get(node.slice.value) if isinstance(owner, dict) else None
    return None


def _name_of(target: ast.AST) -> str:
    if isinstance(target, ast.Starred):
        return _name_of(target.value)
    return target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else "?"
