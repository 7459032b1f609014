"""Hazards of shared memory in small modules: each is one change of a module that is proved."""

from __future__ import annotations

import pytest

from gluonize.judge.prove.both_sides import NOT, PROVED, REFUTED, prove
from gluonize.trace.model.parse import parse_module

HEAD = """#loc = loc(unknown)
module {
  tt.func public @kernel(%p: !tt.ptr<f16> {tt.pointer_range = 32 : i32} loc("p"(#loc)), %q: !tt.ptr<f16> {tt.pointer_range = 32 : i32} loc("q"(#loc)), %n: i32 loc("n"(#loc))) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant dense<64> : tensor<64xi32, #b>
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #b>
"""
TAIL = "    tt.return\n  }\n}\n"
BARRIER = "    ttg.barrier local\n"
LOOP = "    scf.for %i = %c0 to %n step %c1  : i32 {\n"
FEW = LOOP.replace("%n", "%c2").replace("    scf", "    %c2 = arith.constant 2 : i32\n    scf")
NEXT = "    %r2 = arith.addi %r, %c64 : tensor<64xi32, #b>\n"


def copied(name: str, at: str) -> str:
    """64 numbers on their way through shared memory of their own, read by a load that takes no barrier."""
    kind = "!ttg.memdesc<64xf16, #s, #smem, mutable>"
    return f"""    %{name} = ttg.local_alloc : () -> {kind}
    %t{name} = amdg.buffer_load_to_local %p[{at}] into %{name} : !tt.ptr<f16>[tensor<64xi32, #b>] -> <64xf16, #s, #smem, mutable>
    %g{name} = ttg.async_commit_group
    %w{name} = ttg.async_wait {{num = 0 : i32}}
    %v{name} = ttg.local_load %{name} {{ttg.amdg.syncedViaAsyncWait = true}} : {kind} -> tensor<64xf16, #b>
    amdg.buffer_store %v{name}, %q[{at}] : !tt.ptr<f16> -> tensor<64xf16, #b>
"""


def plain(name: str, at: str) -> str:
    return f"""    %v{name} = amdg.buffer_load %p[{at}] : tensor<64xf16, #b>
    amdg.buffer_store %v{name}, %q[{at}] : !tt.ptr<f16> -> tensor<64xf16, #b>
"""


@pytest.mark.parametrize("loop, wrong", [(LOOP, REFUTED), (FEW, REFUTED), ("", NOT)], ids=["loop", "unrolled", "two"])
def test_what_is_read_without_a_barrier_is_not_refilled_in_the_same_place(loop, wrong):
    """Whatever is allocated again, or next, may be given the place of what is read without a barrier still."""
    end = "    }\n" if loop else ""
    first, second = (("a", "%r"),) if loop else (("a", "%r"), ("c", "%r2")), BARRIER
    source = HEAD + NEXT + loop + "".join(plain(*x) for x in first) + end + TAIL
    kernels = [
        HEAD + NEXT + loop + between.join(copied(*x) for x in first) + (between if loop else "") + end + TAIL
        for between in (second, "")
    ]
    right, missing = (prove(parse_module(source), parse_module(text)).word for text in kernels)
    assert (right, missing) == (PROVED, wrong)
