"""Arguments of the made kernels: names, the values that are tried, and specs with the buffers they need."""

from __future__ import annotations

import re
from dataclasses import replace

from kernelgen.draw import (
    Draw,
    Launch,
    RandomKernel,
    divisible_by_16,
    kernel_text,
    launch_spec,
    rendered,
    tensor,
)

MARGIN = 1 << 15  # elements before and behind the address that a pointer stands for; addresses may walk either way
LAUNCHES = 4  # sets of values that a kernel is run with

# The values that a scalar is given; `B` is the tile's size. What only an odd launch has stands behind the bar.
VALUES = {
    "K": ("2*B", "3*B", "5*B", "|", "0", "B", "1", "2*B+8"),
    "trips": ("2", "3", "5", "|", "0", "1"),
    "reps": ("2", "3", "|", "0", "1"),
    "mode": ("0", "2", "3", "|", "1", "-1"),
    "n": ("B", "7", "3*B", "2*B-5", "|", "0", "1", "2", "-3"),
    "sh": ("0", "5", "16", "|", "-5", "-16", "1", "64", "-64"),
    "S": ("64", "48", "80", "|", "0", "-32"),
    "tiles": ("2", "3", "5", "|", "0", "1", "7"),
}


def value_of(draw: Draw, name: str, size: int, divisible: bool, common: bool) -> int:
    """One value; a `common` one is what a launch to translate for would have, and never 1, which Triton compiles apart."""
    texts = VALUES[name]
    usual = texts[: texts.index("|")]
    options = [_number(text, size) for text in (usual if common else texts) if text != "|"]
    if divisible:
        options = [x for x in options if x % 16 == 0] or [0, 16, 32]
    return draw.pick(*options)


def _number(text: str, size: int) -> int:
    out = 0
    for term in text.replace("-", "+-").split("+"):
        if term:
            factor, _, rest = term.partition("*")
            out += (int(factor) * size) if rest else size if term == "B" else int(term)
    return out


class Arguments:
    """Collects the arguments that a body uses, in the order in which it first does."""

    def __init__(self, draw: Draw, size: int):
        self.draw, self.size = draw, size
        self.signature: dict[str, str] = {}
        self.values: dict[str, dict] = {}
        self.constexprs: dict[str, int] = {}
        self.defaults: dict[str, str] = {}
        self.ranges: dict[str, tuple[int, int]] = {}
        self.scalars: list[str] = []
        # Pointers into the middle of a tensor, or the kernel goes there itself.
        self.views = draw.chance(0.25)
        # Triton takes it that no offset from an argument of less than 2 GiB is negative, so views tell more where it must not.
        self.large = self.views and draw.chance(0.6)

    def pointer(self, name: str, kind: str, low=None, high=None) -> str:
        """-> an expression for a pointer with `MARGIN` elements on both sides."""
        if name not in self.signature:
            self.signature[name] = kind
            if self.views:
                self.values[name] = tensor(kind, MARGIN, low=low, high=high, offset=MARGIN)
            else:
                self.values[name] = tensor(kind, 2 * MARGIN, low=low, high=high)
                self.constexprs["MARGIN"] = MARGIN
        return name if self.views else f"{name} + MARGIN"

    def scalar(self, name: str) -> str:
        if name not in self.signature:
            self.signature[name] = "i32"
            self.scalars.append(name)
        return name

    def fixed(self, name: str, value) -> str:
        self.constexprs[name] = value
        return name

    def kernel(self, body: list, kind: str, grids: list[tuple[int, ...]], helpers: str = "", **more) -> RandomKernel:
        """The kernel on its first grid and values, and launches with others."""
        draw = self.draw
        text = rendered(body) + helpers
        for name in [name for name in self.scalars if not re.search(rf"\b{name}\b", text)]:
            self.scalars.remove(name)
            del self.signature[name]
            self.defaults.pop(name, None)
        strict = {name for name in self.scalars if draw.chance(0.4)}
        first = {name: value_of(draw, name, self.size, name in strict, True) for name in self.scalars}
        signature = self.signature | dict.fromkeys(self.constexprs, "constexpr")
        signature |= {name: signature.pop(name) for name in self.defaults}
        values = self.values | first
        whole = {k: v for k, v in signature.items() if k in first}
        spec = launch_spec(
            signature,
            dict(self.constexprs),
            {name: values.get(name) for name in signature if name in values},
            grids[0],
            divisible_by_16(first, whole) & strict,
            draw.pick(1, 2, 4, 4),
            draw.pick(1, 2, 2, 3, 4),
        )
        if self.large:
            spec = replace(spec, attrs={name: flags.replace("S", "") for name, flags in spec.attrs.items()})
        launches = [Launch(first, grids[0])]
        for _ in range(LAUNCHES - 1):
            scalars = {name: value_of(draw, name, self.size, name in strict, False) for name in self.scalars}
            omitted = tuple(name for name in self.defaults if name not in strict and draw.chance(0.5))
            scalars |= {name: int(self.defaults[name]) for name in omitted}
            launches.append(Launch(scalars, draw.pick(*grids), omitted))
        text = kernel_text(signature, body, helpers, self.defaults)
        return RandomKernel(text, spec, tuple(launches), kind, **more)
