"""Which programs and sizes the lifter tries: in what order, and how many operations each of them may take."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest
from lift_harness import GLUON, lifted, tensor

from gluonize.lift.loops import sizes
from gluonize.lift.loops.sizes import CHEAP, LARGE, LEAST, MORE, PART, STEPS, Budget, runs_of
from gluonize.lift.machine.machine import NotLifted
from gluonize.read.kernels.load import load_kernel
from gluonize.read.spec.launch import parse_launches
from gluonize.trace.front.gluon_source import gluon_module

COPY = """
@gluon.jit
def kernel(x_ptr, y_ptr, n, m, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    lane = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    for i in range(gl.cdiv(n, BLOCK)):
        for j in range(gl.cdiv(m, BLOCK)):
            at = (i * m + j) * BLOCK + lane
            gl.store(y_ptr + at, gl.load(x_ptr + at))
"""


def tried(tmp_path, monkeypatch, n: int, m: int, grid: list[int], source: str = COPY):
    """The runs of the kernel, and what was asked of each: changed sizes, program, grid, the most operations, whether it ended."""
    path = tmp_path / "source.py"
    path.write_text(GLUON + source)
    vector = tensor("float32", 1 << 20)
    values = {"x_ptr": vector, "y_ptr": vector, "n": n, "m": m}
    (spec,) = parse_launches(
        {
            "kernel": "kernel",
            "source": str(path),
            "target": "hip:gfx942",
            "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "m": "i32", "BLOCK": "constexpr"},
            "constexprs": {"BLOCK": 256},
            "values": values,
            "grid": grid,
            "options": {"num_warps": 4},
        }
    )
    loaded = load_kernel(str(path), "kernel")
    module = gluon_module(loaded.fn, spec, "hip:gfx942", loaded.load_jit)
    asked: list[tuple] = []

    class Watched(sizes.Run):
        def __init__(self, module, arguments, program, grid, handlers):
            super().__init__(module, arguments, program, grid, handlers)
            self.asked = (tuple(arguments[i].value for i in (2, 3)), program, grid)

        def go(self):
            try:
                return super().go()
            finally:
                asked.append((*self.asked, self.most, self.steps))

    monkeypatch.setattr(sizes, "Run", Watched)
    return runs_of(module, spec), asked


def test_the_launch_comes_first_then_other_programs_then_more_of_them(tmp_path, monkeypatch):
    _, asked = tried(tmp_path, monkeypatch, 600, 700, [6])
    first, *others = [(program[0], grid[0]) for _, program, grid, _, _ in asked]
    more = 2 * 6 + MORE
    assert first == (0, 6) and others[:4] == [(5, 6), (3, 6), (more - 1, more), (more // 2, more)]


def test_sizes_take_turns_and_equal_ones_go_together(tmp_path, monkeypatch):
    _, asked = tried(tmp_path, monkeypatch, 600, 700, [1])
    changed = [sizes for sizes, *_ in asked if sizes != (600, 700)]
    assert changed[0] == (301, 700) and changed[2] == (600, 351)  # one of each, before a second one of either
    assert all((n == 600) != (m == 700) for n, m in changed)
    _, asked = tried(tmp_path, monkeypatch, 600, 600, [1])
    assert all(n == m for (n, m), *_ in asked)


def test_large_sizes_do_not_grow_four_times(tmp_path, monkeypatch):
    _, asked = tried(tmp_path, monkeypatch, LARGE + 76, 300, [1])
    tried_sizes = {sizes for sizes, *_ in asked}
    assert max(n for n, _ in tried_sizes) == 2 * (LARGE + 76) and max(m for _, m in tried_sizes) == 4 * 300 + 64


def test_no_run_takes_all_that_is_left(tmp_path, monkeypatch):
    """All runs but the launch's share a budget: each gets a part of what is left."""
    _, asked = tried(tmp_path, monkeypatch, 4000, 5000, [4])
    left = STEPS
    for _, _, _, most, steps in asked[1:]:
        assert most <= max(left // PART, LEAST), (most, left)
        left -= steps
    assert len({sizes for sizes, *_ in asked}) > 4  # and there are some left for others


@pytest.mark.slow
def test_long_loops_become_shorter_before_others_are_tried(tmp_path, monkeypatch):
    runs, asked = tried(tmp_path, monkeypatch, 30_000, 20_000, [1])
    assert runs[0].steps > CHEAP
    later = asked[len(asked) // 2 :]
    assert all(n < 30_000 and m < 20_000 for (n, m), *_ in later)
    assert all(steps <= runs[0].steps // 2 for *_, steps in later)


def test_the_parts_of_a_budget():
    assert Budget(STEPS).part == STEPS // PART and Budget(LEAST + 1).part == LEAST and Budget(7).part == 7


def test_code_that_no_size_reaches_is_refused(tmp_path, monkeypatch):
    source = COPY.replace(
        "    for i in", "    if n > 1000000:\n        gl.store(y_ptr + lane, gl.load(x_ptr + lane))\n    for i in"
    )
    with pytest.raises(NotLifted, match="no size that was tried reaches this"):
        tried(tmp_path, monkeypatch, 600, 700, [1], source)


def test_loops_that_always_run_equally_often_are_refused(tmp_path, monkeypatch):
    source = COPY.replace("gl.cdiv(n, BLOCK)", "gl.minimum(gl.cdiv(n, BLOCK), 1)").replace("gl.cdiv(m, BLOCK)", "1")
    with pytest.raises(NotLifted, match="this loop ran 1 times at every size"):
        tried(tmp_path, monkeypatch, 600, 700, [1], source)


RENUMBERED = """
@gluon.jit
def of_dies(pid, programs):
    if pid >= programs // 16 * 16:
        return pid
    return pid // 16 * 16 + pid % 8 * 2 + pid // 8 % 2

@gluon.jit
def kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    pid = of_dies(gl.program_id(0), gl.num_programs(0))
    for tile in range(pid, gl.cdiv(n, BLOCK), gl.num_programs(0)):
        at = tile * BLOCK + gl.arange(0, BLOCK, layout)
        gl.store(y_ptr + at, gl.load(x_ptr + at, mask=at < n), mask=at < n)
"""


@pytest.mark.parametrize("programs", [8, 40])
def test_programs_that_are_numbered_anew_where_there_are_many(tmp_path, programs):
    """The launch has too few programs for it to show; a launch with more of them is served all the same."""
    arguments = {name: ("*fp32", tensor("float32", 20000)) for name in ("x_ptr", "y_ptr")} | {"n": ("i32", 20000)}
    text = lifted(tmp_path, dedent(RENUMBERED), "hip:gfx942", arguments, {"BLOCK": 256}, [programs])
    assert "in range(tl.where(" in text and "// 16" in text and "% 8" in text


def test_what_follows_a_branch_that_does_more_stands_under_its_condition(tmp_path):
    """What loads or stores on one of two ways is reached by that way alone."""
    source = RENUMBERED.replace(
        "        return pid\n    return", "        gl.barrier()\n        return pid\n    return"
    )
    arguments = {name: ("*fp32", tensor("float32", 20000)) for name in ("x_ptr", "y_ptr")} | {"n": ("i32", 20000)}
    text = lifted(tmp_path, dedent(source), "hip:gfx942", arguments, {"BLOCK": 256}, [40])
    first, second = re.findall(r"^if (.*):$", text, re.MULTILINE)
    assert first == f"not {second}"
    renumbered, plain = text.split(f"if {second}:")
    assert "// 16" in renumbered and renumbered.count(" for ") == plain.count(" for ") == 1 and "in range(pid," in plain


EARLY = """
@gluon.jit
def kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    pid = gl.program_id(0)
    if pid * BLOCK >= n - 600:
        return
    at = pid * BLOCK + gl.arange(0, BLOCK, layout)
    gl.store(y_ptr + at, gl.load(x_ptr + at, mask=at < n), mask=at < n)
"""


def test_a_program_that_returns_early_stores_nothing(tmp_path):
    arguments = {name: ("*fp32", tensor("float32", 2000)) for name in ("x_ptr", "y_ptr")} | {"n": ("i32", 2000)}
    text = lifted(tmp_path, dedent(EARLY), "hip:gfx942", arguments, {"BLOCK": 256}, [8])
    assert "if not (pid * 256 >= n - 600):\n    at = " in text and "\n    tl.store(" in text
