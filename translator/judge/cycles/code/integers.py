"""Integer instructions by their mnemonics, without `s_` or `v_` and encoding suffix, as functions of 32-bit words."""

from __future__ import annotations

from collections.abc import Callable

WORD = 0xFFFFFFFF


def signed(x: int) -> int:
    return x - (1 << 32) if x & 0x80000000 else x


def short(x: int) -> int:
    """The 16 bits of an instruction as a signed number."""
    return ((x & 0xFFFF) ^ 0x8000) - 0x8000


def _field(x: int, offset: int, width: int) -> int:
    return (x >> (offset & 31)) & ((1 << (width & 31)) - 1)


def _extended(x: int, width: int) -> int:
    """A field of `width` bits as a signed number."""
    return x - (1 << width) if width and x >> (width - 1) & 1 else x


def _bits_of_three(a: int, b: int, c: int, table: int) -> int:
    """`v_bitop3_b32`: bit `a << 2 | b << 1 | c` of the table, for every bit."""
    found = 0
    for n in range(8):
        if table >> n & 1:
            term = (a if n & 4 else ~a) & (b if n & 2 else ~b) & (c if n & 1 else ~c)
            found |= term
    return found


# Integer operations on 32-bit words, by mnemonic without encoding suffix. Scalars and vectors share their names' middles.
PURE: dict[str, Callable[..., int]] = {
    "mov_b32": lambda a: a,
    "movk_i32": short,
    "accvgpr_read_b32": lambda a: a,
    "accvgpr_write_b32": lambda a: a,
    "accvgpr_mov_b32": lambda a: a,
    "not_b32": lambda a: ~a,
    "abs_i32": lambda a: abs(signed(a)),
    "bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
    **dict.fromkeys(("add_u32", "add_i32", "add_nc_u32", "add_co_u32", "add_co_i32"), lambda a, b: a + b),
    **dict.fromkeys(("sub_u32", "sub_i32", "sub_nc_u32", "sub_co_u32", "sub_co_i32"), lambda a, b: a - b),
    "subrev_u32": lambda a, b: b - a,
    "subrev_nc_u32": lambda a, b: b - a,
    "or_b32": lambda a, b: a | b,
    "xor_b32": lambda a, b: a ^ b,
    "and_b32": lambda a, b: a & b,
    "andn2_b32": lambda a, b: a & ~b,
    "and_not1_b32": lambda a, b: a & ~b,
    "mul_i32": lambda a, b: a * b,
    "mulk_i32": lambda a, b: a * short(b),
    **dict.fromkeys(("addk_i32", "addk_co_i32"), lambda a, b: a + short(b)),
    "mul_lo_u32": lambda a, b: a * b,
    "mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "mul_hi_u32": lambda a, b: (a * b) >> 32,
    "lshl_b32": lambda a, b: a << (b & 31),
    "lshr_b32": lambda a, b: a >> (b & 31),
    "ashr_i32": lambda a, b: signed(a) >> (b & 31),
    "lshlrev_b32": lambda a, b: b << (a & 31),
    "lshrrev_b32": lambda a, b: b >> (a & 31),
    "ashrrev_i32": lambda a, b: signed(b) >> (a & 31),
    "min_i32": lambda a, b: min(signed(a), signed(b)),
    "max_i32": lambda a, b: max(signed(a), signed(b)),
    "min_u32": min,
    "max_u32": max,
    "lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "add_lshl_u32": lambda a, b, c: (a + b) << (c & 31),
    "lshl_or_b32": lambda a, b, c: (a << (b & 31)) | c,
    "and_or_b32": lambda a, b, c: (a & b) | c,
    "or3_b32": lambda a, b, c: a | b | c,
    "xor3_b32": lambda a, b, c: a ^ b ^ c,
    "add3_u32": lambda a, b, c: a + b + c,
    "xad_u32": lambda a, b, c: (a ^ b) + c,
    "mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "mad_u32": lambda a, b, c: a * b + c,
    "bfi_b32": lambda a, b, c: (a & b) | (~a & c),
    "bitop3_b32": _bits_of_three,
    "bitop2_b32": _bits_of_three,
}
SCALAR_ONLY = {
    **{f"lshl{n}_add_u32": lambda a, b, n=n: (a << n) + b for n in (1, 2, 3, 4)},
    "bfe_u32": lambda a, b: _field(a, b & 31, b >> 16 & 0x7F),
    "bfe_i32": lambda a, b: _extended(_field(a, b & 31, b >> 16 & 0x7F), b >> 16 & 0x7F),
}
VECTOR_ONLY = {
    "bfe_u32": lambda a, b, c: _field(a, b, c),
    "bfe_i32": lambda a, b, c: _extended(_field(a, b, c), c),
}
# Operations in which an unknown scalar operand moves all lanes alike. By the positions where that holds.
MOVED = {
    "mov_b32": (0,),
    "add_u32": (0, 1),
    "add_nc_u32": (0, 1),
    "add_co_u32": (0, 1),
    "sub_u32": (0, 1),
    "sub_nc_u32": (0, 1),
    "subrev_u32": (0, 1),
    "subrev_nc_u32": (0, 1),
    "or_b32": (0, 1),
    "xor_b32": (0, 1),
    "lshl_add_u32": (0, 2),
    "add_lshl_u32": (0, 1),
    "lshl_or_b32": (0, 2),
    "and_or_b32": (2,),
    "or3_b32": (0, 1, 2),
    "add3_u32": (0, 1, 2),
    "xad_u32": (0, 1, 2),
    "mad_u32_u24": (2,),
    "mad_u32": (2,),
    "xor3_b32": (0, 1, 2),
}
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lg": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
