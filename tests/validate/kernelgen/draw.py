"""Choices from a seed, and a kernel with the launches it is judged on."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from gluonize.read.spec.launch import LaunchSpec

HEAD = "import triton\nimport triton.language as tl\n\n\n"
# Triton's name of a pointer -> the name of the type in a launch spec
DTYPES = {"*fp32": "float32", "*fp16": "float16", "*bf16": "bfloat16", "*fp8e5": "float8_e5m2"}
DTYPES |= {"*i8": "int8", "*u8": "uint8", "*i16": "int16", "*u16": "uint16", "*i32": "int32", "*u32": "uint32"}
DTYPES |= {"*i64": "int64", "*fp8e4nv": "float8_e4m3fn"}

# A body is a list of statements: a line, or for a compound one a tuple of heads with their bodies, `("if c:", [...], "else:", [...])`.


class Draw:
    """Repeatable choices."""

    def __init__(self, seed: int | str):
        self._random = random.Random(str(seed))

    def pick(self, *options: Any) -> Any:
        return self._random.choice(options)

    def number(self, low: int, high: int) -> int:
        """Both ends included."""
        return self._random.randint(low, high)

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def some(self, options, low: int, high: int) -> list:
        """Between `low` and `high` of the options, in random order."""
        options = list(options)
        return self._random.sample(options, min(len(options), self.number(low, high)))

    def shuffled(self, options) -> list:
        return self._random.sample(list(options), len(options))


@dataclass(frozen=True)
class Launch:
    """Scalars and a grid that the kernel is run with; the tensors are those of the kernel's spec.

    omitted: scalars that the launch leaves to their defaults, which `scalars` has too.
    """

    scalars: dict[str, int | float] = field(hash=False)
    grid: tuple[int, ...]
    omitted: tuple[str, ...] = ()


@dataclass(frozen=True)
class RandomKernel:
    """`spec` is what it is translated for, `launches` what both sides are run with, the launch of the spec first.

    specialized: whether the output is also compiled as Triton does for the values of the last launch: a 1 as a constant, another number
    as a multiple of 16 where it is one. interpreted: whether Triton's interpreter gives the same numbers for such a kernel by its own rules. `per_target`: the source's
    own IR differs from target to target.
    """

    text: str
    spec: LaunchSpec
    launches: tuple[Launch, ...]
    kind: str = ""
    interpreted: bool = True
    per_target: bool = False
    specialized: bool = False


def rendered(lines: list, depth: int = 0) -> str:
    """Statements as text, each body one level deeper."""
    out = []
    for line in lines:
        if isinstance(line, str):
            out.append("    " * depth + line + "\n")
            continue
        for head, body in zip(line[::2], line[1::2]):
            out.append("    " * depth + head + "\n" + rendered(body or ["pass"], depth + 1))
    return "".join(out)


def kernel_text(signature: dict, body: list, helpers: str = "", defaults: dict | None = None) -> str:
    """A file with the one kernel `kernel`."""
    parameters = []
    for name, kind in signature.items():
        default = f"={defaults[name]}" if defaults and name in defaults else ""
        parameters.append(
            f"{name}: tl.constexpr{default.replace('=', ' = ')}" if kind == "constexpr" else name + default
        )
    return HEAD + helpers + f"@triton.jit\ndef kernel({', '.join(parameters)}):\n" + rendered(body, 1)


def tensor(kind: str, *shape: int, low=None, high=None, offset: int = 0) -> dict:
    """The value of a tensor argument: `shape` elements from `offset` of its storage on, from `low` to `high` where these are given."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    described: dict = {"dtype": DTYPES[kind], "shape": list(shape), "stride": strides, "storage": step + offset}
    span = {} if low is None else {"range": [low, high]}
    return {"tensor": described | {"offset": offset} | span}


def launch_spec(
    signature: dict, constexprs: dict, values: dict, grid: tuple[int, ...], divisible: set[str], warps: int, stages: int
) -> LaunchSpec:
    """divisible: the scalars that are compiled as multiples of 16; one that is 1 becomes a constexpr, as Triton has it."""
    ones = [name for name, kind in signature.items() if kind == "i32" and values.get(name) == 1]
    signature = {name: "constexpr" if name in ones else kind for name, kind in signature.items()}
    constexprs = constexprs | dict.fromkeys(ones, 1)
    attrs = {name: "DS" for name, kind in signature.items() if kind.startswith("*")}
    attrs |= {name: "D" for name in sorted(divisible) if name not in ones}
    options = {"num_warps": warps, "num_stages": stages}
    return LaunchSpec("random", "kernel", "", signature, constexprs, attrs, options, grid, {}, values)


def divisible_by_16(values: dict, signature: dict) -> set[str]:
    return {name for name, kind in signature.items() if kind == "i32" and values[name] % 16 == 0}
