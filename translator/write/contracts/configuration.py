"""What device code can see of a launch at compile time: element types, constexpr values, the number of warps.

A `Key` names one such fact and writes it as an expression; a configuration gives the value of every key of one launch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gluonize.gluon.names import spelled_apart
from gluonize.read.spec.descriptors import descriptor_type
from gluonize.read.spec.launch import LaunchSpec, decode_value
from gluonize.triton_api.language import tl

_DTYPES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e4nv": "float8e4nv",
    "fp8e4b8": "float8e4b8",
    "fp8e4b15": "float8e4b15",
    "fp8e5": "float8e5",
    "fp8e5b16": "float8e5b16",
    **{f"{s}{bits}": f"{'u' if s == 'u' else ''}int{bits}" for s in "iu" for bits in (8, 16, 32, 64)},
    "i1": "int1",
    "u1": "int1",
    "B": "int1",
}


TYPES = ("element", "dtype", "number")  # kinds of keys whose values are types
NUMBERS = ("i32", "u32", "i64", "u64")


class FunctionName(str):
    """The value of a constexpr that is a jit function. Of functions, device code can compare the names."""


@dataclass(frozen=True)
class Key:
    """kind: `element` (of a pointer), `dtype` (of a descriptor, which is a tuple), `constexpr`, `given` (not None), `number` (the type of
    one), `num_warps` or `num_ctas`."""

    kind: str
    name: str

    @property
    def expression(self) -> str:
        forms = {
            "element": f"{spelled_apart(self.name)}.dtype.element_ty",
            "dtype": f"{spelled_apart(self.name)}[0].dtype.element_ty",
            "number": f"gl.to_tensor({spelled_apart(self.name)}).dtype",  # one that is 1 is compiled as a constant, which has no type
            "num_warps": "gl.num_warps()",
            "num_ctas": "gl.num_ctas()",
        }
        return forms.get(self.kind, self.name)

    def condition(self, value: Any) -> str:
        """The expression that is true where this key has `value`."""
        if self.kind == "given":
            return f"{self.name} is not None" if value else f"{self.name} is None"
        if isinstance(value, bool):
            return self.name if value else f"not {self.name}"
        if value is None:
            return f"{self.name} is None"
        if isinstance(value, FunctionName):
            return f"{self.name} is not None and {self.name}.__name__ == {self.literal(value)}"
        if isinstance(value, tuple) and names_functions(value):
            items = [Key(self.kind, f"{self.name}[{i}]").condition(item) for i, item in enumerate(value)]
            return " and ".join([f"len({self.name}) == {len(value)}", *items])
        return f"{self.expression} == {self.literal(value)}"

    def literal(self, value: Any) -> str:
        if self.kind in TYPES:
            return f"gl.{_DTYPES[value]}"
        from gluonize.write.contracts.prelude import literal

        return literal(value).replace("'", '"') if isinstance(value, str) else literal(value)

    def words(self, value: Any) -> str:
        """`a_ptr fp16`, `BLOCK=128`, `num_warps=4`: the value as a message names it."""
        if self.kind in TYPES:
            return f"{self.name} {value}"
        if self.kind == "given":
            return f"{self.name} given" if value else f"{self.name}=None"
        return f"{self.name}={value}"

    def tag(self, value: Any) -> str:
        """The value as a part of a function's name."""
        name = self.name.lower().removesuffix("_ptr")
        if self.kind == "number":
            return f"{name}_{value}"
        if self.kind in TYPES:
            return str(value)
        if self.kind == "num_warps":
            return f"{value}_warps"
        if self.kind == "num_ctas":
            return f"{value}_ctas"
        if self.kind == "given":
            return f"with_{name}" if value else f"without_{name}"
        if isinstance(value, bool):
            return name if value else f"not_{name}"
        if isinstance(value, FunctionName):
            return value.strip("_")
        words = "".join(c if c.isalnum() or c == "_" else " " for c in f"{name}_{value}").split()
        return "_".join(words).strip("_")


Configuration = dict[Key, Any]
CTAS = Key("num_ctas", "num_ctas")


def configuration(spec: LaunchSpec, fn: Any, num_warps: int) -> Configuration:
    """The configuration of one launch of `fn`, in the order of the arguments."""
    out: Configuration = {}
    for param in fn.params:
        kind = spec.signature.get(param.name)
        if param.is_constexpr:
            if param.name in spec.constexprs:
                if is_compared(value := _decoded(spec.constexprs[param.name])):
                    out[Key("constexpr", param.name)] = value
        elif kind == "constexpr":
            if spec.constexprs.get(param.name, 0) is None:
                out[Key("given", param.name)] = False
        elif isinstance(kind, str) and kind.startswith("*"):
            element = kind.removeprefix("*").removeprefix("k")
            out[Key("given", param.name)] = True
            if element in _DTYPES:
                out[Key("element", param.name)] = element
        elif isinstance(kind, str) and kind in NUMBERS:
            out[Key("number", param.name)] = kind
        elif (found := descriptor_type(kind)) is not None and found.dtype in _DTYPES:
            out[Key("dtype", param.name)] = found.dtype
    out[Key("num_warps", "num_warps")] = num_warps
    out[CTAS] = spec.options.get("num_ctas", 1)
    return out


def is_compared(value: Any) -> bool:
    """Whether device code can compare a constexpr with `value`: a number, a text, None, a type, a function's name, a tuple."""
    if isinstance(value, tuple):
        return all(is_compared(item) and not (isinstance(item, tuple) and names_functions(item)) for item in value)
    return value is None or isinstance(value, (bool, int, float, str, tl.dtype))


def names_functions(value: Any) -> bool:
    """Whether a constexpr is a function, or a tuple with one."""
    return any(map(names_functions, value)) if isinstance(value, tuple) else isinstance(value, FunctionName)


def _decoded(written: Any) -> Any:
    """The value of a constexpr, as a launch has it; a function is its name."""
    if isinstance(written, dict) and isinstance(reference := written.get("$jit"), str):
        return FunctionName(reference.rpartition(":")[2].rpartition(".")[2])
    if isinstance(written, dict) and isinstance(items := written.get("$tuple"), list):
        return tuple(map(_decoded, items))
    return decode_value(written, lambda *_: object())


def functions_and_types(configurations: Iterable[Configuration]) -> tuple[frozenset[str], frozenset[str]]:
    """The constexprs that are functions in some configuration, or tuples with one, and those that are types."""
    found = [(key.name, value) for c in configurations for key, value in c.items() if key.kind == "constexpr"]
    functions = frozenset(name for name, value in found if names_functions(value))
    return functions, frozenset(name for name, value in found if isinstance(value, tl.dtype))


def device_view(spec: LaunchSpec, fn: Any) -> Configuration:
    """The configuration of a launch before it is traced: with the number of warps that it asks for."""
    return configuration(spec, fn, spec.options.get("num_warps", 4))


def common_keys(configurations: Iterable[Configuration]) -> list[Key]:
    """The keys that every configuration has, in order; of clusters only where a launch has them."""
    every = list(configurations)
    plain = all(c.get(CTAS, 1) == 1 for c in every)
    return [key for key in every[0] if all(key in other for other in every[1:]) and not (plain and key == CTAS)]


def distinguishing_keys(groups: Sequence[Sequence[Configuration]]) -> tuple[Key, ...] | None:
    """The fewest keys whose values tell every configuration of one group from those of all others, or None."""
    if len(groups) == 1:
        return ()
    keys = common_keys(c for group in groups for c in group)
    rank = {"element": 0, "dtype": 0, "constexpr": 1, "given": 2, "num_warps": 3, "num_ctas": 4, "number": 5}
    varying = [k for k in keys if len({repr(c[k]) for group in groups for c in group}) > 1]
    varying.sort(key=lambda key: rank[key.kind])
    for size in range(1, min(len(varying), 3) + 1):
        for chosen in itertools.combinations(varying, size):
            if _tells_apart(chosen, groups):
                return chosen
    return tuple(varying) if _tells_apart(tuple(varying), groups) else None


def _tells_apart(keys: tuple[Key, ...], groups: Sequence[Sequence[Configuration]]) -> bool:
    seen: dict[tuple, int] = {}
    for number, group in enumerate(groups):
        for found in group:
            if seen.setdefault(tuple(repr(found[key]) for key in keys), number) != number:
                return False
    return True


def any_of(keys: Sequence[Key], values: Sequence[tuple]) -> str:
    """The condition that the keys have one of the given tuples of values."""
    return _either(keys, [" and ".join(key.condition(value) for key, value in zip(keys, row)) for row in values])


def _either(keys: Sequence[Key], texts: Sequence[str]) -> str:
    """One of several conditions on the keys."""
    if len(texts) == 1:
        return texts[0]
    return " or ".join(f"({text})" if len(keys) > 1 else text for text in texts)


def words_of(keys: Sequence[Key], row: tuple) -> str:
    """`a_ptr, b_ptr fp16, BLOCK=64`: a row of values for a message; pointers of one type together."""
    out: list[str] = []
    elements: dict[str, list[str]] = {}
    for key, value in zip(keys, row):
        if key.kind in ("element", "dtype"):
            if value not in elements:
                out.append(f"*{value}")
            elements.setdefault(value, []).append(key.name)
        else:
            out.append(key.words(value))
    return ", ".join(f"{', '.join(elements[t[1:]])} {t[1:]}" if t.startswith("*") else t for t in out)
