"""A compile-time value that differs from one iteration of an unrolled loop to the next is none of its values."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from narrow_kernels import traced
from translation_of import dedent, launch, tensor, validated

from gluonize.facts import callees
from gluonize.facts.loops.loop_range import int_of

BODY = """
for i in tl.static_range(3):
    x = i * a
    y = i * 0.0
    z2 = 2 * C
    v = i == 0
    r = 0.0 if i < 1 else -0.0
"""
SETTLED = {"i": None, "i * a": None, "2 * C": 8, "C": 4}


@pytest.mark.parametrize("text", SETTLED)
def test_only_what_is_the_same_in_all_iterations_is_a_constant(text: str, tmp_path: Path):
    facts = traced(BODY, tmp_path)
    nodes = [n for n in ast.walk(facts.tree) if isinstance(n, ast.expr) and ast.unparse(n) == text]
    nodes = [n for n in nodes if not isinstance(getattr(n, "ctx", None), ast.Store)]
    assert nodes and all(int_of(facts, n) == SETTLED[text] for n in nodes)


def test_what_is_0_or_absent_once_is_not_always(tmp_path: Path):
    facts = traced(BODY, tmp_path)
    of = {ast.unparse(s.targets[0]): s.value for s in ast.walk(facts.tree) if isinstance(s, ast.Assign)}
    assert callees.is_zero(facts, of["y"]) and not callees.is_zero(facts, of["r"])
    (index,) = {n for n in ast.walk(of["x"]) if isinstance(n, ast.Name) and n.id == "i"}
    assert not callees.is_zero(facts, index) and not callees.is_empty(facts, index)
    assert not callees.is_absent(facts, of["v"]) and not callees.is_true(facts, of["v"])


def test_other_values_that_an_unrolled_loop_gives_are_kept(tmp_path: Path):
    text = dedent("""
        import triton
        import triton.language as tl


        @triton.jit
        def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
            o = tl.arange(0, B)
            total = tl.zeros((B,), tl.float32)
            for i in tl.static_range(3):
                total += tl.load(x_ptr + o, mask=o < n - i, other=i * 1.0)
            tl.store(y_ptr + o, total)
    """)
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    values = {"x_ptr": tensor(64), "y_ptr": tensor(64), "n": 20}
    assert "other=i * 1.0" in validated(tmp_path, text, launch("kernel", signature, {"B": 64}, values=values))
