"""The kernarg segment of a launch: what a kernel's arguments look like in memory.

Source: `llvm/docs/AMDGPUUsage.rst`, "Code Object V3 Metadata", values of `.value_kind`. Offsets and sizes are the metadata's.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from gluonize.judge.device.code_object import KernelObject

SLACK = 64  # bytes behind the segment, since scalar loads may be wider than the last argument


@dataclass(frozen=True)
class Pointer:
    """Eight bytes at `at` in the segment are the address of byte `offset` of tensor number `tensor`."""

    at: int
    tensor: int
    offset: int


@dataclass(frozen=True)
class Kernarg:
    """`data` without addresses, which are known where it runs, and where they belong."""

    data: bytes
    pointers: tuple[Pointer, ...]


def pack(
    kernel: KernelObject, arguments: list[dict], tensors: list[str], grid: tuple[int, int, int], block: int, shared: int
) -> Kernarg:
    """Arguments as `gluonize.judge.device.launch_arguments` lists them, in the segment that `kernel` asks for.

    tensors: names, by number. grid: workgroups. block: lanes of a workgroup. shared: dynamic LDS in bytes. The two scratch
    pointers behind the arguments stay null, as does what hidden arguments point to.
    """
    data, pointers = bytearray(kernel.kernarg_bytes + SLACK), []
    visible = [a for a in kernel.arguments if not str(a.get(".value_kind", "")).startswith("hidden_")]
    for place, argument in zip(visible, arguments):
        at = int(place[".offset"])
        if argument["kind"] == "tensor":
            pointers.append(Pointer(at, tensors.index(argument["tensor"]), argument["offset"]))
        else:
            value = bytes.fromhex(argument["bytes"])
            data[at : at + len(value)] = value
    hidden = _hidden(grid, block, shared)
    for place in kernel.arguments:
        if (kind := place.get(".value_kind")) in hidden:
            form, value = hidden[kind]
            struct.pack_into(form, data, int(place[".offset"]), value)
    return Kernarg(bytes(data), tuple(pointers))


def _hidden(grid: tuple[int, int, int], block: int, shared: int) -> dict[str, tuple[str, int]]:
    """Hidden argument -> its form and value; those left out are zero."""
    out = {"hidden_grid_dims": ("<H", 3), "hidden_dynamic_lds_size": ("<I", shared)}
    for axis, count, lanes in zip("xyz", grid, (block, 1, 1)):
        out[f"hidden_block_count_{axis}"] = ("<I", count)
        out[f"hidden_group_size_{axis}"] = ("<H", lanes)
    return out
