"""Pipelines read from a translation's text, replayed, and drawn."""

import re

import pytest

from gluonize.product.report.loops.drawing import timeline
from gluonize.product.report.loops.timeline import timelines
from gluonize.product.report.page.pipeline import pipeline_section

COPIES = """
@gluon.jit
def kernel(a_ptr, K, BLOCK: gl.constexpr, NUM_BUFFERS: gl.constexpr = {buffers}):
    a_smem = gl.allocate_shared_memory(gl.float16, [NUM_BUFFERS, BLOCK, 64], a_shared)
    for t in gl.static_range({prologue}):
        async_copy.buffer_load_to_shared(a_smem.index(t), a_ptr, a_offs)
        async_copy.commit_group()
    for k in range(0, gl.cdiv(K, BLOCK)):
        async_copy.wait_group({wait})
        k_ahead = k + {ahead}
        async_copy.buffer_load_to_shared(a_smem.index(k_ahead % NUM_BUFFERS), a_ptr, a_offs)
        async_copy.commit_group()
        a = a_smem.index(k % NUM_BUFFERS).load(a_operand)
        acc = cdna4.mfma(a, b, acc)
"""
RIGHT = {"buffers": 3, "prologue": "NUM_BUFFERS - 1", "wait": "NUM_BUFFERS - 2", "ahead": "NUM_BUFFERS - 1"}

REGISTERS = """
@gluon.jit
def kernel(a_ptr, K, NUM_BUFFERS: gl.constexpr = 1):
    a_smem = gl.allocate_shared_memory(gl.float16, [NUM_BUFFERS, 128, 64], a_shared)
    for t in gl.static_range(NUM_BUFFERS):
        a_next = cdna3.buffer_load(a_ptr, a_offs)
        a_smem.index(t).store(a_next)
    for k in range(0, K):
        slot = k % NUM_BUFFERS
        a_next = cdna3.buffer_load(a_ptr, a_offs)
        a = a_smem.index(slot).load(a_operand)
        acc = cdna3.mfma(a, b, acc)
        a_smem.index(slot).store(a_next)
"""

PLAIN = """
@gluon.jit
def step(p):
    return gl.load(p)


@gluon.jit
def kernel(a_ptr, K):
    for k in range(0, K):
        acc = cdna3.mfma(step(a_ptr), b, acc)
    for i in range(0, K):
        n += i
"""


def test_copies_are_read_with_their_numbers():
    (loop,) = timelines(COPIES.format(**RIGHT))
    s = loop.replay
    assert (s.mechanism, s.buffers, s.prologue, s.ahead, s.wait) == ("copies", 3, 2, 2, 1)
    assert [(r.name, r.slots, r.shape) for r in loop.rings] == [("a_smem", 3, "BLOCK x 64")]
    assert (loop.line, loop.index, loop.computes, loop.hazards) == (8, "k", True, ())


@pytest.mark.parametrize(
    "change, said",
    [
        ({"wait": "NUM_BUFFERS - 1"}, "before its copy is waited for"),
        ({"ahead": "NUM_BUFFERS"}, "which holds tile"),
        ({"prologue": "NUM_BUFFERS - 2"}, "which holds tile"),
    ],
    ids=["wait too short", "one tile too far ahead", "prologue too short"],
)
def test_a_broken_pipeline_is_called_one(change, said):
    text = COPIES.format(**RIGHT | change)
    (loop,) = timelines(text)
    assert any(said in problem for problem in loop.hazards)
    assert 'class="chip bad"' in pipeline_section((loop,)) and "every read gets its tile" not in pipeline_section(
        (loop,)
    )


def test_registers_are_told_from_copies():
    (loop,) = timelines(REGISTERS)
    assert (loop.replay.mechanism, loop.replay.buffers, loop.replay.prologue, loop.replay.ahead) == (
        "registers",
        1,
        1,
        1,
    )
    assert loop.hazards == ()


def test_a_loop_that_is_not_pipelined_is_drawn_as_such():
    (loop,) = timelines(PLAIN)  # the second loop loads nothing
    assert loop.replay is None and loop.line == 9
    assert "is not pipelined" in timeline(loop)


def bars(picture: str) -> list[tuple[int, str, str, float, float]]:
    """(tile, kind, what is said, begin, end) of every bar."""
    pattern = r'<g class="bar" data-tile="(\d+)" data-kind="(\w+)"><title>(.*?)</title><rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"'
    return [(int(t), k, said, float(x), float(x) + float(w)) for t, k, said, x, w in re.findall(pattern, picture)]


@pytest.mark.parametrize(
    "text", [COPIES.format(**RIGHT), COPIES.format(**RIGHT | {"buffers": 2}), REGISTERS], ids=["3", "2", "registers"]
)
def test_drawing_keeps_the_order_of_events(text):
    """Issued before read, read before the slot is filled again, computed on what was read."""
    (loop,) = timelines(text)
    drawn = bars(timeline(loop))
    slots: dict[str, list[tuple[float, float, int]]] = {}
    for tile, kind, said, begin, end in drawn:
        if kind == "landed":
            issued = [b for t, k, _, b, _ in drawn if t == tile and k == "issue"]
            computed = [b for t, k, _, b, _ in drawn if t == tile and k == "compute"]
            assert len(issued) == len(computed) == 1 and issued[0] < begin < computed[0] < end
        if m := re.search(r"slot (\d+)", said):
            slots.setdefault(m.group(1), []).append((begin, end, tile))
    assert len(slots) == loop.replay.buffers
    for spans in slots.values():
        spans.sort()
        assert all(a[1] <= b[0] + 0.01 or a[2] == b[2] for a, b in zip(spans, spans[1:]))


def test_rings_allocated_again_belong_to_the_later_loop():
    """Two loops with a ring of the same name: each is drawn with its own, alike ones on one card."""
    text = COPIES.format(**RIGHT)
    body = text.split("\n", 3)[3]
    loops = timelines(text + body.replace("NUM_BUFFERS, BLOCK, 64", "NUM_BUFFERS, BLOCK, 32"))
    assert [[(r.name, r.shape) for r in loop.rings] for loop in loops] == [
        [("a_smem", "BLOCK x 64")],
        [("a_smem", "BLOCK x 32")],
    ]
    assert pipeline_section(timelines(text + body)).count('<div class="card">') == 1
    assert pipeline_section(loops).count('<div class="card">') == 2


TDM = """
@gluon.jit
def kernel(a_desc, b_desc, K, NUM_BUFFERS: gl.constexpr = 2):
    a_smem = gl.allocate_shared_memory(gl.float16, [NUM_BUFFERS, 128, 64], a_shared)
    b_smem = gl.allocate_shared_memory(gl.float16, [NUM_BUFFERS, 64, 128], b_shared)
    tdm.async_load(a_desc, [0, 0], a_smem.index(0))
    tdm.async_load(b_desc, [0, 0], b_smem.index(0))
    for k in range(0, K):
        tdm.async_load(a_desc, [0, k], a_smem.index((k + 1) % NUM_BUFFERS))
        tdm.async_load(b_desc, [k, 0], b_smem.index({slot}))
        tdm.async_wait({wait})
        a = a_smem.index(k % NUM_BUFFERS).load(a_operand)
        b = b_smem.index(k % NUM_BUFFERS).load(b_operand)
        acc = cdna5.wmma(a, b, acc)
"""


def test_another_style_by_hand_is_followed_too():
    """A prologue without a loop, copies before the wait, waits that count the loads of both rings."""
    (loop,) = timelines(TDM.format(slot="(k + 1) % NUM_BUFFERS", wait=2))
    assert (loop.replay.prologue, loop.replay.wait, loop.hazards) == (1, 1, ())
    assert len(loop.remarks) == 1 and "barrier" in loop.remarks[0]


def test_a_wrong_slot_of_the_second_ring_is_found():
    (loop,) = timelines(TDM.format(slot="k % NUM_BUFFERS", wait=2))
    assert any("reads slot" in problem for problem in loop.hazards)


def test_a_wait_that_counts_one_load_too_many_is_found():
    (loop,) = timelines(TDM.format(slot="(k + 1) % NUM_BUFFERS", wait=3))
    assert any("before its copy is waited for" in problem for problem in loop.hazards)


@pytest.mark.parametrize("slot", ["gl.load(p) % NUM_BUFFERS", "unknown"], ids=["from memory", "of unknown origin"])
def test_nothing_is_claimed_about_slots_that_cannot_be_followed(slot):
    (loop,) = timelines(TDM.format(slot=slot, wait=2))
    page = pipeline_section((loop,))
    assert loop.replay is None and "could not be followed" in page and "<svg" not in page and "chip good" not in page


def test_a_loop_over_tiles_that_starts_anywhere_is_followed():
    """`for n in range(start, end, BLOCK)` with the slot from `n // BLOCK`, as attention has it."""
    text = COPIES.format(**RIGHT | {"ahead": "(NUM_BUFFERS - 1) * BLOCK"})
    text = text.replace("range(0, gl.cdiv(K, BLOCK))", "range(start, end, BLOCK)")
    text = text.replace("k_ahead % NUM", "k_ahead // BLOCK % NUM").replace("index(k % NUM", "index(k // BLOCK % NUM")
    (loop,) = timelines(text)
    assert loop.replay is not None and loop.hazards == () and loop.replay.prologue == 2
