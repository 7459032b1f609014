"""Mutants of the hand-written kernels and of the goldens are found, except those that change nothing; these are listed with the reason.

The goldens are sampled, one mutant in GLUONIZE_MUTANTS (default 12; 1 is all of them, about half an hour on two cores).
"""

from __future__ import annotations

import functools
import os
from dataclasses import replace
from pathlib import Path

import golden_mutants
import pytest
from golden_mutants import Outcome, Survivor, listed, plan, right_line, run, score, table
from mutants import Mutant, mutants
from planted import KERNELS, run_matmul
from slow_rows import slow_but

import fixture_set
from gluonize.diagnostics import TranslationError
from gluonize.judge.machine.hazards import Finding

SAMPLE = int(os.environ.get("GLUONIZE_MUTANTS", "12"))
END = "nothing uses the shared memory after the loop, and the end of a wave waits for its copies"
ALL_SLOTS = "the loop initialises each slot once in either order, with the same count"
# (kernel, line text, what) -> why the mutant behaves like the original.
EQUIVALENT = {
    ("matmul_gfx950", "async_copy.wait_group(0)", "wait_group deleted"): END,
    ("matmul_gfx950", "async_copy.wait_group(0)", "wait count raised"): END,
    **{
        ("matmul_gfx1250_specialized", f"mbarrier.init({ring}.index(i), {count})", "next slot of the ring"): ALL_SLOTS
        for ring, count in (("ready", "2 * 4"), ("empty", "4 * 32"))
    },
}
TARGETS = {
    "matmul_gfx942": "gfx942",
    "matmul_gfx950": "gfx950",
    "matmul_gfx1250": "gfx1250",
    "matmul_gfx1250_specialized": "gfx1250",
}


@pytest.mark.parametrize("kernel", slow_but(TARGETS))
def test_mutants_of_hand_written_kernels_are_found(tmp_path: Path, kernel: str):
    text = (KERNELS / f"{kernel}.py").read_text()
    survivors, found = [], 0
    for mutant in mutants(text):
        try:
            result = run_matmul(mutant.text, TARGETS[kernel], tmp_path)
        except TranslationError:
            continue
        if result.status in ("hazard", "mismatch"):
            found += 1
        else:
            survivors.append((kernel, mutant.before, mutant.what))
    assert found >= 15
    assert survivors == [key for key in EQUIVALENT if key[0] == kernel]


@pytest.mark.slow
def test_mutants_of_the_goldens_are_found():
    jobs = plan([f.name for f in fixture_set.fixtures()], list(fixture_set.TARGETS), SAMPLE)
    outcomes = run(jobs, 2)
    result = score(outcomes, listed(), complete=SAMPLE == 1)
    lost = "".join(
        f"\n{o.fixture}/{o.target}:{o.line}: {o.what}: {o.before}: {o.detail}"
        for o in (*result.unexcused, *result.misplaced, *result.proved)
    )
    assert not result.proved, lost
    assert not result.stale, f"entries of survivors.toml that excuse nothing: {result.stale}"
    assert result.share >= 0.98, f"{table(outcomes)}{lost}\nfind them, or list them in survivors.toml with the reason"
    assert len(result.misplaced) <= 0.02 * result.found, lost
    assert result.found >= 60 * 12 / SAMPLE


# That the test above can fail.

LOST = Outcome("matmul", "gfx950", "wait_group deleted", "wait", 7, "async_copy.wait_group(0)", "survives")
FOUND = replace(LOST, status="found")
EXCUSE = Survivor("matmul", "wait_group deleted", "async_copy.wait_group(0)", "a reason", ("gfx950",))


def test_a_survivor_counts_unless_it_is_listed():
    assert score([FOUND, LOST], [], True).share == 0.5
    assert score([FOUND, LOST], [EXCUSE], True).share == 1.0
    assert score([FOUND, replace(LOST, target="gfx942")], [EXCUSE], False).share == 0.5


def test_what_is_wrong_and_proved_is_told():
    assert (
        score([FOUND, replace(FOUND, status="proved")], [], True).proved and not score([FOUND, LOST], [], True).proved
    )


def test_an_entry_that_excuses_nothing_is_stale():
    assert score([FOUND], [EXCUSE], True).stale == (EXCUSE,)
    assert score([LOST], [EXCUSE], True).stale == ()
    assert score([], [EXCUSE], True).stale == (EXCUSE,)
    assert score([], [EXCUSE], False).stale == ()


def test_kept_outcomes_are_of_the_same_golden(tmp_path: Path, monkeypatch):
    kept = golden_mutants.Kept(tmp_path)
    assert kept.read("matmul", "gfx950") is None
    kept.write("matmul", "gfx950", [LOST, replace(FOUND, target="gfx942")])
    assert kept.read("matmul", "gfx950") == [LOST]
    monkeypatch.setattr(golden_mutants, "fingerprint", lambda *_: "of another golden")
    assert kept.read("matmul", "gfx950") is None


def test_every_entry_names_mutants_that_exist_and_has_a_reason():
    @functools.cache
    def of_golden(fixture: str, target: str) -> list[Mutant]:
        return list(mutants(fixture_set.Fixture(fixture_set.ROOT / fixture).golden_file(target).read_text()))

    for entry in listed():
        assert len(entry.reason) > 20, entry
        for target in entry.targets or fixture_set.TARGETS:
            every = of_golden(entry.fixture, target)
            known = [
                Outcome(entry.fixture, target, m.what, m.category, m.line, m.before, "", "", m.function, nth)
                for m, nth in zip(every, golden_mutants.places(every))
            ]
            assert any(entry.excuses(outcome) for outcome in known), (entry, target)


def test_a_conversion_alone_changes_no_value():
    text = "  %a = tt.load %p : tensor<8x!tt.ptr<f32>, #blocked>\n{}  tt.store %q, {} : tensor<8x!tt.ptr<f32>, #ttg.slice<{{dim = 1}}>>\n"
    converted = text.format("  %b = ttg.convert_layout %a : tensor<8xf32, #blocked> -> tensor<8xf32, #other>\n", "%b")
    assert golden_mutants.values_only(converted) == golden_mutants.values_only(text.format("", "%a"))
    assert golden_mutants.values_only(converted) != golden_mutants.values_only(text.format("", "%p"))


def test_a_finding_elsewhere_is_at_the_wrong_line():
    text = "x = 1\na = gl.load(p, mask=m)\nb = a + 1\nc = b\nd = c\ne = d\ngl.store(q, e)\n"
    mutant = Mutant("mask dropped", "mask", "kernel", 2, 2, "a = gl.load(p, mask=m)", text)
    outside = Finding("out-of-bounds", "")
    assert right_line(mutant, outside, 2, True)
    assert not right_line(mutant, outside, 7, True)
    assert right_line(mutant, None, 7, True)
    assert not right_line(mutant, None, 7, False)


def test_a_mutant_keeps_the_lines_behind_it():
    text = "@jit\ndef f(a):\n    gl.store(\n        a,\n        b,\n    )\n    x = 1\n"
    deleted = next(mutants(text))
    assert deleted.text.splitlines()[6] == "    x = 1"
    assert golden_mutants.SLICE > 1
