"""What kernels of Inductor call of `torch._inductor.runtime.triton_helpers`, for a machine without torch.

This file is read like a source, and never imported. Each function computes what the one of this name in torch does, which is what Inductor's
kernels count on: comparisons let NaN through, indices break ties by the lower one, empty parts of a Welford sum have weight 0.
"""

import triton
import triton.language as tl
from triton.language import math
from triton.language.extra import libdevice


@triton.constexpr_function
def constexpr_next_power_of_2(n):
    return triton.next_power_of_2(n)


@triton.jit
def if_mask(mask, val):
    if mask is None:
        return None
    else:
        return val


@triton.jit
def promote_to_tensor(x):
    return x + tl.zeros((1,), tl.int1)


@triton.jit
def is_floating(x):
    return promote_to_tensor(x).dtype.is_floating()


@triton.jit
def div_floor_integer(a, b):
    quotient = a // b  # of C: towards zero
    inexact = a % b != 0
    return tl.where(inexact & ((a < 0) != (b < 0)), quotient - 1, quotient)


@triton.jit
def remainder_integer(a, b):
    remainder = a % b  # of C: with the sign of a
    return tl.where((remainder != 0) & ((remainder < 0) != (b < 0)), remainder + b, remainder)


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def prod(input, axis):
    return tl.reduce(input, axis, _times)


@triton.jit
def minimum(a, b):
    return tl.where((a < b) | (a != a), a, b)


@triton.jit
def maximum(a, b):
    return tl.where((a > b) | (a != a), a, b)


@triton.jit
def min2(a, dim):
    return tl.reduce(a, dim, minimum)


@triton.jit
def max2(a, dim):
    return tl.reduce(a, dim, maximum)


@triton.jit
def _either(a, b):
    return a | b


@triton.jit
def any(a, dim):
    return tl.reduce(a, dim, _either)


@triton.jit
def _is_first(before, same, a_index, b_index):
    return before | (same & (a_index < b_index))


@triton.jit
def minimum_with_index(a_value, a_index, b_value, b_index):
    a_nan, b_nan = a_value != a_value, b_value != b_value
    before = (a_value < b_value) | (a_nan & (b_value == b_value))
    takes_a = _is_first(before, (a_value == b_value) | (a_nan & b_nan), a_index, b_index)
    return tl.where(takes_a, a_value, b_value), tl.where(takes_a, a_index, b_index)


@triton.jit
def maximum_with_index(a_value, a_index, b_value, b_index):
    a_nan, b_nan = a_value != a_value, b_value != b_value
    before = (a_value > b_value) | (a_nan & (b_value == b_value))
    takes_a = _is_first(before, (a_value == b_value) | (a_nan & b_nan), a_index, b_index)
    return tl.where(takes_a, a_value, b_value), tl.where(takes_a, a_index, b_index)


@triton.jit
def min_with_index(value, index, dim):
    return tl.reduce((value, index), dim, minimum_with_index)


@triton.jit
def max_with_index(value, index, dim):
    return tl.reduce((value, index), dim, maximum_with_index)


@triton.jit
def exp(x, use_fast_math: tl.constexpr):
    if use_fast_math:
        return tl.exp(x)
    else:
        return libdevice.exp(x)


@triton.jit
def online_softmax_reduce(lhs_max, lhs_sum, dim, use_fast_math: tl.constexpr):
    row_max = max2(lhs_max, dim)
    kept = tl.expand_dims(row_max, dim)
    below = tl.where(kept == float("-inf"), 0, lhs_max - kept)  # of a row without numbers: no difference of infinities
    return row_max, tl.sum(lhs_sum * exp(below, use_fast_math), dim)


@triton.jit
def online_softmax_combine(lhs_max, lhs_sum, rhs_max, use_fast_math: tl.constexpr):
    both = maximum(lhs_max, rhs_max)
    empty = both == float("-inf")
    lhs_scale = tl.where(empty, 1.0, exp(lhs_max - both, use_fast_math))
    rhs_scale = tl.where(empty, 1.0, exp(rhs_max - both, use_fast_math))
    return both, lhs_sum * lhs_scale + rhs_scale


@triton.jit
def online_softmax_combine_with_sum(lhs_max, lhs_sum, rhs_max, rhs_sum, use_fast_math: tl.constexpr):
    both = maximum(lhs_max, rhs_max)
    empty = both == float("-inf")
    lhs_scale = tl.where(empty, 1.0, exp(lhs_max - both, use_fast_math))
    rhs_scale = tl.where(empty, 1.0, exp(rhs_max - both, use_fast_math))
    return both, lhs_sum * lhs_scale + rhs_sum * rhs_scale


@triton.jit
def welford_reduce(value, mean, m2, weight, first_iteration):
    if first_iteration:
        new_weight = tl.full(weight.shape, 1, weight.dtype)
        new_mean = value
        new_m2 = tl.zeros_like(m2)
    else:
        away = value - mean
        new_weight = weight + 1
        new_mean = mean + away / new_weight
        new_m2 = m2 + away * (value - new_mean)
    return new_mean, new_m2, new_weight


@triton.jit
def welford_combine(mean_1, m2_1, weight_1, mean_2, m2_2, weight_2):
    apart = mean_2 - mean_1
    weight = weight_1 + weight_2
    share = tl.where(weight == 0.0, 0.0, weight_2 / weight)
    return mean_1 + apart * share, m2_1 + m2_2 + apart * apart * weight_1 * share, weight


@triton.jit
def welford(mean, m2, weight, dim):
    return tl.reduce((mean, m2, weight), dim, welford_combine)


@triton.jit
def device_assert_then(cond, msg, r):
    tl.device_assert(cond, msg)
    return r


@triton.jit
def randint64(seed, offset, low, high):
    low_bits, high_bits, _, _ = tl.randint4x(seed, offset)
    bits = (high_bits.to(tl.uint64) << 32) | low_bits.to(tl.uint64)
    size = high - low
    return (bits % size.to(tl.uint64)).to(tl.int64) + low


@triton.jit
def bucketize_binary_search(
    values,
    boundaries_ptr,
    BOUNDARIES_SIZE: tl.constexpr,
    BOUNDARIES_UNDERLYING_NUMEL: tl.constexpr,
    BOUNDARIES_STRIDE: tl.constexpr,
    boundary_indices,
    indexing_dtype: tl.constexpr,
    right: tl.constexpr,
    sorter_ptr,
    SORTER_STRIDE: tl.constexpr,
    sorter_indices,
):
    low = tl.zeros(values.shape, indexing_dtype)
    high = tl.full(values.shape, BOUNDARIES_SIZE, indexing_dtype)
    left = BOUNDARIES_SIZE + 1  # what may still be the answer
    while left > 1:
        middle = (low + high) // 2
        inside = (low < high) & (boundary_indices + BOUNDARIES_STRIDE * middle < BOUNDARIES_UNDERLYING_NUMEL)
        inside = inside & (middle < BOUNDARIES_SIZE)
        if sorter_ptr is None:
            sorted_at = middle
        else:
            sorted_at = tl.load(sorter_ptr + sorter_indices + SORTER_STRIDE * middle, mask=inside, other=0)
        bound = tl.load(boundaries_ptr + boundary_indices + BOUNDARIES_STRIDE * sorted_at, mask=inside, other=0)
        if right:
            above = values >= bound
        else:
            above = values > bound
        above = above | (values != values)
        low = tl.where(above & inside, middle + 1, low)
        high = tl.where(above, high, middle)
        left = (left + 1) // 2
    return low


@triton.jit
def select_one(x, mask, dim, keep_dims=False):
    bits: tl.constexpr = tl.core.get_int_dtype(x.dtype.primitive_bitwidth, signed=False)
    one = tl.sum(x.to(bits, bitcast=True) * mask, dim, keep_dims=keep_dims)
    return one.to(bits).to(x.dtype, bitcast=True)


@triton.jit
def x_grid_barrier(sem):
    tl.debug_barrier()
    # The top bit turns when all programs of the axis have come: the first one adds what the others do not.
    others = tl.num_programs(0).to(tl.uint32) - 1
    is_first = tl.program_id(0) == 0
    share = tl.where(is_first, 0x80000000 - others.to(tl.int64), 1).to(tl.uint32)
    before = tl.atomic_add(sem, share, sem="release")
    waiting = True
    while waiting:
        now = tl.atomic_add(sem, 0, sem="acquire")
        waiting = ((before ^ now) & 0x80000000) == 0
    tl.debug_barrier()


@triton.jit
def sort_with_index(
    x, idxs, rnumel, dim: tl.constexpr = None, stable: tl.constexpr = False, descending: tl.constexpr = False
):
    x, idxs = tl.broadcast(x, idxs)
    last: tl.constexpr = len(x.shape) - 1
    tl.static_assert(dim is None or dim == last, "rows are sorted along the last dimension")
    length: tl.constexpr = x.shape[last]
    steps: tl.constexpr = _log2_of(length)
    place = tl.arange(0, length)
    for i in tl.static_range(len(x.shape) - 1):
        place = tl.expand_dims(place, 0)
    place = tl.broadcast_to(place, x.shape)
    for step in tl.static_range(1, steps + 1):
        for bit in tl.static_range(step):
            x, idxs = _exchanged(
                x, idxs, place, rnumel, 2 ** (step - 1 - bit), 2**step, step == steps, stable, descending
            )
    return x, idxs


@triton.jit
def _exchanged(
    x, idxs, place, rnumel, apart: tl.constexpr, part: tl.constexpr, is_last: tl.constexpr, stable: tl.constexpr, descending: tl.constexpr
):  # fmt: skip
    axis: tl.constexpr = len(x.shape) - 1
    partner = tl.gather(x, place ^ apart, axis)
    partner_index = tl.gather(idxs.to(tl.int32), place ^ apart, axis).to(idxs.dtype)
    is_left = (place & apart) == 0
    left = tl.where(is_left, x, partner)
    right = tl.where(is_left, partner, x)
    left_index = tl.where(is_left, idxs, partner_index)
    right_index = tl.where(is_left, partner_index, idxs)
    behind = _belongs_behind(left, left_index, right, right_index, rnumel, stable, descending)
    if is_last:
        swaps = behind
    else:
        swaps = behind == ((place & part) == 0)  # every other part of a row is in the opposite order
    return tl.where(swaps, partner, x), tl.where(swaps, partner_index, idxs)


@triton.constexpr_function
def _log2_of(n):
    return n.bit_length() - 1


@triton.jit
def _belongs_behind(left, left_index, right, right_index, rnumel, stable: tl.constexpr, descending: tl.constexpr):
    left_nan, right_nan = left != left, right != right
    if descending:
        behind = (left < right) | (right_nan & (left == left))
    else:
        behind = (left > right) | (left_nan & (right == right))
    if stable:
        behind = behind | (((left == right) | (left_nan & right_nan)) & (left_index > right_index))
    if rnumel is not None:  # what is past the end of a row stays there
        left_real, right_real = left_index < rnumel, right_index < rnumel
        behind = tl.where(left_real == right_real, behind, right_real)
    return behind


@triton.jit
def _packed(value, flag, bits: tl.constexpr, both: tl.constexpr):
    width: tl.constexpr = bits.primitive_bitwidth
    return (value.to(bits, bitcast=True).to(both) << width) | flag


@triton.jit
def exclusive_scan_decoupled_lookback(
    scratch_base, block_value, index, combine_fn, DTYPE_VALUE_AS_UINT: tl.constexpr, DTYPE_PACK: tl.constexpr
):
    # A word of each program has its value beside a flag: 1 for its own sum, 2 for that of all up to it.
    width: tl.constexpr = DTYPE_VALUE_AS_UINT.primitive_bitwidth
    if index > 0:
        tl.atomic_xchg(scratch_base + index, _packed(block_value, 1, DTYPE_VALUE_AS_UINT, DTYPE_PACK), sem="relaxed")
    before = block_value  # replaced by the first value that is found
    found = False
    at = index - 1
    while at >= 0:
        word = tl.atomic_add(scratch_base + at, 0, sem="relaxed")
        while word.to(DTYPE_VALUE_AS_UINT) == 0:
            word = tl.atomic_add(scratch_base + at, 0, sem="relaxed")
        value = (word >> width).to(DTYPE_VALUE_AS_UINT).to(block_value.dtype, bitcast=True)
        before = tl.where(found, combine_fn(value, before), value)
        found = True
        at = tl.where(word.to(DTYPE_VALUE_AS_UINT) == 2, -1, at - 1)
    up_to = tl.where(found, combine_fn(before, block_value), block_value)
    tl.atomic_xchg(scratch_base + index, _packed(up_to, 2, DTYPE_VALUE_AS_UINT, DTYPE_PACK), sem="relaxed")
    return tl.where(found, before, tl.zeros([], block_value.dtype))
