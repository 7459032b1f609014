"""Launches with made-up values, for kernels of which nothing but types is known.

Sizes are small, ragged against the kernel's blocks and divisible by 16 where the specialization says so; strides leave
every row and matrix room of its own; tensors are large enough for all of it. Whether the source makes sense with them is
found by running it: a launch in which the source itself goes out of bounds says nothing about its translation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from gluonize.judge.inputs.strides import UsedStrides
from gluonize.read.spec.descriptors import DescriptorType, descriptor_type
from gluonize.read.spec.launch import LaunchSpec

_STRIDE = re.compile(r"stride|(^|_)ld[a-z]?($|_)|pitch", re.I)
_KNOWN = re.compile(r"\*|B$|[iu](1|8|16|32|64)$|(fp|bf)\d")
_BOOLEAN = ("i1", "u1", "B")
SMALL = re.compile(r"eps|tol", re.I)
ROOM = 288  # elements of a row at least; more than any made-up size of a matrix
FEW = 8  # matrices of a tensor of more dimensions, and so on outwards: more would be larger than any storage
SIZES = (144, 208, 272)
STORAGE = (1 << 18, 1 << 22, 1 << 24)  # elements of each tensor, tried in turn
GRID = (4, 2, 2)


def guesses(spec: LaunchSpec, source: str, strides: UsedStrides = UsedStrides({})) -> Iterator[LaunchSpec]:
    """The launch with values, the likeliest first; none where an argument is no pointer, number, tensor descriptor or tuple.

    Values that the launch has are kept at first, its own sizes and grid; where the source can do nothing with these, all are made up.
    source: text of the source's TTIR, which says how many axes of the grid it asks for; strides: arguments that it uses as such, beside
    those that are named so.
    """
    if spec.values or spec.grid:
        yield from (replace(made, values=made.values | spec.values) for made in _made_up(spec, source, strides))
    yield from _made_up(replace(spec, values={}, grid=() if spec.values else spec.grid), source, strides)


def is_whole(spec: LaunchSpec) -> bool:
    """Whether a launch says what each of its arguments holds."""
    return all(name in spec.values for name, kind in spec.signature.items() if kind != "constexpr")


def _made_up(spec: LaunchSpec, source: str, used: UsedStrides) -> Iterator[LaunchSpec]:
    """The launch with values of which none is that of the launch; with small tensors, then with large ones."""
    given = {name: kind for name, kind in spec.signature.items() if kind != "constexpr"}
    if not all(map(_is_known, given.values())):
        return
    kinds = {name: kind for name, kind in given.items() if isinstance(kind, str) and descriptor_type(kind) is None}
    scalars = {name: _scalar(spec, name, kind) for name, kind in kinds.items() if kind[0] != "*"}
    strides = [n for n in spec.signature if _STRIDE.search(n) or n in used.tensors]
    sizes = [name for name, kind in kinds.items() if kind[0] in "iu" and kind not in _BOOLEAN and name not in strides]
    for number, name in enumerate(sizes):
        scalars[name] = _size(spec, name, number, len(sizes))
    scalars |= _divided(spec, source, {name: scalars[name] for name in sizes})
    room = max([ROOM, *(-(-scalars[name] // 16) * 16 for name in sizes)])
    names = [n for n in kinds if n in strides and kinds[n][0] in "iu"]
    axes = [axis for axis, letter in enumerate("xyz") if f"tt.get_program_id {letter}" in source]
    grid = spec.grid or tuple(GRID[axis] if axis in axes else 1 for axis in range(max(axes, default=0) + 1))
    # A size may be that of rows as well as of columns. Where no storage lasts for as many rows in each matrix, the long dimension is the
    # outer one, as that of tokens before a few heads.
    many = max(ROOM, min(room, STORAGE[-1] // (room * FEW)))
    for storage, rows in (*((storage, many) for storage in STORAGE), (STORAGE[1], FEW)):
        values = scalars | _strides(spec, names, used, room, rows)
        for number, name in enumerate(name for name, kind in kinds.items() if kind[0] == "*"):
            # Extents that are sizes of the launch say which of its scalars may be varied.
            last = values[sizes[number % len(sizes)]] if sizes else 1
            values[name] = {"tensor": _tensor(kinds[name], storage, max(last, 1))}
        for name in (name for name in given if name not in kinds):
            tile = descriptor_type(given[name])
            values[name] = _items(spec, name, given[name], storage) if tile is None else _described(tile)
        yield replace(spec, values=values, grid=grid)


def _divided(spec: LaunchSpec, source: str, sizes: dict[str, int]) -> dict[str, int]:
    """Sizes whose quotient divides something in turn, as heads of queries over those of keys: multiples of each other."""
    out: dict[str, int] = {}
    for quotient, whole, part in re.findall(r"(%\w+) = arith\.div[su]i %(\w+), %(\w+) ", source):
        if whole in sizes and part in sizes and re.search(rf"arith\.(?:div|rem)[su]i %\w+, {quotient} ", source):
            step, unit = (
                16 if "D" in str(spec.attrs.get(name, "")) else least for name, least in ((part, 2), (whole, 1))
            )
            unit = math.lcm(step, unit)
            out |= {part: step, whole: max(-(-sizes[whole] // unit), 2) * unit}
    return out


def _is_known(kind: Any) -> bool:
    if isinstance(kind, (list, tuple)):
        return all(item == "constexpr" or isinstance(item, str) and _KNOWN.match(item) for item in kind)
    tile = descriptor_type(kind)
    return isinstance(kind, str) and _KNOWN.match(kind) is not None if tile is None else not tile.image_rank


def _described(tile: DescriptorType) -> dict:
    """The value of a descriptor of matrices that are larger than any made-up size; outer dimensions are short."""
    shape = [*[3] * (len(tile.block) - 2), *[SIZES[-1]] * min(len(tile.block), 2)]
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    base = {"dtype": "", "shape": shape, "stride": strides, "storage": math.prod(shape), "offset": 0}
    block = list(tile.block)
    return {"descriptor": {"base": {"tensor": base}, "shape": shape, "strides": strides, "block_shape": block}}


def _items(spec: LaunchSpec, name: str, kinds: Sequence[str], storage: int) -> list:
    """The values of a tuple: tensors, strides from the outermost to the innermost where it is called so, else sizes and numbers."""
    attrs = spec.attrs.get(name)
    flags = attrs if isinstance(attrs, (list, tuple)) and len(attrs) == len(kinds) else [""] * len(kinds)
    out: list = []
    for i, kind in enumerate(kinds):
        by_16 = "D" in str(flags[i])
        if kind == "constexpr":
            out.append(None)
        elif kind[0] == "*":
            out.append({"tensor": _tensor(kind, storage, SIZES[0])})
        elif kind[0] not in "iu" or kind in _BOOLEAN:
            out.append(_scalar(spec, name, kind))
        elif _STRIDE.search(name):
            out.append(ROOM ** (len(kinds) - 1 - i) * (16 if by_16 and i == len(kinds) - 1 else 1))
        else:
            out.append(SIZES[i % len(SIZES)] - (0 if by_16 else 3))
    return out


def _tensor(kind: str, storage: int, last: int) -> dict:
    shape = [storage // last, last]
    return {"dtype": kind.lstrip("*"), "shape": shape, "stride": [last, 1], "storage": storage, "offset": 0}


def _scalar(spec: LaunchSpec, name: str, kind: str) -> float | int | bool:
    if kind in _BOOLEAN:
        return True
    if kind[0] in "iu":
        return 16 if "D" in str(spec.attrs.get(name, "")) else 3
    return 1e-5 if SMALL.search(name) else 0.5


def _size(spec: LaunchSpec, name: str, number: int, count: int) -> int:
    blocks = [v for v in spec.constexprs.values() if type(v) is int and v >= 256]
    value = 2 * max(blocks) + 48 if count == 1 and blocks else SIZES[number % len(SIZES)]
    return value if "D" in str(spec.attrs.get(name, "")) else value - 3


def _strides(spec: LaunchSpec, names: list[str], used: UsedStrides, room: int, rows: int) -> dict[str, int]:
    """Strides of each tensor, outermost first, as signatures list them: of those that are added to one pointer, else of those whose names
    differ in their last letters. room: elements of a row, which the longest has space in; rows: of a matrix.
    """
    every = [name for name in spec.signature if _STRIDE.search(name)]
    out: dict[str, int] = {}
    for name in names:
        if name in used.tensors:
            group = [other for other in spec.signature if other in used.others(name)]
            inside = len(group) - 1 - group.index(name) + used.is_dense(name)
        else:
            behind = every[every.index(name) + 1 :]
            alone = not any(n[:-1] == name[:-1] for n in every if n != name)
            inside = 1 if alone else sum(n[:-1] == name[:-1] for n in behind)  # an only stride is that of rows
        innermost = 16 if "D" in str(spec.attrs.get(name, "")) else 1
        matrices = FEW ** max(inside - 2, 0)
        out[name] = room * rows ** min(inside - 1, 1) * matrices if inside else innermost
    return out
