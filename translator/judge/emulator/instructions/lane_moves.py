"""Instructions that take their first operand from other lanes (DPP): the move is done here, the rest by the plain instruction.

The emulator computes lane after lane, so that a lane whose register was written before is seen by those behind it; it writes lanes that
are masked off, and lacks some moves. So: the moved operand goes into a register that the instruction does not use, lanes that are not
written are turned off, and the instruction without DPP runs on that.

Sources: "AMD Instinct MI300 Instruction Set Architecture" and "RDNA3 Instruction Set Architecture", encodings DPP, DPP16 and DPP8;
`llvm/lib/Target/AMDGPU/SIDefines.h`, `DppCtrl`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from gluonize.judge.emulator.instructions.lanes import EXEC, FIRST_VECTOR, Lanes

DPP16, DPP8, DPP8_INACTIVE = 0xFA, 0xE9, 0xEA  # first operands; the last one reads lanes that are off too
VOP3, VOP3P = 0b110101, 0b110011  # encodings of RDNA with a third word for the move
SIGN = 1 << 31
ROW = 16
QUAD_PERM, ROW_SHL, ROW_SHR, ROW_ROR, SHARE, XOR = 0x0FF, 0x100, 0x110, 0x120, 0x150, 0x160
BROADCAST_15, BROADCAST_31, MIRROR, HALF_MIRROR = 0x142, 0x143, 0x140, 0x141
WAVE_SHL, WAVE_ROL, WAVE_SHR, WAVE_ROR = 0x130, 0x134, 0x138, 0x13C


@dataclass(frozen=True)
class Move:
    """How lanes get an operand. plain: the instruction without it, reading `register`; size: in bytes, with the move.

    lanes(count) -> source of each lane, -1 for none, and which lanes the masks let be written. negative, absolute: of the operand.
    """

    plain: bytes
    size: int
    source: int
    register: int
    lanes: Callable[[int], tuple[np.ndarray, np.ndarray]]
    zero_for_none: bool
    reads_inactive: bool
    negative: bool = False
    absolute: bool = False


def decode_move(data: bytes, is_rdna: bool, is_half: Callable[[bytes], bool]) -> Move | None:
    """An instruction with DPP, None for another. is_half(plain): its operands are halves of registers.

    Raises: NotImplementedError for modifiers that the plain instruction cannot have.
    """
    word = int.from_bytes(data[:4], "little")
    is_long = is_rdna and word >> 26 in (VOP3, VOP3P)
    if word >> 31 and not is_long:
        return None
    base = 8 if is_long else 4
    instruction, control = int.from_bytes(data[:base], "little"), int.from_bytes(data[base : base + 4], "little")
    at = 32 if is_long else 0  # of the first operand, nine bits
    kind = instruction >> at & 0x1FF
    if kind != DPP16 and not (is_rdna and kind in (DPP8, DPP8_INACTIVE)):
        return None
    source, high = control & 0xFF, 0
    if not is_long and is_rdna and is_half(_reading(instruction, at, 0, base)):
        source, high = source & 0x7F, source & 0x80
    register = _free_register(instruction, is_long, source)
    plain = _reading(instruction, at, register | high, base)
    if kind != DPP16:
        chosen = tuple(control >> 8 + 3 * i & 7 for i in range(8))
        return Move(plain, base + 4, source, register, lambda n: _eights(chosen, n), True, kind == DPP8_INACTIVE)
    modifiers = 0 if is_long else control >> 20 & 0xF
    if modifiers >> 2 or modifiers and is_half(plain):
        raise NotImplementedError("DPP with a modifier of its second operand")
    masks = control >> 28, control >> 24 & 0xF
    return Move(
        plain, base + 4, source, register, lambda n: _rows(control >> 8 & 0x1FF, *masks, n), bool(control >> 19 & 1),
        is_rdna and bool(control >> 18 & 1), bool(modifiers & 1), bool(modifiers & 2),
    )  # fmt: skip


def _reading(instruction: int, at: int, register: int, size: int) -> bytes:
    """The instruction with a vector register as its first operand."""
    return (instruction & ~(0x1FF << at) | FIRST_VECTOR + register << at).to_bytes(size, "little")


def _free_register(instruction: int, is_long: bool, source: int) -> int:
    """A register that the instruction neither reads nor writes; below 128, as halves of higher ones have no number."""
    places = (0, 41, 50) if is_long else (17, 9)
    used = {source} | {(instruction >> at & 0xFF) & 0x7F for at in places}
    return next(r for r in range(127, -1, -1) if r not in used and r - 1 not in used)


def _eights(chosen: tuple[int, ...], count: int) -> tuple[np.ndarray, np.ndarray]:
    lane = np.arange(count)
    return lane // 8 * 8 + np.array(chosen)[lane % 8], np.ones(count, bool)


def _rows(control: int, row_mask: int, bank_mask: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Source lanes of a DPP16 control, and the lanes that its masks let be written. Raises: NotImplementedError."""
    lane = np.arange(count)
    place, row = lane % ROW, lane // ROW
    written = (row_mask >> row & 1 & bank_mask >> place // 4).astype(bool)
    return _sources(control, lane, place, lane - place), written


def _sources(control: int, lane: np.ndarray, place: np.ndarray, start: np.ndarray) -> np.ndarray:
    kind, by, count = control & 0x1F0, control & 0xF, lane.size
    if control <= QUAD_PERM:
        return lane // 4 * 4 + (control >> 2 * (lane % 4) & 3)
    if control in (BROADCAST_15, BROADCAST_31):
        return np.where(lane > 15, start - 1, -1) if control == BROADCAST_15 else np.where(lane > 31, 31, -1)
    by_kind = {
        ROW_SHL: np.where(place + by < ROW, lane + by, -1),
        ROW_SHR: np.where(place >= by, lane - by, -1),
        ROW_ROR: start + (place - by) % ROW,
        SHARE: start + by,
        XOR: start + (place ^ by),
    }
    by_control = {
        MIRROR: start + ROW - 1 - place,
        HALF_MIRROR: lane // 8 * 8 + 7 - lane % 8,
        WAVE_SHL: np.where(lane + 1 < count, lane + 1, -1),
        WAVE_ROL: (lane + 1) % count,
        WAVE_SHR: lane - 1,
        WAVE_ROR: (lane - 1) % count,
    }
    if kind not in by_kind and control not in by_control:
        raise NotImplementedError(f"DPP control {control:#x}")
    return by_kind[kind] if kind in by_kind else by_control[control]


@contextmanager
def moved(move: Move, lanes: Lanes) -> Iterator[None]:
    """The operand in its register, and the lanes on that are written; afterwards all as it was."""
    source, written = move.lanes(lanes.count)
    on = lanes.active()
    there = (source >= 0) & (on[source] | move.reads_inactive)
    value = np.where(there, lanes.vectors[move.source][source], np.uint32(0))
    if move.absolute:
        value &= np.uint32(SIGN - 1)
    if move.negative:
        value ^= np.uint32(SIGN)
    kept, mask = lanes.vectors[move.register].copy(), lanes.scalars[EXEC : EXEC + 2].copy()
    lanes.vectors[move.register] = value
    lanes.turn_on(on & written & (there | move.zero_for_none))
    yield
    lanes.vectors[move.register] = kept
    lanes.scalars[EXEC : EXEC + 2] = mask
