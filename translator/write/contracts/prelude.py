"""What a translated kernel needs before it in the file: imports, constants, and functions used as values."""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
import math
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import libcst as cst
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.gluon.imports import Import
from gluonize.gluon.trees.function import JIT, Block, GluonFunction, Statement, code, definitions, expression, parsed
from gluonize.gluon.trees.origins import Place, marked
from gluonize.gluon.trees.walk import called, dotted, mapped, walk
from gluonize.read.evaluate.host_values import HostName
from gluonize.read.text.moved_lines import file_line
from gluonize.rules import ptx
from gluonize.triton_api.gluon_language import gl
from gluonize.triton_api.jit_functions import ConstexprFunction, JITFunction
from gluonize.triton_api.language import constexpr, tl
from gluonize.write.calls.inline_asm import in_plain_text
from gluonize.write.state.unit import Synthesized

# Whether what two functions use by one name is the same: each launch loads its kernel anew, and gets other objects for the same text.

_Pairs = frozenset[tuple[int, int]]


def same_meaning(a: Any, b: Any, compared: _Pairs = frozenset()) -> bool:
    """Whether two values have the same text in an output. compared: pairs of functions that are being compared."""
    if a is b or (id(a), id(b)) in compared:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, constexpr):
        return same_meaning(a.value, b.value, compared)
    if isinstance(a, JITFunction):
        return a.src == b.src and _same_function(a.fn, b.fn, compared)
    if isinstance(a, ConstexprFunction):
        return same_meaning(a.fn, b.fn, compared)
    if isinstance(a, types.FunctionType):
        return _same_function(a, b, compared)
    if isinstance(a, type):
        return _same_class(a, b, compared | {(id(a), id(b))})
    return not callable(a) and bool(a == b)


def _same_function(a: types.FunctionType, b: types.FunctionType, compared: _Pairs) -> bool:
    """Whether two functions have one definition, and what they find outside of themselves is the same."""
    if (a.__code__, a.__defaults__, a.__kwdefaults__) != (b.__code__, b.__defaults__, b.__kwdefaults__):
        return False
    names, missing = set(_names(a.__code__)), object()
    return all(
        name in a.__globals__
        and name in b.__globals__
        and same_meaning(a.__globals__[name], b.__globals__[name], compared | {(id(a), id(b))})
        for name in names
        if a.__globals__.get(name, missing) is not b.__globals__.get(name, missing)
    )


def _same_class(a: type, b: type, compared: _Pairs) -> bool:
    """Whether two classes are one that was read twice, once for each of two launches."""
    if (a.__module__, a.__qualname__) != (b.__module__, b.__qualname__) or vars(a).keys() != vars(b).keys():
        return False
    pairs = ((getattr(x, "__func__", x), getattr(vars(b)[n], "__func__", vars(b)[n])) for n, x in vars(a).items())
    return all(same_meaning(x, y, compared) for x, y in pairs if callable(x))


def _names(code: types.CodeType) -> Iterator[str]:
    """The names that a function and those inside of it look up outside of themselves, or as attributes."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


BASE_IMPORTS = (
    Import("triton.experimental", "gluon"),
    Import("triton.experimental.gluon", "language", "gl"),
)


@dataclass
class Prelude:
    """Imports and definitions, those in the order in which they must stand. constants: the definitions that are one line."""

    imports: set[Import] = field(default_factory=set)
    constants: list[Statement] = field(default_factory=list)
    definitions: list[Block] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, value: Any, user: Any) -> None:
        """Make `name` mean `value` for the function `user`. Raises TranslationError for what has no source form."""
        if name in self.names:
            if not same_meaning(self.names[name], value):
                raise _refuse(user, name, "two functions of this kernel mean different things by this name")
            return
        self.names[name] = value
        if _holds_torch(value):
            self.imports.add(Import("torch"))
        if isinstance(value, Synthesized):
            self.definitions.append(definitions(value.text))
            return
        home = getattr(user, "__module__", None) or ""
        if home.startswith("triton.") and callable(value) and not isinstance(value, (types.ModuleType, JITFunction)):
            self.imports.add(Import(home, name))  # a name of Triton's own library
        elif isinstance(value, types.ModuleType):
            self._module(name, value)
        elif isinstance(value, JITFunction):
            self._jit(name, value)
        elif isinstance(value, constexpr):
            if isinstance(value.value, types.FunctionType):  # a function under `@tl.constexpr`
                self._plain_function(value.value, "@gl.constexpr\n")
            else:
                self._constant(f"{name} = {literal(value, user, name)}")
        elif isinstance(value, ConstexprFunction):
            self._plain_function(value.fn, "@gluon.constexpr_function\n")
        elif getattr(value, "__triton_builtin__", False) or _is_language(value):
            self._language(name, value, user)
        elif isinstance(value, type):
            self._class(name, value, user)
        elif hasattr(builtins, name) and getattr(builtins, name) is value:
            return
        elif callable(value) and isinstance(value, types.FunctionType):
            self._plain_function(value, "")
        else:
            self._constant(f"{name} = {literal(value, user, name)}")

    def _constant(self, text: str) -> None:
        self.constants += definitions(text)

    def _module(self, name: str, value: types.ModuleType) -> None:
        module = value.__name__
        if module == "triton.language":
            self.imports.add(Import(module, bound=name))
        elif "." in module:
            parent, _, last = module.rpartition(".")
            # Triton maps the generic module to the target's own while it compiles.
            parent = parent.replace("triton.language.extra.hip", "triton.language.extra")
            self.imports.add(Import(parent, last, name))
        else:
            self.imports.add(Import(module, bound=name))

    def _language(self, name: str, value: Any, user: Any) -> None:
        own = getattr(value, "__name__", name)
        if isinstance(value, tl.dtype):
            found = next((n for n in dir(gl) if getattr(gl, n) is value or same_meaning(getattr(gl, n), value)), None)
            self._constant(f"{name} = gl.{found}")
            return
        module = getattr(value, "__module__", "")
        if hasattr(gl, own) and getattr(tl, own, None) is value:
            module = "triton.experimental.gluon.language"
        elif hasattr(tl, own) and getattr(tl, own) is value:
            module = "triton.language"
        if not module:
            raise _refuse(user, name, f"{value!r} has no importable name")
        module = module.replace("triton.language.extra.hip", "triton.language.extra")
        self.imports.add(Import(module, own, name))

    def _jit(self, name: str, value: JITFunction) -> None:
        """A jit function used as a value (a combine function) or from unreached code: names translated, no layouts."""
        if value.__module__.startswith("triton."):
            self.imports.add(Import(value.__module__, value.__name__, name))
            return
        function, used = plain_translation(value)
        for inner, inner_value in used.items():
            self.add(inner, inner_value, value)
        self.definitions.append((function.called(name).defined(JIT),))

    def _plain_function(self, function: Any, decorator: str) -> None:
        source = textwrap.dedent(inspect.getsource(function))
        source = source[source.index("def ") :]
        code = function.__code__
        for used in sorted(
            {*code.co_names, *(n for c in code.co_consts if isinstance(c, types.CodeType) for n in c.co_names)}
        ):
            if used in function.__globals__ and not hasattr(builtins, used):
                self.add(used, function.__globals__[used], function)
        self.definitions.append(definitions(f"{decorator}{source.rstrip()}\n"))

    def _class(self, name: str, value: type, user: Any) -> None:
        if issubclass(value, tuple) and hasattr(value, "_fields"):
            self.imports.add(Import("collections", "namedtuple"))
            self._constant(f"{name} = namedtuple({value.__name__!r}, {list(value._fields)!r})")
            return
        if issubclass(value, enum.Enum):
            self.imports.add(Import("enum"))
            members = "\n".join(f"    {m.name} = {m.value!r}" for m in value)
            base = next(
                b.__name__ for b in value.__mro__[1:] if b in (enum.IntEnum, enum.IntFlag, enum.Flag, enum.Enum)
            )
            self.definitions.append(definitions(f"class {name}(enum.{base}):\n{members}\n"))
            return
        if value.__module__ == "builtins":
            return
        raise _refuse(user, name, f"class {value.__qualname__} cannot be written into the output")


def _is_language(value: Any) -> bool:
    module = getattr(type(value) if not callable(value) else value, "__module__", "") or ""
    return isinstance(value, tl.dtype) or (
        callable(value) and module.startswith(("triton.language", "triton.experimental"))
    )


def _holds_torch(value: Any) -> bool:
    """Whether a constant is, or has in it, an element type of torch."""
    if isinstance(value, constexpr):
        return _holds_torch(value.value)
    if isinstance(value, dict):
        return any(map(_holds_torch, [*value, *value.values()]))
    if isinstance(value, (list, tuple)):
        return any(map(_holds_torch, value))
    return isinstance(value, HostName)


def _refuse(user: Any, name: str, why: str) -> TranslationError:
    fn = getattr(user, "fn", user)
    code = getattr(fn, "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code else ("", 0)
    return TranslationError(Diagnostic("global", f"`{name}` cannot be carried over", file, line, 1, why))


def literal(value: Any, user: Any = None, name: str = "") -> str:
    """A constant as source text."""
    if isinstance(value, constexpr):
        return f"gl.constexpr({literal(value.value, user, name)})"
    if isinstance(value, tl.dtype):
        found = next((n for n in dir(gl) if isinstance(getattr(gl, n), tl.dtype) and getattr(gl, n) == value), None)
        if found:
            return f"gl.{found}"
    if isinstance(value, HostName) and value.torch_dtype:
        return value.dotted
    if isinstance(value, float) and (math.isinf(value) or math.isnan(value)):
        return f'float("{value}")'
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        items = [literal(v, user, name) for v in value]
        if isinstance(value, list):
            return "[" + ", ".join(items) + "]"
        return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(k, user, name)}: {literal(v, user, name)}" for k, v in value.items()) + "}"
    raise _refuse(user, name, f"its value {value!r} has no source form")


def plain_translation(fn: JITFunction) -> tuple[GluonFunction, dict[str, Any]]:
    """A function without layouts of its own: `tl.` names become `gl.` names; -> the function and the globals it uses."""
    function = parsed(fn.src)
    env, local = fn.__globals__, function.bound

    def to_gluon(node: cst.CSTNode) -> cst.CSTNode | None:
        if not isinstance(node, cst.Attribute) or not isinstance(node.value, cst.Name) or node.value.value in local:
            return None
        base = env.get(node.value.value)
        is_language = isinstance(base, types.ModuleType) and base.__name__ == "triton.language"
        return node.with_changes(value=cst.Name("gl")) if is_language and hasattr(gl, node.attr.value) else None

    def place(line: int) -> Place:
        return fn.file_name or "", file_line(fn, line)

    (known,) = marked([function.node], ast.parse(fn.src).body, place)
    node = mapped(mapped(known, to_gluon), lambda n: _without_ptx(n, env))
    kept = {n for n in walk(node) if isinstance(n, cst.Name)}
    used = dict.fromkeys(n.value for n in walk(known) if n in kept and n.value not in local)
    return function.with_node(node), {name: env[name] for name in used if name in env}


def _without_ptx(node: cst.CSTNode, env: dict[str, Any]) -> cst.CSTNode | None:
    """What a call of inline assembly becomes where that is PTX, which the AMD compiler drops without a message; None for all else."""
    if called(node) != "inline_asm_elementwise":
        return None
    names = ("asm", "constraints", "args", "dtype", "is_pure", "pack")
    given = {a.keyword.value if a.keyword else names[i]: a.value for i, a in enumerate(node.args[: len(names)])}  # type: ignore[attr-defined]
    text, constraints = (_text(given.get(name), env) for name in names[:2])
    if text is None or not ptx.is_ptx(text) or all(x in ptx.NO_EFFECT for x in ptx.instructions(text)):
        return None
    items, types = (
        [e.value for e in v.elements] if isinstance(v, (cst.List, cst.Tuple)) else [v] * (v is not None)
        for v in (given.get("args"), given.get("dtype"))
    )
    pack = given.get("pack")
    return expression(
        in_plain_text(
            text, constraints or "", [code(item) for item in items], [dotted(t).rpartition(".")[2] for t in types],
            pack.evaluated_value if isinstance(pack, cst.Integer) else None,
        )
    )  # fmt: skip


def _text(node: cst.CSTNode | None, env: dict[str, Any]) -> str | None:
    """The text that an expression is: a literal, or the name of a constant."""
    if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
        return str(node.evaluated_value)
    found = env.get(node.value) if isinstance(node, cst.Name) else None
    found = found.value if isinstance(found, constexpr) else found
    return found if isinstance(found, str) else None
