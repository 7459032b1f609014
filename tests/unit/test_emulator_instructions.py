"""Instructions that are done beside the emulator, on waves made here."""

import ctypes
import struct

import numpy as np
import pytest

from gluonize.judge.emulator.instructions import (
    buffers,
    global_atomics,
    half_reads,
    high_halves,
    lane_moves,
    mfma,
    swaps,
    transposed,
)
from gluonize.judge.emulator.instructions.atomics import ATOMICS
from gluonize.judge.emulator.instructions.buffers import CDNA, RDNA3, Access
from gluonize.judge.emulator.instructions.lanes import EXEC, FIRST_VECTOR, PC, SCALARS, VECTORS, Lanes
from gluonize.judge.emulator.instructions.mfma import Operand, Product

SEED = 7


class Wave(Lanes):
    """A wave with registers and shared memory of its own; lane l has l in v0."""

    def __init__(self, count=64):
        self.held = [(ctypes.c_uint32 * n)() for n in (SCALARS, VECTORS * count, VECTORS * count)]
        self.shared = ctypes.create_string_buffer(8192)
        super().__init__(*(ctypes.addressof(h) for h in (*self.held, self.shared)), count)
        self.scalars[EXEC : EXEC + count // 32] = 0xFFFFFFFF
        self.vectors[0] = np.arange(count)


class Memory:
    """Bytes of global memory and the four scalars of a buffer on them."""

    def __init__(self, data: bytes, wave: Wave, register=4, records=None):
        self.held = ctypes.create_string_buffer(data, len(data))
        wave.held.append(self.held)
        address = ctypes.addressof(self.held)
        words = (address & 0xFFFFFFFF, address >> 32, len(data) if records is None else records, 0)
        wave.scalars[register : register + 4] = words

    @property
    def bytes(self) -> bytes:
        return self.held.raw


class Field:
    def __init__(self, hi, lo):
        self.lo, self.mask = lo, (1 << (hi - lo + 1)) - 1


def access(name, offset=0, **changes):
    fields = dict(vdata=8, vaddr=0, rsrc=4, soffset=20, offset=offset, offen=True, accumulators=False, lds=False)
    return Access(f"BUFFER_{name}", **fields | {"returns": False} | changes)


def do(wave, name, architecture=CDNA, **changes):
    buffers.executor(access(name, **changes), architecture)(wave)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("LOAD_UBYTE", 0x81), ("LOAD_SBYTE", 0xFFFFFF81), ("LOAD_USHORT", 0x8281), ("LOAD_I16", 0xFFFF8281),
        ("LOAD_SHORT_D16", 0xAAAA8281), ("LOAD_SHORT_D16_HI", 0x8281AAAA), ("LOAD_D16_HI_U8", 0x0081AAAA),
        ("LOAD_DWORD", 0x84838281), ("LOAD_D16_I8", 0xAAAAFF81),
    ],
)  # fmt: skip
def test_widths_of_loads(name, expected):
    wave = Wave()
    Memory(bytes(range(0x81, 0x81 + 4)), wave)
    wave.vectors[0] = np.where(np.arange(64) == 3, 0, 1 << 31)
    wave.vectors[8] = 0xAAAAAAAA
    do(wave, name)
    assert wave.vectors[8, 3] == expected
    kept = 0xAAAA0000 if "D16" in name and "HI" not in name else 0x0000AAAA if "HI" in name else 0
    assert wave.vectors[8, 2] == kept, "outside of the buffer is zero"


def test_a_wide_load_goes_to_several_registers_of_lanes_that_are_on():
    wave = Wave()
    Memory(np.arange(256, dtype=np.uint32).tobytes(), wave)
    wave.vectors[0] *= 16
    wave.scalars[EXEC] = 0b1010
    wave.scalars[EXEC + 1] = 0
    do(wave, "LOAD_DWORDX4")
    assert list(wave.vectors[8:12, 1]) == [4, 5, 6, 7] and list(wave.vectors[8:12, 3]) == [12, 13, 14, 15]
    assert not wave.vectors[8:12, [0, 2, 4]].any()


def test_offsets_add_up_and_wrap():
    wave = Wave()
    Memory(np.arange(64, dtype=np.uint32).tobytes(), wave)
    wave.vectors[0] = np.uint32((1 << 32) - 8)
    wave.scalars[20] = 4
    do(wave, "LOAD_DWORD", offset=16)
    assert (wave.vectors[8] == 3).all(), "-8 + 16 + 4 bytes"
    do(wave, "LOAD_DWORD", offset=0)
    assert not wave.vectors[8].any(), "a negative offset is outside"


def test_an_offset_register_that_is_null_is_zero_on_rdna():
    wave = Wave(32)
    Memory(np.arange(64, dtype=np.uint32).tobytes(), wave)
    wave.scalars[buffers.NULL] = 8
    wave.vectors[0] *= 4
    do(wave, "LOAD_B32", RDNA3, soffset=buffers.NULL)
    assert list(wave.vectors[8]) == list(range(32))


def test_stores_write_bytes_of_lanes_that_are_inside():
    wave = Wave()
    memory = Memory(bytes(8), wave, records=6)
    wave.vectors[8] = 0x11223344 + np.arange(64, dtype=np.uint32)
    wave.vectors[0] = np.where(np.arange(64) < 3, np.arange(64) * 2, 1 << 31)
    do(wave, "STORE_SHORT")
    assert memory.bytes == bytes.fromhex("4433 4533 4633 0000")
    do(wave, "STORE_SHORT_D16_HI")
    assert memory.bytes == bytes.fromhex("2211 2211 2211 0000")


def test_a_copy_to_shared_memory_goes_lane_after_lane():
    wave = Wave()
    Memory(np.arange(64, dtype=np.uint32).tobytes(), wave)
    wave.vectors[0] = np.where(np.arange(64) % 2 == 0, (63 - np.arange(64)) * 4, 1 << 31)
    wave.scalars[124] = 16
    do(wave, "LOAD_DWORD", lds=True)
    found = np.frombuffer(wave.shared.raw, np.uint32)[4:68]
    assert list(found[::2]) == list(range(63, 0, -2)) and not found[1::2].any()


def test_what_is_no_buffer_access_of_this_kind_is_not_done():
    wave = Wave()
    Memory(bytes(6), wave)
    for name in ("LOAD_FORMAT_X", "ATOMIC_NEW", "LOAD_LDS_U8"):
        with pytest.raises(NotImplementedError):
            do(wave, name)
    wave.vectors[0] = 4
    with pytest.raises(NotImplementedError, match="across the end"):
        do(wave, "LOAD_DWORD")
    wave.scalars[5] |= 1 << 31
    with pytest.raises(NotImplementedError, match="swizzled"):
        do(wave, "LOAD_UBYTE")


@pytest.mark.parametrize(
    "names, old, given, new",
    [
        (("ADD", "ADD_U32"), [5], [7], [12]),
        (("SUB", "SUB_U32"), [5], [7], [(1 << 32) - 2]),
        (("SMIN", "MIN_I32"), [5], [(1 << 32) - 1], [(1 << 32) - 1]),
        (("UMIN", "MIN_U32"), [5], [(1 << 32) - 1], [5]),
        (("UMAX_X2", "MAX_U64"), [1, 2], [2, 1], [1, 2]),
        (("INC", "INC_U32"), [5], [5], [0]),
        (("DEC", "DEC_U32"), [0], [9], [9]),
        (("SWAP_X2", "SWAP_B64"), [1, 2], [3, 4], [3, 4]),
        (("CMPSWAP", "CMPSWAP_B32"), [5], [9, 5], [9]),
        (("CMPSWAP", "CMPSWAP_B32"), [5], [9, 4], [5]),
        (("PK_ADD_BF16",), [0x3F803F80], [0x40003F80], [0x40404000]),
        (("PK_ADD_F16",), [0x3C003C00], [0x40003C00], [0x42004000]),
    ],
)
def test_atomics(names, old, given, new):
    for name in names:
        found = ATOMICS[name]
        assert found.size == 4 * len(old) and found.operands * len(old) == len(given)
        assert list(found.apply(np.array(old, np.uint32), np.array(given, np.uint32))) == new


def test_atomics_of_all_lanes_on_one_address():
    wave = Wave()
    memory = Memory(struct.pack("<f", 1.0), wave)
    wave.vectors[0] = 0
    wave.vectors[8] = np.float32(0.5).view(np.uint32)
    do(wave, "ATOMIC_ADD_F32", returns=True)
    assert struct.unpack("<f", memory.bytes) == (33.0,)
    assert list(wave.vectors[8].view(np.float32)[:3]) == [1.0, 1.5, 2.0]


class AtomicWord:
    vdst, addr, data, saddr, offset = Field(63, 56), Field(39, 32), Field(47, 40), Field(54, 48), Field(12, 0)
    sc0, acc = Field(16, 16), Field(55, 55)


@pytest.mark.parametrize("scalars", [True, False])
@pytest.mark.parametrize("returns", [0, 1])
def test_atomics_of_global_memory(scalars, returns):
    wave = Wave()
    memory = Memory(bytes(64), wave)
    low, high, *_ = wave.quad(4)
    wave.vectors[2] = 8 if scalars else low
    wave.vectors[3] = 0 if scalars else high
    wave.vectors[8] = np.arange(64) + 1  # the new value, and the one that it is for
    wave.vectors[9] = np.arange(64)
    base = 4 if scalars else 127
    word = (8184 if scalars else 0) | returns << 16 | 2 << 32 | 8 << 40 | base << 48 | 20 << 56
    global_atomics.executor("GLOBAL_ATOMIC_CMPSWAP", AtomicWord, word.to_bytes(8, "little"))(wave)
    assert struct.unpack_from("<2I", memory.bytes) == (64, 0), "each lane finds what the one before has left; -8 bytes"
    assert list(wave.vectors[20]) == (list(range(64)) if returns else [0] * 64)
    with pytest.raises(NotImplementedError):
        global_atomics.executor("GLOBAL_ATOMIC_ORDERED_ADD", AtomicWord, bytes(8))


def registers_of(matrix_: np.ndarray, m: int, halves: bool = False) -> np.ndarray:
    """The rows of A as lanes hold them, each lane's elements in order: [lane, element]."""
    groups = 64 // m
    each = matrix_.shape[1] // groups
    parts = 2 if halves else 1
    split = matrix_.reshape(m, parts, groups, each // parts)
    return split.transpose(2, 0, 1, 3).reshape(64, each)


def rows_of(result: np.ndarray, m: int) -> np.ndarray:
    """[register, lane] -> the matrix."""
    out = np.empty((m, m), result.dtype)
    for register in range(result.shape[0]):
        for lane in range(64):
            row = 4 * (lane // 16) + register if m == 16 else 8 * (register // 4) + 4 * (lane // 32) + register % 4
            out[row, lane % m] = result[register, lane]
    return out


@pytest.mark.parametrize(
    "m, k, element, dtype",
    [(16, 16, "f16", "f2"), (32, 8, "f16", "f2"), (32, 2, "f32", "f4"), (16, 32, "i8", "i1"), (32, 16, "i8", "i1")],
)
def test_matrix_products(m, k, element, dtype):
    rng, wave = np.random.default_rng(SEED), Wave()
    a, b = (rng.integers(-3, 4, (m, k)).astype(dtype) for _ in range(2))
    whole = element == "i8"
    for register, side in ((10, a), (20, b)):
        words = np.ascontiguousarray(registers_of(side, m)).view(np.uint32)
        wave.vectors[register : register + words.shape[1]] = words.T
    kind = np.int32 if whole else np.float32
    count = m * m // 64
    c = rng.integers(-9, 10, (count, 64)).astype(kind)
    wave.accumulators[30 : 30 + count] = c.view(np.uint32)
    product = Product(
        m, k, whole, 60, FIRST_VECTOR + 30, True, Operand(10, False, element), Operand(20, False, element)
    )
    mfma.multiply(product, wave)
    found = rows_of(wave.accumulators[60 : 60 + count].view(kind), m)
    assert (found == a.astype(kind) @ b.astype(kind).T + rows_of(c, m)).all()
    assert not wave.vectors[60 : 60 + count].any()


def test_scales_are_for_32_elements_of_a_row():
    rng, wave, m, k = np.random.default_rng(SEED), Wave(), 16, 128
    codes = rng.choice(np.array([0x00, 0x38, 0x40, 0xB8], np.uint8), (2, m, k))  # 0, 1, 2, -1
    values = np.select([codes == 0x38, codes == 0x40, codes == 0xB8], [1.0, 2.0, -1.0], 0.0)
    exponents = rng.integers(126, 130, (m, k // 32))
    for register, side in ((10, codes[0]), (20, codes[1])):
        wave.vectors[register : register + 8] = np.ascontiguousarray(registers_of(side, m, True)).view(np.uint32).T
    wave.vectors[40] = (exponents.T.reshape(64).astype(np.uint32) << 8) | 0x55
    scaled = Operand(10, False, "f8E4M3FN", True, (FIRST_VECTOR + 40, 1))
    mfma.multiply(Product(m, k, False, 60, 128, False, scaled, Operand(20, False, "f8E4M3FN", True)), wave)
    expected = (values[0] * np.repeat(2.0 ** (exponents - 127.0), 32, axis=1)) @ values[1].T
    assert (rows_of(wave.vectors[60:64].view(np.float32), m) == expected).all()


class MatrixWord:
    """The places of the fields, as the emulator's class has them."""

    vdst, cbsz, abid, acc_cd = Field(7, 0), Field(10, 8), Field(14, 11), Field(15, 15)
    src0, src1, src2, acc, blgp = Field(40, 32), Field(49, 41), Field(58, 50), Field(60, 59), Field(63, 61)


def test_matrix_instructions_are_read():
    word = 5 | 1 << 15 | (FIRST_VECTOR + 7) << 32 | (FIRST_VECTOR + 9) << 41 | 128 << 50 | 2 << 59
    found = mfma.decode_product("V_MFMA_F32_16X16X32_FP8_BF8", MatrixWord, word.to_bytes(8, "little"), "gfx942")
    assert (found.m, found.k, found.d, found.c, found.accumulators) == (16, 32, 5, 128, True)
    assert (found.a, found.b) == (Operand(7, False, "f8E4M3FNUZ"), Operand(9, True, "f8E5M2FNUZ"))
    later = mfma.decode_product("V_MFMA_F32_16X16X32_FP8_BF8", MatrixWord, word.to_bytes(8, "little"), "gfx950")
    assert (later.a.element, later.b.element) == ("f8E4M3FN", "f8E5M2")
    for name in ("V_MFMA_F32_4X4X4_16B_F16", "V_MFMA_F32_32X32X4_2B_BF16", "V_MFMA_F64_16X16X4_F64"):
        with pytest.raises(NotImplementedError):
            mfma.decode_product(name, MatrixWord, word.to_bytes(8, "little"), "gfx942")
    permuted = (word | 1 << 61).to_bytes(8, "little")
    with pytest.raises(NotImplementedError, match="permutation"):
        mfma.decode_product("V_MFMA_F32_16X16X16_F16", MatrixWord, permuted, "gfx942")


@pytest.mark.parametrize("size, rows", [(2, 4), (1, 8)])
def test_transposed_reads_give_each_lane_a_column(size, rows):
    stored = np.arange(64 * 8 // size).astype(f"u{size}").reshape(4, rows, 16)
    found = transposed.transpose(stored.view(np.uint8).reshape(64, 8), size).view(f"u{size}").reshape(4, 16, rows)
    for group in range(4):
        assert (found[group] == stored[group].T).all()


class SharedWord:
    vdst, addr, offset1, offset0 = Field(63, 56), Field(39, 32), Field(15, 8), Field(7, 0)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("DS_LOAD_U16_D16", 0xAAAA8483), ("DS_LOAD_U16_D16_HI", 0x8483AAAA), ("DS_LOAD_I8_D16", 0xAAAAFF83),
        ("DS_READ_U8_D16_HI", 0x0083AAAA),
    ],
)  # fmt: skip
def test_reads_into_half_of_a_register_leave_the_other_half(name, expected):
    wave = Wave()
    wave.shared[256:260] = bytes.fromhex("81828384")
    wave.vectors[1], wave.vectors[9] = 0, 0xAAAAAAAA
    wave.scalars[EXEC + 1] = 0
    half_reads.executor(name, SharedWord, (2 | 1 << 8 | 1 << 32 | 9 << 56).to_bytes(8, "little"))(wave)
    assert wave.vectors[9, 31] == expected and wave.vectors[9, 32] == 0xAAAAAAAA
    assert half_reads.executor("DS_LOAD_B32", SharedWord, bytes(8)) is None


class LaneWord:
    vdst, src0 = Field(24, 17), Field(8, 0)


@pytest.mark.parametrize("row", [16, 32])
def test_swaps_of_rows(row):
    wave = Wave()
    wave.vectors[1] = 100 + np.arange(64)
    execute = swaps.executor(f"V_PERMLANE{row}_SWAP_B32_E32", LaneWord, (FIRST_VECTOR + 1).to_bytes(8, "little"))
    execute(wave)
    odd = np.arange(64) // row % 2 == 1
    assert (wave.vectors[0] == np.where(odd, 100 + np.arange(64) - row, np.arange(64))).all()
    assert (wave.vectors[1] == np.where(odd, 100 + np.arange(64), np.arange(64) + row)).all()
    wave.scalars[EXEC] = 1
    with pytest.raises(NotImplementedError):
        execute(wave)
    assert swaps.executor("V_MOV_B32_E32", LaneWord, bytes(8)) is None


def dpp(control, row_mask=15, bank_mask=15, zero=0, modifiers=0, word=0x7E000200 | 9 << 17):
    """v_mov_b32_dpp v9, v0 (or another word)."""
    more = control << 8 | zero << 19 | modifiers << 20 | bank_mask << 24 | row_mask << 28
    return struct.pack("<2I", word & ~0x1FF | lane_moves.DPP16, more) + bytes(8)


L = np.arange(64)


@pytest.mark.parametrize(
    "control, source",
    [
        (0b00_01_10_11, L // 4 * 4 + 3 - L % 4),
        (0x101, np.where(L % 16 < 15, L + 1, -1)),
        (0x113, np.where(L % 16 >= 3, L - 3, -1)),
        (0x128, L // 16 * 16 + (L + 8) % 16),
        (0x138, L - 1),
        (0x13C, (L - 1) % 64),
        (0x140, L // 16 * 16 + 15 - L % 16),
        (0x141, L // 8 * 8 + 7 - L % 8),
        (0x142, np.where(L < 16, -1, L // 16 * 16 - 1)),
        (0x143, np.where(L < 32, -1, 31)),
        (0x153, L // 16 * 16 + 3),
        (0x164, L ^ 4),
    ],
)
@pytest.mark.parametrize("zero", [0, 1])
def test_moves_between_lanes(control, source, zero):
    wave = Wave()
    move = lane_moves.decode_move(dpp(control, zero=zero), False, lambda data: False)
    assert move.size == 8 and struct.unpack("<I", move.plain)[0] == 0x7E000200 | 9 << 17 | FIRST_VECTOR + move.register
    before = wave.vectors.copy()
    with lane_moves.moved(move, wave):
        assert (wave.active() == ((source >= 0) | bool(zero))).all()
        assert (wave.vectors[move.register] == np.where(source >= 0, source, 0)).all()
    assert (wave.vectors == before).all() and wave.active().all()


def test_masks_turn_lanes_off_and_lanes_that_are_off_give_nothing():
    wave = Wave()
    wave.scalars[EXEC] = 0xFFFFFFFE
    move = lane_moves.decode_move(dpp(0b11_10_01_00, row_mask=0b0101, bank_mask=0b0001), False, lambda data: False)
    with lane_moves.moved(move, wave):
        assert list(np.flatnonzero(wave.active())) == [1, 2, 3, 32, 33, 34, 35]


def test_registers_of_the_instruction_are_not_used_for_the_move():
    vop2 = 126 << 17 | 124 << 9  # v126, and the pair that v124 may begin
    assert lane_moves.decode_move(dpp(0x128, word=vop2), False, lambda data: False).register == 123


def test_eight_lanes_choose_of_eight():
    control = sum((7 - i) << 8 + 3 * i for i in range(8))
    data = struct.pack("<2I", 0x7E000200 | lane_moves.DPP8, control) + bytes(8)
    move = lane_moves.decode_move(data, True, lambda data: False)
    wave = Wave(32)
    with lane_moves.moved(move, wave):
        assert (wave.vectors[move.register] == np.arange(32) // 8 * 8 + 7 - np.arange(32) % 8).all()
    assert lane_moves.decode_move(data, False, lambda data: False) is None, "CDNA has no such operand"


def test_moves_that_are_not_known_are_not_done():
    assert lane_moves.decode_move(struct.pack("<4I", 0x7E000300, 0, 0, 0), False, lambda data: False) is None
    with pytest.raises(NotImplementedError):
        lane_moves.decode_move(dpp(0x128, modifiers=4), False, lambda data: False)
    wave = Wave()
    with (
        pytest.raises(NotImplementedError),
        lane_moves.moved(lane_moves.decode_move(dpp(0x1F0), False, lambda data: False), wave),
    ):
        pass


def test_signs_of_a_moved_operand():
    wave = Wave()
    wave.vectors[0] = np.float32(-2.0).view(np.uint32)
    for modifiers, expected in ((1, 2.0), (2, 2.0), (3, -2.0)):
        move = lane_moves.decode_move(dpp(0x128, modifiers=modifiers), False, lambda data: False)
        with lane_moves.moved(move, wave):
            assert (wave.vectors[move.register].view(np.float32) == expected).all()


@pytest.mark.parametrize(
    "word, expected",
    [
        (0x7E001500 | 142 << 17 | 51, (0xD14A0000 | 142, FIRST_VECTOR + 51)),  # v_cvt_f16_f32 v142, v51
        (0x32 << 25 | 3 << 17 | 200 << 9 | 240, (0xD1320003, 240 | (FIRST_VECTOR + 200) << 9)),  # VOP2 v3, 0.5, v200
        (0x7C000000 | 0x2A << 17 | 5 << 9 | FIRST_VECTOR + 130, (0xD02A006A, 386 | (FIRST_VECTOR + 5) << 9)),
    ],
)
def test_short_instructions_on_high_registers_get_their_long_form(word, expected):
    data = struct.pack("<I", word)
    assert high_halves.in_long_form(data, lambda data: True) == struct.pack("<2I", *expected)
    assert high_halves.in_long_form(data, lambda data: False) is None, "not on 16 bits"


def test_elsewhere_is_left_again():
    wave = Wave()
    wave.scalars[PC : PC + 2] = 1, 2
    with wave.elsewhere(0x1234567890):
        assert list(wave.scalars[PC : PC + 2]) == [0x34567890, 0x12]
    wave.advance(8)
    assert list(wave.scalars[PC : PC + 2]) == [9, 2]
