"""Padding in place of rotating layouts: which offsets it gives, its bank conflicts, and where it is not used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gluonize.decide.layouts.padding import padded_rows
from printed_modules import function_of
from gluonize.decide.readback.operands import read_operands
from gluonize.product.report.layouts.linear_map import DistributedMap, SharedMap, bank_use
from gluonize.trace.model.layouts import DotOperand, Linear, Wmma
from gluonize.trace.model.shared_layouts import Padded, Swizzled, rotating

WMMA = Wmma(2, True, ((1, 0), (2, 0)), (), (16, 16, 16))
B, A = DotOperand(1, WMMA, 8), DotOperand(0, WMMA, 8)


def rows(n: int, first: int = 1):
    return tuple((0, first << i) for i in range(n))


def columns(n: int, first: int = 1):
    return tuple((first << i, 0) for i in range(n))


# The tile of V in attention: 4 elements of K in a lane after the transpose, 64 x 64 in 4 warps.
STORED = Linear(columns(2) + rows(3), rows(3, 8) + columns(2, 4), columns(2, 16), (), (64, 64))
# Of 32 columns: fewer lanes along them, so one bit of a store's lanes lies along K.
NARROW = Linear(columns(2) + rows(3), rows(2, 8) + columns(3, 4), columns(1, 32), (), (64, 32))
SQUARE = rotating(8, 1, 8, (0, 1), (64, 64))


def test_vectors_then_rows_read_together_then_columns_then_padded_rows():
    found = padded_rows(SQUARE, STORED, {B}, 16, 32)
    assert found == Padded(((512, 8),), (*columns(3), *rows(3), *columns(3, 8), *rows(3, 8)), (), (64, 64))


@pytest.mark.parametrize("stored, most", [(STORED, 0), (NARROW, 1)], ids=["square", "narrow"])
def test_banks_are_shared_by_two_lanes_at_most(stored, most):
    found = padded_rows(rotating(8, 1, 8, (0, 1), stored.shape), stored, {B}, 16, 32)
    lds = SharedMap(found.offsets, found.pairs, stored.shape, 16)
    store = bank_use(DistributedMap(stored.register, stored.lane, stored.warp, stored.shape), lds, 32)
    assert store.vector_bytes == 8 and store.conflicts == most * store.ideal
    # An operand of 16x16x16: 8 elements of K in a register each, lanes along 16 rows, then the other 8 of K.
    read = bank_use(DistributedMap(columns(3), rows(4) + columns(1, 8), (), stored.shape), lds, 32)
    assert read.vector_bytes == 16 and read.conflicts == 0


@pytest.mark.parametrize(
    "shared, stored, reads",
    [
        (Swizzled(8, 1, 8, (0, 1)), STORED, {B}),
        (SQUARE, None, {B}),
        (SQUARE, STORED, {A}),
        (SQUARE, STORED, {B, Linear(rows(3), rows(3, 8) + columns(2), (), (), (64, 64))}),
        (SQUARE, replace(STORED, lane=rows(1) + rows(4, 8)), {B}),
        (rotating(8, 1, 8, (0, 1), (64, 8)), replace(STORED, shape=(64, 8)), {B}),
        (rotating(8, 1, 8, (0, 1), (16, 64)), replace(STORED, shape=(16, 64)), {B}),
    ],
    ids=["swizzled", "not transposed", "read along rows", "read permuted", "stored in rows", "no other rows", "short"],
)
def test_rotating_stays(shared, stored, reads):
    assert padded_rows(shared, stored, reads, 16, 32) is None


DEFINITIONS = """\
#blocked = #ttg.blocked<{sizePerThread = [4, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#linear = #ttg.linear<{register = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [4, 0], [8, 0]], \
warp = [[16, 0], [32, 0]], block = []}>
#shared = #ttg.amd_rotating_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>
#loc1 = loc("gluonize":1:1)
#loc2 = loc("gluonize":2:1)
"""
MOVED = """\
%t{n} = amdg.in_thread_transpose %v{n} : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #linear> loc(#loc{n})
%a{n} = ttg.local_alloc %t{n} : (tensor<64x64xf16, #linear>) -> !ttg.memdesc<64x64xf16, #shared, #smem> loc(#loc{n})
"""


@pytest.mark.parametrize(
    "body, padded",
    [
        (MOVED.format(n=1), False),
        (MOVED.format(n=1) + MOVED.format(n=2), True),
        ("  scf.for %i = %a to %b step %c : i32 {\n" + MOVED.format(n=1) + "  } loc(#loc1)\n", True),
    ],
    ids=["one tile", "two tiles", "in a loop"],
)
def test_operands_are_padded_where_addresses_are_kept(body, padded):
    module = function_of(body, DEFINITIONS)
    found = read_operands(module, banks=32)
    assert {isinstance(o.shared, Padded) for entries in found.values() for o in entries} == {padded}
    assert not any(isinstance(o.shared, Padded) for entries in read_operands(module).values() for o in entries)
