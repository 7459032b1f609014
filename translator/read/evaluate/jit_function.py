"""Jit functions made from their definitions alone.

Only the `def` itself is executed, without its decorators, annotations and defaults (those are evaluated statically), in a
synthetic module whose globals hold just what the function mentions. `compile` keeps file name and line numbers, so that
Triton finds the source text and its locations are the user's.
"""

from __future__ import annotations

import ast
import builtins
import collections
import copy
import enum
import sys
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

from gluonize.diagnostics import Diagnostic
from gluonize.read.evaluate.bodies.defaults import bound_defaults, default_value
from gluonize.read.evaluate.bodies.late_binding import check_late
from gluonize.read.evaluate.evaluation import Evaluation
from gluonize.read.evaluate.host_objects import UserClass, UserFunction, record_class, record_fields
from gluonize.read.evaluate.host_values import HostName
from gluonize.read.evaluate.unresolved_names import UnresolvedDefault, refusal_of
from gluonize.read.names.effects import parts
from gluonize.read.names.reached import Reached, all_arguments, describe, dotted_parts, mentioned_names, names_in_body
from gluonize.read.names.renamed import as_today
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import NoValue, Place, Raised, Undetermined
from gluonize.triton_api.gluon_language import gluon
from gluonize.triton_api.jit_functions import JITCallable, JITFunction
from gluonize.triton_api.language import core
from gluonize.triton_api.package import triton

# What stands in a jit function's module for a module of the host's that it mentions.


def host_placeholder(value: HostName, chains: list[ast.Attribute], before: Any) -> Any:
    """What stands for `torch` where an annotation says `torch.Tensor`, or a kernel `OUT == torch.bfloat16`.

    before: what stands for it already, for another function of the file.
    """
    module = before if isinstance(before, ModuleType) else ModuleType(value.dotted)
    for node in chains:
        name = dotted_parts(node)[1]
        dtype = HostName.of_dtype(name) if value.dotted == "torch" else None
        setattr(module, name, dtype or HostName(".".join([value.dotted, *dotted_parts(node)[1:]])))
    return module


def only_dtypes(value: HostName, chains: list[ast.Attribute]) -> bool:
    """Whether all that is asked of torch is element types."""
    names = [dotted_parts(node)[1:] for node in chains]
    return value.dotted == "torch" and bool(names) and all(len(n) == 1 and HostName.of_dtype(n[0]) for n in names)


# The arguments of triton.jit that matter to compilation; `repr` and `launch_metadata` are host code.
JIT_OPTIONS = ("version", "do_not_specialize", "do_not_specialize_on_alignment", "debug", "noinline")
GIVE_IT = 'give it in the launch\'s "globals" or use --import'
_PLAIN = (bool, int, float, str, bytes, tuple, core.constexpr, core.dtype)


@contextmanager
def _known_as(name: str, module: ModuleType) -> Iterator[None]:
    """While active, a module can be found by its name, where no other one can: annotations that are strings are resolved in it."""
    known = sys.modules.setdefault(name, module)
    try:
        yield
    finally:
        if known is module:
            del sys.modules[name]


_AGGREGATES = tuple(f for f in (getattr(core, "_aggregate", None), getattr(core, "aggregate", None)) if f is not None)


class JitBuilder:
    def __init__(self, evaluator: Evaluation):
        self.evaluator = evaluator
        self.program = evaluator.program
        self.built: dict[tuple[int, int], JITCallable] = {}
        self.reached: list[Reached] = []
        self.unresolved: dict[tuple[str, str], Diagnostic] = {}
        self._pending: list[tuple[ast.AST, Scope | Frame, str, bool]] = []
        self._kept: dict[int, tuple[Any, tuple[ast.AST, Scope | Frame, str, bool]]] = {}  # built, and not asked for yet
        self._filling = False
        self.definitions: list[tuple[ast.AST, Scope | Frame]] = []  # kept: `built` knows them by id

    # --- definitions

    def define(self, node: ast.FunctionDef, scope: Scope | Frame) -> Any:
        """What `def` gives its name once its decorators have been applied, as far as they are understood."""
        value: Any = UserFunction(node, scope, held=bound_defaults(self.evaluator, node.args, scope))
        before = scope.bindings.positions.get(id(node)) if isinstance(scope, Scope) else None
        for decorator in reversed(node.decorator_list):
            place = scope.place(decorator)
            try:
                maker = self.evaluator.evaluate(decorator, scope, before)
                new = self.evaluator.calls.apply(maker, [value], {}, place)
            except NoValue as error:
                new, reason, failure = None, error.reason, error
            else:
                failure = None
                reason = f"it gives a {type(new).__name__}"
            if isinstance(new, (JITCallable, UserFunction)) or core.is_builtin(new) or _is_wrapped(new):
                value = new
            elif isinstance(new, _PLAIN):
                value = new
            elif isinstance(value, UserFunction):
                value = replace(
                    value,
                    unusable=f"decorator @{_text(decorator)} of {node.name} is not understood: {reason}",
                    raised=failure if isinstance(failure, Raised) else value.raised,
                )
            else:
                self.program.note(
                    f"{scope.path}:{decorator.lineno}: decorator @{_text(decorator)} of {node.name} was looked through: {reason}"
                )
        return value

    def jit(self, function: UserFunction, is_gluon: bool, options: dict[str, Any], place: Place) -> JITFunction:
        """`triton.jit(function, **options)`; built once per definition and scope."""
        kept = {name: value for name, value in options.items() if name in JIT_OPTIONS}
        maker = gluon.jit if is_gluon else triton.jit
        if is_gluon:
            kept.pop("do_not_specialize_on_alignment", None)
        return self._build(function, lambda fn: maker(fn, **kept) if kept else maker(fn), python=False)

    def is_decorated(self, value: Any) -> bool:
        """Whether a jit function has decorators around `@triton.jit`."""
        if not isinstance(value, JITFunction):
            return False
        made = (node for node, scope in self.definitions if self.built[id(node), id(scope)] is value)
        return any(len(getattr(node, "decorator_list", ())) > 1 for node in made)

    def kernel_side(self, function: UserFunction, maker: Any) -> Any:
        """`constexpr_function`, `builtin`, `extern`, `tl.constexpr` of a user's function: Triton runs it while tracing."""
        return self._build(function, maker, python=True)

    def _build(self, function: UserFunction, maker: Any, python: bool) -> Any:
        node, scope = function.node, function.scope
        if not isinstance(node, ast.FunctionDef):
            raise Undetermined("a jit function must be a def", scope.place(node))
        key = id(node), id(scope)
        if key in self.built:
            return self.built[key]
        fn = self._bare_function(node, scope, function.qualname, function.held)
        try:
            result = maker(fn)
        except (TypeError, ValueError, AttributeError, OSError) as error:
            raise Raised(error, scope.place(node)) from None
        self.built[key] = result
        self.definitions.append((node, scope))
        self._kept[id(result)] = result, (node, scope, f"{scope.module}:{function.qualname}", python)
        return result

    def want(self, value: Any) -> None:
        """Have `fill` give a function, or those in a value, the names that it mentions."""
        for part in parts(value):
            inner = part.value if isinstance(part, core.constexpr) else part
            for found in (part, inner):
                if (kept := self._kept.pop(id(found), None)) is not None:
                    self._pending.append(kept[1])
            if inner is not part and isinstance(inner, (tuple, list, dict)):
                self.want(inner)

    def _bare_function(
        self, node: ast.FunctionDef, scope: Scope | Frame, qualname: str, held: dict[int, Any]
    ) -> FunctionType:
        """The Python function of a `def`, with its defaults and annotations evaluated statically."""
        spec = node.args
        plain = [ast.arg(arg.arg, None, lineno=arg.lineno, col_offset=arg.col_offset) for arg in all_arguments(spec)]
        names = {arg.arg: arg for arg in plain}
        args = ast.arguments(
            posonlyargs=[names[a.arg] for a in spec.posonlyargs],
            args=[names[a.arg] for a in spec.args],
            vararg=names[spec.vararg.arg] if spec.vararg else None,
            kwonlyargs=[names[a.arg] for a in spec.kwonlyargs],
            kw_defaults=[None] * len(spec.kwonlyargs),
            kwarg=names[spec.kwarg.arg] if spec.kwarg else None,
            defaults=[],
        )
        bare = ast.FunctionDef(name=node.name, args=args, body=node.body, decorator_list=[], returns=None)
        if "type_params" in node._fields:
            bare.type_params = []
        ast.copy_location(bare, node)
        module = ast.fix_missing_locations(ast.Module([bare], []))
        namespace = scope.namespace.__dict__
        hidden = namespace.get(node.name, _ABSENT)
        exec(
            compile(module, scope.path, "exec", dont_inherit=True), namespace
        )  # defines the function, runs nothing of it
        fn = namespace.pop(node.name)
        if hidden is not _ABSENT:
            namespace[node.name] = hidden
        fn.__qualname__ = qualname
        fn.__defaults__ = tuple(self._default(value, scope, held) for value in spec.defaults) or None
        kwonly = zip(spec.kwonlyargs, spec.kw_defaults)
        fn.__kwdefaults__ = {
            arg.arg: self._default(value, scope, held) for arg, value in kwonly if value is not None
        } or None
        fn.__annotations__ = {
            a.arg: self._annotation(a.annotation, scope) for a in all_arguments(spec) if a.annotation is not None
        }
        return fn

    def _default(self, node: ast.expr, scope: Scope | Frame, held: dict[int, Any]) -> Any:
        try:
            return self.evaluator.program.effects.check_deep(default_value(self.evaluator, node, held, scope))
        except NoValue as error:
            return UnresolvedDefault(ast.unparse(node), self._diagnostic(ast.unparse(node), scope.place(node), error))

    def _annotation(self, node: ast.expr, scope: Scope | Frame) -> Any:
        """Triton takes an annotation as the object or as its text."""
        try:
            value = self.evaluator.evaluate(node, scope)
        except NoValue:
            return ast.unparse(node)
        return ast.unparse(node) if isinstance(value, (HostName, UserClass, UserFunction, Scope)) else value

    def define_class(self, node: ast.ClassDef, scope: Scope | Frame) -> Any:
        """Enums, named tuples, plain records and Triton aggregates become real classes; any other class a `UserClass`."""
        decorators = [self._quiet(decorator, scope) for decorator in node.decorator_list]
        bases = [self._quiet(base, scope) for base in node.bases]
        qualname = f"{scope.qualname}.{node.name}" if scope.qualname else node.name
        body = Scope(self.program, scope.path, scope.module, node.body, kind="class", qualname=qualname, parent=scope)
        if any(decorator in _AGGREGATES for decorator in decorators if callable(decorator)):
            return self._aggregate(node, scope)
        fields = [s for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
        if typing.NamedTuple in bases:
            defaults = [self.evaluator.evaluate(s.value, scope) for s in fields if s.value is not None]
            return collections.namedtuple(node.name, [s.target.id for s in fields], defaults=defaults, module=scope.module)  # type: ignore[union-attr]
        enums = [base for base in bases if isinstance(base, type) and issubclass(base, enum.Enum)]
        if enums:
            names = [
                n for n, found in body.bindings.by_name.items() if found[-1].kind == "assign" and not n.startswith("_")
            ]
            members = [(name, body.own(name)) for name in names]
            return self.evaluator.guarded(enums[0], node.name, members, module=scope.module, place=scope.place(node))
        if (kept := record_fields(node)) is not None:
            return record_class(node.name, kept, scope.module)
        return UserClass(node, body)

    def _quiet(self, node: ast.expr, scope: Scope | Frame) -> Any:
        try:
            return self.evaluator.evaluate(node, scope)
        except NoValue:
            return None

    def _aggregate(self, node: ast.ClassDef, scope: Scope | Frame) -> Any:
        """`@aggregate class`: its methods are kernel-side code; the class statement itself is executed."""
        for statement in node.body:
            if not isinstance(statement, (ast.AnnAssign, ast.Assign, ast.FunctionDef, ast.Expr, ast.Pass)):
                raise Undetermined(
                    f"a {type(statement).__name__.lower()} statement in an aggregate", scope.place(statement)
                )
        marks = [
            *node.decorator_list,
            *(d for s in node.body if isinstance(s, ast.FunctionDef) for d in s.decorator_list),
        ]
        for decorator in marks:
            value = self.evaluator.evaluate(decorator, scope)
            if not str(getattr(value, "__module__", "")).startswith("triton") and value not in (
                staticmethod,
                classmethod,
                property,
            ):
                raise Undetermined(f"decorator @{_text(decorator)} in aggregate {node.name}", scope.place(decorator))
        self._fill(_heads(node), scope, f"{scope.module}:{node.name}")
        namespace = scope.namespace.__dict__
        module = ast.Module([node], [])
        import __future__

        flags = __future__.annotations.compiler_flag if self._future_annotations(scope) else 0
        code = compile(module, scope.path, "exec", flags, dont_inherit=True)
        with _known_as(namespace["__name__"], scope.namespace):
            self.evaluator.guarded(exec, code, namespace, place=scope.place(node))
        # What methods mention may mention this class: it has its name first.
        self._pending.append((node, scope, f"{scope.module}:{node.name}", False))
        return namespace[node.name]

    def _future_annotations(self, scope: Scope | Frame) -> bool:
        home: Any = scope
        while isinstance(home, Frame) or home.kind != "module":
            home = home.outer if isinstance(home, Frame) else home.parent
        return any(
            b.node.module == "__future__"
            for b in home.bindings.by_name.get("annotations", ())
            if isinstance(b.node, ast.ImportFrom)
        )

    # --- what a function mentions

    def fill(self) -> None:
        """Give every function built so far, and those that this reaches, the names it mentions."""
        if self._filling:
            return
        self._filling = True
        try:
            while self._pending:
                self._fill(*self._pending.pop(0))
        finally:
            self._filling = False

    def _fill(self, node: ast.AST, scope: Scope | Frame, user: str, python: bool = False) -> None:
        """`python` functions run while tracing, and may call plain functions; those become real ones too."""
        namespace = scope.namespace.__dict__
        annotated = {
            n.id
            for a in ast.walk(node)
            if isinstance(a, ast.arg) and a.annotation
            for n in ast.walk(a.annotation)
            if isinstance(n, ast.Name)
        }
        stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        in_body = names_in_body(node)
        for name, first, chains in mentioned_names(node):
            if name in _MODULE_NAMES:
                continue
            try:
                value = self.program.effects.check_deep(scope.lookup(name))
                if isinstance(scope, Scope):
                    check_late(scope, name, value)
            except NoValue as error:
                if name not in in_body:  # Triton evaluates defaults even when the launch gives the value
                    namespace[name] = UnresolvedDefault(name, self._diagnostic(name, scope.place(first), error))
                elif not hasattr(builtins, name) and name not in stored:
                    self._miss(name, scope.place(first), error)
                continue
            if getattr(builtins, name, _ABSENT) is value:
                continue
            if (
                python
                and isinstance(value, UserFunction)
                and not value.unusable
                and isinstance(value.node, ast.FunctionDef)
            ):
                value = self.kernel_side(value, _as_it_is)
            value = as_today(value, chains)
            if isinstance(value, HostName) and value.torch_dtype:
                namespace[name] = HostName.of_dtype(value.torch_dtype)
            elif isinstance(value, HostName) and (name in annotated or only_dtypes(value, chains)):
                namespace[name] = host_placeholder(value, chains, namespace.get(name))
            elif isinstance(value, Scope):
                namespace[name] = value.namespace
                self._fill_module(value, chains, scope, user)
            elif refusal := refusal_of(name, value):
                self._miss(name, scope.place(first), Undetermined(refusal))
            else:
                namespace[name] = value
                self.want(value)
                self._record(user, name, value, scope)

    def _fill_module(self, module: Scope, chains: list[ast.Attribute], scope: Scope | Frame, user: str) -> None:
        """`m.f`, `m.sub.f`: put what is used of a user's module into its synthetic module."""
        for node in chains:
            current: Any = module
            dotted = ast.unparse(node)
            for part in dotted_parts(node)[1:]:
                try:
                    value = self.program.effects.check_deep(self.program.member(current, part))
                    check_late(current, part, value)
                except NoValue as error:
                    self._miss(dotted, scope.place(node), error)
                    break
                if refusal := refusal_of(dotted, value):
                    self._miss(dotted, scope.place(node), Undetermined(refusal))
                    break
                current.namespace.__dict__[part] = value.namespace if isinstance(value, Scope) else value
                if not isinstance(value, Scope):
                    self.want(value)
                    self._record(user, dotted, value, current, part)
                    break
                current = value

    def _record(self, user: str, name: str, value: Any, scope: Scope | Frame, own_name: str = "") -> None:
        found = describe(user, name, value, scope, own_name or name)
        if found not in self.reached:
            self.reached.append(found)

    def _miss(self, name: str, place: Place, error: Undetermined | Raised) -> None:
        self.unresolved.setdefault((place.path, name), self._diagnostic(name, place, error))

    def _diagnostic(self, name: str, place: Place, error: Undetermined | Raised) -> Diagnostic:
        why = error.reason
        if error.place is not None and (error.place.path, error.place.line) != (place.path, place.line):
            why += f" ({error.place.path}:{error.place.line}:{error.place.column})"
        return Diagnostic(
            "source-unresolved",
            f"{name} cannot be evaluated statically",
            place.path,
            place.line,
            place.column,
            why,
            GIVE_IT,
        )


def _heads(node: ast.ClassDef) -> ast.ClassDef:
    """The class without the bodies of its methods: what its statement needs when it runs."""
    heads = copy.copy(node)
    heads.body = [copy.copy(statement) for statement in node.body]
    for statement in heads.body:
        if isinstance(statement, ast.FunctionDef):
            statement.body = [ast.Pass()]
    return heads


def _as_it_is(fn: FunctionType) -> FunctionType:
    return fn


def _is_wrapped(value: Any) -> bool:
    """`@tl.constexpr def f`: a function that Triton calls while tracing."""
    return isinstance(value, core.constexpr) and isinstance(value.value, FunctionType)


_ABSENT = object()
_MODULE_NAMES = frozenset({"__name__", "__file__", "__doc__"})


def _text(decorator: ast.expr) -> str:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
