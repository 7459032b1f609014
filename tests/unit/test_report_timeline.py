"""Pipelines read from a translation's text, replayed, and drawn."""

import re

import pytest

from translator.report.draw_timeline import timeline
from translator.report.pipeline_section import pipeline_section
from translator.report.timeline import timelines

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
    s = loop.schedule
    assert (s.mechanism, s.buffers, s.prologue, s.ahead, s.wait) == ("copies", 3, 2, 2, 1)
    assert [(r.name, r.slots, r.shape) for r in loop.rings] == [("a_smem", 3, "BLOCK x 64")]
    assert (loop.line, loop.index, loop.computes, loop.hazards) == (8, "k", True, ())


@pytest.mark.parametrize(
    "change, said",
    [
        ({"wait": "NUM_BUFFERS - 1"}, "before its copy is waited for"),
        ({"ahead": "NUM_BUFFERS"}, "overwrites slot"),
        ({"prologue": "NUM_BUFFERS - 2"}, "which holds tile"),
    ],
    ids=["wait too short", "one tile too far ahead", "prologue too short"],
)
def test_a_broken_pipeline_is_called_one(change, said):
    text = COPIES.format(**RIGHT | change)
    (loop,) = timelines(text)
    assert any(said in problem for problem in loop.hazards)
    assert 'class="chip bad"' in pipeline_section((loop,)) and "no hazard" not in pipeline_section((loop,))


def test_registers_are_told_from_copies():
    (loop,) = timelines(REGISTERS)
    assert (loop.schedule.mechanism, loop.schedule.buffers, loop.schedule.prologue, loop.schedule.ahead) == ("registers", 1, 1, 1)
    assert loop.hazards == ()


def test_a_loop_that_is_not_pipelined_is_drawn_as_such():
    (loop,) = timelines(PLAIN)  # the second loop loads nothing
    assert loop.schedule is None and loop.line == 9
    assert "is not pipelined" in timeline(loop)


def bars(picture: str) -> list[tuple[int, str, str, float, float]]:
    """(tile, kind, what is said, begin, end) of every bar."""
    pattern = r'<g class="bar" data-tile="(\d+)" data-kind="(\w+)"><title>(.*?)</title><rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"'
    return [(int(t), k, said, float(x), float(x) + float(w)) for t, k, said, x, w in re.findall(pattern, picture)]


@pytest.mark.parametrize("text", [COPIES.format(**RIGHT), COPIES.format(**RIGHT | {"buffers": 2}), REGISTERS], ids=["3", "2", "registers"])
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
    assert len(slots) == loop.schedule.buffers
    for spans in slots.values():
        spans.sort()
        assert all(a[1] <= b[0] + 0.01 or a[2] == b[2] for a, b in zip(spans, spans[1:]))


def test_rings_allocated_again_belong_to_the_later_loop():
    """Two loops with a ring of the same name: each is drawn with its own, alike ones on one card."""
    text = COPIES.format(**RIGHT)
    body = text.split("\n", 3)[3]
    loops = timelines(text + body.replace("NUM_BUFFERS, BLOCK, 64", "NUM_BUFFERS, BLOCK, 32"))
    assert [[(r.name, r.shape) for r in loop.rings] for loop in loops] == [[("a_smem", "BLOCK x 64")], [("a_smem", "BLOCK x 32")]]
    assert pipeline_section(timelines(text + body)).count('<div class="card">') == 1
    assert pipeline_section(loops).count('<div class="card">') == 2
