"""Buffer loads, stores, atomics and copies to LDS, which the emulator has not on RDNA and of whole words alone on CDNA.

Sources: "AMD Instinct MI300 Instruction Set Architecture", chapter on vector memory operations (buffer addressing, range checking,
LDS), and the same of the RDNA3 and RDNA4 ones. Swizzled and structured buffers are not
done: the compiler makes raw ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gluonize.judge.emulator.instructions.atomics import ATOMICS, Atomic
from gluonize.judge.emulator.instructions.fields import fields
from gluonize.judge.emulator.instructions.lanes import M0_CDNA, Lanes, load, store

CDNA, RDNA3, RDNA4 = "cdna", "rdna3", "rdna4"
KINDS = {CDNA: ("irc", "MUBUF", 0b111000), RDNA3: ("ir3", "MUBUF", 0b111000), RDNA4: ("ir4", "VBUFFER", 0b110001)}
NULL = 124  # the scalar operand that reads as zero on RDNA
SWIZZLED = 31  # bit of the second word of a buffer's description

# Name without BUFFER_LOAD_ or BUFFER_STORE_ -> bytes in memory, whether the sign is extended, and the half of a register: 0 both, 1
# the low one, 2 the high one.
WIDTHS = {
    "UBYTE": (1, False, 0), "SBYTE": (1, True, 0), "USHORT": (2, False, 0), "SSHORT": (2, True, 0),
    "U8": (1, False, 0), "I8": (1, True, 0), "U16": (2, False, 0), "I16": (2, True, 0),
    "UBYTE_D16": (1, False, 1), "UBYTE_D16_HI": (1, False, 2), "SBYTE_D16": (1, True, 1), "SBYTE_D16_HI": (1, True, 2),
    "D16_U8": (1, False, 1), "D16_HI_U8": (1, False, 2), "D16_I8": (1, True, 1), "D16_HI_I8": (1, True, 2),
    "SHORT_D16": (2, False, 1), "SHORT_D16_HI": (2, False, 2), "D16_B16": (2, False, 1), "D16_HI_B16": (2, False, 2),
    "BYTE": (1, False, 0), "BYTE_D16_HI": (1, False, 2), "SHORT": (2, False, 0),
    "B8": (1, False, 0), "D16_HI_B8": (1, False, 2), "B16": (2, False, 0),
    "DWORD": (4, False, 0), "DWORDX2": (8, False, 0), "DWORDX3": (12, False, 0), "DWORDX4": (16, False, 0),
    "B32": (4, False, 0), "B64": (8, False, 0), "B96": (12, False, 0), "B128": (16, False, 0),
}  # fmt: skip
NOTHING = ("BUFFER_GL0_INV", "BUFFER_GL1_INV", "BUFFER_INV", "BUFFER_WBL2")  # caches, which there are none of


@dataclass(frozen=True)
class Access:
    """One buffer instruction. Registers by number; `soffset` is a scalar operand; `returns`: an atomic gives the old value."""

    name: str
    vdata: int
    vaddr: int
    rsrc: int
    soffset: int
    offset: int
    offen: bool
    accumulators: bool
    lds: bool
    returns: bool


def decode(emulator, architecture: str, data: bytes) -> tuple[Access, int] | None:
    """A buffer instruction and its size in bytes, None for another one."""
    module, kind, encoding = KINDS[architecture]
    if data[3] >> 2 != encoding:
        return None
    found = getattr(getattr(emulator, module), kind)
    instruction, field = found.from_bytes(data), fields(found, data)

    if architecture == RDNA4:
        offset = field("ioffset")
        rsrc, offset, returns = field("rsrc"), offset - (offset >> 23 << 24), bool(field("th") & 1)
    else:
        rsrc, offset = field("srsrc") * 4, field("offset")
        returns = bool(field("sc0" if architecture == CDNA else "glc"))
    more = {"accumulators": bool(field("acc")), "lds": bool(field("lds"))} if architecture == CDNA else {}
    if field("idxen"):
        raise NotImplementedError(f"{instruction.op.name} with an index")
    access = Access(
        instruction.op.name, field("vdata"), field("vaddr"), rsrc, field("soffset"), offset, bool(field("offen")),
        returns=returns, **{"accumulators": False, "lds": False} | more,
    )  # fmt: skip
    return access, instruction.size()


def executor(access: Access, architecture: str) -> Callable[[Lanes], None]:
    """What the instruction does to a wave. Raises: NotImplementedError for one that is not known here."""
    name = access.name.removeprefix("BUFFER_")
    if access.name in NOTHING:
        return lambda lanes: None
    if name.startswith("ATOMIC_"):
        if (atomic := ATOMICS.get(name.removeprefix("ATOMIC_"))) is None:
            raise NotImplementedError(access.name)
        return lambda lanes: _atomic(access, architecture, atomic, lanes)
    direction, _, width = name.partition("_")
    if direction not in ("LOAD", "STORE") or width not in WIDTHS:
        raise NotImplementedError(access.name)
    size, signed, half = WIDTHS[width]
    if access.lds:
        return lambda lanes: _copy(access, architecture, size, lanes)
    if direction == "LOAD":
        return lambda lanes: _load(access, architecture, size, signed, half, lanes)
    return lambda lanes: _store(access, architecture, size, half, lanes)


def _addresses(access: Access, architecture: str, size: int, lanes: Lanes) -> tuple[np.ndarray, np.ndarray]:
    """Address of each lane, and which lanes are on and within the buffer. The offset wraps at 32 bits."""
    low, high, records, _ = lanes.quad(access.rsrc)
    if high >> SWIZZLED & 1:
        raise NotImplementedError(f"{access.name} of a swizzled buffer")
    base = low | (high & 0xFFFF) << 32
    is_null = architecture != CDNA and access.soffset == NULL
    more = 0 if is_null else int(lanes.scalars[access.soffset])
    own = lanes.vectors[access.vaddr] if access.offen else np.zeros(lanes.count, np.uint32)
    offset = (own.astype(np.int64) + access.offset) & 0xFFFFFFFF
    inside = lanes.active() & (offset + size <= records - more)
    if (inside != lanes.active() & (offset < records - more)).any():
        raise NotImplementedError(f"{access.name} across the end of a buffer")
    return base + more + offset, inside


def _load(access: Access, architecture: str, size: int, signed: bool, half: int, lanes: Lanes) -> None:
    addresses, inside = _addresses(access, architecture, size, lanes)
    data = np.zeros((lanes.count, max(size, 4)), np.uint8)
    data[inside, :size] = load(addresses[inside], size)
    words, on = data.view(np.uint32), lanes.active()
    registers = lanes.accumulators if access.accumulators else lanes.vectors
    if signed:
        words = data[:, :size].copy().view(f"i{size}").astype(np.int32).view(np.uint32)
    if half:
        kept, shift = np.uint32(0xFFFF << 16 * (2 - half)), np.uint32(16 * (half - 1))
        words = registers[access.vdata][:, None] & kept | (words & np.uint32(0xFFFF)) << shift
    for i in range(words.shape[1]):
        registers[access.vdata + i, on] = words[on, i]


def _store(access: Access, architecture: str, size: int, half: int, lanes: Lanes) -> None:
    addresses, inside = _addresses(access, architecture, size, lanes)
    registers = lanes.accumulators if access.accumulators else lanes.vectors
    words = registers[access.vdata : access.vdata + max(size // 4, 1)].T.copy()
    if half == 2:
        words >>= np.uint32(16)
    store(addresses[inside], words.view(np.uint8)[inside, :size])


def _copy(access: Access, architecture: str, size: int, lanes: Lanes) -> None:
    """Global memory to LDS: lane after lane from M0 on; a lane that is not inside copies zeros."""
    addresses, inside = _addresses(access, architecture, size, lanes)
    on, width = lanes.active(), max(size, 4)
    data = np.zeros((lanes.count, width), np.uint8)
    data[inside, :size] = load(addresses[inside], size)
    start = lanes.lds + (int(lanes.scalars[M0_CDNA]) & 0x3FFFF) + access.offset
    store(start + np.flatnonzero(on) * width, data[on])


def _atomic(access: Access, architecture: str, atomic: Atomic, lanes: Lanes) -> None:
    addresses, inside = _addresses(access, architecture, atomic.size, lanes)
    registers = lanes.accumulators if access.accumulators else lanes.vectors
    words = atomic.size // 4
    for lane in np.flatnonzero(inside):
        given = registers[access.vdata : access.vdata + words * atomic.operands, lane].copy()
        at = addresses[lane : lane + 1]
        old = load(at, atomic.size)
        store(at, atomic.apply(old.view(np.uint32)[0], given).view(np.uint8)[None, :])
        if access.returns:
            registers[access.vdata : access.vdata + words, lane] = old.view(np.uint32)[0]
