"""Which calls a static evaluation may make, and what they give.

Python's pure builtins and methods, `math`, `operator`, parts of `itertools`/`functools`/`numpy`, the pure host functions of
Triton, reads of the environment, and the user's own host functions, which are interpreted.
"""

from __future__ import annotations

import ast
import collections
import enum
import functools
import importlib.metadata
import importlib.util
import inspect
import itertools
import math
import operator
import os
import types
import typing
from dataclasses import replace
from typing import Any

from gluonize.read.evaluate.bodies.changes import READING_METHODS, changes
from gluonize.read.evaluate.bodies.container_methods import PURE_BUILTINS, changed_by, makes
from gluonize.read.evaluate.dtype_limits import limits
from gluonize.read.evaluate.evaluation import Evaluation
from gluonize.read.evaluate.host_objects import LookedThrough, UserClass, UserFunction
from gluonize.read.evaluate.host_values import CALL_FACTS, VERSIONS, ActiveTarget, HostName, VersionNumber
from gluonize.read.evaluate.interpret import Interpreter
from gluonize.read.evaluate.jit_function import JIT_OPTIONS
from gluonize.read.files.by_path import PATHS, FileLoader, FilePath, LoadedModules, file_spec, path_of_spec
from gluonize.read.files.torch_runtime import HEURISTICS
from gluonize.read.names.bindings import stored_names
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import Place, Raised, Undetermined
from gluonize.triton_api.gluon_language import gluon
from gluonize.triton_api.jit_functions import ConstexprFunction, JITFunction
from gluonize.triton_api.language import tl
from gluonize.triton_api.package import triton

_PURE = {
    id(f)
    for f in (
        *PURE_BUILTINS,
        *(f for name, f in vars(math).items() if callable(f)),
        *(f for name, f in vars(operator).items() if callable(f) and not name.startswith("__i")),
        *(
            itertools.product,
            itertools.chain,
            itertools.chain.from_iterable,
            itertools.permutations,
            itertools.combinations,
        ),
        *(itertools.islice, itertools.accumulate, itertools.zip_longest, functools.partial, functools.reduce),
        *(collections.namedtuple, collections.OrderedDict, enum.auto, typing.NamedTuple, typing.TypeVar, typing.cast),
        *(triton.cdiv, triton.next_power_of_2, triton.Config, tl.constexpr, tl.dtype, tl.pointer_type, tl.block_type),
        *(ActiveTarget, os.path.join, os.path.basename, os.path.dirname, types.SimpleNamespace, types.MappingProxyType),
    )
}
_PURE_OWNERS = (
    str,
    bytes,
    int,
    float,
    bool,
    tuple,
    frozenset,
    range,
    dict,
    list,
    set,
    tl.dtype,
    tl.constexpr,
    VersionNumber,
    FilePath,
    FileLoader,
    LoadedModules,
)
# What calls a function that it is given.
_CALLING = (filter, sorted, min, max, functools.reduce, itertools.accumulate)
# Decorators and calls that give their function back, as far as its values are concerned.
_TRANSPARENT = {
    id(f) for f in (functools.cache, functools.lru_cache, functools.cached_property, staticmethod, classmethod)
}
_TRANSPARENT_HOST = (
    "torch.no_grad",
    "torch.inference_mode",
    "torch.compiler.disable",
    "torch._dynamo.disable",
    "torch.library.CustomOpDef",
)
_MAX_DEPTH = 40


class Calls:
    def __init__(self, evaluator: Evaluation):
        self.evaluator = evaluator
        self.program = evaluator.program
        self.interpreter = Interpreter(evaluator)
        self.depth = 0
        self.special = {
            id(triton.jit): self._jit,
            id(gluon.jit): self._gluon_jit,
            id(triton.autotune): self._autotune,
            id(triton.heuristics): self._heuristics,
            id(isinstance): self._isinstance,
            id(issubclass): self._issubclass,
            id(hasattr): self._hasattr,
            id(getattr): self._getattr,
            id(type): self._type,
            id(print): lambda args, kwargs, place: None,
            id(map): self._map,
            id(os.getenv): self._environment,
            id(importlib.import_module): self._import_module,
            id(importlib.util.find_spec): self._find_spec,
            id(importlib.util.spec_from_file_location): file_spec,
            id(importlib.util.module_from_spec): self._module_of_spec,
            id(importlib.metadata.version): self._installed_version,
        }

    def call(self, node: ast.Call, scope: Scope | Frame, before: float | None) -> Any:
        """The value of a call expression; where it has none, what the call may have changed is not known any more."""
        try:
            value = self._call(node, scope, before)
        except Undetermined as error:
            self.program.spoil_changed(node, scope, error.reason, error.place or scope.place(node))
            raise
        if isinstance(scope, Scope) and scope.now is not None:
            scope.called[id(node)] = value
        return value

    def _call(self, node: ast.Call, scope: Scope | Frame, before: float | None) -> Any:
        place = scope.place(node)
        if isinstance(node.func, ast.Name) and node.func.id in (
            "globals",
            "locals",
            "vars",
            "eval",
            "exec",
            "__import__",
            "open",
        ):
            raise Undetermined(f"{node.func.id}() is not evaluated statically", place)
        function = self.evaluator.evaluate(node.func, scope, before)
        if looked := self._launch_decorator(function, node):
            return looked
        if function in (triton.jit, gluon.jit) and not node.args and not any(k.arg == "fn" for k in node.keywords):
            return functools.partial(function, **self._jit_options(node, scope, before))
        args = self.evaluator.items(node.args, scope, before)
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.evaluator.evaluate(keyword.value, scope, before)
            if keyword.arg is not None:
                kwargs[keyword.arg] = value
            else:
                self.evaluator.guarded(kwargs.update, self.evaluator.known(value, place), place=place)
        return self.apply(function, args, kwargs, place)

    def _jit_options(self, node: ast.Call, scope: Scope | Frame, before: float | None) -> dict[str, Any]:
        """The options of `triton.jit(...)` that matter to compilation; the others are host code."""
        wanted = [keyword for keyword in node.keywords if keyword.arg in JIT_OPTIONS]
        return {keyword.arg: self.evaluator.evaluate(keyword.value, scope, before) for keyword in wanted}  # type: ignore[misc]

    def _launch_decorator(self, function: Any, node: ast.Call) -> LookedThrough | None:
        """`triton.autotune(...)`, `triton.heuristics(...)` and Inductor's: their arguments are host code and are left alone."""
        if function is triton.autotune:
            return LookedThrough("autotune")
        if isinstance(function, HostName) and function.dotted.startswith(f"{HEURISTICS}."):
            return LookedThrough("inductor")
        return LookedThrough("heuristics") if function is triton.heuristics else None

    def apply(self, function: Any, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        """`function(*args, **kwargs)` for a function that is known to be pure, or is interpreted."""
        if isinstance(function, UserFunction):
            plain = all(isinstance(value, (bool, int, float, str, type(None))) for value in (*args, *kwargs.values()))
            if function.kept is None or not plain:
                return self._interpret(function, args, kwargs, place)
            key = (*((type(a), a) for a in args), *sorted((n, type(v), v) for n, v in kwargs.items()))
            if key not in function.kept:
                function.kept[key] = self._interpret(function, args, kwargs, place)
            return function.kept[key]
        if isinstance(function, UserClass):
            return function.construct(args, kwargs, place)
        if isinstance(function, HostName):
            return self._host_call(function, args, kwargs, place)
        if isinstance(function, LookedThrough):
            return _cached(args[0]) if function.kind == "cache" else args[0]
        if isinstance(function, functools.partial):
            return self.apply(function.func, [*function.args, *args], {**function.keywords, **kwargs}, place)
        if getattr(function, "__self__", None) is os.environ:
            if function.__name__ == "get":
                return self._environment(args, kwargs, place)
            if function.__name__ == "setdefault" and len(args) == 2 and all(isinstance(a, str) for a in args):
                if self._environment([args[0]], {}, place) is None:
                    self.program.set_environment(args[0], args[1], place)
                return self._environment([args[0]], {}, place)
            if function.__name__ not in READING_METHODS:
                reason = f"os.environ.{function.__name__}() changes the environment"
                self.program.effects.spoil(os.environ, reason, place)
                raise Undetermined(reason, place)
        if special := self.special.get(id(function)):
            return special(args, kwargs, place)
        if id(function) in _TRANSPARENT:
            if not args or isinstance(args[0], int) or args[0] is None:
                return LookedThrough("cache")
            return args[0] if function in (staticmethod, classmethod) else _cached(args[0])
        if (
            function in (triton.constexpr_function, tl.core.builtin, tl.core.extern, tl.constexpr)
            and args
            and isinstance(args[0], UserFunction)
        ):
            return self.evaluator.builder.kernel_side(args[0], function)
        if function is triton.constexpr_function and getattr(args[0], "__module__", "").startswith("triton."):
            return function(args[0])  # one of Triton's own
        if (changed := changed_by(function, args)) is not None:
            self.program.effects.changeable(changed, place)
        if self._is_pure(function, place):
            for value in (*args, *kwargs.values()):
                if not self._may_pass(value):
                    self.evaluator.known(value, place)
                    raise Undetermined(f"a host object is given to {getattr(function, '__name__', 'a call')}", place)
                self.program.effects.check_deep(value)
            self._check_size(function, args, place)
            if function in _CALLING:
                args = [self._callable(value, place) for value in args]
                kwargs = {name: self._callable(value, place) for name, value in kwargs.items()}
            result = self.evaluator.guarded(function, *args, place=place, **kwargs)
            return self.program.effects.made(result) if makes(function) else result
        name = getattr(function, "__qualname__", None) or type(function).__name__
        raise Undetermined(f"the call of {name} is not evaluated statically", place)

    def _callable(self, value: Any, place: Place) -> Any:
        """A host function in a form in which Python can call it."""
        if isinstance(value, UserFunction):
            return lambda *args, **kwargs: self.apply(value, list(args), kwargs, place)
        return value

    def _is_pure(self, function: Any, place: Place) -> bool:
        if id(function) in _PURE:
            return True
        if isinstance(function, ConstexprFunction):
            return True
        if isinstance(function, types.MethodDescriptorType):
            return function.__objclass__ in _PURE_OWNERS
        owner = getattr(function, "__self__", None)
        if isinstance(function, (types.BuiltinMethodType, types.MethodType)) and owner is not None:
            if owner is os.environ:
                return False
            return isinstance(owner, (*_PURE_OWNERS, enum.Enum)) or owner in (dict, str, int, float, bytes)
        if isinstance(function, type):
            return issubclass(function, (enum.Enum, Exception)) or hasattr(function, "_fields")
        return type(function).__module__ == "numpy" and type(function).__name__ == "ufunc"

    def _may_pass(self, value: Any) -> bool:
        if isinstance(value, HostName):
            return bool(value.torch_dtype)
        if isinstance(value, (tuple, list)):
            return all(map(self._may_pass, value))
        return True

    def _check_size(self, function: Any, args: list, place: Place) -> None:
        if function is pow or function is operator.pow or function is operator.lshift or function is math.factorial:
            if any(isinstance(a, int) and abs(a) > 4096 for a in args):
                raise Undetermined("the number is too large", place)
        if function in (list, tuple, set, sorted, sum) and args:
            args[0] = self.evaluator.iterate(args[0], place)

    def _interpret(self, function: UserFunction, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        self.depth += 1
        try:
            if self.depth > _MAX_DEPTH:
                raise Undetermined("host functions call each other too deeply", place)
            return self.interpreter.run(function, args, kwargs, place)
        finally:
            self.depth -= 1

    def _host_call(self, function: HostName, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        if function.dotted in CALL_FACTS:
            self.program.note(
                f"{function.dotted}() is taken to be {CALL_FACTS[function.dotted]}: the target is an AMD GPU"
            )
            return CALL_FACTS[function.dotted]
        if function.dotted in VERSIONS.values() and args and isinstance(args[0], str):
            if (version := VersionNumber.parse(args[0])) is not None:
                return version
        if function.dotted in ("torch.finfo", "torch.iinfo"):
            asked = args[0] if args else kwargs.get("type", HostName("torch.float32"))
            if isinstance(asked, HostName) and (found := limits(function.dotted[6:], asked.torch_dtype)) is not None:
                return found
        if function.dotted == "inspect.signature" and len(args) == 1 and _is_tritons_function(args[0]):
            return types.SimpleNamespace(parameters=dict(inspect.signature(args[0]).parameters))
        if function.dotted in PATHS and not kwargs and all(isinstance(arg, (str, FilePath)) for arg in args):
            return FilePath(*args)
        if function.dotted.startswith(_TRANSPARENT_HOST):
            return args[0] if args else LookedThrough("cache")
        raise Undetermined(f"{function.dotted}() is known only when the host program runs", place)

    # --- functions with a meaning of their own

    def _jit(self, args: list, kwargs: dict[str, Any], place: Place, gluon_function: bool = False) -> Any:
        if "fn" in kwargs:
            args, kwargs = [kwargs["fn"]], {name: value for name, value in kwargs.items() if name != "fn"}
        if not args:
            maker = gluon.jit if gluon_function else triton.jit
            return functools.partial(maker, **kwargs)
        if isinstance(args[0], UserFunction):
            return self.evaluator.builder.jit(args[0], gluon_function, kwargs, place)
        if isinstance(args[0], JITFunction):
            return args[0]
        raise Undetermined("triton.jit of something that is not a function definition", place)

    def _gluon_jit(self, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        return self._jit(args, kwargs, place, gluon_function=True)

    def _autotune(self, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        return LookedThrough("autotune")

    def _heuristics(self, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        return LookedThrough("heuristics")

    def _isinstance(self, args: list, kwargs: dict[str, Any], place: Place) -> bool:
        for value in args:
            self.evaluator.known(value, place)
        kinds = args[1] if isinstance(args[1], tuple) else (args[1],)
        if isinstance(args[0], (UserFunction, UserClass, Scope)) or not all(isinstance(kind, type) for kind in kinds):
            raise Undetermined("the type of a host object is asked for", place)
        return isinstance(*args)

    def _issubclass(self, args: list, kwargs: dict[str, Any], place: Place) -> bool:
        if not all(isinstance(value, type) for value in args):
            raise Undetermined("the class of a host object is asked for", place)
        return issubclass(*args)

    def _hasattr(self, args: list, kwargs: dict[str, Any], place: Place) -> bool:
        try:
            value = self.evaluator.attribute(args[0], args[1], place)
        except Raised as error:
            if isinstance(error.error, AttributeError):
                return False
            raise
        if isinstance(value, HostName):
            raise Undetermined(f"whether {value.dotted} exists is known only when the host program runs", place)
        return True

    def _getattr(self, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        try:
            value = self.evaluator.attribute(args[0], args[1], place)
        except Raised as error:
            if isinstance(error.error, AttributeError) and len(args) == 3:
                return args[2]
            raise
        if isinstance(value, HostName) and len(args) == 3 and not value.torch_dtype:
            raise Undetermined(f"whether {value.dotted} exists is known only when the host program runs", place)
        return value

    def _type(self, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        self.evaluator.known(args[0], place)
        if len(args) != 1 or isinstance(args[0], (UserFunction, UserClass, Scope)):
            raise Undetermined("the type of a host object is asked for", place)
        return type(args[0])

    def _map(self, args: list, kwargs: dict[str, Any], place: Place) -> list:
        columns = [self.evaluator.iterate(column, place) for column in args[1:]]
        return [self.apply(args[0], list(row), {}, place) for row in zip(*columns)]

    def _environment(self, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        """`os.getenv` and `os.environ.get`: the environment of this process, as the host program would see it."""
        name, default = args[0], (args[1] if len(args) > 1 else kwargs.get("default"))
        self.evaluator.known(name, place)
        if not isinstance(name, str):
            raise Raised(TypeError(f"str expected, not {type(name).__name__}"), place)
        self.program.effects.check(os.environ)
        if (unseen := self.program.set_unseen.get(name)) is not None:
            raise Undetermined(unseen.reason, unseen.place)
        if name in self.program.environment:
            return self.program.environment[name]
        value = os.environ.get(name, default)
        if name in os.environ:
            self.program.note(f"environment variable {name} = {value!r} was used ({place.path}:{place.line})")
        return value

    def _import_module(self, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        if len(args) != 1 or not isinstance(args[0], str) or args[0].startswith("."):
            raise Undetermined("a relative import_module", place)
        return self.program.import_module(args[0])

    def _find_spec(self, args: list, kwargs: dict[str, Any], place: Place) -> Any:
        try:
            return self.program.import_module(args[0])
        except Raised:
            return None

    def _module_of_spec(self, args: list, kwargs: dict[str, Any], place: Place) -> Scope:
        return self.program.module_at(path_of_spec(args, place))

    def _installed_version(self, args: list, kwargs: dict[str, Any], place: Place) -> str:
        if args == ["triton"]:
            return triton.__version__
        raise Undetermined(f"the installed version of {args[0]} is known only when the host program runs", place)


def _is_tritons_function(value: Any) -> bool:
    """Whether it is a function of the installed Triton, whose signature says what that version takes."""
    home = getattr(value, "__module__", None) or ""
    return isinstance(value, types.FunctionType) and home.partition(".")[0] == "triton"


def _cached(value: Any) -> Any:
    """A function whose results are kept. One that changes what is not its own does so in the first of some calls alone, which is not
    followed."""
    if not isinstance(value, UserFunction) or isinstance(value.node, ast.Lambda):
        return value
    inner = [*ast.walk(value.node)]
    outside = set(changes(ast.Module(value.node.body, [])).changed) - stored_names(value.node)
    if not outside and not any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in inner):
        return replace(value, kept={})
    return replace(value, unusable=f"{value.name} changes what is not its own, and its results are kept")
