"""How much LDS Triton's loops use beside their rings: operands on their way from registers to matrix instructions.

What a loop hands on in registers and stores to LDS is left out: a translation that has such a tile in LDS reads it there.
"""

from __future__ import annotations

from collections.abc import Iterator

from gluonize.decide.readback.held import LOADS
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op, Region
from gluonize.trace.passes.anchors import Path, path_of

_COPIES = ("amdg.buffer_load_to_local", "ttg.async_copy_global_to_local")
# What a value passes through on its way to LDS without being combined with another.
_MOVES = ("ttg.convert_layout", "tt.trans", "tt.reshape", "arith.extf", "arith.truncf", "amdg.in_thread_transpose")


def read_loop_lds(module: Module) -> dict[Path, int]:
    """Bytes of LDS that are used at once, beside rings, in the loop around each load, by the path of the load's visit."""
    out: dict[Path, int] = {}
    for loop in (op for op in module.walk() if op.name == "scf.for"):
        own = list(_own(loop.regions[0]))
        most = _most_bytes(own, _handed_on(loop, own))
        for op in own:
            if op.name in LOADS or op.name in _COPIES:
                if path := path_of(op):
                    out[path] = max(most, out.get(path, 0))
    return out


def _own(region: Region) -> Iterator[Op]:
    """The operations of a loop's body, those of branches included, of loops inside it not."""
    for op in (op for block in region.blocks for op in block.ops):
        yield op
        if op.name != "scf.for":
            for inner in op.regions:
                yield from _own(inner)


def _handed_on(loop: Op, own: list[Op]) -> set[str]:
    """The loop's arguments that hold what an iteration has loaded for a later one."""
    known = {op.results[0] for op in own if op.name in LOADS}
    arguments = [name for name, _ in loop.for_loop.bindings]
    ends = [op for op in loop.regions[0].blocks[0].ops if op.name == "scf.yield"]
    handed = list(zip(arguments, ends[-1].operands)) if ends else []
    for _ in handed:  # each step is one iteration further
        known |= {argument for argument, value in handed if value in known}
    return known & set(arguments)


def _most_bytes(ops: list[Op], handed_on: set[str]) -> int:
    """The greatest sum of allocations with a value that are in use at the same operation."""
    made = {op.results[0]: op for op in ops if op.results and op.operands}
    in_use: dict[str, tuple[int, int]] = {}  # allocation -> its bytes, its last operation
    most = 0
    last = {name: i for i, op in enumerate(ops) for name in (*op.results, *op.operands)}
    for i, op in enumerate(ops):
        if op.name == "ttg.memdesc_trans" and op.operands[0] in in_use:
            size, end = in_use[op.operands[0]]
            in_use[op.operands[0]] = size, max(end, last[op.results[0]])
        if op.name == "ttg.local_alloc" and op.operands and _source(op.operands[0], made) not in handed_on:
            in_use[op.results[0]] = op.type.size * bits_of(op.type.element) // 8, last[op.results[0]]
            most = max(most, sum(size for size, end in in_use.values() if end >= i))
    return most


def _source(name: str, made: dict[str, Op]) -> str:
    while name in made and made[name].name in _MOVES:
        name = made[name].operands[0]
    return name
