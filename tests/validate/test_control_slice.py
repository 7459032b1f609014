"""The operations that decide which way a kernel goes."""

from __future__ import annotations

from gluonize.judge.inputs.control_slice import control_slice
from gluonize.trace.model.parse import parse_module

# Both branches give the names %2 and %3 to values of their own, as MLIR prints them.
SIBLINGS = """module {
  tt.func public @kernel(%ends: !tt.ptr<i64>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %0 = arith.cmpi slt, %n, %one : i32
    %first = scf.if %0 -> (i32) {
      %2 = tt.load %ends : !tt.ptr<i64>
      %3 = arith.trunci %2 : i64 to i32
      scf.yield %3 : i32
    } else {
      scf.yield %n : i32
    }
    %last = scf.if %0 -> (i32) {
      %2 = arith.addi %n, %one : i32
      %3 = arith.muli %n, %n : i32
      scf.yield %3 : i32
    } else {
      scf.yield %n : i32
    }
    %1 = arith.addi %first, %last : i32
    scf.for %i = %zero to %1 step %one  : i32 {
      %2 = arith.addi %i, %one : i32
    }
    tt.return
  }
}
"""


def test_a_name_that_two_branches_give_stands_for_both_values():
    kept = [op.name for op in control_slice(parse_module(SIBLINGS)).module.entry.walk()]
    assert "arith.trunci" in kept and "tt.load" in kept
