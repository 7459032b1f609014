"""What is wrong is not proved, what is proved is right: faults in bulk, edits by hand, goldens; and rules of the prover left out, which faults show."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import fixture_set
import pytest
from gluonize.judge.prove import both_sides
from gluonize.judge.prove.both_sides import prove
from gluonize.judge.prove.ops import opaque
from gluonize.judge.prove.slot_boxes import SharedMemory
from gluonize.judge.prove.symbolic_program import Machine
from gluonize.judge.prove.terms.numbers import Numbers
from gluonize.judge.verdict.run import validate_job
from gluonize.read.spec.launch import read_launches
from gluonize.trace.model.parse import parse_module

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bulk_faults import drawn, launches, pair, run  # noqa: E402
from hand_edits import EDITS  # noqa: E402
from planted_faults import faults  # noqa: E402


@pytest.mark.slow
def test_random_faults_are_not_proved():
    named = launches(["softmax", "matmul", "descriptor_matmul", "scan"], ["gfx950", "gfx1250"])
    count, wrong = run(drawn(named, 300, 7), 120)
    assert not wrong, "\n".join(wrong)
    assert count["not proved"] + count["refuted"] > 60 and count["refuted"], count


@pytest.mark.slow
def test_edits_by_hand(tmp_path):
    proved = {edit.name for edit in EDITS if edit.verdict(tmp_path).holds}
    assert not proved & {edit.name for edit in EDITS if not edit.keeps}
    keeps = {edit.name for edit in EDITS if edit.keeps}
    assert keeps - proved <= {"a loop in two", "copies in another order"}


@pytest.mark.slow
@pytest.mark.parametrize("fixture", fixture_set.fixtures(), ids=lambda fixture: fixture.name)
def test_what_is_proved_is_validated(fixture):
    """Each fixture for one of the targets."""
    targets = [target for target in fixture_set.TARGETS if fixture.golden_file(target).exists()]
    if not targets:
        pytest.skip("its source is Gluon, and has no golden")
    target = targets[zlib.crc32(fixture.name.encode()) % len(targets)]
    for spec in read_launches(str(fixture.launches_file)):
        job = {"source": str(fixture.kernel_file), "output": str(fixture.golden_file(target)), "target": target}
        found = validate_job(job | {"launch": spec, "prove": True})
        assert found["status"] == "validated", found["reason"]
        assert found["proof"]["status"].startswith("proved"), (spec.id, target, found["proof"])


def _wait(self, kind, outstanding, original=SharedMemory.wait):
    original(self, kind, 0)


# A rule left out of the prover, as (its class or module, its name, what stands there), and the fault that shows it: launch, line, kind.
LEFT_OUT = {
    "waits count": ((SharedMemory, "wait", _wait), ("matmul", 0, "gfx950"), "ttg.async_wait", "one less"),
    "no other access": (
        (both_sides, "misplaced", lambda *_: None), ("vector_add", 0, "gfx942"), "amdg.buffer_load", "a mask is left out",
    ),
    "what commutes": (
        (opaque, "COMMUTES", opaque.COMMUTES | {"subf"}), ("softmax", 0, "gfx950"), "arith.subf", "operands are swapped",
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", LEFT_OUT)
def test_each_rule_is_needed(monkeypatch, rule):
    patch, named, line, what = LEFT_OUT[rule]
    given = pair(*named)
    fault = next(x for x in faults(given.right.text) if line in x.lines[x.line - 1] and what in x.what)
    assert not given.proved(fault.text).holds
    monkeypatch.setattr(*patch)
    assert given.proved(fault.text).holds


HEAD = '#loc = loc(unknown)\nmodule {\n  tt.func public @kernel(%p: !tt.ptr<i32> loc("p"(#loc)), %q: !tt.ptr<i32> loc("q"(#loc)), %a: i32 loc("a"(#loc))) {\n'
TAIL = "    tt.return\n  }\n}\n"
LOAD, STORE = "    %x = tt.load %p : !tt.ptr<i32>\n", "    tt.store %p, %a : !tt.ptr<i32>\n"
STORED = "    tt.store %q, %x : !tt.ptr<i32>\n"
COMPARED = "    %m = arith.cmpi slt, %b, %a : i32\n    %x = arith.extui %m : i1 to i32\n" + STORED


@pytest.mark.parametrize(
    "patch, first, second",
    [
        ((Machine, "version", lambda self, base: self.terms.true), STORE + LOAD + STORED, LOAD + STORE + STORED),
        (  # a + 1 < a only where it overflows
            (Numbers, "value", lambda self, a, width: a),
            "    %one = arith.constant 1 : i32\n    %b = arith.addi %a, %one : i32\n" + COMPARED,
            "    %x = arith.constant 0 : i32\n" + STORED,
        ),
    ],
    ids=["stores before a load", "numbers wrap"],
)
def test_each_rule_is_needed_of_small_modules(monkeypatch, patch, first, second):
    modules = [parse_module(HEAD + text + TAIL) for text in (first, second)]
    assert not prove(*modules).holds and prove(modules[0], modules[0]).holds
    monkeypatch.setattr(*patch)
    assert prove(*modules).holds


@pytest.mark.parametrize("by, same", [(31, True), (30, False)])
@pytest.mark.parametrize("shift", ["shrui", "shrsi"])
def test_the_sign_of_a_number_is_whether_it_is_negative(shift, by, same):
    head = (
        HEAD
        + f"    %one = arith.constant 1 : i32\n    %by = arith.constant {by} : i32\n    %b = arith.constant 0 : i32\n"
    )
    bit = f"    %s = arith.{shift} %a, %by : i32\n    %x = arith.andi %s, %one : i32\n" + STORED
    compared = COMPARED.replace("%b, %a", "%a, %b")
    assert prove(*(parse_module(head + text + TAIL) for text in (compared, bit))).holds == same
