"""Layouts with 64 lanes per warp as layouts with 32: the same thread owns the same elements."""

import itertools
import random

import pytest

from gluonize.judge.device.refusal import Refused
from gluonize.judge.device.retarget import encodings
from gluonize.judge.device.retarget.encodings import blocked_text, narrow_blocked, narrow_linear
from gluonize.trace.model.attributes import parse_attribute

NAMES = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")


def owned(size, threads, warps, order, lane, warp):
    """Elements of one thread of a blocked layout, from the definition: nested tiles, the fastest dimension first."""
    lanes, waves = [0] * len(size), [0] * len(size)
    for d in order:
        lanes[d], lane = lane % threads[d], lane // threads[d]
        waves[d], warp = warp % warps[d], warp // warps[d]
    start = [(w * t + i) * s for w, t, i, s in zip(waves, threads, lanes, size)]
    return {tuple(a + b for a, b in zip(start, inside)) for inside in itertools.product(*map(range, size))}


def linear_owned(layout, lane, warp):
    """Elements of one thread of a linear layout: the exclusive or of the bases of its set bits."""
    registers = layout.get("register")
    out = [0] * len((*registers, *layout.get("lane"))[0])
    for index, name in ((lane, "lane"), (warp, "warp")):
        for bit, basis in enumerate(layout.get(name)):
            if index >> bit & 1:
                out = [a ^ b for a, b in zip(out, basis)]
    elements = set()
    for index in range(1 << len(registers)):
        place = out
        for bit, basis in enumerate(registers):
            if index >> bit & 1:
                place = [a ^ b for a, b in zip(place, basis)]
        elements.add(tuple(place))
    return elements


def owned_after(layout, lane, warp):
    if layout.kind == "ttg.blocked":
        return owned(*map(layout.get, NAMES), lane, warp)
    return linear_owned(layout, lane, warp)


def narrowed(*parts):
    return narrow_blocked(parse_attribute(blocked_text(*parts)))


def random_blocked(rng, rank):
    order = list(range(rank))
    rng.shuffle(order)
    threads = [1] * rank
    for _ in range(6):
        threads[rng.randrange(rank)] *= 2
    return [rng.choice([1, 2, 4, 8]) for _ in range(rank)], threads, [rng.choice([1, 2, 4]) for _ in range(rank)], order


@pytest.mark.parametrize("seed", range(40))
def test_blocked_keeps_every_element_with_its_thread(seed):
    rng = random.Random(seed)
    size, threads, warps, order = random_blocked(rng, rng.choice([1, 2, 3]))
    after = parse_attribute(narrowed(size, threads, warps, order))
    count = 1
    for w in warps:
        count *= w
    for _ in range(20):
        lane, warp = rng.randrange(64), rng.randrange(count)
        before = owned(size, threads, warps, order, lane, warp)
        assert owned_after(after, lane % 32, warp * 2 + lane // 32) == before


def test_blocked_stays_blocked_where_that_is_exact():
    assert narrowed([1, 8], [8, 8], [4, 1], [1, 0]) == blocked_text([1, 8], [4, 8], [8, 1], [1, 0])
    assert narrowed([1, 8], [8, 8], [2, 2], [1, 0]).startswith("#ttg.linear")


def test_linear_moves_its_last_lane_basis_to_the_front_of_the_warps():
    text = "#ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]], block = []}>"
    after = parse_attribute(narrow_linear(parse_attribute(text)))
    assert after.get("lane") == ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0))
    assert after.get("warp") == ((8, 0), (16, 0))


def test_padding_goes_and_the_bases_stay():
    padded = parse_attribute("#ttg.padded_shared<[512:+8] {offset = [[0, 1], [0, 2], [1, 0]], block = []}>")
    linear = "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 0]]}, alignment = 16>"
    assert encodings.unpadded_shared(padded) == linear
    padded = parse_attribute("#ttg.padded_shared<[64:+8] {order = [1, 0], shape = [128, 64]}>")
    assert "order = [1, 0]" in encodings.unpadded_shared(padded)
    assert "swizzled_shared" in encodings.unpadded_shared(padded)


MODULE = """#mma = #ttg.amd_mfma<{{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}}>
  %d = tt.dot %a, %b, %c : tensor<64x32x{e}, #ttg.dot_op<{{opIdx = 0, parent = #mma, kWidth = 8}}>> * """ + (
    "tensor<32x64x{e}, #ttg.dot_op<{{opIdx = 1, parent = #mma, kWidth = 8}}>> -> tensor<64x64x{acc}, #mma>\n"
)


@pytest.mark.parametrize(
    "element, acc, width", [("f16", "f32", 2), ("bf16", "f32", 2), ("i8", "i32", 4), ("f8E4M3FN", "f32", 4)]
)
def test_matrix_layouts_become_mma_with_its_operand_width(element, acc, width):
    text = encodings.retarget_encodings(MODULE.format(e=element, acc=acc), 64)
    assert "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 2], instrShape = [16, 8]}>" in text
    assert text.count(f"kWidth = {width}}}") == 2 and "amd_mfma" not in text


def test_fp32_dots_run_as_fma_not_as_tf32():
    text = encodings.retarget_encodings(MODULE.format(e="f32", acc="f32"), 64)
    assert "#mma = #ttg.blocked<" in text and "kWidth" not in text and "nvidia_mma" not in text


def test_wave32_keeps_its_warps():
    text = "#mma = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}, instrShape = [16, 16, 32]}>\n"
    assert "warpsPerCTA = [2, 2]" in encodings.retarget_encodings(text, 32)


@pytest.mark.parametrize("text", ["#ttg.amd_rotating_shared<{vec = 4}>", "#ttg.partitioned_shared<{a = 1}>"])
def test_unknown_encodings_are_refused_by_name(text):
    with pytest.raises(Refused) as caught:
        encodings.retarget_encodings(f"#shared = {text}\n", 64)
    assert caught.value.what == text.split("<")[0]
