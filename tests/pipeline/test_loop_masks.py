"""Masks of loops that are made only where they leave something out (`--choose loop-masks=...`)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from slow_rows import slow_but
from translation_of import dedent, launch, tensor, translate, validated

from gluonize.decide.choices.chosen import choices_of
from gluonize.judge.lower.jobs import lower_file
from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.write.layouts.needed_statements import _CROSSES, _MEETS

SELECTION = 'qk = tl.where(offs_m[:, None] >= (s + offs_n)[None, :], qk, float("-inf"))'
SOURCE = dedent(f"""
    import triton
    import triton.language as tl


    @triton.jit
    def attend(q_ptr, k_ptr, o_ptr, n, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
        start = tl.program_id(0)
        offs_m = start * M + tl.arange(0, M)
        offs_n = tl.arange(0, N)
        offs_d = tl.arange(0, D)
        q = tl.load(q_ptr + offs_m[:, None] * D + offs_d[None, :])
        k_ptrs = k_ptr + offs_n[None, :] * D + offs_d[:, None]
        most = tl.full([M], -float("inf"), tl.float32)
        for s in range(0, (start + 1) * M, N):
            qk = tl.dot(q, tl.load(k_ptrs))
            {SELECTION}
            most = tl.maximum(most, tl.max(qk, 1))
            k_ptrs += N * D
        tl.store(o_ptr + offs_m, most)
    """)
BRANCH, PEELED = choices_of(loop_masks="where-needed"), choices_of(loop_masks="peeled")
HEADER = "for s in range(0, (start + 1) * M, N):"


def spec_of(m: int = 64, n: int = 32, programs: int = 4) -> LaunchSpec:
    signature = {"q_ptr": "*fp16", "k_ptr": "*fp16", "o_ptr": "*fp32", "n": "i32"}
    rows = programs * m
    values = {"q_ptr": tensor(rows, 64), "k_ptr": tensor(rows, 64), "o_ptr": tensor(rows), "n": rows}
    return replace(launch("attend", signature, {"D": 64, "M": m, "N": n}, values=values), grid=(programs,))


def written(folder: Path, choices, text: str = SOURCE, target: str = "gfx950", **sizes: int) -> str:
    made = validated(folder, text, spec_of(**sizes), target, chosen=(("attend", choices),))
    lower_file(str(folder / "output.py"), spec_of(**sizes), target)
    return made


def judged(folder: Path, text: str) -> str:
    (folder / "changed.py").write_text(text)
    answer = validate_launch(str(folder / "source.py"), str(folder / "changed.py"), spec_of(), "gfx950")
    return answer["status"]


@pytest.mark.compile
@pytest.mark.parametrize("target", slow_but(["gfx950", "gfx942", "gfx1250", "gfx1201"]))
def test_a_branch_decides_whether_a_mask_is_made(target: str, tmp_path: Path):
    lines = written(tmp_path, BRANCH, target=target).splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip() == "if crosses(s, N, start * M, M):")
    assert lines[at + 1].strip().startswith("qk = gl.where(")


@pytest.mark.compile
@pytest.mark.parametrize("target", slow_but(["gfx950", "gfx942", "gfx1250", "gfx1201"]))
def test_whole_blocks_have_a_loop_without_a_mask(target: str, tmp_path: Path):
    first, second = written(tmp_path, PEELED, target=target).split("for s in range(s_whole, (start + 1) * M, N):")
    assert "for s in range(0, s_whole, N):" in first
    assert "gl.where(" not in first.split("for s in range(0, s_whole, N):")[1] and "qk = gl.where(" in second


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("choices", slow_but([PEELED, BRANCH]), ids=["two loops", "a branch"])
@pytest.mark.parametrize(
    "change",
    [
        (">= (s", "> (s"),
        (SELECTION, 'm = (offs_m[:, None] >= (s + offs_n)[None, :]) & ((s + offs_n)[None, :] < n)\n'
                    '        qk = tl.where(m, qk, float("-inf"))'),
        (SELECTION, "if N > 1:\n            " + SELECTION),
        (SELECTION, SELECTION + "\n        qk = tl.where((s + offs_n)[None, :] < n - 1, qk, -1.0)"),
    ],
    ids=["less", "a named mask of two parts", "in a block of its own", "two selections"],
)  # fmt: skip
def test_masks_of_other_forms(choices, change: tuple[str, str], tmp_path: Path):
    text = written(tmp_path, choices, SOURCE.replace(*change))
    assert "if crosses(" in text or "if meets(" in text or text.count("s_whole") > 2


@pytest.mark.compile
@pytest.mark.parametrize("choices", slow_but([PEELED, BRANCH]), ids=["two loops", "a branch"])
def test_another_loop_may_have_the_same_index(choices, tmp_path: Path):
    again = "    for s in range(n - 2, n):\n        most += s\n    tl.store("
    text = written(tmp_path, choices, SOURCE.replace("    tl.store(", again))
    assert "if crosses(" in text or "range(0, s_whole" in text


def test_a_number_that_is_another_one_by_then_is_not_compared(tmp_path: Path):
    """The mask has the first `row`, which is gone where the branch would stand."""
    changed = SOURCE.replace("offs_m = start * M", "row = start * M\n    offs_m = row").replace(
        "    for s", "    row = n\n    most += row\n    for s"
    )
    for choices in (BRANCH, PEELED):
        text = translate(tmp_path, changed, spec_of(), chosen=(("attend", choices),)).text
        assert "crosses" not in text and "s_whole" not in text


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize(
    "statement, whole",
    [
        ('qk = tl.where(offs_m[:, None] >= (s + offs_n)[None, :], qk * 2, float("-inf"))', "qk = (qk * 2)"),
        (
            'qk = tl.where(offs_m[:, None] >= (s + offs_n)[None, :], tl.where((s + offs_n)[None, :] < n, qk, 0.0), -1.0)',
            "qk = gl.where((s + offs_n",
        ),
        ('qk += tl.where(offs_m[:, None] >= (s + offs_n)[None, :], 0, float("-inf"))', "qk += 0"),
        ('qk = qk * 2 + tl.where(offs_m[:, None] >= (s + offs_n)[None, :], 0, -1.0e6)', "qk = qk * 2 + 0"),
    ],
    ids=["another value", "a selection of a selection", "added", "added to a product"],
)  # fmt: skip
def test_whole_blocks_take_what_is_selected(statement: str, whole: str, tmp_path: Path):
    first, second = written(tmp_path, PEELED, SOURCE.replace(SELECTION, statement)).split("for s in range(s_whole")
    assert whole in first and first.count("gl.where(") < second.count("gl.where(")


def test_a_number_of_another_type_stays_selected(tmp_path: Path):
    statement = "counted = (qk > 0).to(tl.int32) + tl.where(offs_m[:, None] >= (s + offs_n)[None, :], 0, -1.0)"
    source = SOURCE.replace(SELECTION, statement).replace("tl.max(qk, 1)", "tl.max(counted, 1)")
    assert "s_whole" not in translate(tmp_path, source, spec_of(), chosen=(("attend", PEELED),)).text


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "change",
    [
        ("qk, float", "0.0, float"),
        ("(s + offs_n)[None, :]", "(s.to(tl.int64) + offs_n)[None, :]"),
        ("(s + offs_n)[None, :]", "(n + offs_n)[None, :]"),
        ("(s + offs_n)[None, :]", "(s + 2 * offs_n)[None, :]"),
        ("offs_m[:, None] >=", "tl.load(o_ptr + offs_m).to(tl.int32)[:, None] >="),
        (">= (s", "!= (s"),
    ],
    ids=["a number", "64 bits", "the same in all iterations", "not one by one", "from memory", "another relation"],
)
@pytest.mark.parametrize("choices", slow_but([PEELED, BRANCH]), ids=["two loops", "a branch"])
def test_other_selections_stay(choices, change: tuple[str, str], tmp_path: Path):
    text = translate(tmp_path, SOURCE.replace(*change), spec_of(), chosen=(("attend", choices),)).text
    assert "crosses" not in text and "meets" not in text and "s_whole" not in text


@pytest.mark.parametrize(
    "change",
    [
        (HEADER, "for s in range(M, (start + 1) * M, N):"),
        (HEADER, "for s in range(0, (start + 1) * M, 2 * N):"),
        (">= (s + offs_n)[None, :]", "<= (s + offs_n)[None, :]"),
    ],
    ids=["from another start", "in longer steps", "whole blocks last"],
)
def test_loops_that_are_not_cut(change: tuple[str, str], tmp_path: Path):
    text = translate(tmp_path, SOURCE.replace(*change), spec_of(), chosen=(("attend", PEELED),)).text
    assert "s_whole" not in text


@pytest.mark.compile
@pytest.mark.parametrize(
    "choices, mistake",
    [(BRANCH, ("last_low > high", "last_low > high + LOWS")), (PEELED, (" + 1) // N * N", " + 1 + N) // N * N"))],
    ids=["a branch", "two loops"],
)
def test_mistakes_are_found(choices, mistake: tuple[str, str], tmp_path: Path):
    text = written(tmp_path, choices)
    assert mistake[0] in text and judged(tmp_path, text.replace(*mistake)) == "mismatch"


def test_the_branch_knows_of_numbers_that_wrap_around():
    for function, holds in ((_CROSSES, np.less_equal), (_MEETS, np.less)):
        scope: dict = {}
        exec(function.text.replace("@gluon.jit\n", "").replace(": gl.constexpr", ""), scope)
        for low, high in itertools.product(range(-128, 128, 3), range(-128, 128, 3)):
            for lows, highs in ((1, 8), (8, 1), (16, 8)):
                with np.errstate(over="ignore"):
                    a, b = (np.int8(x) + np.arange(k, dtype=np.int8) for x, k in ((low, lows), (high, highs)))
                    left_out = scope[function.name](np.int8(low), np.int8(lows), np.int8(high), np.int8(highs))
                assert left_out or holds(a[:, None], b[None, :]).all()
                wraps = (a[-1] < a[0]) or (b[-1] < b[0])
                assert not left_out or wraps or not holds(a[:, None], b[None, :]).all()


@pytest.mark.parametrize("strict", [False, True])
def test_the_cut_knows_of_numbers_that_wrap_around(strict: bool, tmp_path: Path):
    """As `s_whole` is written, in numbers of 8 bits: all that it promises is true, and none is left that it could promise."""
    source = SOURCE.replace(">=", ">") if strict else SOURCE
    text = translate(tmp_path, source, spec_of(), chosen=(("attend", PEELED),)).text
    line = next(line.strip() for line in text.splitlines() if "s_whole = " in line)
    value = line.removeprefix("s_whole = ").replace("start * M", "first").replace("(start + 1) * M", "end")
    m, n = np.int8(8), np.int8(4)
    for first, end in itertools.product(range(-128, 128), (0, 40, 127)):
        scope = {"first": np.int8(first), "M": m, "N": n, "end": np.int8(end), "min": min, "max": max}
        with np.errstate(over="ignore"):
            whole = int(eval(value, scope))
            rows = np.int8(first) + np.arange(8, dtype=np.int8)
        kept = [s for s in range(0, end, 4) if (rows[:, None] > np.arange(s, s + 4) - (not strict)).all()]
        assert [*range(0, whole, 4)] == kept
