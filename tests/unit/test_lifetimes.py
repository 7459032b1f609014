"""Which operands are read as soon as they are in LDS, because they would hold more of it than they may until they are used."""

from __future__ import annotations

import pytest

from printed_modules import function_of
from gluonize.decide.readback.operands import crowded_by_late_reads, read_early

BEFORE = "#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [0, 1]}>\n"
AFTER = '#loc1 = loc("gluonize":1:0)\n#loc2 = loc("gluonize":2:0)\n'


def fill(name: str, rows: int, loc: int = 2) -> str:
    return (
        f"%{name} = ttg.local_alloc %x : (tensor<{rows}x64xf16, #rows>) "
        f"-> !ttg.memdesc<{rows}x64xf16, #shared, #smem> loc(#loc{loc})"
    )


def read(value: str, name: str) -> str:
    return f"%{value} = ttg.local_load %{name} : !ttg.memdesc<8x64xf16, #shared, #smem> -> tensor<8x64xf16, #op> loc(#loc2)"


def use(value: str) -> str:
    return f"%u = arith.negf %{value} : tensor<8x64xf16, #op> loc(#loc2)"


def early(*lines: str) -> bool:
    return read_early(function_of("\n".join(lines), BEFORE + AFTER), no_more) == {(1,)}


def no_more(size: int) -> int:
    return size


TWO_READS = (
    fill("a", 8, 1),
    read("r", "a"),
    "%t = ttg.memdesc_trans %a {order = array<i32: 1, 0>} : !ttg.memdesc<8x64xf16, #shared, #smem> -> !ttg.memdesc<64x8xf16, #shared, #smem> loc(#loc1)",
    read("s", "t"),
)


def test_an_operand_that_would_stay_beside_the_next_is_read_early():
    assert early(*TWO_READS, use("r"), fill("b", 8), read("v", "b"), use("s"))


@pytest.mark.parametrize(
    "lines",
    [
        (*TWO_READS, use("r"), use("s"), fill("b", 8), read("v", "b")),  # it is used up by then
        (
            *TWO_READS,
            use("r"),
            fill("b", 8),
            read("v", "b"),
            use("s"),
            fill("c", 64),
            read("w", "c"),
        ),  # more is taken later
        (*TWO_READS[:2], fill("b", 8), *TWO_READS[2:], read("v", "b"), use("s")),  # Triton reads late itself
        (
            *TWO_READS[:2],
            "scf.if %c {",
            "}",
            *TWO_READS[2:],
            fill("b", 8),
            read("v", "b"),
            use("s"),
        ),  # or in another block
    ],
    ids=["used-before", "peak-elsewhere", "read-late", "another-block"],
)
def test_others_are_read_where_they_are_used(lines):
    assert not early(*lines)


def test_a_ring_holds_lds_until_it_is_freed():
    ring = "%q = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> loc(#loc2)"
    lines = (
        ring,
        *TWO_READS,
        use("r"),
        fill("b", 64),
        read("v", "b"),
        use("s"),
        "ttg.local_dealloc %q : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> loc(#loc2)",
    )
    function = function_of("\n".join(lines))
    assert crowded_by_late_reads(function, lambda size: size + 8 * 64 * 2) == set()  # 8 rows beside 192
    assert crowded_by_late_reads(function, no_more) == {"%a"}
    assert crowded_by_late_reads(function_of("\n".join(lines).replace("8x64", "16x64")), no_more) == {"%a"}
