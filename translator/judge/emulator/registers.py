"""What stands in a kernel's scalar registers when it starts, and the memory that those point to.

Source: `llvm/docs/AMDGPUUsage.rst`, "Initial Kernel Execution State" and `kernel_code_properties`. The dispatch packet is that of
the HSA runtime specification, `hsa_kernel_dispatch_packet_t`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gluonize.judge.emulator.guarded import PAGE, Pages
from gluonize.judge.emulator.request import Run

# Bit of `kernel_code_properties` -> what it asks for, in the order of the registers; each takes two.
PRIVATE_BUFFER, DISPATCH_POINTER, QUEUE_POINTER, KERNARG_POINTER, DISPATCH_ID = range(5)
FLAT_SCRATCH, PRIVATE_SIZE = 5, 6
UNKNOWN = {
    PRIVATE_BUFFER: "a private segment buffer",
    FLAT_SCRATCH: "flat scratch",
    PRIVATE_SIZE: "a private segment size",
}


class Unprepared(Exception):
    """The code object asks for a register that is not filled here."""


@dataclass(frozen=True)
class Prepared:
    """Address of the kernarg segment, and the 32-bit words of the user registers from s0 on."""

    kernarg: int
    user_data: list[int]


@contextmanager
def prepared(run: Run, tensors: list[int]) -> Iterator[Prepared]:
    """Kernarg segment and dispatch packet in memory. tensors: addresses, by number. Raises: Unprepared."""
    asked = [bit for bit in range(PRIVATE_SIZE + 1) if run.properties >> bit & 1]
    if unknown := [UNKNOWN[bit] for bit in asked if bit in UNKNOWN]:
        raise Unprepared(f"the code object asks for {unknown[0]}")
    data = bytearray(run.kernarg.data)
    for pointer in run.kernarg.pointers:
        struct.pack_into("<Q", data, pointer.at, tensors[pointer.tensor] + pointer.offset)
    with Pages(len(data)) as kernarg, Pages(PAGE) as packet, Pages(PAGE) as queue:
        kernarg.write(bytes(data))
        packet.write(_packet(run, kernarg.address))
        addresses = {DISPATCH_POINTER: packet.address, QUEUE_POINTER: queue.address, KERNARG_POINTER: kernarg.address}
        words: list[int] = []
        for bit in asked:
            address = addresses.get(bit, 0)
            words += [address & 0xFFFFFFFF, address >> 32]
        yield Prepared(kernarg.address, words)


def _packet(run: Run, kernarg: int) -> bytes:
    sizes = (run.grid[0] * run.block, run.grid[1], run.grid[2])  # in lanes
    return struct.pack("<6H3I2I2Q", 0, 3, run.block, 1, 1, 0, *sizes, run.scratch, run.lds, 0, kernarg)
