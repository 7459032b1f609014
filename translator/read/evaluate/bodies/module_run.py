"""A body (of a module, a class, a function) run in order, for what its statements do to names and objects.

What a name is bound to is looked up by its bindings (`scope.py`); here they are evaluated in the order in which Python binds them, and
loops, calls and assignments to items have their effects in between. A statement that cannot be followed leaves what it may
have changed unknown, and nothing else.
"""

from __future__ import annotations

import ast
import itertools
import os
from types import ModuleType
from typing import Any

from gluonize.read.evaluate.bodies.changes import changes, decorator_name
from gluonize.read.evaluate.bodies.defaults import is_same_later
from gluonize.read.evaluate.host_objects import UserClass, UserFunction
from gluonize.read.evaluate.host_values import HostName
from gluonize.read.files.environment import names_asked
from gluonize.read.names.bindings import Binding, names_by_text, names_of_own_module, statements_in
from gluonize.read.names.effects import parts
from gluonize.read.names.scope import RAISES, Frame, Scope
from gluonize.read.unresolved import NoValue, Place, Raised, Undetermined
from gluonize.triton_api.jit_functions import JITCallable
from gluonize.triton_api.language import core

_JIT = ("jit", "constexpr_function", "builtin", "extern", "aggregate", "autotune", "heuristics")


class BodyFrame(Frame):
    """The names of a body while one of its statements runs."""

    is_body = True

    def __init__(self, scope: Scope):
        super().__init__(scope, scope.path, scope.module, scope.qualname)
        self.locals = scope.overlay
        self.namespace = scope.namespace

    def lookup(self, name: str, before: float | None = None) -> Any:
        return self.outer.lookup(name)


class BodyRun:
    """One run of a scope's body."""

    def __init__(self, scope: Scope):
        self.scope, self.program = scope, scope.program
        self.effects = scope.program.effects
        self.frame = BodyFrame(scope)
        self.done: set[int] = set()
        self.attempts = 0  # statements around what runs that may take what it raises
        self.reached: float = 0  # the last position that was reached in an attempt
        self.bound: dict[int, list[Binding]] = {}
        for found in scope.bindings.by_name.values():
            for binding in found:
                self.bound.setdefault(id(binding.node), []).append(binding)

    def run(self) -> None:
        with self.effects.body():
            self._block(self.scope.body)

    def _block(self, statements: list[ast.stmt]) -> None:
        """Run statements. What one of them may have changed that fails is unknown then; what it certainly raises is raised where a `try` or
        a `with` may take it. Of what is not known it is taken that it raises nothing."""
        for statement in statements:
            try:
                self.statement(statement)
            except Raised:
                if self.attempts:
                    raise
            except NoValue:
                pass

    def attempt(self, statements: list[ast.stmt]) -> None:
        """Run statements up to the first that fails. Raises: what that one raises."""
        self.attempts += 1
        try:
            for statement in statements:
                self.reached = self.scope.bindings.positions.get(id(statement), 0)
                if isinstance(statement, (ast.Import, ast.ImportFrom)):
                    self.program.attempt_import(statement, self.scope)
                else:
                    self.statement(statement)
                if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                    self._check_definition(statement)
        finally:
            self.attempts -= 1

    def _check_definition(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        """Raises: Raised where a default, a base, a decorator or the body of a class certainly does."""
        parts: list[ast.expr] = [mark for mark in node.decorator_list if not _is_jit(mark)]
        if isinstance(node, ast.ClassDef):
            parts += node.bases
        else:
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if isinstance(failure := self.scope.defaults.get(id(default)), Raised):
                    raise failure
        names = [inner for part in parts for inner in ast.walk(part) if isinstance(inner, ast.Name)]
        for name in names:
            self._raises(name)
        for binding in self.bound.get(id(node), ()):
            if binding.kind == "def" and parts:
                found = self.scope.value_of(binding)
                if isinstance(found, UserFunction) and found.raised is not None:
                    raise found.raised
            inner = self.scope.inside(node) if binding.kind == "class" else None
            for bound in itertools.chain(*inner.bindings.by_name.values()) if inner is not None else ():
                if bound.kind == "assign" and not bound.guards:
                    try:
                        inner.value_of(bound)
                    except Undetermined:
                        pass

    def statement(self, node: ast.stmt) -> None:
        """Run a statement, once. Raises: Undetermined, Raised, when what it may have changed has been spoiled."""
        if id(node) in self.done:
            return
        self.done.add(id(node))
        saved = self.scope.now
        self.scope.now = self.scope.bindings.positions.get(id(node), saved)
        if self.attempts:
            self.reached = self.scope.now or 0
        try:
            self._statement(node)
        except NoValue as error:
            self._failed(node, error)
            raise
        except RecursionError:
            error = Undetermined("it is nested too deeply", self.scope.place(node))
            self._failed(node, error)
            raise error from None
        finally:
            self._keep(node)
            self.scope.now = saved

    def _statement(self, node: ast.stmt) -> None:
        scope = self.scope
        if isinstance(node, ast.FunctionDef):
            self._function(node)
        elif isinstance(node, ast.ClassDef):
            self._class(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._assign(node)
        elif isinstance(node, ast.If):
            outcome, _ = scope.outcome(node)
            self._keep(node)  # what `:=` binds in the condition
            self._branches({"then": node.body, "else": node.orelse}, outcome)
            if self.attempts and not outcome:
                self._raises(node.test)
        elif isinstance(node, ast.Try):
            outcome, reason = scope.outcome(node)
            handlers = {f"except {number}": handler.body for number, handler in enumerate(node.handlers)}
            if outcome == "body":
                self._block([*node.body, *node.orelse])
            else:
                self._branches(
                    {"body": [s for s in node.body if not outcome], "else": [] if outcome else node.orelse, **handlers},
                    outcome,
                )
            self._block(node.finalbody)
            if self.attempts and not outcome and reason.startswith(RAISES):
                raise Undetermined(reason, scope.place(node))
        elif isinstance(node, ast.With):
            self._with(node)
        elif isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):
                scope.program.evaluate(node.value, scope, scope.now)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, (ast.Subscript, ast.Attribute)):
                    self._interpret(ast.copy_location(ast.Delete([target]), node))
                elif self.attempts:
                    self._raises(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            if self.attempts:
                self.program.attempt_import(node, scope)
        elif isinstance(node, ast.Raise):
            if self.attempts:
                self.program.evaluator.calls.interpreter.raise_(node, self.frame)
        elif not isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal, ast.Return)):
            self._interpret(node)

    def _with(self, node: ast.With) -> None:
        failure: Undetermined | Raised | None = None
        for item in node.items:
            try:
                self.program.evaluate(item.context_expr, self.scope, self.scope.now)
            except NoValue as error:
                failure = failure or error
        self._keep(node)
        outcome, _ = self.scope.outcome(node)
        if outcome == "body":
            self._block(node.body)
        elif not outcome:
            with self.effects.unsure():
                self._block(node.body)
        failure = self.scope.ended.get(id(node), failure)
        if failure is not None and self.attempts:
            raise failure

    def _interpret(self, node: ast.stmt) -> None:
        self.program.evaluator.calls.interpreter.statement(node, self.frame)

    def _branches(self, branches: dict[str, list[ast.stmt]], outcome: str) -> None:
        if outcome:
            return self._block(branches.get(outcome, []))
        failure: Raised | None = None
        with self.effects.unsure():
            for statements in branches.values():
                try:
                    self._block(statements)
                except Raised as error:
                    failure = failure or error
        if failure is not None:
            raise Undetermined(failure.reason, failure.place)
        return None

    def _raises(self, test: ast.expr) -> None:
        """Raises: Raised where the evaluation of a condition certainly does."""
        try:
            self.program.truth(test, self.scope, self.scope.now)
        except Undetermined:
            pass

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        """Evaluate what names are bound to; set items and attributes."""
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, (ast.Tuple, ast.List)) and self.attempts:
                self._check_number(target, node)
        failure: Undetermined | Raised | None = None
        for binding in self.bound.get(id(node), ()):
            if binding.kind in ("assign", "augmented"):
                try:
                    self.scope.value_of(binding)
                except NoValue as error:
                    failure = failure or error
        if failure is not None:
            raise failure
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if isinstance(node, ast.AugAssign):
            if not isinstance(node.target, ast.Name):
                self._interpret(node)
        elif node.value is not None:
            for target in targets:
                if any(
                    isinstance(n, (ast.Subscript, ast.Attribute)) and not isinstance(n.ctx, ast.Load)
                    for n in ast.walk(target)
                ):
                    value = self.scope.right_side(node)
                    self.program.evaluator.calls.interpreter.assign(target, value, self.frame)

    def _check_number(self, target: ast.Tuple | ast.List, node: ast.Assign) -> None:
        """Raises: Raised where there are more, or fewer, values than names."""
        place = self.scope.place(node)
        number = len(self.program.evaluator.iterate(self.scope.right_side(node), place))
        stars = sum(isinstance(item, ast.Starred) for item in target.elts)
        if number < len(target.elts) - stars or (number > len(target.elts) and not stars):
            raise Raised(ValueError("the number of values to unpack differs"), place)

    def _function(self, node: ast.FunctionDef) -> None:
        """Bind the defaults; have decorators that are not the compiler's do what they do."""
        scope = self.scope
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None and not isinstance(default, ast.Constant) and not is_same_later(default, scope):
                try:
                    scope.defaults[id(default)] = self.effects.check(scope.program.evaluate(default, scope, scope.now))
                except NoValue as error:
                    scope.defaults[id(default)] = error
        if not node.decorator_list:
            return
        if not any(_is_jit(decorator) for decorator in node.decorator_list):
            for binding in self.bound.get(id(node), ()):
                if binding.kind == "def":
                    self.scope.value_of(binding)
            return
        for decorator in node.decorator_list:
            if not _is_jit(decorator):
                self._spoil_call(decorator, [])

    def _class(self, node: ast.ClassDef) -> None:
        if any(_is_jit(decorator) for decorator in node.decorator_list):
            return
        for binding in self.bound.get(id(node), ()):
            if binding.kind != "class":
                continue
            value = self.scope.value_of(binding)
            if not isinstance(value, UserClass):
                continue
            value.scope.run()
            for base in [*node.bases, *(keyword.value for keyword in node.keywords)]:
                self._spoil_class(base, value)
            for decorator in node.decorator_list:
                self._decorated(decorator, value)

    def _spoil_class(self, base: ast.expr, made: UserClass) -> None:
        """What a base with a hook for its subclasses, or a metaclass, may change."""
        try:
            value = self.program.evaluate(base, self.scope, self.scope.now)
        except NoValue:
            return
        if isinstance(value, UserClass):
            hooks = [s for s in value.node.body if isinstance(s, ast.FunctionDef)]
            for hook in hooks:
                if hook.name in ("__init_subclass__", "__new__", "__init__", "__call__", "__prepare__", "__set_name__"):
                    spoil(
                        self.program,
                        UserFunction(hook, value.scope),
                        "a class is derived from it",
                        self.scope.place(base),
                    )

    def _decorated(self, decorator: ast.expr, made: UserClass) -> None:
        try:
            value = self.program.evaluate(decorator, self.scope, self.scope.now)
        except NoValue:
            value = None
        if isinstance(value, (UserFunction, UserClass)):
            place = self.scope.place(decorator)
            spoil(self.program, value, f"@{ast.unparse(decorator)} may change it", place)
            spoil(self.program, made, f"@{ast.unparse(decorator)} may change it", place)

    # --- what a statement leaves

    def _keep(self, node: ast.stmt) -> None:
        """Bind the names that the statement has bound while it ran."""
        for name, value in [*self.scope.overlay.items()]:
            self._bind(node, name, value)
        self.scope.overlay.clear()

    def _bind(self, node: ast.stmt, name: str, value: Any) -> None:
        scope = self.scope
        if not any(b.node is node and b.kind == "run" for b in scope.bindings.by_name.get(name, ())):
            scope.bindings.put(Binding(name, "run", node, (scope.now or 0) + 0.5))
        scope.keep(node, name, value)

    def _failed(self, node: ast.stmt, error: Undetermined | Raised) -> None:
        """Forget what a statement may have changed that could not be followed."""
        place = error.place or self.scope.place(node)
        unknown = Undetermined(error.reason, place)
        self.scope.overlay.clear()
        for binding in self.bound.get(id(node), ()):
            if binding.kind == "run":
                self.scope.keep(node, binding.name, unknown)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for decorator in node.decorator_list:
                self._spoil_call(decorator, [])
        elif not isinstance(node, (ast.If, ast.Try)):
            self.program.spoil_changed(node, self.frame, error.reason, place)

    def _spoil_call(self, decorator: ast.expr, given: list) -> None:
        place = self.scope.place(decorator)
        reason = f"@{ast.unparse(decorator)} may change it"
        for name in (n.id for n in ast.walk(decorator) if isinstance(n, ast.Name)):
            try:
                spoil(self.program, self.scope.lookup(name), reason, place)
            except NoValue:
                pass


def _is_jit(decorator: ast.expr) -> bool:
    return decorator_name(decorator) in _JIT


def spoil_changed(program: Any, node: ast.AST, scope: Scope | Frame, reason: str, place: Place) -> None:
    """Forget the objects that a piece of code may change, directly or by what it calls."""
    found = changes(node)
    for name in (*found.changed, *found.called):
        try:
            value = scope.lookup(name)
        except NoValue:
            continue
        if name in found.changed and value is os:
            program.forget_environment(names_asked(node), reason, place)
        if name in found.changed or isinstance(value, (UserFunction, UserClass)):
            spoil(program, value, reason, place)
    _spoil_names(node, scope, reason, place)


def spoil(program: Any, value: Any, reason: str, place: Place, seen: set[int] | None = None) -> None:
    """Forget what an object holds, what those in it hold, and what a function or class may change when it is called."""
    seen = set() if seen is None else seen
    for part in parts(value):
        if id(part) in seen or isinstance(part, (Scope, ModuleType, HostName, JITCallable)):
            continue  # of a module of the host's nothing is known that could change
        seen.add(id(part))
        if isinstance(part, UserFunction):
            _spoil_function(program, part, reason, place, seen)
        elif isinstance(part, UserClass):
            for inner in part.node.body:
                if isinstance(inner, ast.FunctionDef):
                    _spoil_function(program, UserFunction(inner, part.scope), reason, place, seen)
            for name in part.scope.bindings.by_name:
                try:
                    spoil(program, part.scope.own(name), reason, place, seen)
                except (*NoValue, KeyError):
                    pass
            program.effects.spoil(part, reason, place)
        elif not _is_the_compilers(part):
            program.effects.spoil(part, reason, place)


def _is_the_compilers(value: Any) -> bool:
    """Functions and types of Triton's and Python's own, which nobody changes by being handed them."""
    module = str(getattr(value, "__module__", "") or "")
    return callable(value) and not isinstance(value, core.constexpr) and not module.startswith("_fake")


def _spoil_function(program: Any, function: UserFunction, reason: str, place: Place, seen: set[int]) -> None:
    if id(function.node) in seen:
        return
    seen.add(id(function.node))
    found = changes(function.node)
    for held in function.held.values():
        spoil(program, held, reason, place, seen)
    for name in (*found.changed, *found.called):
        try:
            value = function.scope.lookup(name)
        except NoValue:
            continue
        if name in found.changed or isinstance(value, (UserFunction, UserClass)):
            spoil(program, value, reason, place, seen)
    _spoil_names(function.node, function.scope, reason, place)


def _spoil_names(node: ast.AST, scope: Scope | Frame, reason: str, place: Place) -> None:
    """Forget the global names that functions in a piece of code declare as theirs."""
    home: Any = scope
    while isinstance(home, Frame) or home.kind != "module":
        home = home.outer if isinstance(home, Frame) else home.parent
    if home.now is None:
        return
    names = {name for inner in ast.walk(node) if isinstance(inner, ast.Global) for name in inner.names}
    for name in sorted(names):
        binding = Binding(name, "run", node, home.now + 0.5)
        home.bindings.put(binding)
        home.keep(node, name, Undetermined(reason, place))
    inside = [*statements_in(node)] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
    own = names_of_own_module(home.body) | names_of_own_module(inside) if inside else frozenset()
    for statement in inside:
        for names in names_by_text(statement, own, needs_module=True):
            home.bindings.unknown.append((home.now + 0.5, statement, names))


__all__ = ["BodyRun", "spoil", "spoil_changed"]
