"""What the planner makes of loops: read from a trace, with nothing compiled to machine code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gluonize.decide.readback.traced_launch import read_trace, trace_launch
from gluonize.facts.function import FunctionFacts
from gluonize.facts.reading import read_function
from gluonize.loops.forms.pipelined import PipelinedFunction
from gluonize.loops.kernel import kernel_facts
from gluonize.loops.plan.plan import NotPipelined, PipelinePlan
from gluonize.loops.planner.planner import plan_loop
from gluonize.loops.source.inline import inline_tile_loads
from gluonize.read.kernels.load import load_for_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.write.state.unit import Decided, Unit

HEAD = """
import triton
import triton.language as tl


@triton.jit
def step(acc, p, b_ptr, k, offs_k, offs_n, N):
    \"\"\"One tile.\"\"\"
    a = tl.load(p)
    b = tl.load(b_ptr + (k + offs_k)[:, None] * N + offs_n[None, :])
    return tl.dot(a, b, acc)


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, i_ptr, M, N, K, BLOCK: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offs_n = tl.arange(0, BLOCK)
    offs_k = tl.arange(0, BLOCK)
    p = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    q = b_ptr + offs_k[:, None] * N + offs_n[None, :]
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
"""
TAIL = """
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16))
"""


def facts_of(body: str, folder: Path, target: str = "gfx950", stages: int = 2) -> FunctionFacts:
    path = folder / "kernel.py"
    path.write_text(HEAD + body + TAIL)
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "i_ptr": "*i32"}
    sizes = dict.fromkeys(("M", "N", "K"), "i32")
    attrs = dict.fromkeys(pointers, "DS") | dict.fromkeys(sizes, "D")
    options = {"num_warps": 4, "num_stages": stages}
    spec = LaunchSpec(
        "t", "kernel", str(path), {**pointers, **sizes, "BLOCK": "constexpr"}, {"BLOCK": 64}, attrs, options
    )
    traced = trace_launch(load_for_launch(spec).fn, spec, target)
    launch = inline_tile_loads(
        traced, lambda fn: trace_launch(fn, spec, target), lambda fn: read_trace(fn, spec, target)
    )
    kernel = kernel_facts(launch)
    return read_function(kernel, launch.trace.frames[0])


def plans(body: str, folder: Path, target: str = "gfx950", stages: int = 2):
    facts = facts_of(body, folder, target, stages)
    rewriter = PipelinedFunction(Unit(facts.kernel), facts)
    rewriter.rewrite()
    return rewriter.layouts.of_loops.plans


POINTERS = """
    for k in range(0, tl.cdiv(K, BLOCK)):
        a = tl.load(p, mask=offs_k[None, :] < K - k * BLOCK, other=0.0)
        b = tl.load(q, mask=offs_k[:, None] < K - k * BLOCK, other=0.0)
        acc = tl.dot(a, b, acc)
        p += BLOCK
        q += BLOCK * N
"""


def test_what_is_none_does_not_run_ahead(tmp_path: Path):
    body = POINTERS.replace(
        "        a = tl.load(p, mask=", "        keep = None\n        a = tl.load(p, mask=keep and "
    )
    body = body.replace("keep and offs_k[None, :] < K - k * BLOCK, other=0.0", "keep")
    (plan,) = plans(body, tmp_path)
    assert not any(isinstance(s, ast.Assign) for s in plan.runs.producer)
    (plan,) = plans(body.replace("keep = None", "keep = offs_k[None, :] < K - k * BLOCK"), tmp_path)
    assert any(isinstance(s, ast.Assign) for s in plan.runs.producer)


def test_a_plan_rests_on_facts(tmp_path: Path):
    facts = facts_of(POINTERS, tmp_path)
    (loop,) = (n for n in facts.nodes if isinstance(n, ast.For))
    plan = plan_loop(facts, Decided(), loop)
    rewriter = PipelinedFunction(Unit(facts.kernel), facts)
    rewriter.rewrite()
    assert rewriter.layouts.of_loops.plans == [plan] and isinstance(plan, PipelinePlan)


def test_pointers_that_move(tmp_path: Path):
    (plan,) = plans(POINTERS, tmp_path)
    assert [load.name for load in plan.loads] == ["a", "b"]
    assert all(load.covered and load.shrinking for load in plan.loads)
    assert [w.name for w in plan.runs.carried] == ["p", "q"] and plan.runs.shared == () and plan.runs.rolled_back == ()
    assert (plan.schedule.mechanism, plan.schedule.buffers, plan.schedule.wait) == ("copies", 2, 0)


@pytest.mark.parametrize("target, stages, mechanism, buffers", [
    ("gfx950", 3, "copies", 3), ("gfx942", 2, "registers", 1), ("gfx942", 3, "registers", 2), ("gfx1100", 2, "registers", 1),
    ("gfx1250", 2, "copies", 2),
])  # fmt: skip
def test_depth_and_mechanism_are_tritons(target, stages, mechanism, buffers, tmp_path: Path):
    (plan,) = plans(POINTERS, tmp_path, target, stages)
    assert (plan.schedule.mechanism, plan.schedule.buffers) == (mechanism, buffers)


WRITTEN_OUT = """
    for k in range(TILES):
        a = tl.load(p)
        b = tl.load(q)
        acc = tl.dot(a, b, acc)
        p += BLOCK
        q += BLOCK * N
"""


@pytest.mark.parametrize("tiles, target, written_out", [
    (2, "gfx950", 2), (3, "gfx950", None), (2, "gfx942", 2), (3, "gfx942", None), (2, "gfx1250", 2), (3, "gfx1250", None),
])  # fmt: skip
def test_a_loop_of_few_tiles_is_written_out(tiles: int, target: str, written_out: int | None, tmp_path: Path):
    (plan,) = plans(WRITTEN_OUT.replace("TILES", str(tiles)), tmp_path, target)
    assert plan.written_out == written_out
    assert all(load.covered == (written_out is not None) for load in plan.loads)  # then every fetched tile exists


@pytest.mark.one_of(3)
@pytest.mark.parametrize("bounds, span, trips", [
    ("M * BLOCK, (M + 1) * BLOCK, BLOCK // 2", "BLOCK", 2),
    ("M * BLOCK, M * BLOCK + 2 * BLOCK, BLOCK", "2 * BLOCK", 2),
    ("start, start + BLOCK - 32, BLOCK", "BLOCK - 32", 1),
    ("start + M, M + start + 128, BLOCK", "128", 2),
    ("M * BLOCK, (M + 3) * BLOCK, BLOCK", "3 * BLOCK", None),  # more tiles than buffers
    ("M * BLOCK, (N + 1) * BLOCK, BLOCK", None, None),
    ("moved, tl.minimum(late, 4096), BLOCK", None, None),  # `late` was computed from another value of `moved`
    ("0, BLOCK * 2, BLOCK", None, 2),  # nothing is a run-time value
])  # fmt: skip
def test_bounds_that_are_compile_time_values_apart(bounds: str, span: str | None, trips: int | None, tmp_path: Path):
    before = """
    start = tl.program_id(1) * BLOCK
    moved = N
    late = N
    for i in range(M):
        late = moved + BLOCK
        moved += 1
"""
    (plan,) = plans(before + WRITTEN_OUT.replace("range(TILES)", f"range({bounds})"), tmp_path)[1:]
    assert (plan.range.span and plan.range.span.text, plan.written_out) == (span, trips)


def test_a_loop_whose_end_nothing_bounds_before_the_launch_asks_what_is_left_of_it(tmp_path: Path):
    before = "\n    late = N\n    for i in range(M):\n        late += BLOCK\n"
    (plan,) = plans(before + WRITTEN_OUT.replace("range(TILES)", "range(0, late, BLOCK)"), tmp_path)[1:]
    assert isinstance(plan, PipelinePlan) and plan.range.asks_rest == "int32"
    # From -2**31 to 2**31 - 1 there is more than a signed number can be.
    (plan,) = plans(before + WRITTEN_OUT.replace("range(TILES)", "range(N, late, BLOCK)"), tmp_path)[1:]
    assert isinstance(plan, PipelinePlan) and plan.range.asks_rest == "uint32"
    (plan,) = plans(before + WRITTEN_OUT.replace("range(TILES)", "range(late, -1, -BLOCK)"), tmp_path)[1:]
    assert isinstance(plan, PipelinePlan) and not plan.range.asks_rest
    (plan,) = plans(before + WRITTEN_OUT.replace("range(TILES)", "range(N, late, -BLOCK)"), tmp_path)[1:]
    assert isinstance(plan, NotPipelined) and "may overflow" in plan.reason
    before = before.replace("late += BLOCK", "late = N + BLOCK")
    (plan,) = plans(before + WRITTEN_OUT.replace("range(TILES)", "range(0, late, BLOCK)"), tmp_path)[1:]
    assert not plan.range.asks_rest
    bounds = {str(o.condition) for o in plan.assumed if o.kind == "ends"}
    assert any(bound.startswith("max(N, N + BLOCK) + ") and bound.endswith(" <= 2**31 - 1") for bound in bounds), bounds


@pytest.mark.parametrize("before, bound, trips", [
    ("n = tl.cdiv(BLOCK * 2, BLOCK)", "n", 2),
    ("n = tl.cdiv(BLOCK * 2, BLOCK)", "0, n", 2),
    ("n = tl.cdiv(BLOCK * 9, BLOCK)", "n", None),
    ("n = tl.cdiv(M, BLOCK)", "n", None),
    ("n = 2\n    if M > 1:\n        n = 1", "n", None),  # one of two values
])  # fmt: skip
def test_a_variable_that_was_given_a_constant_bounds_a_loop(before: str, bound: str, trips: int | None, tmp_path: Path):
    (plan,) = plans(f"\n    {before}\n" + WRITTEN_OUT.replace("range(TILES)", f"range({bound})"), tmp_path)
    assert plan.written_out == trips


def test_a_loop_whose_names_a_later_loop_assigns_is_not_written_out(tmp_path: Path):
    again = "\n    for k in range(0, K):\n        a = tl.load(p)\n        acc += tl.sum(a.to(tl.float32))\n"
    two = WRITTEN_OUT.replace("TILES", "2")
    assert plans(two + again, tmp_path)[0].written_out is None
    assert plans(again + two, tmp_path)[1].written_out == 2
    around = "\n    for j in range(M):" + two.replace("\n    ", "\n        ")
    assert [p.written_out for p in plans(around, tmp_path) if isinstance(p, PipelinePlan)] == [2]
    both = "\n    for j in range(M):" + (again + two).replace("\n    ", "\n        ")
    assert [p.written_out for p in plans(both, tmp_path) if isinstance(p, PipelinePlan)] == [2]
    # Each round of a loop that is written out too comes after the last one.
    rounds = both.replace("range(M)", "range(2)")
    assert [p.written_out for p in plans(rounds, tmp_path) if isinstance(p, PipelinePlan)] == [None]


def test_a_loop_whose_names_the_other_branch_assigns_is_not_written_out(tmp_path: Path):
    two = WRITTEN_OUT.replace("TILES", "2").replace("\n    ", "\n        ")
    branches = f"\n    if M > 8:{two}    else:\n        {{name}} = M\n        acc += {{name}}\n"
    for name, trips in (("a", None), ("other", 2)):
        found = plans(branches.format(name=name), tmp_path)
        assert [p.written_out for p in found if isinstance(p, PipelinePlan)] == [trips]


def test_num_stages_of_the_loop_wins(tmp_path: Path):
    body = POINTERS.replace("range(0, tl.cdiv(K, BLOCK))", "tl.range(0, tl.cdiv(K, BLOCK), num_stages=4)")
    (plan,) = plans(body, tmp_path)
    assert plan.schedule.buffers == 4


def test_a_mask_that_says_nothing_about_the_end_is_not_enough(tmp_path: Path):
    body = POINTERS.replace("offs_k[None, :] < K - k * BLOCK", "offs_m[:, None] < M")
    (plan,) = plans(body, tmp_path)
    assert [load.covered for load in plan.loads] == [False, True]
    body = POINTERS.replace("offs_k[None, :] < K - k * BLOCK", "offs_k[None, :] < K + 16 - k * BLOCK")
    assert [load.covered for load in plans(body, tmp_path)[0].loads] == [False, True]
    body = POINTERS.replace("offs_k[None, :] < K - k * BLOCK", "offs_k[None, :] < K - k * (BLOCK // 2)")
    assert [load.covered for load in plans(body, tmp_path)[0].loads] == [False, True]


def test_copies_stay_copies_beside_loads_to_registers(tmp_path: Path):
    body = POINTERS.replace("offs_k[None, :] < K - k * BLOCK", "offs_k[None, :] < K - 1 - k * BLOCK")
    (plan,) = plans(body, tmp_path)
    assert (plan.schedule.mechanism, plan.schedule.buffers, plan.schedule.stored) == ("copies", 2, True)
    assert [load.staged.copy for load in plan.loads] == ["registers", "buffer"]


def test_what_both_sides_need_is_computed_twice(tmp_path: Path):
    body = """
    for k in range(0, K, BLOCK):
        cols = k + offs_k
        a = tl.load(a_ptr + offs_m[:, None] * K + cols[None, :], mask=cols[None, :] < K, other=0.0)
        b = tl.load(b_ptr + cols[:, None] * N + offs_n[None, :], mask=cols[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc)
        acc = tl.where(cols[None, :] < M, acc, 0.0)
"""
    (plan,) = plans(body, tmp_path)
    assert [w.name for w in plan.runs.shared] == ["cols"] and plan.runs.carried == ()
    assert all(load.covered for load in plan.loads)


def test_pointers_used_after_the_loop_are_moved_back(tmp_path: Path):
    first, second = plans(POINTERS + POINTERS, tmp_path)
    assert [s.target.id for s in first.runs.rolled_back] == ["p", "q"]
    assert second.runs.rolled_back == ()


def test_helpers_with_the_loads_are_put_into_the_loop(tmp_path: Path):
    body = """
    for k in range(0, K, BLOCK):
        acc = step(acc, p, b_ptr, k, offs_k, offs_n, N)
        p += BLOCK
"""
    (plan,) = plans(body, tmp_path)
    assert [load.name for load in plan.loads] == ["a", "b"] and not any(load.covered for load in plan.loads)


NOT = {
    "an address depends on": """
    for k in range(0, tl.cdiv(K, BLOCK)):
        row = tl.load(i_ptr + k, volatile=True)
        a = tl.load(a_ptr + (row + offs_m)[:, None] * K + offs_k[None, :])
        b = tl.load(q)
        acc = tl.dot(a, b, acc)
""",
    "not a loop over a range": """
    k = 0
    while k < K:
        a = tl.load(a_ptr + offs_m[:, None] * K + (k + offs_k)[None, :])
        b = tl.load(b_ptr + (k + offs_k)[:, None] * N + offs_n[None, :])
        acc = tl.dot(a, b, acc)
        k += BLOCK
""",
}


@pytest.mark.parametrize("reason", [r for r in NOT if "range" not in r])
def test_what_cannot_run_ahead_says_why(reason: str, tmp_path: Path):
    (plan,) = plans(NOT[reason], tmp_path)
    assert isinstance(plan, NotPipelined) and plan.wanted and reason in plan.reason


MOVED = """
    for k in range(0, tl.cdiv(K, BLOCK)):
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :])
        acc = tl.dot(a, b, acc) + offs_k[None, :]
        offs_k += BLOCK
"""


def test_what_moves_for_both_sides_is_moved_twice(tmp_path: Path):
    (plan,) = plans(MOVED, tmp_path)
    assert [web.name for web in plan.runs.doubled] == ["offs_k"] and "moved twice: offs_k" in str(plan)


DESCRIPTORS = """
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK, BLOCK])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK, BLOCK])
    for k in range(0, K, BLOCK):
        a = a_desc.load([tl.program_id(0) * BLOCK, k])
        b = b_desc.load([0, k])
        acc = tl.dot(a, b.T, acc)
"""


def test_descriptor_loads(tmp_path: Path):
    (plan,) = plans(DESCRIPTORS, tmp_path)
    assert [(load.name, load.covered) for load in plan.loads] == [("a", True), ("b", True)]


def test_descriptor_loads_that_do_not_end_with_the_loop(tmp_path: Path):
    (plan,) = plans(DESCRIPTORS.replace("range(0, K, BLOCK)", "range(0, M, BLOCK)"), tmp_path)
    assert [load.covered for load in plan.loads] == [False, False]


def test_descriptors_of_the_data_mover(tmp_path: Path):
    (plan,) = plans(DESCRIPTORS, tmp_path, "gfx1250", 2)
    assert [(load.name, load.covered, load.tile.fixed) for load in plan.loads] == [
        ("a", True, (True, False)),
        ("b", True, (True, False)),
    ]
    s = plan.schedule
    assert (s.buffers, s.grouped, s.tensor_loads, s.tensor_wait) == (2, False, 2, 0)
    assert "a (64, 64) -> LDS by the tensor data mover, tail masked by the load itself" in str(plan)
    # Tiles past the end are not read where the tensor does not end with the loop.
    (plan,) = plans(DESCRIPTORS.replace("range(0, K, BLOCK)", "range(0, M, BLOCK)"), tmp_path, "gfx1250")
    assert [load.covered for load in plan.loads] == [False, False]


def test_while_loops_stay(tmp_path: Path):
    assert plans(NOT["not a loop over a range"], tmp_path) == []


def test_one_stage_means_no_pipeline(tmp_path: Path):
    (plan,) = plans(POINTERS, tmp_path, stages=1)
    assert isinstance(plan, NotPipelined) and not plan.wanted


def test_the_plan_can_be_read(tmp_path: Path):
    (plan,) = plans(POINTERS, tmp_path)
    text = str(plan)
    assert "`for k` pipelined, copies, 2 buffers" in text
    assert "a (64, 64) -> LDS, tail masked by the load itself" in text
    assert "steady state: wait for all but 0 groups, copy tile i + 1, read tile i from slot i % 2" in text


MASKED = POINTERS.replace("offs_k[None, :] <", "(offs_m[:, None] < M) & (offs_k[None, :] <").replace(
    "K - k * BLOCK, other=0.0)\n        b", "K - k * BLOCK), other=0.0)\n        b"
)


def test_tiles_with_their_bounds_as_mask_go_through_the_data_mover(tmp_path: Path):
    (plan,) = plans(MASKED, tmp_path, "gfx1250")
    a, b = (load.tile for load in plan.loads)
    assert [axis.limit is None for axis in a.axes] == [False, False]
    assert [axis.limit is None for axis in b.axes] == [False, True]  # nothing masks its columns
    assert [bool(axis.moving) for axis in a.axes] == [False, True] and a.order == (0, 1)
    assert plan.runs.producer == () and plan.not_tiles == ()
    assert (plan.schedule.grouped, plan.schedule.tensor_loads) == (False, 2)


def test_tiles_may_move_in_a_branch_decided_at_compile_time(tmp_path: Path):
    moved = "        if BLOCK == 64:\n            p += BLOCK\n            q += BLOCK * N\n"
    (plan,) = plans(MASKED.replace("        p += BLOCK\n        q += BLOCK * N\n", moved), tmp_path, "gfx1250")
    assert all(load.tile is not None and load.covered for load in plan.loads), plan.not_tiles


def test_a_transposed_tile_keeps_its_contiguous_dimension_last(tmp_path: Path):
    body = MASKED.replace("b = tl.load(q,", "b = tl.load(r,").replace("q += BLOCK * N", "r += BLOCK")
    (plan,) = plans("    r = b_ptr + offs_k[:, None] + offs_n[None, :] * K\n" + body, tmp_path, "gfx1250")
    assert plan.loads[1].tile.order == (1, 0)


NOT_TILES = {
    "is not a sum of an arange": MASKED.replace("offs_m[:, None] < M", "offs_m[:, None] % 7 < M"),
    "moves in another way than its mask": MASKED.replace("p += BLOCK", "p += BLOCK // 2"),
    "is no bound of one dimension": MASKED.replace("offs_m[:, None] < M", "offs_m[:, None] < offs_k[None, :]"),
    "its mask has": MASKED.replace("offs_m[:, None] < M", "offs_m[:, None] <= M"),
    "no dimension is known to be contiguous": MASKED.replace(
        "a = tl.load(p,", "a = tl.load(a_ptr + offs_m[:, None] * K + (k * BLOCK + offs_k)[None, :] * 2,"
    ),
    "two bounds": MASKED.replace("(offs_m[:, None] < M)", "(offs_m[:, None] < M) & (offs_m[:, None] < N)"),
}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("reason", NOT_TILES)
def test_what_is_no_tile_says_why(reason: str, tmp_path: Path):
    (plan,) = plans(NOT_TILES[reason], tmp_path, "gfx1250")
    assert plan.loads[0].tile is None
    assert any(reason in why for _, why in plan.not_tiles)
