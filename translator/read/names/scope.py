"""Names of a module, class or function body, looked up without running it.

The value of a name is that of its last binding whose conditions hold. Conditions are evaluated as far as they can be;
where two bindings stay possible, the name is undetermined and the condition is named.
"""

from __future__ import annotations

import ast
import builtins
import functools
from types import ModuleType
from typing import Any, Protocol

from gluonize.read.files.by_path import LoadedModules
from gluonize.read.names.binding_kinds import (
    catcher,
    catches,
    imports_triton,
    is_equal,
    line_of,
    only_raises,
    shortened,
)
from gluonize.read.names.bindings import Binding, Guard, index_bindings
from gluonize.read.names.effects import Effects
from gluonize.read.unresolved import NoValue, Place, Raised, Undetermined

_EVALUATING = object()


# What the reason begins with where a `try` statement ends in an exception that no handler of its certainly takes.
RAISES = "it raises "


class ProgramOfScope(Protocol):
    """What a scope asks of the program that it is part of."""

    overrides: dict[str, Any]
    loaded: LoadedModules
    effects: Effects
    evaluator: Any
    entry: str
    imported_files: tuple[str, ...]
    files_around: dict[str, tuple[str, ...]]
    environment: dict[str, str]

    def spoil_changed(self, node: ast.AST, scope: Scope | Frame, reason: str, place: Place) -> None: ...
    def set_environment(self, name: str, value: str, place: Place) -> None: ...
    def check_others(self, scope: Scope, name: str, value: Any) -> None: ...
    def run_body(self, scope: Scope) -> Any: ...
    def collect(self) -> list[str]: ...
    def collected(self) -> list[str]: ...
    def note(self, text: str) -> None: ...
    def override(self, key: str) -> Any: ...
    def evaluate(self, node: ast.expr, scope: Scope | Frame, before: float | None = None) -> Any: ...
    def truth(self, node: ast.expr, scope: Scope | Frame, before: float | None = None) -> bool: ...
    def bind(self, binding: Binding, scope: Scope) -> Any: ...
    def member(self, scope: Scope, name: str) -> Any: ...
    def import_module(self, name: str) -> Any: ...
    def module_at(self, path: str) -> Scope: ...
    def import_from(self, node: ast.ImportFrom, name: str, scope: Scope | Frame) -> Any: ...
    def attempt_import(self, node: ast.Import | ast.ImportFrom, scope: Scope | Frame) -> None: ...
    def absolute_name(self, node: ast.ImportFrom, scope: Scope | Frame) -> str: ...
    def star_exports(self, scope: Scope, binding: Binding, name: str) -> bool: ...
    def taken_by(self, node: ast.With, scope: Scope | Frame) -> tuple[ast.expr, ...] | None: ...


class Scope:
    """The body of a module (`kind` "module"), class or function in file `path`.

    `module` is the dotted module name, `qualname` what stands before the names in it (`f.<locals>` inside `f`, empty in a
    module), `namespace` the synthetic module whose `__dict__` is the globals of the functions that are built from here.
    """

    def __init__(
        self, program: ProgramOfScope, path: str, module: str, body: list[ast.stmt], *, kind: str = "module",
        qualname: str = "", parent: Scope | Frame | None = None, parameters: ast.arguments | None = None,
        package: str = "", folders: tuple[str, ...] = (),
    ):  # fmt: skip
        self.program, self.path, self.module, self.kind = program, path, module, kind
        self.qualname, self.parent, self.package, self.folders = qualname, parent, package, folders
        self.body = body
        self.bindings = index_bindings(body, parameters)
        self.namespace = ModuleType(module)
        self.namespace.__file__ = path
        self._values: dict[Any, Any] = {}
        self._notes: dict[Any, list[str]] = {}
        self._outcomes: dict[int, Any] = {}
        self._failed: dict[int, float] = {}
        self.ended: dict[int, Any] = {}  # what ended a `with` statement, and is not taken by it
        self._inner: dict[int, Scope] = {}
        self._run: Any = None  # what runs, or has run, the body
        self.now: float | None = None  # where it is; None before and after
        self.overlay: dict[str, Any] = {}  # what the statement that runs has bound so far
        self.called: dict[int, Any] = {}  # what the calls of the body gave when it ran
        self.defaults: dict[int, Any] = {}  # of the functions that are defined here, by their expressions

    @functools.cached_property
    def assigned_attributes(self) -> frozenset[str]:
        """The attributes, of anything, that are assigned to or deleted in it."""
        nodes = (node for statement in self.body for node in ast.walk(statement) if isinstance(node, ast.Attribute))
        return frozenset(node.attr for node in nodes if not isinstance(node.ctx, ast.Load))

    def place(self, node: ast.AST) -> Place:
        return Place.of(self.path, node)

    def lookup(self, name: str, before: float | None = None) -> Any:
        """The value of `name` here or in an enclosing scope; only bindings up to position `before` if that is given.

        Raises: Undetermined, or Raised(NameError) when nothing binds it.
        """
        try:
            return self.own(name, before)
        except KeyError:
            pass
        outer = self.parent
        while isinstance(outer, Scope) and outer.kind == "class":
            outer = outer.parent
        if outer is not None:
            return outer.lookup(name)
        if name == "__name__":
            return self.module
        if name == "__file__":
            return self.path
        if hasattr(builtins, name):
            self.program.effects.check(builtins)
            return getattr(builtins, name)
        raise Raised(NameError(f"name {name!r} is not defined in {self.module}"))

    def own(self, name: str, before: float | None = None) -> Any:
        """Like `lookup`, in this scope only. Raises KeyError when nothing here binds the name."""
        key = f"{self.module}:{self.qualname + '.' if self.qualname else ''}{name}"
        if key in self.program.overrides:
            return self.program.override(key)
        self.run()
        found = self.overlay[name] if name in self.overlay else self.value_of(self.select(name, before))
        return self.program.effects.check(found)

    def run(self) -> None:
        """Run the body in order, once: what names hold may depend on all of it."""
        if self._run is None:
            self._run = self.program.run_body(self)
            self.program.collect()
            try:
                self._run.run()
            finally:
                self.now = None
                self.program.collected()

    def right_side(self, node: Any) -> Any:
        """The value of an assignment, which all its targets share; evaluated once."""
        key = "value", id(node)
        if (known := self._values.get(key)) is None:
            self._values[key] = Undetermined("it depends on itself", self.place(node))
            try:
                known = (self.program.evaluate(node.value, self, self.bindings.positions.get(id(node))),)
            except NoValue as error:
                known = error
            self._values[key] = known
        if isinstance(known, NoValue):
            raise known
        return known[0]

    def keep(self, node: ast.AST, name: str, value: Any) -> None:
        """What a statement has bound a name to while it ran, or why that is not known."""
        self._values[id(node), name, ()] = value if isinstance(value, NoValue) else (value,)

    def select(self, name: str, before: float | None = None) -> Binding:
        """The binding of `name` that applies. Raises: KeyError when there is none, Undetermined when it cannot be told."""
        self.run()
        before = self.now if before is None else before
        binding = self._selected(name, before)
        if binding.kind not in ("import", "from", "star", "parameter"):
            for position, node, names in self.bindings.unknown:
                if binding.position < position and (before is None or position < before) and names.match(name):
                    if self._awaits_compilations(node):
                        continue
                    raise Undetermined(f"`{shortened(ast.unparse(node))}` may bind {name}", self.place(node))
        return binding

    def _awaits_compilations(self, node: ast.AST) -> bool:
        """`async_compile.wait(globals())` of a file that Inductor wrote: it binds names of what is being compiled, and those alone."""
        call = node.value if isinstance(node, ast.Expr) else None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "wait"):
            return False
        waiting = call.func.value
        made = self.bindings.by_name.get(waiting.id, ()) if isinstance(waiting, ast.Name) else ()
        values = {id(b.node): b.node.value for b in made if isinstance(b.node, ast.Assign)}
        maker = getattr(next(iter(values.values()), None), "func", None)
        if len(values) != 1 or any(b.kind not in ("assign", "run", "opaque") for b in made):
            return False
        sources = self.bindings.by_name.get(maker.id, ()) if isinstance(maker, ast.Name) else ()
        return len(sources) == 1 and getattr(sources[0].node, "module", "") == "torch._inductor.async_compile"

    def _selected(self, name: str, before: float | None) -> Binding:
        possible: list[tuple[Binding, Guard | None, str]] = []
        for binding in self._candidates(name, before):
            decided = self.holds(binding)
            if decided is False:
                continue
            if decided is True:
                possible.append((binding, None, ""))
                break
            possible.append((binding, *decided))
        if not possible:
            raise KeyError(name)
        binding, guard, reason = possible[0]
        if len(possible) > 1:
            return self._agreed(name, possible)
        if guard is not None:
            self.program.note(
                f"{self.path}:{line_of(binding)}: {name} is defined only under the condition at line {guard.node.lineno}, "
                f"which is taken to hold ({reason})"
            )
        return binding

    def _agreed(self, name: str, possible: list) -> Binding:
        """The binding to take when several stay possible: they must have the same value, or be the branches of a `try`
        of which only one can be evaluated. Where one imports from Triton and others stand in for it, Triton is there; so is a
        function where the others are functions that only raise. Raises: Undetermined."""
        imports = [binding for binding, _, _ in possible if imports_triton(binding)]
        if len(imports) == 1:
            self.program.note(
                f"{self.path}:{line_of(imports[0])}: {name} is taken to be Triton's, without which there are no kernels"
            )
            return imports[0]
        real = [binding for binding, _, _ in possible if not only_raises(binding.node)]
        if len(real) == 1:
            self.program.note(
                f"{self.path}:{line_of(real[0])}: {name} is taken to be there; the others that stand in for it only raise an exception"
            )
            return real[0]
        values, failures = [], []
        for binding, _, _ in possible:
            try:
                values.append((self.value_of(binding), binding))
            except NoValue as error:
                failures.append(error)
        _, guard, reason = possible[0]
        first = values[0][0] if values else None
        same = values and all(type(value) is type(first) and is_equal(value, first) for value, _ in values)
        if same and not failures:
            return values[0][1]
        if same and isinstance(guard.node, ast.Try):
            self.program.note(
                f"{self.path}:{guard.node.lineno}: of the branches that define {name}, the one that can be evaluated was taken"
            )
            return values[0][1]
        lines = ", ".join(str(line_of(binding)) for binding, _, _ in reversed(possible))
        is_try = isinstance(guard.node, ast.Try)
        test = (
            ast.unparse(guard.node.test)
            if isinstance(guard.node, ast.If)
            else f"the {'try' if is_try else 'with'} statement"
        )
        message = f"which definition of {name} applies (lines {lines} of {self.path}) depends on `{shortened(test)}`: {reason}"
        raise Undetermined(message, self.place(guard.node))

    def defines(self, name: str) -> bool:
        """Whether some binding of `name` could hold."""
        return any(self.holds(binding) is not False for binding in self._candidates(name, None))

    def public_names(self) -> frozenset[str] | None:
        """What `from this import *` binds if `__all__` says so and can be read, else None."""
        if "__all__" not in self.bindings.by_name:
            return None
        try:
            return frozenset(self.own("__all__"))
        except (*NoValue, KeyError, TypeError):
            return None

    def _candidates(self, name: str, before: float | None):
        """The bindings of `name`, last first; star imports count where their module exports the name."""
        own = self.bindings.by_name.get(name, [])
        if not self.bindings.stars:
            ordered = own
        else:
            ordered = sorted([*own, *self.bindings.stars], key=lambda b: b.position)
        for binding in reversed(ordered):
            if before is not None and binding.position > before:
                continue
            if binding.kind == "star" and not self.program.star_exports(self, binding, name):
                continue
            yield (
                binding
                if binding.kind != "star"
                else Binding(name, "star", binding.node, binding.position, binding.guards)
            )

    def holds(self, binding: Binding) -> Any:
        """True, False, or (guard, reason) when it cannot be told."""
        self.run()
        if binding.kind == "run" and (id(binding.node), binding.name, ()) not in self._values:
            return False
        unknown = None
        for guard in binding.guards:
            outcome = self._guard(guard, binding)
            if outcome is False:
                return False
            if outcome is not True and unknown is None:
                unknown = (guard, outcome)
        return True if unknown is None else unknown

    def outcome(self, node: ast.If | ast.Try | ast.With) -> tuple[str, str]:
        """The branch of a statement that runs, "" where it cannot be told, and the reason."""
        known = self._outcomes.get(id(node))
        if known is _EVALUATING:
            return "", "its condition depends on itself"
        if known is None:
            self._outcomes[id(node)] = _EVALUATING
            self.program.collect()
            try:
                find = self._if if isinstance(node, ast.If) else self._try if isinstance(node, ast.Try) else self._with
                known = find(node)  # type: ignore[arg-type]
            finally:
                self._notes[id(node)] = self.program.collected()
            self._outcomes[id(node)] = known
        for note in self._notes.get(id(node), ()):
            self.program.note(note)
        return known

    def _guard(self, guard: Guard, binding: Binding) -> Any:
        """True, False, or the reason why it cannot be told."""
        branch, reason = self.outcome(guard.node)
        if not branch:
            return reason
        if guard.branch == branch:
            return True
        if isinstance(guard.node, ast.If):
            return False
        if guard.branch == "body" and branch.startswith(("except", "end")):  # what was bound before it raised
            return binding.position <= self._failed.get(id(guard.node), 0)
        return branch == "body" and guard.branch == "else"

    def _if(self, node: ast.If) -> tuple[str, str]:
        try:
            holds = self.program.truth(node.test, self, self.bindings.positions.get(id(node)))
        except NoValue as error:
            return "", error.reason
        return ("then" if holds else "else"), ""

    def _try(self, node: ast.Try) -> tuple[str, str]:
        """Which branch of a try statement runs: its imports and assignments are tried, statically."""
        try:
            self._attempt(node)
        except Raised as error:
            number = catcher(node.handlers, error.error)
            return ("", f"{RAISES}{error.reason}") if number in (None, -1) else (f"except {number}", "")
        except Undetermined as error:
            return "", error.reason
        return "body", ""

    def _with(self, node: ast.With) -> tuple[str, str]:
        """ "body" where all in a `with` statement runs, "end" where something raises what the statement takes."""
        taken = self.program.taken_by(node, self)
        try:
            self._attempt(node)
        except NoValue as error:
            if taken == ():
                self.ended[id(node)] = error
            elif taken is None or isinstance(error, Undetermined):
                return "", error.reason
            else:
                found = catches(ast.Tuple([*taken], ast.Load()), error.error)
                if found is None:
                    return "", error.reason
                if found:
                    return "end", ""
                self.ended[id(node)] = error
        return "body", ""

    def _attempt(self, node: ast.Try | ast.With) -> None:
        try:
            self._run.attempt(node.body)
        except NoValue:
            self._failed[id(node)] = self._run.reached
            raise

    def value_of(self, binding: Binding) -> Any:
        """The value a binding gives; evaluated once."""
        key = id(binding.node), binding.name, binding.path
        known = self._values.get(key)
        if known is _EVALUATING:
            raise Undetermined(f"{binding.name} depends on itself", self.place(binding.node))
        if known is None:
            known = self._evaluated(key, binding)
        for note in self._notes.get(key, ()):
            self.program.note(note)
        if isinstance(known, NoValue):
            raise known
        return known[0]

    def _evaluated(self, key: Any, binding: Binding) -> Any:
        """The value of a binding, evaluated where it stands, in a tuple; or why it has none."""
        self._values[key] = _EVALUATING
        saved, self.now = self.now, self.bindings.positions.get(id(binding.node), self.now)
        self.program.collect()
        try:
            value = self.program.bind(binding, self)
            if hasattr(type(value), "__next__"):
                raise Undetermined(
                    "an iterator is kept, which is used up by what runs in between", self.place(binding.node)
                )
            self._values[key] = (value,)
        except NoValue as error:
            if error.place is None:
                error.place = self.place(binding.node)
            self._values[key] = error
        finally:
            self.now = saved
            self._notes[key] = self.program.collected()
        return self._values[key]

    def inside(self, node: ast.AST) -> Scope:
        """The body of a function or class that is defined here."""
        key = id(node)
        if key not in self._inner:
            inner = f"{self.qualname}.{node.name}" if self.qualname else node.name  # type: ignore[attr-defined]
            if isinstance(node, ast.ClassDef):
                kind, parameters = "class", None
            else:
                assert isinstance(node, ast.FunctionDef)
                kind, parameters, inner = "function", node.args, f"{inner}.<locals>"
            self._inner[key] = Scope(
                self.program, self.path, self.module, node.body, kind=kind, qualname=inner, parent=self,
                parameters=parameters,
            )  # fmt: skip
        return self._inner[key]


class Frame:
    """The local names of a host function while it is interpreted; `scope` is where it was defined."""

    is_body = False  # of a module or class, whose own names its locals are

    def __init__(self, scope: Scope | Frame, path: str, module: str, qualname: str, is_comprehension: bool = False):
        self.is_comprehension = is_comprehension
        self.outer, self.path, self.module, self.qualname = scope, path, module, qualname
        self.program: ProgramOfScope = scope.program
        self.locals: dict[str, Any] = {}
        self.globals: set[str] = set()
        self.defaults: dict[int, Any] = {}
        self.namespace = ModuleType(module)
        self.namespace.__file__ = path

    def place(self, node: ast.AST) -> Place:
        return Place.of(self.path, node)

    def lookup(self, name: str, before: float | None = None) -> Any:
        if name in self.locals and name not in self.globals:
            return self.program.effects.check(self.locals[name])
        outer: Scope | Frame | None = self.outer
        while isinstance(outer, Scope) and outer.kind == "class":
            outer = outer.parent
        assert outer is not None, "a function is defined in a module"
        return outer.lookup(name)
