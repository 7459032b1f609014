"""What Inductor's decorator of a kernel states: types, constants, alignment, sizes, and how it is launched.

    @triton_heuristics.pointwise(size_hints={'x': 1024}, triton_meta={'signature': {...}, 'constants': {...}, 'configs': [...]}, inductor_meta={...})

Nothing is evaluated: the arguments are literals, and calls such as `DeviceProperties(type='hip', ...)`, which are kept as they are written.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gluonize.read.evaluate.host_values import HostName
from gluonize.read.files.torch_runtime import HEURISTICS
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import NoValue

KINDS = frozenset(
    {"pointwise", "reduction", "persistent_reduction", "cooperative_reduction", "split_scan", "foreach", "template"}
    | {"fixed_config", "user_autotune"}
)
_DIMENSIONS = ("x", "y", "z")


@dataclass(frozen=True)
class Record:
    """A call that stands for a value: `DeviceProperties(type='hip', cc='gfx942')`."""

    name: str
    args: tuple[Any, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stated:
    """A decorator's statement. kind: which of `KINDS`. call: the decorator. arguments: its keyword arguments as values; what is no literal is
    None. Fields of other releases of torch have today's form: `signature` and `constants` by name, `hints` by dimension.
    """

    kind: str
    call: ast.Call
    arguments: Mapping[str, Any]
    signature: Mapping[str, str]
    constants: Mapping[str, Any]
    hints: Mapping[str, int]

    @property
    def meta(self) -> Mapping[str, Any]:
        """`triton_meta`."""
        return self.arguments.get("triton_meta") or {}

    @property
    def inductor_meta(self) -> Mapping[str, Any]:
        return self.arguments.get("inductor_meta") or {}

    @property
    def device(self) -> Mapping[str, Any]:
        """The device that the kernel was made for, by the fields of `DeviceProperties`; empty where it is not stated."""
        device = self.meta.get("device")
        return device.fields if isinstance(device, Record) else {}

    def attributes(self, names: list[str]) -> dict[str, str]:
        """The flags of a launch spec by argument: `D` divisible by 16, `S` within 2 GiB."""
        found: dict[str, str] = {}
        for config in self.meta.get("configs") or ():
            for number, flag in _flags(config):
                if isinstance(number, int) and number < len(names):
                    found[names[number]] = found.get(names[number], "") + flag
        return found


def stated(node: ast.FunctionDef, scope: Scope | Frame) -> Stated | None:
    """What the decorator of Inductor's says that a kernel has; None where there is none."""
    for decorator in node.decorator_list:
        if not isinstance(decorator, ast.Call) or not isinstance(decorator.func, (ast.Attribute, ast.Name)):
            continue
        try:
            maker = scope.program.evaluate(decorator.func, scope)
        except NoValue:
            continue
        home, _, kind = maker.dotted.rpartition(".") if isinstance(maker, HostName) else ("", "", "")
        if home == HEURISTICS and kind in KINDS:
            return _read(kind, decorator, [arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)])
    return None


def _read(kind: str, call: ast.Call, names: list[str]) -> Stated:
    arguments = {keyword.arg: literal(keyword.value) for keyword in call.keywords if keyword.arg}
    meta = arguments.get("triton_meta") or {}
    signature = {_name(key, names): value for key, value in (meta.get("signature") or {}).items()}
    constants = {_name(key, names): value for key, value in (meta.get("constants") or {}).items()}
    return Stated(kind, call, arguments, signature, constants, _hints(arguments.get("size_hints"), kind))


def _name(key: Any, names: list[str]) -> str:
    """An argument by its name; releases before 2.6 have numbers."""
    return names[key] if isinstance(key, int) and key < len(names) else str(key)


def _hints(given: Any, kind: str) -> dict[str, int]:
    """`{'x': 64, 'r0_': 512}`; older releases have a list, the reduced dimension last."""
    if isinstance(given, Mapping):
        return {("r0_" if name == "r" else name): value for name, value in given.items() if isinstance(value, int)}
    sizes = [value for value in given or () if isinstance(value, int)]
    reduced = "reduction" in kind or kind == "split_scan"
    rows, rest = (sizes[:-1], sizes[-1:]) if reduced else (sizes, [])
    return dict(zip(_DIMENSIONS, rows)) | dict(zip(("r0_",), rest))


def _flags(config: Any) -> list[tuple[Any, str]]:
    """Argument numbers with a flag, from `{(0,): [['tt.divisibility', 16]]}` or one of the forms of older releases."""
    if isinstance(config, Record):
        if config.args and isinstance(config.args[0], Mapping):  # AttrsDescriptor.from_dict({'arg_properties': {...}})
            held = config.args[0].get("arg_properties") or {}
        else:  # instance_descriptor(divisible_by_16=(0, 1))
            held = {"tt.divisibility": config.fields.get("divisible_by_16") or ()}
        pairs = [(number, name) for name, numbers in held.items() for number in numbers]
        return [(n, flag) for n, name in pairs if (flag := _FLAGS.get((name, 16)) or _FLAGS.get((name, 32)))]
    if not isinstance(config, Mapping):
        return []
    return [
        (place[0], flag)
        for place, found in config.items()
        for item in found or ()
        if isinstance(place, tuple) and len(place) == 1 and len(item) == 2 and (flag := _FLAGS.get(tuple(item)))
    ]


_FLAGS = {("tt.divisibility", 16): "D", ("tt.pointer_range", 32): "S"}


def literal(node: ast.expr) -> Any:
    """The value of a literal; calls are `Record`s, and what is neither is None."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values)
        return {literal(key): literal(value) for key, value in pairs if key is not None}
    if isinstance(node, ast.Tuple):
        return tuple(map(literal, node.elts))
    if isinstance(node, (ast.List, ast.Set)):
        return [literal(item) for item in node.elts]
    if isinstance(node, ast.Call):
        return Record(
            ast.unparse(node.func),
            tuple(map(literal, node.args)),
            {k.arg: literal(k.value) for k in node.keywords if k.arg},
        )
    if isinstance(node, ast.Attribute):  # ReductionHint.INNER
        return node.attr
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


__all__ = ["KINDS", "Record", "Stated", "literal", "stated"]
