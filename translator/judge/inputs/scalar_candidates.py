"""Other values that the scalars of a launch may take, and other grids: what could change a kernel's way.

What the specialization promises stays true: an argument that is marked divisible by 16 stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op

INTEGERS = {f"{sign}{bits}": (sign, bits) for sign in "iu" for bits in (1, 8, 16, 32, 64)} | {"B": ("u", 1)}
SMALL = (0, 1, 2, 3, 5, 7)
ODD = (17, 33, 65, 129)
NEGATIVE = (-1, -3, -16)
LARGEST = 1 << 16  # of the values tried; loops that long show nothing new
COMPARED = ("arith.cmpi",)


@dataclass(frozen=True)
class Change:
    """values: scalars of the launch that are other ones; grid: () for that of the launch."""

    values: dict[str, int] = field(default_factory=dict, hash=False)
    grid: tuple[int, ...] = ()

    def __str__(self) -> str:
        parts = [f"{name} = {value}" for name, value in self.values.items()]
        parts += [f"a grid of {' x '.join(map(str, self.grid))}"] if self.grid else []
        return ", ".join(parts)

    def __or__(self, other: "Change") -> "Change":
        return Change(self.values | other.values, other.grid or self.grid)


def integer_arguments(spec: LaunchSpec) -> list[str]:
    """Run-time integers whose values the launch gives."""
    return [
        name
        for name, kind in spec.signature.items()
        if isinstance(kind, str) and kind in INTEGERS and isinstance(spec.values.get(name), int)
    ]


def values_for(spec: LaunchSpec, name: str, constants: Iterable[int], few: int) -> list[int]:
    """Values to try for one argument, small ones first, without the one it has.

    constants: what the kernel compares with. few: the most trips that a pipeline takes to fill.
    """
    sign, bits = INTEGERS[spec.signature[name]]
    now = int(spec.values[name])
    steps = sorted({v for v in spec.constexprs.values() if type(v) is int and 1 < v <= LARGEST // 4})
    tried = [*SMALL, *(c + d for c in constants for d in (0, -1, 1))]
    for step in (16, *steps):
        tried += [
            step,
            2 * step,
            few * step,
            (few + 1) * step,
            2 * step + 16,
            (few + 2) * step - 16,
            step - 1,
            step + 1,
        ]
    tried += [*ODD, now // 2, now - 1, now + 1, 2 * now, (few + 2) * now, *NEGATIVE]
    return list(dict.fromkeys(v for v in tried if v != now and _allowed(spec, name, v, sign, bits)))


def _allowed(spec: LaunchSpec, name: str, value: int, sign: str, bits: int) -> bool:
    low, high = (0, (1 << bits) - 1) if sign == "u" or bits == 1 else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    divisible = "D" not in str(spec.attrs.get(name, "")) or value % 16 == 0
    return max(low, -LARGEST) <= value <= min(high, LARGEST) and divisible


def compared_constants(module: Module) -> list[int]:
    """Integers that the kernel compares scalars with, in ascending order."""
    made = {value: op for op in module.walk() if op.name == "arith.constant" for value in op.results}
    found = set()
    for op in module.walk():
        if op.name in COMPARED:
            for operand in op.operands:
                if (constant := made.get(operand)) is not None and constant.type.shape is None:
                    found |= _integer(constant)
    return sorted(value for value in found if abs(value) < LARGEST)


def modes(module: Module) -> dict[str, list[int]]:
    """Parameters of the entry function that are compared for equality with constants, each with those in ascending order."""
    constants = {value: op for op in module.walk() if op.name == "arith.constant" for value in op.results}
    names = {value: name for (value, _), name in zip(module.entry.arguments, module.entry.argument_names)}
    found: dict[str, set[int]] = {}
    for op in module.entry.walk():
        if op.name == "arith.cmpi" and op.word in ("eq", "ne"):
            for one, other in (op.operands, op.operands[::-1]):
                if one in names and other in constants:
                    found.setdefault(names[one], set()).update(_integer(constants[other]))
    return {name: sorted(values) for name, values in found.items()}


def _integer(constant: Op) -> set[int]:
    """The integer that a constant is, which true and false are not."""
    return {value} if (value := constant.constant.integer) is not None and constant.type.element != "i1" else set()


def grids(module: Module, grid: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Fewer and more programs, for kernels that share their work between as many as there are."""
    if not module.has("tt.get_num_programs"):
        return []
    count = 1
    for extent in grid:
        count *= extent
    ones = (1,) * (len(grid) - 1)
    smaller = [(n, *ones) for n in (1, 2, 3) if n < count]
    return [*smaller, (2 * grid[0] + 1, *grid[1:])]


def single_changes(
    spec: LaunchSpec, module: Module, names: Iterable[str], few: int, grid: tuple[int, ...]
) -> Iterator[Change]:
    """One scalar or the grid at a time, the small values of all scalars before the large ones of any."""
    constants = compared_constants(module)
    lists = {name: values_for(spec, name, constants, few) for name in integer_arguments(spec) if name in set(names)}
    yield from (Change(grid=other) for other in grids(module, grid))
    for position in range(max(map(len, lists.values()), default=0)):
        for name, values in lists.items():
            if position < len(values):
                yield Change({name: values[position]})
