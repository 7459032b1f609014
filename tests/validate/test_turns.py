"""Programs that wait for each other, programs that store to one place, and kernels that take long."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_adversarial import HEAD, PLAIN, launch, run, tensor

from gluonize.judge.machine import engine
from gluonize.judge.verdict import pair

LOCK = """def kernel(x_ptr, out_ptr, lock_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    pid = tl.program_id(0)
    turn = tl.num_programs(0) - 1 - pid
    while tl.atomic_cas(lock_ptr, turn, turn) != turn:
        pass
    x = tl.load(x_ptr + i + pid * B)
    if turn > 0:
        x += tl.load(out_ptr + i) * 2.0
    tl.store(out_ptr + i, x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, turn + 1)
"""
# Each program waits for what the one behind it has stored.
LOOK_BACK = """def kernel(x_ptr, out_ptr, lock_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    pid = tl.program_id(0)
    following = tl.program_id(0) + 1
    total = tl.sum(tl.load(x_ptr + i + pid * B))
    if following < tl.num_programs(0):
        tries = 0
        while tl.load(lock_ptr + following, volatile=True) == 0:
            tries += 1
        total += tl.load(out_ptr + following * B, volatile=True)
    tl.store(out_ptr + pid * B, total)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + pid, 1)
"""
# Polls by adding nothing: what it last read is not what it waits for any more when others wait.
COUNTED = """def kernel(x_ptr, out_ptr, lock_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    pid = tl.program_id(0)
    x = tl.load(x_ptr + i + pid * B)
    mine = tl.num_programs(0) - 1 - pid
    turn = tl.atomic_add(lock_ptr, 0)
    while turn != mine:
        turn = tl.atomic_add(lock_ptr, 0)
    if mine > 0:
        x += tl.load(out_ptr + i) * 2.0
    tl.store(out_ptr + i, x)
    tl.debug_barrier()
    tl.atomic_add(lock_ptr, 1)
"""
RACE = """def kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * tl.program_id(0))
"""
LONG = """def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for a in range(n):
        for b in range(n):
            for c in range(4):
                acc += tl.load(x_ptr + i + c)
    tl.store(out_ptr + i, acc)
"""
LOCKED = PLAIN | {"lock_ptr": tensor(8, "int32", range=[0, 0])}


@pytest.mark.parametrize(
    "text, before, after",
    [(LOCK, "* 2.0", "* 3.0"), (COUNTED, "* 2.0", "* 3.0"), (LOOK_BACK, "total += tl", "total -= tl")],
)
def test_programs_that_wait_for_later_ones_are_run_and_compared(text: str, before: str, after: str, tmp_path: Path):
    spec = launch(LOCKED, {}, (4,))
    result = run(tmp_path, text, text, spec, with_variants=False)
    assert (result.status, result.programs) == ("validated", 4), result.reason
    assert result.coverage.gaps() == (), result.coverage.verdict()
    result = run(tmp_path, text, text.replace(before, after), spec, with_variants=False)
    assert result.status == "mismatch", result


def test_a_deadlock_is_a_hazard_with_its_place(tmp_path: Path):
    spec = launch(LOCKED, {}, (4,))
    stuck = LOCK.replace("turn + 1)", "turn)")
    line = next(n for n, text in enumerate((HEAD + LOCK).splitlines(), 1) if "while" in text)
    result = run(tmp_path, LOCK, stuck, spec, with_variants=False)
    assert result.status == "hazard" and result.hazards[0].kind == "deadlock" and result.hazards[0].line == line, result
    result = run(tmp_path, stuck, stuck, spec, with_variants=False)
    assert result.status == "not_runnable" and "[deadlock]" in result.reason


@pytest.mark.parametrize(
    "mistake", ["* (tl.program_id(0) + 1)", "* (tl.program_id(0) - tl.program_id(0) // 3 * 3 + 0)"]
)
def test_what_programs_store_to_one_place_is_compared_after_the_same_order(mistake: str, tmp_path: Path):
    spec = launch(PLAIN, {}, (3,))
    assert run(tmp_path, RACE, RACE, spec).status == "validated"
    # The second differs for no program of this launch.
    expected = "mismatch" if "+ 1" in mistake else "validated"
    assert run(tmp_path, RACE, RACE.replace("* tl.program_id(0)", mistake), spec).status == expected


def test_every_program_of_a_race_is_compared(tmp_path: Path):
    # Program 2 hides what program 0 stores, unless it runs first.
    wrong = RACE.replace("* tl.program_id(0)", "* tl.maximum(tl.program_id(0), 1)")
    result = run(tmp_path, RACE, wrong, launch(PLAIN, {}, (3,)), with_variants=False)
    assert result.status == "mismatch", result


def test_a_translation_may_take_as_long_as_its_source_asks(tmp_path: Path, monkeypatch):
    longer = LONG.replace("range(4)", "range(8)").replace("x_ptr + i + c)", "x_ptr + i + c % 4) * (c < 4)")
    spec = launch(PLAIN, {"n": 6})
    monkeypatch.setattr(pair, "LEAST_STEPS", 0)
    assert run(tmp_path, LONG, longer, spec, with_variants=False).status == "validated"
    monkeypatch.setattr(pair, "STEPS_PER_STEP", 1)
    result = run(tmp_path, LONG, longer, spec, with_variants=False)
    assert result.hazards[0].kind == "endless", result


def test_a_variant_on_which_the_source_takes_too_long_is_not_judged(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(engine, "STEP_LIMIT", 150)
    result = run(tmp_path, LONG, LONG, launch(PLAIN, {"n": 1}))
    assert result.status == "validated" and "many trips" in result.coverage.verdict(), result
    monkeypatch.setattr(engine, "STEP_LIMIT", 20)
    result = run(tmp_path, LONG, LONG, launch(PLAIN, {"n": 1}))
    assert result.status == "not_runnable" and "more than 20 ops" in result.reason
