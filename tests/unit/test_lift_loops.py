"""Loops of lifted kernels: what they carry, and what is moved on in them."""

from __future__ import annotations

import pytest
from lift_harness import lifted, tensor

from gluonize.diagnostics import TranslationError

VECTORS = {"x_ptr": ("*fp32", tensor("float32", 5000)), "y_ptr": ("*fp32", tensor("float32", 5000))}
LENGTH = {"n": ("i32", 4096)}

MOVED = """
@gluon.jit
def kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    slot = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    lane = gl.arange(0, BLOCK, layout)
    slot.store(gl.amd.cdna3.buffer_load(x_ptr, lane))
    total = gl.zeros([BLOCK], gl.float32, layout)
    ahead = {first}
    for i in range(gl.cdiv(n, BLOCK)):
        x = slot.load(layout)
        {load}
        total = total * 0.5 + x
        slot.store(later)
        {step}
    gl.store(y_ptr + lane, total)
"""


@pytest.mark.parametrize(
    "first, load, step",
    [
        ("x_ptr + BLOCK", "later = gl.amd.cdna3.buffer_load(ahead, lane)", "ahead += BLOCK"),
        ("lane + BLOCK", "later = gl.amd.cdna3.buffer_load(x_ptr, ahead)", "ahead += BLOCK"),
        ("x_ptr", "ahead += BLOCK; later = gl.amd.cdna3.buffer_load(ahead, lane)", "pass"),
    ],
    ids=["pointer", "offsets", "before its use"],
)
def test_what_a_loop_moves_on_is_told_by_its_iteration(tmp_path, first, load, step):
    """A tile is loaded one iteration before it is read."""
    source = MOVED.format(first=first, load=load, step=step)
    text = lifted(tmp_path, source, "hip:gfx942", VECTORS | LENGTH, {"BLOCK": 256}, [1])
    loop = text[text.index("for ") :]
    assert ("i * 256" in loop or "tl.cast(i, tl.int64) * 256" in loop) and "+ 256" not in text
    assert loop.count("tl.load") == 1 and "slot" not in loop.replace("slot = tl.load", "")


def test_pointers_move_as_far_as_64_bits_go(tmp_path):
    source = MOVED.format(first="x_ptr + n", load="later = gl.amd.cdna3.buffer_load(ahead, lane)", step="ahead += n")
    text = lifted(tmp_path, source, "hip:gfx942", VECTORS | LENGTH, {"BLOCK": 256}, [1])
    assert "tl.cast(n, tl.int64) * tl.cast(i, tl.int64)" in text


def test_what_a_loop_carries_is_used_in_its_own_iteration(tmp_path):
    """The slot has the maximum of the iteration before: no value of this one."""
    source = """
    @gluon.jit
    def kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
        layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
        slot = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
        lane = gl.arange(0, BLOCK, layout)
        most = gl.zeros([BLOCK], gl.float32, layout)
        slot.store(most)
        for i in range(gl.cdiv(n, BLOCK)):
            before = slot.load(layout)
            slot.store(most)
            gl.store(y_ptr + i * BLOCK + lane, before)
            most = gl.maximum(most, gl.load(x_ptr + i * BLOCK + lane))
        gl.store(x_ptr + lane, most)
    """
    with pytest.raises(TranslationError, match="do not do the same"):
        lifted(tmp_path, source, "hip:gfx942", VECTORS | LENGTH, {"BLOCK": 256}, [1])


def test_a_loop_that_needs_the_result_of_another_one(tmp_path):
    source = """
    @gluon.jit
    def kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
        layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
        lane = gl.arange(0, BLOCK, layout)
        total = gl.zeros([BLOCK], gl.float32, layout)
        for at in range(0, n, BLOCK):
            total += gl.load(x_ptr + at + lane)
        mean = gl.sum(total, 0) / n
        spread = gl.zeros([BLOCK], gl.float32, layout)
        for at in range(0, n, BLOCK):
            x = gl.load(x_ptr + at + lane) - mean
            spread += x * x
        gl.store(y_ptr + lane, spread)
    """
    text = lifted(tmp_path, source, "hip:gfx942", VECTORS | LENGTH, {"BLOCK": 256}, [1])
    loops = [line for line in text.splitlines() if line.startswith("for ")]
    assert len(loops) == 2 and text.index("tl.sum(") > text.index(loops[0])
    assert text.rindex("for ") > text.index("tl.sum(")


def test_what_a_loop_carries_is_not_stored_in_it(tmp_path):
    source = """
    @gluon.jit
    def kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
        layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
        lane = gl.arange(0, BLOCK, layout)
        most = gl.zeros([BLOCK], gl.float32, layout)
        for at in range(0, n, BLOCK):
            most = gl.maximum(most, gl.load(x_ptr + at + lane))
            gl.store(y_ptr + at + lane, most)
    """
    with pytest.raises(TranslationError, match="what a loop carries is stored in it"):
        lifted(tmp_path, source, "hip:gfx942", VECTORS | LENGTH, {"BLOCK": 256}, [1])


UNSIGNED = """
@gluon.jit
def kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    ring = gl.allocate_shared_memory(gl.float32, [2, BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    lane = gl.arange(0, BLOCK, layout)
    ring.index(0).store(gl.load(x_ptr + lane))
    for i in range(gl.cdiv(n, BLOCK)):
        slot = i % 2
        free = gl.minimum((slot - 1).to(gl.uint32), 1).to(gl.int32)
        ring.index(free).store(gl.load(x_ptr + (i + 1) * BLOCK + lane))
        gl.store(y_ptr + i * BLOCK + lane, ring.index(slot).load(layout))
"""


def test_the_slot_before_the_first_one_is_the_last(tmp_path):
    """As an unsigned number -1 is greater than any slot."""
    text = lifted(tmp_path, UNSIGNED, "hip:gfx942", VECTORS | LENGTH, {"BLOCK": 256}, [1])
    assert text.splitlines()[-1].startswith("    tl.store(y_ptr + ") and "i * 256" in text and "256 + 256" not in text


def test_integers_that_may_be_negative_are_compared_as_they_were(tmp_path):
    source = """
    @gluon.jit
    def kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
        layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
        lane = gl.arange(0, BLOCK, layout)
        for i in range(gl.cdiv(n, BLOCK)):
            at = i * BLOCK - 256
            if at.to(gl.uint32) < n.to(gl.uint32):
                gl.store(y_ptr + at + lane, gl.load(x_ptr + at + lane))
    """
    text = lifted(tmp_path, source, "hip:gfx942", VECTORS | LENGTH, {"BLOCK": 256}, [1])
    assert "tl.uint32) < tl.cast(n, tl.uint32)" in text


PEELED = """
from triton.experimental.gluon.language.amd import cdna5
from triton.experimental.gluon.language.amd.cdna5 import tdm

@gluon.jit
def kernel(a_ptr, b_ptr, c_ptr, K):
    wmma: gl.constexpr = gl.amd.AMDWMMALayout(version=3, transposed=True, warp_bases=[[0, 1], [1, 0]], instr_shape=[16, 16, 32])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    left: gl.constexpr = gl.DotOperandLayout(0, wmma, 8)
    right: gl.constexpr = gl.DotOperandLayout(1, wmma, 8)
    a = tdm.make_tensor_descriptor(a_ptr, [64, {extent}], [K, 1], [64, 64], shared)
    b = tdm.make_tensor_descriptor(b_ptr, [{extent}, 64], [64, 1], [64, 64], shared)
    a_smem = gl.allocate_shared_memory(gl.float16, [2, 64, 64], shared)
    b_smem = gl.allocate_shared_memory(gl.float16, [2, 64, 64], shared)
    acc = gl.zeros([64, 64], gl.float32, wmma)
    tdm.async_load(a, [0, 0], a_smem.index(0))
    tdm.async_load(b, [0, 0], b_smem.index(0))
    steps = gl.cdiv(K, 64)
    for i in range(steps - 1):
        tdm.async_load(a, [0, (i + 1) * 64], a_smem.index((i + 1) % 2))
        tdm.async_load(b, [(i + 1) * 64, 0], b_smem.index((i + 1) % 2))
        acc = cdna5.wmma(a_smem.index(i % 2).load(left), b_smem.index(i % 2).load(right), acc)
    last = gl.maximum(steps - 1, 0) % 2
    acc = cdna5.wmma(a_smem.index(last).load(left), b_smem.index(last).load(right), acc)
    rows = gl.arange(0, 64, gl.SliceLayout(1, wmma))
    gl.store(c_ptr + rows[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, wmma))[None, :], acc)
"""


@pytest.mark.parametrize("extent, trips", [("K", "steps"), ("K + 64", "tl.maximum(steps, 1)")])
def test_a_product_of_a_tile_past_the_end_needs_no_iteration(tmp_path, extent, trips):
    """One product is always made; with K = 0 it is one of zeros only where the descriptors end at K."""
    arguments = {
        "a_ptr": ("*fp16", tensor("float16", 64, 448)),
        "b_ptr": ("*fp16", tensor("float16", 448, 64)),
        "c_ptr": ("*fp32", tensor("float32", 64, 64)),
        "K": ("i32", 448),
    }
    text = lifted(tmp_path, PEELED.format(extent=extent), "hip:gfx1250", arguments, {}, [1])
    assert text.count("for ") == 1 and f"in range({trips}):" in text


def test_equal_numbers_of_several_iterations_are_told_by_their_own(tmp_path):
    """`part` is 0 at every size that is tried, in this iteration and in the one before."""
    source = """
    @gluon.jit
    def kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
        layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
        first = gl.program_id(0) * n
        for i in range(n):
            tile = first + i
            part = tile // 1048576
            lane = part * BLOCK + gl.arange(0, BLOCK, layout)
            gl.store(y_ptr + tile * BLOCK + lane, gl.load(x_ptr + lane))
    """
    text = lifted(tmp_path, source, "hip:gfx942", VECTORS | {"n": ("i32", 6)}, {"BLOCK": 256}, [2])
    assert "tile = first + i\n" in text and "part = tile // 1048576" in text


SLICED = """
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma

@gluon.jit
def kernel(a, b, c, d):
    sa = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
    sb = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
    acc = gl.zeros((64, 64), gl.float32, layout)
    for k in range(gl.cdiv(a.shape[1], 128)):
        mbarrier.expect(bar, a.block_type.nbytes + b.block_type.nbytes)
        tma.async_load(a, [0, k * 128], bar, sa)
        tma.async_load(b, [0, k * 128], bar, sb)
        mbarrier.wait(bar, k & 1)
        for s in gl.static_range({parts}):
            left = sa.slice({left} * 32, 32, 1)
            right = sb.slice(s * 32, 32, 1).permute((1, 0))
            acc = warpgroup_mma(left, right, acc)
            {between}
    rows = gl.arange(0, 64, gl.SliceLayout(1, layout))
    gl.store(c + rows[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, layout))[None, :], acc)
"""


def sliced(tmp_path, **changed) -> str:
    """The kernel that multiplies tiles of 128 columns in four parts, lifted."""
    kind = "tensordesc<fp16[64, 128],NVMMASharedLayout(swizzle_byte_width=64, element_bitwidth=16, rank=2, transposed=False, "
    kind += "fp4_padded=False, cga_layout=[])>"
    held = {"base": tensor("float16", 64, 512)["tensor"], "shape": [64, 512], "strides": [512, 1]}
    arguments = {name: (kind, {"descriptor": held}) for name in ("a", "b")}
    arguments |= {name: ("*fp32", tensor("float32", 64, 64)) for name in ("c", "d")}
    source = SLICED.format(**({"parts": 4, "left": "s", "between": "pass"} | changed))
    return lifted(tmp_path, source, "cuda:90", arguments, {}, [1])


def test_products_of_all_parts_of_a_tile_are_the_product_of_the_tile(tmp_path):
    text = sliced(tmp_path)
    assert text.count("tl.dot(") == 1 and "split" not in text and "tl.trans(sb)" in text


@pytest.mark.parametrize(
    "changed, products",
    [
        ({"left": "(3 - s)"}, 4),
        ({"parts": 2}, 2),
        ({"between": "acc = acc * 0.5"}, 4),
    ],
    ids=["other parts", "not all", "not a sum"],
)
def test_products_of_other_parts_stay(tmp_path, changed, products):
    text = sliced(tmp_path, **changed)
    assert text.count("tl.dot(") == products and "split" in text
