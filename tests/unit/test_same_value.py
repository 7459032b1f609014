"""A variable that was assigned in between has kept its name only: what is read before and after is not the same number."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate, validated

from gluonize.decide.readback.traced_launch import trace_launch
from gluonize.facts.loops.loop_range import loop_bounds
from gluonize.facts.reading import read_function
from gluonize.facts.variables.same_value import value_key
from gluonize.loops.kernel import kernel_facts
from gluonize.loops.plan.tiles.tail import TailProof
from gluonize.read.kernels.load import load_for_launch

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, c_ptr, K, N, B: tl.constexpr):
    offs = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    m = K
{before}
    tl.store(c_ptr + offs, acc)
"""
LOOP = "for k in range(0, end, B):\n    acc += tl.load(a_ptr + offs + k, mask=offs + k < LIMIT, other=0.0)"
# What stands before the loop, the limit of its mask, and whether that is where the loop ends.
CASES = {
    "as it was": (f"end = m\n{LOOP}", "m", True),
    "assigned in between": (f"end = m\nm = N\n{LOOP}", "m", False),
    "assigned before": (f"if N > 3:\n    m = N\nend = m\n{LOOP}", "m", True),
    "assigned in a branch in between": (f"if N > 3:\n    m = N\nend = m\nif N > 5:\n    m = 100\n{LOOP}", "m", False),
    "a quotient": (f"end = m // 3\n{LOOP}", "m // 3", True),
    "a quotient of what is assigned": (f"end = m // 3\nm = N\n{LOOP}", "m // 3", False),
    "a quotient, again": (f"if N > 3:\n    m = N\nend = m // 3\n{LOOP}", "m // 3", True),
    "programs": (f"end = tl.program_id(0)\n{LOOP}", "tl.program_id(0)", True),
    "memory": (f"end = tl.load(c_ptr).to(tl.int32)\n{LOOP}", "tl.load(c_ptr).to(tl.int32)", False),
    "what was read from memory": (f"n = tl.load(c_ptr).to(tl.int32)\nend = n\n{LOOP}", "n", True),
}
# The same in a loop around.
AROUND = {
    "each time": ("m = m + j", "end = m", "", True),
    "some times": ("if N > j:\n    m = m + 1", "end = m", "", False),
    "after it was read": ("pass", "end = m", "m = m + j", False),
}
CASES |= {
    f"in a loop, {name}": (
        "for j in range(3):\n" + "\n".join("    " + s for s in "\n".join([first, then, last, LOOP]).splitlines() if s),
        "m",
        same,
    )
    for name, (first, then, last, same) in AROUND.items()
}


def facts_of(folder: Path, before: str):
    path = folder / "kernel.py"
    path.write_text(KERNEL.format(before="\n".join("    " + s for s in before.splitlines())))
    spec = launch("kernel", {"a_ptr": "*fp32", "c_ptr": "*fp32", "K": "i32", "N": "i32"}, {"B": 4}, warps=1)
    traced = trace_launch(load_for_launch(replace(spec, source=str(path))).fn, spec, "gfx950")
    return read_function(kernel_facts(traced), traced.trace.frames[0])


@pytest.mark.parametrize("case", CASES)
def test_a_mask_ends_with_its_loop_only_if_the_limit_is_its_end(case: str, tmp_path: Path):
    before, limit, same = CASES[case]
    facts = facts_of(tmp_path, before.replace("LIMIT", limit))
    loop = [n for n in ast.walk(facts.tree) if isinstance(n, ast.For)][-1]
    (mask,) = [n.value for n in ast.walk(loop) if isinstance(n, ast.keyword) and n.arg == "mask"]
    proof = TailProof(facts, loop, *loop_bounds(facts, loop), 2)
    assert proof._conjunct(mask) == same


def test_keys_are_the_same_each_time(tmp_path: Path):
    facts = facts_of(tmp_path, CASES["assigned before"][0].replace("LIMIT", "m"))
    (loop,) = [n for n in ast.walk(facts.tree) if isinstance(n, ast.For)]
    names = [n for n in ast.walk(facts.tree) if isinstance(n, ast.Name) and n.id == "m" and isinstance(n.ctx, ast.Load)]
    assert {value_key(facts, n, loop) for n in names} == {"m#4:4, 6:8"}


MOVER = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(a_ptr, b_ptr, c_ptr, M, N, K, J, B: tl.constexpr, C: tl.constexpr):
        row = tl.program_id(0) * B
        if J > 1:
            row = row + 4
        rows = row + tl.arange(0, B)
        if J > 0:
            row = row + 8
        away = (rows - row + 16)[:, None]
        cols = tl.arange(0, B)
        ks = tl.arange(0, C)
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, tl.cdiv(K, C)):
            ahead = k * C + ks
            a = tl.load(a_ptr + away * K + ahead[None, :], mask=(away < M) & (ahead < K)[None, :], other=0.0)
            b = tl.load(b_ptr + ahead[:, None] * N + cols[None, :], mask=(ahead < K)[:, None], other=0.0)
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=rows[:, None] < M)
    """)


def test_a_tile_is_not_moved_by_the_difference_of_what_has_one_name(tmp_path: Path):
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "M": "i32", "N": "i32", "K": "i32", "J": "i32"}
    values = {"a_ptr": tensor(128, 256), "b_ptr": tensor(256, 64), "c_ptr": tensor(128, 64)}
    attrs = {"a_ptr": "DS", "b_ptr": "DS", "c_ptr": "DS", "M": "D", "N": "D", "K": "D"}
    numbers = {"M": 128, "N": 64, "K": 256, "J": 1}
    spec = launch("kernel", signature, {"B": 64, "C": 32}, attrs=attrs, values=values | numbers)
    assert "async_load(b_" in validated(tmp_path, MOVER, spec, "gfx1250")
    plain = MOVER.replace("row = row + 8", "pass")
    assert "async_load(a_" in translate(tmp_path, plain, spec, target="gfx1250").text
