"""Host functions, interpreted statement by statement under the rules of static evaluation.

Only what a constant can depend on is covered: assignments, conditions, loops over finite values, `try` with its certain
outcomes, nested functions and `return`. Anything else makes the result undetermined.
"""

from __future__ import annotations

import ast
import itertools
import os
from typing import Any

from gluonize.read.evaluate.bodies.defaults import default_value
from gluonize.read.evaluate.evaluation import Evaluation
from gluonize.read.evaluate.host_objects import UserFunction
from gluonize.read.evaluate.host_values import HostName
from gluonize.read.files.by_path import LoadedModules
from gluonize.read.names.binding_kinds import UserError, catcher
from gluonize.read.names.scope import Frame
from gluonize.read.unresolved import NoValue, Place, Raised, Undetermined
from gluonize.triton_api.language import core

# Aggregates of Triton: classes whose objects are tuples of values to the compiler.


def is_aggregate(value: Any) -> bool:
    """Whether `value` is a class under `@aggregate`."""
    return (
        isinstance(value, type) and issubclass(value, core.base_value) and getattr(value, "__triton_aggregate__", False)
    )


_NOTHING = object()
_MAX_LOOP = 10_000


class _Break(Exception):
    """`break` in an interpreted loop."""


class _Continue(Exception):
    """`continue` in an interpreted loop."""


class Interpreter:
    def __init__(self, evaluator: Evaluation):
        self.evaluator = evaluator

    def run(self, function: UserFunction, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        """What `function(*args, **kwargs)` returns. Raises: Undetermined, Raised."""
        if function.unusable:
            raise Undetermined(function.unusable, place)
        node = function.node
        qualname = f"{function.qualname}.<locals>"
        frame = Frame(function.scope, function.scope.path, function.scope.module, qualname)
        frame.locals.update(self._bind(function, args, kwargs, place))
        if isinstance(node, ast.Lambda):
            return self.evaluator.evaluate(node.body, frame)
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Yield, ast.YieldFrom, ast.Await, ast.Nonlocal)):
                raise Undetermined(f"{function.name} has a {type(inner).__name__.lower()} statement", place)
        result = self._block(node.body, frame)
        return None if result is _NOTHING else result

    def _bind(self, function: UserFunction, args: list, kwargs: dict[str, Any], place: Place) -> dict[str, Any]:
        spec = function.node.args
        positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        bound = dict(zip(positional, args))
        rest = dict(kwargs)
        if len(args) > len(positional):
            if spec.vararg is None:
                raise Raised(
                    TypeError(f"{function.name}() takes {len(positional)} arguments but {len(args)} were given"), place
                )
            bound[spec.vararg.arg] = tuple(args[len(positional) :])
        elif spec.vararg is not None:
            bound[spec.vararg.arg] = ()
        names = [*positional, *(arg.arg for arg in spec.kwonlyargs)]
        for name in list(rest):
            if name in names:
                bound[name] = rest.pop(name)
        if spec.kwarg is not None:
            bound[spec.kwarg.arg] = self.evaluator.program.effects.made(rest)
        elif rest:
            raise Raised(TypeError(f"{function.name}() got an unexpected keyword argument {next(iter(rest))!r}"), place)
        defaults = dict(zip(positional[len(positional) - len(spec.defaults) :], spec.defaults))
        defaults |= {arg.arg: value for arg, value in zip(spec.kwonlyargs, spec.kw_defaults) if value is not None}
        for name in names:
            if name in bound:
                continue
            if name not in defaults:
                raise Raised(TypeError(f"{function.name}() missing the argument {name!r}"), place)
            bound[name] = default_value(self.evaluator, defaults[name], function.held, function.scope)
        return bound

    def statement(self, node: ast.stmt, frame: Frame) -> None:
        """Run a statement of a body that is no function's. Raises: Undetermined, Raised."""
        self._statement(node, frame)

    def _block(self, statements: list[ast.stmt], frame: Frame) -> Any:
        for statement in statements:
            result = self._statement(statement, frame)
            if result is not _NOTHING:
                return result
        return _NOTHING

    def _statement(self, node: ast.stmt, frame: Frame) -> Any:
        place = frame.place(node)
        evaluate = self.evaluator.evaluate
        if isinstance(node, ast.Return):
            return None if node.value is None else evaluate(node.value, frame)
        if isinstance(node, ast.Assign):
            value = evaluate(node.value, frame)
            for target in node.targets:
                self.assign(target, value, frame)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(node.target, evaluate(node.value, frame), frame)
        elif isinstance(node, ast.AugAssign):
            self._augment(node, frame, place)
        elif isinstance(node, ast.Global):
            frame.globals.update(node.names)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self._delete(target, frame)
        elif isinstance(node, ast.If):
            return self._block(node.body if self.evaluator.truth(node.test, frame) else node.orelse, frame)
        elif isinstance(node, (ast.For, ast.While)):
            return self._loop(node, frame)
        elif isinstance(node, ast.Try):
            return self._try(node, frame)
        elif isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):
                evaluate(node.value, frame)
        elif isinstance(node, ast.FunctionDef):
            if frame.is_body and node.decorator_list:
                raise Undetermined("a function with decorators is defined in a loop", place)
            self._bind_name(node.name, self.evaluator.builder.define(node, frame), frame, place)
        elif isinstance(node, ast.ClassDef):
            self._bind_name(node.name, self.evaluator.builder.define_class(node, frame), frame, place)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.bind_imports(node, frame)
        elif isinstance(node, ast.Raise):
            self.raise_(node, frame)
        elif isinstance(node, ast.Assert):
            if not self.evaluator.truth(node.test, frame):
                raise Raised(AssertionError("assertion fails"), place)
        elif isinstance(node, ast.Break):
            raise _Break
        elif isinstance(node, ast.Continue):
            raise _Continue
        elif not isinstance(node, ast.Pass):
            raise Undetermined(f"a {type(node).__name__.lower()} statement is not evaluated statically", place)
        return _NOTHING

    def _augment(self, node: ast.AugAssign, frame: Frame, place: Place) -> None:
        """`x += v`, `x[i] += v`: what is there is read first, and only once."""
        target, evaluate = node.target, self.evaluator.evaluate
        if isinstance(target, ast.Name):
            old = frame.lookup(target.id)
            self._bind_name(
                target.id, self.evaluator.in_place(node.op, old, evaluate(node.value, frame), place), frame, place
            )
            return
        if not isinstance(target, ast.Subscript):
            raise Undetermined("a value is changed after it was made", place)
        owner, index = evaluate(target.value, frame), evaluate(target.slice, frame)
        old = self.evaluator.program.effects.check(self.evaluator.element(owner, index, place))
        new = self.evaluator.in_place(node.op, old, evaluate(node.value, frame), place)
        self._set_item(owner, index, new, place)

    def _delete(self, target: ast.expr, frame: Frame) -> None:
        place = frame.place(target)
        if isinstance(target, ast.Subscript):
            owner, index = self.evaluator.evaluate(target.value, frame), self.evaluator.evaluate(target.slice, frame)
            owner = self.evaluator.program.effects.changeable(owner, place)
            self.evaluator.guarded(owner.__delitem__, index, place=place)
        elif isinstance(target, ast.Name) and target.id in frame.locals and target.id not in frame.globals:
            del frame.locals[target.id]
        else:
            raise Undetermined("a value is deleted", place)

    def _set_item(self, owner: Any, index: Any, value: Any, place: Place) -> None:
        owner = self.evaluator.program.effects.changeable(owner, place)
        self.evaluator.guarded(owner.__setitem__, index, value, place=place)

    def _bind_name(self, name: str, value: Any, frame: Frame, place: Place) -> None:
        if hasattr(type(value), "__next__"):
            raise Undetermined("an iterator is kept, which is used up by what runs in between", place)
        if name not in frame.globals:
            frame.locals[name] = value
            return
        home: Any = frame
        while isinstance(home, Frame) or home.kind != "module":
            home = home.outer if isinstance(home, Frame) else home.parent
        if home.now is None or not self.evaluator.program.effects.certain:
            raise Undetermined(f"{name} is bound again when a function is called", place)
        home.overlay[name] = value

    def assign(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """Bind a target (a name, or a tuple of targets) in a frame."""
        if isinstance(target, ast.Name):
            self._bind_name(target.id, value, frame, frame.place(target))
        elif isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(t, ast.Starred) for t in target.elts):
            items = self.evaluator.iterate(value, frame.place(target))
            if len(items) != len(target.elts):
                raise Raised(ValueError("the number of values to unpack differs"), frame.place(target))
            for inner, item in zip(target.elts, items):
                self.assign(inner, item, frame)
        elif isinstance(target, ast.Subscript):
            owner = self.evaluator.evaluate(target.value, frame)
            index = self.evaluator.evaluate(target.slice, frame)
            if isinstance(owner, LoadedModules):
                owner.put[index] = value
            elif owner is os.environ and isinstance(index, str) and isinstance(value, str):
                self.evaluator.program.set_environment(index, value, frame.place(target))
            else:
                self._set_item(owner, index, value, frame.place(target))
        elif isinstance(target, ast.Attribute) and target.attr in ("__name__", "__qualname__"):
            owner = self.evaluator.evaluate(target.value, frame)
            if not is_aggregate(owner):
                raise Undetermined("a value is changed after it was made", frame.place(target))
            setattr(owner, target.attr, value)
        elif isinstance(target, ast.Attribute):
            reason, place = f"{ast.unparse(target)} is set after it was made", frame.place(target)
            self.evaluator.program.effects.spoil(self.evaluator.evaluate(target.value, frame), reason, place)
            raise Undetermined(reason, place)
        else:
            raise Undetermined("this assignment is not evaluated statically", frame.place(target))

    def _loop(self, node: ast.For | ast.While, frame: Frame) -> Any:
        if isinstance(node, ast.For):
            source = self.evaluator.evaluate(node.iter, frame)
            if isinstance(source, (list, enumerate, zip, reversed)):  # of a list that the loop itself may lengthen
                items = itertools.islice(iter(source), _MAX_LOOP)
            else:
                items = iter(self.evaluator.iterate(source, frame.place(node.iter)))
        else:
            items = iter(range(_MAX_LOOP))
        for item in items:
            if isinstance(node, ast.For):
                self.assign(node.target, item, frame)
            elif not self.evaluator.truth(node.test, frame):
                break
            elif item == _MAX_LOOP - 1:
                raise Undetermined("the loop runs for too long", frame.place(node))
            try:
                result = self._block(node.body, frame)
            except _Break:
                return _NOTHING
            except _Continue:
                continue
            if result is not _NOTHING:
                return result
        return self._block(node.orelse, frame)

    def _try(self, node: ast.Try, frame: Frame) -> Any:
        try:
            result = self._handled(node, frame)
        except (_Break, _Continue, Raised):
            final = self._block(node.finalbody, frame)
            if final is not _NOTHING:
                return final
            raise
        final = self._block(node.finalbody, frame)
        return result if final is _NOTHING else final

    def _handled(self, node: ast.Try, frame: Frame) -> Any:
        try:
            result = self._block(node.body, frame)
        except Raised as error:
            number = catcher(node.handlers, error.error)
            if number is None:
                raise Undetermined(f"which handler takes it is not known: {error.reason}", frame.place(node)) from None
            if number == -1:
                raise
            handler = node.handlers[number]
            if handler.name:
                frame.locals[handler.name] = HostName(handler.name)
            result = self._block(handler.body, frame)
        else:
            if result is _NOTHING:
                result = self._block(node.orelse, frame)
        return result

    def bind_imports(self, node: ast.Import | ast.ImportFrom, frame: Frame) -> None:
        program = self.evaluator.program
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                frame.locals[alias.asname or alias.name] = program.import_from(node, alias.name, frame)
            else:
                module = program.import_module(alias.name)
                name = alias.asname or alias.name.partition(".")[0]
                frame.locals[name] = module if alias.asname else program.import_module(name)

    def raise_(self, node: ast.Raise, frame: Frame) -> None:
        """Raises: Raised, of `UserError` for a kind that is not Python's own."""
        call = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        try:
            kind = self.evaluator.evaluate(call, frame) if call is not None else None
        except NoValue:
            kind = None
        known = isinstance(kind, type) and issubclass(kind, Exception)
        raise Raised((kind if known else UserError)("raised by the host program"), frame.place(node))
