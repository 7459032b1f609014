"""Slots of a ring that are read behind their loop, in small modules: what is proved, and one change of each that must not be."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from gluonize.judge.prove.both_sides import PROVED, prove
from gluonize.judge.prove.loops.induction import of_count
from gluonize.judge.prove.stated_bounds import Contract
from gluonize.judge.prove.terms.elements import Terms
from gluonize.trace.model.parse import parse_module

POINTER = "!tt.ptr<f16> {tt.pointer_range = 32 : i32}"
HEAD = f"""#loc = loc(unknown)
module {{
  tt.func public @kernel(%p: {POINTER} loc("p"(#loc)), %q: {POINTER} loc("q"(#loc)), %n: i32 loc("n"(#loc))) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c12 = arith.constant 12 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<64xf16, #b>
    %r = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32, #b>
"""
TAIL = "    tt.return\n  }\n}\n"
RING, SLOT = "!ttg.memdesc<3x64xf16, #s, #smem, mutable>", "!ttg.memdesc<64xf16, #s, #smem, mutable>"
STORE = "    amdg.buffer_store {}, %q[%r] : !tt.ptr<f16> -> tensor<64xf16, #b>\n"


def offsets(name: str, tile: str) -> str:
    return f"""    %m{name} = arith.muli {tile}, %c64 : i32
    %s{name} = tt.splat %m{name} : i32 -> tensor<64xi32, #b>
    %o{name} = arith.addi %s{name}, %r : tensor<64xi32, #b>
"""


def copied(name: str, tile: str) -> str:
    """A tile on its way into its slot, of three."""
    return offsets(name, tile) + f"""    %i{name} = arith.remsi {tile}, %c3 : i32
    %v{name} = ttg.memdesc_index %ring[%i{name}] : {RING} -> {SLOT}
    %t{name} = amdg.buffer_load_to_local %p[%o{name}] into %v{name} : !tt.ptr<f16>[tensor<64xi32, #b>] -> <64xf16, #s, #smem, mutable>
    %g{name} = ttg.async_commit_group
"""


def added(name: str, tile: str, acc: str, left: int) -> str:
    """A tile out of its slot, added to a sum. left: copies that may be under way still."""
    return f"""    %w{name} = ttg.async_wait {{num = {left} : i32}}
    %j{name} = arith.remsi {tile}, %c3 : i32
    %x{name} = ttg.memdesc_index %ring[%j{name}] : {RING} -> {SLOT}
    %y{name} = ttg.local_load %x{name} : {SLOT} -> tensor<64xf16, #b>
    %z{name} = arith.addf {acc}, %y{name} : tensor<64xf16, #b>
"""


def summed(count: str) -> str:
    """The sum of `count` tiles."""
    body = offsets("a", "%i") + "    %y = amdg.buffer_load %p[%oa] : tensor<64xf16, #b>\n"
    return (
        HEAD
        + f"""    %sum = scf.for %i = %c0 to {count} step %c1 iter_args(%acc = %zero) -> (tensor<64xf16, #b>)  : i32 {{
{body}    %z = arith.addf %acc, %y : tensor<64xf16, #b>
    scf.yield %z : tensor<64xf16, #b>
    }}
"""
        + STORE.format("%sum")
        + TAIL
    )


AHEAD = """    %two = arith.subi %n, %c2 : i32
    %ring = ttg.local_alloc : () -> !ttg.memdesc<3x64xf16, #s, #smem, mutable>
"""
LOOP = "    %sum:2 = scf.for %i = %c0 to %two step %c1 iter_args(%acc = %zero, %next = %c2) -> (tensor<64xf16, #b>, i32)  : i32 {\n"
YIELD = "    %then = arith.addi %next, %c1 : i32\n    scf.yield %zb, %then : tensor<64xf16, #b>, i32\n    }\n"
LAST = "    %last = arith.addi %two, %c1 : i32\n"
# Two tiles ahead, three slots, and the last two tiles behind the loop.
RIGHT = (
    HEAD + AHEAD + copied("a", "%c0") + copied("b0", "%c1")
    + LOOP + copied("c", "%next") + added("b", "%i", "%acc", 2) + YIELD
    + LAST + added("e", "%two", "%sum#0", 1) + added("f", "%last", "%ze", 0) + STORE.format("%zf") + TAIL
)  # fmt: skip
WRONG = {
    "the next slot": ("%je = arith.remsi %two, %c3", "%je = arith.remsi %last, %c3"),
    "the same slot again": ("%jf = arith.remsi %last, %c3", "%jf = arith.remsi %two, %c3"),
    "a wait less": ("%wf = ttg.async_wait {num = 0", "%wf = ttg.async_wait {num = 1"),
    "one iteration more": ("%two = arith.subi %n, %c2", "%two = arith.subi %n, %c1"),
    "one iteration less": ("%two = arith.subi %n, %c2", "%two = arith.subi %n, %c3"),
    "a tile left out": ("%zf = arith.addf %ze, %yf", "%zf = arith.addf %sum#0, %yf"),
    "a tile twice": ("%zf = arith.addf %ze, %yf", "%zf = arith.addf %ze, %ye"),
    "the wrong tile ahead": (offsets("b0", "%c1"), offsets("b0", "%c2")),
}


# The last tile is copied behind the loop, too, to the slot after the last one that the loop filled.
COPIED_BEHIND = (
    HEAD + AHEAD.replace("%n, %c2", "%n, %c3") + copied("a", "%c0") + copied("b0", "%c1")
    + LOOP + copied("c", "%next") + added("b", "%i", "%acc", 2) + YIELD
    + LAST + LAST.replace("%last", "%third").replace("%two", "%last") + copied("d", "%sum#1")
    + added("e", "%two", "%sum#0", 2) + added("f", "%last", "%ze", 1) + added("g", "%third", "%zf", 0)
    + STORE.format("%zg") + TAIL
)  # fmt: skip


def verdict(source: str, kernel: str, least: int = 3):
    return prove(parse_module(source), parse_module(kernel), Contract({"n": least}))


def test_slots_that_are_read_behind_a_loop_are_proved():
    assert verdict(summed("%n"), RIGHT).word == PROVED


@pytest.mark.parametrize("what", WRONG)
def test_no_fault_behind_a_loop_is_proved(what):
    right, wrong = WRONG[what]
    assert RIGHT.count(right) == 1
    assert not verdict(summed("%n"), RIGHT.replace(right, wrong)).holds


def test_a_copy_behind_a_loop_is_one_of_the_sources_iterations():
    """One tile further it is no tile of the source's, or overwrites what is still to be read."""
    assert verdict(summed("%n"), COPIED_BEHIND).word == PROVED
    moved = COPIED_BEHIND.replace(
        copied("d", "%sum#1"), "    %more = arith.addi %sum#1, %c1 : i32\n" + copied("d", "%more")
    )
    assert moved != COPIED_BEHIND and not verdict(summed("%n"), moved).holds
    beyond = COPIED_BEHIND.replace(
        offsets("d", "%sum#1"), "    %more = arith.addi %sum#1, %c1 : i32\n" + offsets("d", "%more")
    )
    assert beyond != COPIED_BEHIND and not verdict(summed("%n"), beyond).holds


def test_tiles_that_there_may_not_be_are_not_added():
    """With n = 1 the second tile is loaded, which is none of the source's."""
    assert not verdict(summed("%n"), RIGHT, least=1).holds


def test_a_tile_ahead_in_the_last_of_a_known_number_of_iterations_is_an_access_more():
    """Twelve iterations, of which each loads what the next one would need."""
    ahead = (
        "    %on = arith.addi %i, %c1 : i32\n"
        + offsets("on", "%on")
        + "    %not = amdg.buffer_load %p[%oon] : tensor<64xf16, #b>\n"
    )
    source = summed("%c12")
    kernel = source.replace("    %z = arith.addf", ahead + "    %z = arith.addf")
    assert verdict(source, source).word == PROVED and not verdict(source, kernel).holds


def in_one_way(otherwise: str) -> str:
    """A loop whose slots are used where a condition holds alone. otherwise: what is carried on where it does not."""
    return HEAD + f"""    %first = arith.cmpi slt, %n, %c12 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf16, #b>)  : i32 {{
    %k = scf.if %first -> (tensor<64xf16, #b>) {{
    %ring = ttg.local_alloc : () -> {RING}
    %at = arith.remsi %i, %c3 : i32
    %slot = ttg.memdesc_index %ring[%at] : {RING} -> {SLOT}
    ttg.local_store %acc, %slot : tensor<64xf16, #b> -> {SLOT}
    %y = ttg.local_load %slot : {SLOT} -> tensor<64xf16, #b>
    %z = arith.addf %y, %y : tensor<64xf16, #b>
    scf.yield %z : tensor<64xf16, #b>
    }} else {{
{otherwise}    }}
    scf.yield %k : tensor<64xf16, #b>
    }}
""" + STORE.format("%sum") + TAIL


def test_what_a_branch_knows_is_forgotten_where_its_loop_is_looked_at_again():
    """A slot in a branch makes its loop be looked at by remainders; the contrary way is there in that, too."""
    kept = in_one_way("    scf.yield %acc : tensor<64xf16, #b>\n")
    other = in_one_way("    %d = arith.mulf %acc, %acc : tensor<64xf16, #b>\n    scf.yield %d : tensor<64xf16, #b>\n")
    assert verdict(kept, kept).word == PROVED and not verdict(kept, other).holds


def test_what_iterations_are_bounded_by_holds_of_each():
    """Of a number of iterations computed from one that may be negative: of none, of each, and of the number behind the last one."""
    t = Terms()
    whole = t.integer_of(t.node("argument", ("n",), (), "i32"))
    trips = t.larger(t.div(t.add(whole, t.integer(15)), t.integer(16)), t.integer(0))
    count = t.fresh("count", "int", 0, 1 << 30)
    bounds = of_count(SimpleNamespace(terms=t), t.integer_of(count), trips)
    (argument,) = [x for monomial in whole.poly for x in monomial]
    assert bounds
    for n in (-(1 << 31), -17, -1, 0, 1, 16, 17, (1 << 31) - 16):
        last = max(int((n + 15) / 16), 0)
        for k in {0, last // 2, last}:
            value = {(argument,): n, (count,): k}
            assert all(sum(f * value[m] for m, f in known.items()) <= most for known, most in bounds)
