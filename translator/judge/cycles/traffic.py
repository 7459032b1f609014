"""Bytes that one iteration of a loop moves out of L2: for a whole program, and for one workgroup of it.

    %t = amdg.async_tdm_copy_global_to_local ... -> !ttg.memdesc<64x128xf16, #shared>    two workgroups of a cluster have all of it

is a multicast: 16 KiB are read for the program, and 16 KiB arrive at each workgroup. What is loaded to registers each workgroup that
has it reads for itself.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gluonize.trace.model.cta_parts import ctas_of
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Layout, Mfma, Wmma, part_of, warps_of
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type

_TILES = ("amdg.async_tdm_copy_global_to_local", "amdg.async_tdm_copy_local_to_global")
_COPIES = ("amdg.async_tdm_copy_global_to_local", "ttg.async_copy_global_to_local", "amdg.buffer_load_to_local")
_LOADS = ("tt.load", "amdg.buffer_load")
_PRODUCTS = ("tt.dot", "tt.dot_scaled")
_LOOPS = ("scf.for", "scf.while")
_PARTITIONS = "ttg.warp_specialize"


@dataclass(frozen=True)
class Traffic:
    """Of one iteration of a loop, in bytes. read: out of L2 for a program, what several workgroups share by a multicast once.
    received: by one workgroup. fetched: by the L2 cache that has most to fetch for the programs at work, 0 where that is not known.
    """

    read: int
    received: int
    fetched: float = 0.0


def hot_traffic(module: Module) -> Traffic:
    """The traffic of the innermost loop with most products, else of that which reads most; of a module without loops, nothing.

    The loops of partitions, of which one copies what another one multiplies, are one.
    """
    return _traffic(module, _hot_loop(module))


def hot_loads(module: Module) -> list[tuple[Op, int]]:
    """The operations of that loop which bring a tile out of L2, each with its bytes for one program."""
    return [(op, read) for op, read, _ in _moves(module, _hot_loop(module))]


def hot_range(module: Module) -> Op | None:
    """The innermost loop over a range with most products; None where there are none."""
    loops = [op for f in module.functions.values() for op in _innermost(f.region.walk()) if op.name == "scf.for"]
    found = max(loops, key=lambda op: _products(list(_inside(op))), default=None)
    return found if found is not None and _products(list(_inside(found))) else None


def needed_part(module: Module) -> float:
    """Of what the matrix instructions of that loop multiply, the part that its products need, 0 to 1: where an instruction is larger than
    a product, or warps have no rows of their own, things are multiplied twice, or with zeros."""
    needed = done = 0
    for op in _hot_loop(module):
        if op.name in _PRODUCTS and (least := _least(module.layout(op.type))):
            shape = _part(module, op.type)[-2:]
            needed += math.prod(shape)
            done += math.prod(size * -(-own // size) for own, size in zip(shape, least))
    return needed / done if done else 1.0


def _least(layout: Layout) -> tuple[int, ...]:
    """Rows and columns that all warps multiply at least; () for what no matrix instruction multiplies."""
    if not isinstance(layout, Mfma | Wmma):
        return ()
    return tuple(warps * size for warps, size in zip(warps_of(layout)[-2:], layout.instr_shape))


def tile_bytes(module: Module, within: int = 0) -> dict[str, float]:
    """ "kernel.py:12" of the outermost call -> bytes that a copy of the tensor data mover there moves for one workgroup: the mean, where
    copies of several tiles stand on one line. within: the line of a call that all of the kernel is in."""
    found: dict[str, list[int]] = defaultdict(list)
    for op in module.walk():
        if op.name in _TILES:
            kind = next(x for x in (*op.operand_types, op.target) if x.kind == "memdesc")
            place = op.locations.outermost(op.location, within)
            found[f"{os.path.basename(place.file)}:{place.line}"].append(_bytes(kind, _part(module, kind)))
    return {place: sum(sizes) / len(sizes) for place, sizes in found.items()}


def _hot_loop(module: Module) -> list[Op]:
    """The operations of the innermost loop with most products, of those with none that which reads most; none without loops."""
    found = [(_products(ops), _traffic(module, ops), ops) for ops in _loops(module)]
    return max(found, key=lambda x: (x[0], x[1].read, x[1].received), default=(0, Traffic(0, 0), []))[2]


def _loops(module: Module) -> Iterator[list[Op]]:
    """The operations of each innermost loop; of those in the partitions of one kernel, all together."""
    for function in module.functions.values():
        together = next((op for op in function.walk() if op.name == _PARTITIONS), None)
        if together is not None:
            yield [op for loop in _innermost(_inside(together)) for op in _inside(loop)]
        else:
            yield from (list(_inside(loop)) for loop in _innermost(function.region.walk()))


def _innermost(ops: Iterable[Op]) -> Iterator[Op]:
    return (op for op in ops if op.name in _LOOPS and not any(inner.name in _LOOPS for inner in _inside(op)))


def _inside(op: Op) -> Iterator[Op]:
    for region in op.regions:
        yield from region.walk()


def _products(ops: list[Op]) -> int:
    """Multiplications of the matrix products, but for the length of what is summed."""
    return sum(op.operand_types[0].size * op.type.size for op in ops if op.name in _PRODUCTS)


def _traffic(module: Module, ops: list[Op]) -> Traffic:
    moves = list(_moves(module, ops))
    return Traffic(sum(read for _, read, _ in moves), sum(received for _, _, received in moves))


def _moves(module: Module, ops: list[Op]) -> Iterator[tuple[Op, int, int]]:
    """What brings tiles, with the bytes that are read for a program and those that a workgroup of it receives."""
    for op in ops:
        if op.name in _COPIES:
            kind = op.target
            yield op, _bytes(kind, kind.shape), _bytes(kind, _part(module, kind))
        elif op.name in _LOADS and op.type.is_tensor:
            received = _bytes(op.type, _part(module, op.type))
            yield op, module.clusters * received, received


def _part(module: Module, kind: Type) -> tuple[int, ...]:
    """The shape of what one workgroup has."""
    assert kind.shape is not None, f"bug in gluonize: {kind} has no shape"
    ctas = ctas_of(module, kind)
    return part_of(kind.shape, ctas) if ctas else kind.shape


def _bytes(kind: Type, shape: tuple[int, ...] | None) -> int:
    return math.prod(shape or ()) * bits_of(kind.element) // 8
