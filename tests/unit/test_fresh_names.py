"""Names of variables that a translation adds to a function."""

from __future__ import annotations

import ast
from types import SimpleNamespace

from translation_of import dedent, launch, tensor, validated

from gluonize.write.state.fresh_names import FreshNames, LoopNames

LOOPS = ast.parse("""
for i in range(n):
    for j in range(n):
        x = j
for k in range(n):
    x = k
""")
OUTER, LAST = LOOPS.body
INNER = OUTER.body[0]


def loop_names(*source: str) -> tuple[LoopNames, set[str]]:
    taken = set(source)
    return LoopNames(SimpleNamespace(source_names=frozenset(source)), taken), taken


def test_a_variable_keeps_its_name():
    fresh = FreshNames({"x"})
    assert fresh.of(1, "x_offs") == fresh.of(1, "x_offs") == "x_offs"
    assert len({"x", fresh.of(2, "x_offs"), fresh.of(3, "x_offs"), fresh.of(4, "x"), "x_offs"}) == 5


def test_names_that_the_function_gets_later_are_not_given():
    taken: set[str] = set()
    fresh = FreshNames(taken)
    taken.add("x_offs")
    assert fresh.of(1, "x_offs") != "x_offs"


def test_loops_in_each_other_share_no_name():
    names, taken = loop_names("slot_2", "n")
    outer = names.fresh("slot", OUTER)
    assert outer == "slot" == names.fresh("slot", LAST)
    assert names.fresh("slot", INNER) not in {outer, "slot_2"}
    assert {"slot", "slot_2"} < taken


def test_a_ring_shares_its_names_with_those_of_its_block():
    names, _ = loop_names()
    assert names.stem("a", (1,), ()) == names.stem("a", (1,), ()) == "a"
    assert names.stem("a", (2,), ()) != "a"
    assert names.stem("b", (1,), {"b"}) != "b"


def test_a_helper_does_not_get_the_name_of_a_parameter(tmp_path):
    source = """
        import triton
        import triton.language as tl


        @triton.jit
        def k(x_ptr, y_ptr, topk: tl.constexpr, B: tl.constexpr):
            x = tl.load(x_ptr + tl.arange(0, B))
            tl.store(y_ptr + tl.arange(0, topk), tl.topk(x, topk, dim=0))
    """
    values = {"x_ptr": tensor(64), "y_ptr": tensor(8)}
    spec = launch("k", {"x_ptr": "*fp32", "y_ptr": "*fp32"}, {"topk": 8, "B": 64}, values=values)
    text = validated(tmp_path, dedent(source), spec)
    assert "topk_2(x, topk, dim=0)" in text and ":param" not in text  # of Triton's docstrings the first paragraph stays
