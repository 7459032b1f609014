"""The child of `second_reader.py`: imports a module and says what the names of its jit functions are."""

from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.machinery
import inspect
import io
import json
import sys
import types
from typing import Any

import triton.language as tl
from triton.runtime.jit import JITCallable


def described(value: Any) -> str:
    """A text that is the same for the same value in both readings: numbers by value, functions by their source."""
    if isinstance(value, tl.constexpr):
        return f"constexpr({described(value.value)})"
    if isinstance(value, (bool, int, float, str, bytes, complex, type(None))):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (tuple, list, tl.tuple)):
        return f"{type(value).__name__}({', '.join(map(described, value))})"
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{described(k)}: {described(v)}" for k, v in value.items())) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(described, value))) + "}"
    if isinstance(value, tl.dtype):
        return f"dtype {value}"
    while hasattr(value, "fn") and not isinstance(value, JITCallable):
        value = value.fn  # an autotuner, heuristics
    if isinstance(value, JITCallable) and hasattr(value, "file_name"):
        digest = hashlib.sha256(value.src.encode()).hexdigest()[:12]
        return f"jit {value.fn.__name__} line {value.def_file_line_number} {digest}"
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, StandIn):
        return "stand-in"
    if hasattr(value, "dotted"):
        return f"host {value.dotted}"
    if type(value).__module__ == "torch":
        return f"host {value}"
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return f"{getattr(value, '__module__', '')}.{name}" if name else f"object {type(value).__name__}"


class StandIn(types.ModuleType):
    """Has whatever is asked of it, and gives itself back when called."""

    def __init__(self, name: str):
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name not in ("__version__",):
            raise AttributeError(name)
        if name == "__version__":
            return "2.11.0"
        return type(name, (_Anything,), {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self


class _AnythingsType(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (_Anything,), {})

    def __iter__(cls):
        return iter(())

    def __or__(cls, other):
        return cls

    __ror__ = __or__


class _Anything(metaclass=_AnythingsType):
    stands_in = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (_Anything,), {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self

    def __class_getitem__(cls, key: Any) -> Any:
        return cls


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: list[str]):
        self.names = names

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.partition(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def function_of(user: str) -> Any:
    """The jit function, or class, that is called `module:qualname` (with `<locals>` there is none to be had)."""
    module, _, qualname = user.partition(":")
    value: Any = sys.modules.get(module) or importlib.import_module(module)
    for part in qualname.split("."):
        value = getattr(value, part)
    while hasattr(value, "fn") and not isinstance(value, JITCallable):
        value = value.fn
    return value


def answer(user: str, name: str, default: bool) -> str | None:
    """What the function has; None where it, or the name, is not to be had."""
    try:
        function = function_of(user)
    except (AttributeError, ImportError):
        return None
    inner = getattr(function, "fn", function)
    if default:
        found = inspect.signature(inner).parameters.get(name)
        return None if found is None else described(found.default)
    first, *rest = name.split(".")
    closed = inspect.getclosurevars(inner).nonlocals if inspect.isfunction(inner) else {}
    names = {**getattr(inner, "__globals__", {}), **closed}
    if first not in names:
        return "no such name" if inspect.isfunction(inner) else None
    value = names[first]
    for part in rest:
        if not hasattr(value, part):
            return "no such name"
        value = getattr(value, part)
    if getattr(value, "stands_in", False):
        return "stand-in"
    return described(value)


def main() -> None:
    asked = json.load(sys.stdin)
    sys.path[:0] = asked["folders"]
    sys.meta_path.insert(0, _Finder(asked["stand_ins"]))
    out, sys.stdout = sys.stdout, io.StringIO()
    importlib.import_module(asked["module"])
    answers = [answer(*name) for name in asked["names"]]
    sys.stdout = out
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
