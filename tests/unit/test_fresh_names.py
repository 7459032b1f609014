"""Names of variables that a translation adds to a function."""

from __future__ import annotations

import ast
from types import SimpleNamespace

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
