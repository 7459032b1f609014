"""Kernels run as Python over numpy, block pointers by their definition: what they are written as is compared with this.

A block pointer is a base, and of each dimension a size, a stride, an offset and an extent. Lane `i` of it is the element
`base + sum((offset_d + i_d) * stride_d)`, in numbers without end; it is there if `0 <= offset_d + i_d < size_d` for each dimension that is
checked. What is not there reads as the padding, 0 where there is none, and is not stored. `advance` adds to the offsets.

Integers have the types that Triton gives them: arguments and indices have 32 bits and wrap around, `to(int64)` widens.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np


class Array(np.ndarray):
    """A tensor with the methods that kernels call."""

    def to(self, dtype):
        return self.astype(dtype)

    def __iadd__(self, other):
        return self + other  # a new tensor: another name may have the old one


def array(values, dtype=None) -> Array:
    return np.asarray(values, dtype).view(Array)


@dataclass
class Memory:
    """A tensor without end: each element that was not stored has a value of its own."""

    number: int
    stored: dict[int, float] = field(default_factory=dict)

    def __getitem__(self, address: int) -> float:
        return self.stored.get(address, float((address * 7 + self.number * 13) % 101 + 1))


@dataclass
class Pointers:
    """Pointers into one memory, as many as `offsets` has elements."""

    memory: Memory
    offsets: np.ndarray = field(default_factory=lambda: np.asarray(0, np.int64))
    dtype = SimpleNamespace(element_ty=np.float64)

    def __add__(self, other):
        return replace(self, offsets=np.asarray(self.offsets + np.asarray(other).astype(np.int64), np.int64))


@dataclass(frozen=True)
class BlockPointer:
    base: Pointers
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offsets: tuple[int, ...]
    extents: tuple[int, ...]
    dtype = SimpleNamespace(element_ty=np.float64)

    def advance(self, steps):
        return replace(self, offsets=tuple(o + int(s) for o, s in zip(self.offsets, steps, strict=True)))

    def lanes(self, checked):
        """Of each lane its index in the tile, its address, and whether it is there."""
        checked = checked if isinstance(checked, (tuple, list)) else (checked,)
        for lane in itertools.product(*map(range, self.extents)):
            at = [o + i for o, i in zip(self.offsets, lane)]
            there = all(0 <= at[d] < self.shape[d] for d in checked)
            yield lane, int(self.base.offsets) + sum(a * s for a, s in zip(at, self.strides)), there


def make_block_ptr(base, shape, strides, offsets, block_shape, order):
    numbers = ([int(n) for n in given] for given in (shape, strides, offsets, block_shape))
    return BlockPointer(base, *map(tuple, numbers))


def load(pointer, mask=None, other=None, boundary_check=(), padding_option="", cache_modifier=""):
    if isinstance(pointer, BlockPointer):
        assert mask is None and other is None
        out = np.full(pointer.extents, np.nan if padding_option == "nan" else 0.0)
        for lane, address, there in pointer.lanes(boundary_check):
            if there:
                out[lane] = pointer.base.memory[address]
        return array(out)
    there = np.broadcast_to(True if mask is None else mask, pointer.offsets.shape)
    out = np.full(pointer.offsets.shape, np.inf if other is None else other)
    for lane in np.ndindex(out.shape):
        if there[lane]:
            out[lane] = pointer.memory[int(pointer.offsets[lane])]
    return array(out)


def store(pointer, value, mask=None, boundary_check=(), cache_modifier=""):
    if isinstance(pointer, BlockPointer):
        values = np.broadcast_to(value, pointer.extents)
        stores = [
            (pointer.base.memory, address, values[lane])
            for lane, address, there in pointer.lanes(boundary_check)
            if there
        ]
    else:
        values = np.broadcast_to(value, pointer.offsets.shape)
        there = np.broadcast_to(True if mask is None else mask, pointer.offsets.shape)
        stores = [(pointer.memory, int(pointer.offsets[i]), values[i]) for i in np.ndindex(there.shape) if there[i]]
    for memory, address, one in stores:
        memory.stored[address] = float(one)


def run(text: str, kernel: str, program: int, arguments: dict) -> list[tuple]:
    """What a program of a kernel stores: (memory, address, value), sorted."""
    language = SimpleNamespace(
        make_block_ptr=make_block_ptr, advance=lambda p, steps: p.advance(steps), load=load, store=store,
        arange=lambda start, end: array(np.arange(start, end, dtype=np.int32)),
        zeros=lambda shape, dtype=None: array(np.zeros(shape)), program_id=lambda axis: np.int32(program),
        cast=lambda x, dtype: np.asarray(x).astype(dtype)[()], cdiv=lambda a, b: -(-a // b), static_range=range,
        int32=np.int32, int64=np.int64, float32=np.float64, constexpr=int, sum=lambda x, axis: array(np.sum(x, axis)),
    )  # fmt: skip
    names = {"tl": language, "triton": SimpleNamespace(jit=lambda fn: fn)}
    exec("\n".join(line for line in text.splitlines() if not line.startswith("import ")), names)
    memories = {name: Memory(n) for n, (name, value) in enumerate(arguments.items()) if value is Memory}
    given = {name: Pointers(memories[name]) if name in memories else value for name, value in arguments.items()}
    with np.errstate(over="ignore"):
        names[kernel](**given)
    return sorted((name, address, repr(value)) for name, m in memories.items() for address, value in m.stored.items())
