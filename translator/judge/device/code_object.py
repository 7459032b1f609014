"""AMD code objects: the ELF of an hsaco, its kernel descriptor and argument metadata, checked against a launch.

Sources: `llvm/docs/AMDGPUUsage.rst`, code object V4 and later: note `AMDGPU` of type 32 (NT_AMDGPU_METADATA) holds a msgpack map,
the symbol `NAME.kd` a 64-byte kernel descriptor: LDS, scratch and kernarg bytes in its first three words, the offset of the first
instruction at 16, `compute_pgm_rsrc2` at 52, kernel code properties at 56.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from gluonize.judge.device.refusal import Refused

NT_AMDGPU_METADATA = 32
EM_AMDGPU = 224
SHT_NOTE, SHT_SYMTAB, SHT_DYNSYM = 7, 2, 11
SHT_RELA, PT_LOAD = 4, 1
KERNEL_DESCRIPTOR_BYTES = 64


@dataclass(frozen=True)
class KernelObject:
    """What an hsaco says of one kernel; sizes in bytes. `arguments` are the metadata's `.args`.

    entry: address of the first instruction, where the file is loaded at 0. resource2: `compute_pgm_rsrc2`. properties: which
    registers the kernel wants to be set, one bit each.
    """

    symbol: str
    target: str
    wavefront_size: int
    max_block: int
    static_lds: int
    scratch: int
    kernarg_bytes: int
    descriptor_kernarg_bytes: int
    arguments: tuple[dict, ...] = field(hash=False)
    entry: int = 0
    resource2: int = 0
    properties: int = 0


@dataclass(frozen=True)
class Segment:
    """A part of an hsaco that is loaded: at `address`, the bytes of the file and zeros up to `size` bytes."""

    address: int
    data: bytes
    size: int


def read(code: bytes, symbol: str) -> KernelObject:
    """The kernel `symbol` of an hsaco. Raises: Refused `code-object`."""
    sections = _sections(code)
    metadata = _metadata(code, sections)
    kernels = {k.get(".name"): k for k in metadata.get("amdhsa.kernels", [])}
    if symbol not in kernels:
        raise _bad(f"its metadata has no kernel {symbol} (it has {sorted(map(str, kernels))})")
    kernel = kernels[symbol]
    address, descriptor = _symbol(code, sections, kernel.get(".symbol", f"{symbol}.kd"))
    if len(descriptor) != KERNEL_DESCRIPTOR_BYTES:
        raise _bad(f"there is no 64-byte kernel descriptor {symbol}.kd")
    lds, scratch, kernarg, _, start = struct.unpack_from("<IIIIq", descriptor)
    resource2, properties = struct.unpack_from("<IH", descriptor, 52)
    return KernelObject(
        symbol,
        str(metadata.get("amdhsa.target", "")),
        int(kernel.get(".wavefront_size", 0)),
        int(kernel.get(".max_flat_workgroup_size", 0)),
        lds,
        scratch,
        int(kernel.get(".kernarg_segment_size", 0)),
        kernarg,
        tuple(kernel.get(".args", ())),
        address + start,
        resource2,
        properties,
    )


def segments(code: bytes) -> tuple[Segment, ...]:
    """What of an hsaco has to be in memory to run it. Raises: Refused `code-object` where addresses would have to be filled in."""
    if any(kind == SHT_RELA and length for kind, _, _, length, _ in _sections(code)):
        raise _bad("it has relocations")
    (start,) = struct.unpack_from("<Q", code, 32)
    size, count = struct.unpack_from("<HH", code, 54)
    out = []
    for i in range(count):
        kind, _, offset, address, _, in_file, in_memory = struct.unpack_from("<IIQQQQQ", code, start + i * size)
        if kind == PT_LOAD:
            out.append(Segment(address, code[offset : offset + in_file], in_memory))
    return tuple(out)


def check(code: bytes, symbol: str, arguments: list[dict], block: int, shared: int, target: str) -> KernelObject:
    """Refuse a code object that the launch does not fit. -> what it says of the kernel."""
    from gluonize.rules.targets import target as target_row

    found, row = read(code, symbol), target_row(target)
    if target not in found.target:
        raise _bad(f"it is for {found.target}, not {target}")
    if found.wavefront_size != row.warp_size:
        raise _bad(f"waves of {found.wavefront_size} lanes, {target} is compiled for {row.warp_size}")
    if block > found.max_block:
        raise _bad(f"a block of {block} threads, the kernel allows {found.max_block}")
    if shared + found.static_lds > row.lds_bytes:
        raise _bad(f"{shared + found.static_lds} bytes of LDS, {target} gives a workgroup {row.lds_bytes}")
    if found.descriptor_kernarg_bytes != found.kernarg_bytes:
        raise _bad("its kernel descriptor and its metadata disagree about the size of the arguments")
    _check_arguments(found, arguments)
    return found


def _check_arguments(found: KernelObject, arguments: list[dict]) -> None:
    """The launch's parameters, then two scratch pointers, in the order and of the sizes that the metadata has."""
    visible = [a for a in found.arguments if not str(a.get(".value_kind", "")).startswith("hidden_")]
    pointer = {"size": 8, "kind": "tensor"}
    wanted = [*arguments, {**pointer, "name": "global scratch"}, {**pointer, "name": "profile scratch"}]
    if len(visible) != len(wanted):
        raise _bad(f"it takes {len(visible)} arguments, the launch gives {len(wanted)}")
    offset = 0
    for has, gives in zip(visible, wanted):
        size, kind = int(has[".size"]), has[".value_kind"]
        offset = -(-offset // size) * size
        if size != gives["size"] or int(has[".offset"]) != offset:
            raise _bad(
                f"argument {gives['name']}: {size} bytes at {has['.offset']}, the launch gives {gives['size']} at {offset}"
            )
        if (kind == "global_buffer") != (gives["kind"] == "tensor"):
            raise _bad(f"argument {gives['name']} is a {kind} there and a {gives['kind']} in the launch")
        offset += size


def _bad(why: str) -> Refused:
    return Refused("code object", why, "code-object")


def _sections(code: bytes) -> list[tuple[int, int, int, int, int]]:
    """(type, address, offset, size, link) of each section of a 64-bit little-endian AMDGPU ELF."""
    if code[:6] != b"\x7fELF\x02\x01" or len(code) < 64:
        raise _bad("it is no 64-bit little-endian ELF")
    (machine,) = struct.unpack_from("<H", code, 18)
    if machine != EM_AMDGPU:
        raise _bad(f"it is an ELF for machine {machine}, AMDGPU is {EM_AMDGPU}")
    (start,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    out = []
    for i in range(count):
        _, kind, _, address, offset, length, link = struct.unpack_from("<IIQQQQI", code, start + i * size)
        out.append((kind, address, offset, length, link))
    return out


def _metadata(code: bytes, sections) -> dict:
    for kind, _, offset, length, _ in sections:
        at, end = offset, offset + length
        while kind == SHT_NOTE and at + 12 <= end:
            name_size, size, note = struct.unpack_from("<III", code, at)
            name = code[at + 12 : at + 12 + name_size].rstrip(b"\0")
            body = at + 12 + -(-name_size // 4) * 4
            if name == b"AMDGPU" and note == NT_AMDGPU_METADATA:
                value, _ = unpack(code, body)
                return value
            at = body + -(-size // 4) * 4
    raise _bad("it has no AMDGPU metadata note")


def _symbol(code: bytes, sections, name: str) -> tuple[int, bytes]:
    """Address and bytes of a symbol, from the section that holds it; no bytes where there is none."""
    for kind, _, offset, length, link in sections:
        if kind not in (SHT_SYMTAB, SHT_DYNSYM):
            continue
        strings = sections[link][2]
        for at in range(offset, offset + length, 24):
            where, _, _, index, value, size = struct.unpack_from("<IBBHQQ", code, at)
            end = code.index(b"\0", strings + where)
            if code[strings + where : end].decode() == name and 0 < index < len(sections):
                _, address, start, _, _ = sections[index]
                begin = start + value - address
                return value, code[begin : begin + size]
    return 0, b""


def unpack(data: bytes, at: int = 0) -> tuple[Any, int]:
    """One msgpack value at `at` -> (value, index after it). Specification: msgpack/spec.md."""
    tag = data[at]
    if tag < 0x80:
        return tag, at + 1
    if tag < 0x90:
        return _map(data, at + 1, tag & 15)
    if tag < 0xA0:
        return _list(data, at + 1, tag & 15)
    if tag < 0xC0:
        return _text(data, at + 1, tag & 31)
    if tag >= 0xE0:
        return tag - 256, at + 1
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at + 1
    if tag in _NUMBERS:
        form, size = _NUMBERS[tag]
        return struct.unpack_from(form, data, at + 1)[0], at + 1 + size
    if tag in _SIZED:
        reader, form, size = _SIZED[tag]
        return reader(data, at + 1 + size, struct.unpack_from(form, data, at + 1)[0])
    raise _bad(f"msgpack type {tag:#x} in its metadata is not known")


def _map(data: bytes, at: int, count: int) -> tuple[dict, int]:
    out = {}
    for _ in range(count):
        key, at = unpack(data, at)
        out[key], at = unpack(data, at)
    return out, at


def _list(data: bytes, at: int, count: int) -> tuple[list, int]:
    out = []
    for _ in range(count):
        value, at = unpack(data, at)
        out.append(value)
    return out, at


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    return data[at : at + size].decode(errors="replace"), at + size


_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {0xCA: (">f", 4), 0xCB: (">d", 8), 0xCC: (">B", 1), 0xCD: (">H", 2), 0xCE: (">I", 4), 0xCF: (">Q", 8)}
_NUMBERS |= {0xD0: (">b", 1), 0xD1: (">h", 2), 0xD2: (">i", 4), 0xD3: (">q", 8)}
_SIZED = {0xD9: (_text, ">B", 1), 0xDA: (_text, ">H", 2), 0xDB: (_text, ">I", 4)}
_SIZED |= {0xDC: (_list, ">H", 2), 0xDD: (_list, ">I", 4), 0xDE: (_map, ">H", 2), 0xDF: (_map, ">I", 4)}
