"""Short instructions of CDNA on 16 bits that name registers above v127, in their long encoding.

On RDNA a register number above 127 in such an instruction is the upper half of a lower register; the emulator takes it so on CDNA too,
where it is a register of its own. The long encoding (VOP3) has no halves by number.

Sources: "AMD Instinct MI300 Instruction Set Architecture", encodings VOP1, VOP2, VOPC and VOP3A; LLVM's `VOPInstructions.td`: the long opcode of a VOP1 instruction is
320 above its own, of VOP2 256, of VOPC the same, and the result of a comparison goes to VCC.
"""

from __future__ import annotations

from collections.abc import Callable

from gluonize.judge.emulator.instructions.lanes import FIRST_VECTOR

VOP1, VOPC = 0b0111111, 0b0111110
LONG, VCC, LITERAL, SDWA, DPP = 0b110100, 106, 255, 249, 250
SIZE = 4  # bytes of the short encoding


def in_long_form(data: bytes, is_half: Callable[[bytes], bool]) -> bytes | None:
    """The long form of the instruction at the beginning of `data`, None for one that may stay as it is.

    is_half(data): it works on 16 bits. Raises: NotImplementedError where it has a literal, which the long form cannot have.
    """
    word = int.from_bytes(data[:SIZE], "little")
    first, second, target = word & 0x1FF, word >> 9 & 0xFF, word >> 17 & 0xFF
    kind = word >> 25
    if word >> 31 or first in (SDWA, DPP):
        return None
    if kind == VOP1:
        opcode, registers, second = 320 + second, (first - FIRST_VECTOR, target), None
    elif kind == VOPC:
        opcode, registers, target = target, (first - FIRST_VECTOR, second), VCC
    else:
        opcode, registers = 256 + (word >> 25), (first - FIRST_VECTOR, second, target)
    if max(registers) < 128 or not is_half(data[:SIZE]):
        return None
    if first == LITERAL:
        raise NotImplementedError("a 16-bit instruction with a literal and a high register")
    operands = first | (0 if second is None else FIRST_VECTOR + second) << 9
    return (LONG << 26 | opcode << 16 | target | operands << 32).to_bytes(8, "little")
