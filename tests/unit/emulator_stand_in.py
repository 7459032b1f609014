"""A checkout with an emulator of six instructions, that has the interface of the real one and needs no compiler.

An instruction is four bytes: its number, and one byte of operand. Each wave has the address of its kernarg segment in s0 and s1; the
first eight bytes there are the address of tensor 0.
"""

from __future__ import annotations

from pathlib import Path

ADD, STORE, BARRIER, END, WAIT, JUMP, LACKING = 1, 2, 3, 4, 5, 6, 0xEE
EMULATOR = """
import ctypes

ENDPGM_PC = 0xFFFFFFFFFFFFFFFF
NAMES = {1: "ADD", 2: "STORE", 3: "BARRIER", 4: "END", 5: "WAIT", 6: "JUMP"}
_BARRIER_OPS = {3}
ir3 = ir4 = irc = "tables of instructions, which are not asked here"


class Buffer:
    def __init__(self):
        self.words = (ctypes.c_uint32 * 512)()
        self._buf = self
        self.va_addr = ctypes.addressof(self.words)


class State:
    def __init__(self):
        self.sgpr_buf, self.vgpr_buf, self.accvgpr_buf = Buffer(), Buffer(), Buffer()

    @property
    def pc(self):
        return self.sgpr_buf.words[256] | self.sgpr_buf.words[257] << 32


class Instruction:
    def __init__(self, op, operand):
        self.op, self.operand = op, operand


def _wave_size(arch):
    return 32


def _op_name(inst):
    if inst.op not in NAMES:
        raise RuntimeError(f"no instruction {inst.op}")
    return NAMES[inst.op]


def decode_inst(data, arch):
    return Instruction(data[0], data[1])


def _init_wave(
    lib, wave_start, total_threads, lx, ly, lz, args_ptr, rsrc2, scratch_size, arch, gidx, gidy, gidz, user_data, wave_size
):
    state = State()
    words = state.sgpr_buf.words
    words[256], words[257] = lib & 0xFFFFFFFF, lib >> 32
    for i, word in enumerate(user_data):
        words[i] = word
    words[100], words[101] = gidx, wave_start // wave_size
    return state


class Runtime:
    def __init__(self, instruction):
        self.instruction = instruction

    def fxn(self, sgpr, vgpr, memory, lds):
        words = (ctypes.c_uint32 * 512).from_address(sgpr.value)
        kernarg = words[0] | words[1] << 32
        tensor = ctypes.c_uint64.from_address(kernarg).value
        op, operand, step = self.instruction.op, self.instruction.operand, 4
        if op == 1:  # one more in byte `operand` of tensor 0
            ctypes.c_uint8.from_address(tensor + operand).value += 1
        elif op == 2:  # program and wave, behind what byte 0 counts
            at = ctypes.c_uint8.from_address(tensor)
            at.value += 1
            ctypes.c_uint8.from_address(tensor + at.value).value = words[100] << 4 | words[101]
        elif op == 4:
            words[256] = words[257] = 0xFFFFFFFF
            return
        elif op == 5:  # program 0 waits until byte `operand` is set
            step = 0 if words[100] == 0 and not ctypes.c_uint8.from_address(tensor + operand).value else 4
        elif op == 6:
            step = 4 - 4 * operand
        words[256] += step


class Program:
    class arg:
        globals = [0, 1, 2, 3]


def _decode_at(pc, arch):
    instruction = decode_inst(ctypes.string_at(pc, 4), arch)
    return (Program, Runtime(instruction)), instruction
"""


def build_checkout(folder: Path, emulator: str = EMULATOR) -> str:
    """A folder that looks like the checkout; -> its path."""
    for name, text in {
        "test/__init__.py": "",
        "test/mockgpu/__init__.py": "",
        "test/mockgpu/amd/__init__.py": "",
        "test/mockgpu/amd/emu.py": emulator,
        "test/mockgpu/amd/pcode.py": "",
        "tinygrad/__init__.py": "",
        "tinygrad/device.py": "Device = {'CPU': None}\n",
        "tinygrad/renderer/__init__.py": "",
        "tinygrad/renderer/amd/__init__.py": "",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder)


def code(*instructions: tuple[int, int] | int) -> bytes:
    """Machine code of the stand-in."""
    pairs = [i if isinstance(i, tuple) else (i, 0) for i in instructions]
    return b"".join(bytes((number, operand, 0, 0)) for number, operand in pairs)
