"""Programs that have other numbers, so that neighbours are on one XCD (`--choose program-order=per-xcd`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate, validated

from gluonize.decide.choices.chosen import choices_of
from gluonize.judge.lower.jobs import lower_file
from gluonize.judge.verdict import validate_launch
from gluonize.judge.verdict.renumbered import same_work
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.targets import TARGETS
from gluonize.search.candidates import candidates
from gluonize.trace.model.module import Module
from gluonize.trace.model.parse import parse_module
from gluonize.write.programs.order import _REMAP

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def number():
        return tl.program_id(axis=0)


    @triton.jit
    def doubled(x_ptr, y_ptr, n, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y_ptr + number() * B + tl.arange(0, B), tl.load(x_ptr + o) * 2)
    """)
PER_XCD = choices_of(program_order="per-xcd")
REMAPPED = "remap_xcd(gl.program_id({}), gl.num_programs(0))"


def spec_of(programs: int, per_program: int = 64) -> LaunchSpec:
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    values = {name: tensor(programs * per_program) for name in ("x_ptr", "y_ptr")} | {"n": 3}
    return replace(launch("doubled", signature, {"B": per_program}, warps=1, values=values), grid=(programs,))


def written(folder: Path, text: str = SOURCE, programs: int = 21, target: str = "gfx950") -> str:
    made = validated(folder, text, spec_of(programs), target, chosen=(("doubled", PER_XCD),))
    lower_file(str(folder / "output.py"), spec_of(programs), target)
    return made


def judged(folder: Path, text: str, programs: int) -> dict:
    (folder / "source.py").write_text(SOURCE)
    (folder / "changed.py").write_text(text)
    return validate_launch(str(folder / "source.py"), str(folder / "changed.py"), spec_of(programs), "gfx950")


@pytest.mark.parametrize("xcds", [2, 8])
def test_each_xcd_has_neighbours_and_every_number_once(xcds: int):
    scope: dict = {}
    body = (
        _REMAP.format(xcds=xcds).replace("@gluon.jit\n", "").replace(": gl.constexpr", "").replace("gl.minimum", "min")
    )
    exec(body, scope)
    for programs in range(1, 70):
        numbers = [scope["remap_xcd"](pid, programs) for pid in range(programs)]
        assert sorted(numbers) == list(range(programs))
        for xcd in range(min(xcds, programs)):
            mine = numbers[xcd::xcds]
            assert mine == list(range(mine[0], mine[0] + len(mine)))


@pytest.mark.compile
@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_all_calls_get_the_new_number(target: str, tmp_path: Path):
    text = written(tmp_path, target=target)
    assert REMAPPED.format("0") in text and REMAPPED.format("axis=0") in text and "NUM_XCDS: gl.constexpr = 8" in text


def test_nothing_changes_where_all_share_a_cache(tmp_path: Path):
    made = translate(tmp_path, SOURCE, spec_of(21), target="gfx1201", chosen=(("doubled", PER_XCD),))
    assert "remap_xcd" not in made.text
    assert any("share one L2 cache" in choice for outcome in made.outcomes for choice in outcome.choices)


@pytest.mark.compile
@pytest.mark.parametrize(
    "text",
    [
        SOURCE.replace("axis=0", "axis=1"),
        SOURCE.replace("    o =", "    while tl.atomic_add(y_ptr, 0.0) > 1e9:\n        n += 1\n    o ="),
        SOURCE.replace("@triton.jit\ndef number", "@triton.jit(noinline=True)\ndef number"),
    ],
    ids=["another axis", "a loop that may wait", "a helper that is not inlined"],
)
def test_numbers_are_kept_where_they_may_matter(text: str, tmp_path: Path):
    made = translate(tmp_path, text, spec_of(21), target="gfx950", chosen=(("doubled", PER_XCD),))
    assert "remap_xcd" not in made.text
    assert any("keep their numbers" in choice for outcome in made.outcomes for choice in outcome.choices)


@pytest.mark.compile
@pytest.mark.parametrize("programs", [21, pytest.param(20011, marks=pytest.mark.slow)])
def test_mistakes_are_found_in_large_grids_too(programs: int, tmp_path: Path):
    """Of 20011 programs a sample runs: those of the translation that have their work."""
    right = written(tmp_path, programs=programs)
    planted = {
        right.replace("gl.minimum(xcd, programs % NUM_XCDS)", "0"),
        right.replace(REMAPPED.format("axis=0"), "gl.program_id(axis=0)"),
        right.replace("tl.load(x_ptr + o)", "tl.load(x_ptr + o)").replace("* 2,", "* 3,"),
    } - {right}
    assert len(planted) == 3
    assert [judged(tmp_path, text, programs)["status"] for text in planted] == ["mismatch"] * 3


@pytest.mark.compile
def test_a_remainder_is_found_though_the_launch_has_none(tmp_path: Path):
    text = written(tmp_path, programs=24).replace("gl.minimum(xcd, programs % NUM_XCDS)", "0")
    answer = judged(tmp_path, text, 24)
    assert answer["status"] == "mismatch" and "programs" in answer["variant"]


REVERSED = """
    %n = tt.get_num_programs x : i32
    %one = arith.constant 1 : i32
    %last = arith.subi %n, %one : i32
    %r = arith.subi %last, {} : i32
"""
DEALT = """
    %c2 = arith.constant 2 : i32
    %m = tt.get_num_programs x : i32
    %x = arith.remsi %pid, %c2 : i32
    %q = arith.divsi %m, %c2 : i32
    %i = arith.divsi %pid, %c2 : i32
    %s = arith.muli %x, %q : i32
    %p = arith.addi %s, %i : i32
"""


def module_of(body: str) -> Module:
    text = f"module {{\n  tt.func public @f() {{\n    %pid = tt.get_program_id x : i32\n{body}    tt.return\n  }}\n}}\n"
    return parse_module(text)


@pytest.mark.parametrize(
    "source, translated, found",
    [
        ("", "", None),
        ("", DEALT, [0, 2, 4, 1, 3, 5]),
        (REVERSED.format("%pid"), DEALT + REVERSED.format("%p"), [0, 2, 4, 1, 3, 5]),
        (REVERSED.format("%pid"), REVERSED.format("%pid"), None),
        (REVERSED.format("%pid"), DEALT + REVERSED.format("%pid"), None),
    ],
    ids=["as they are", "dealt", "dealt, then reversed", "reversed in both", "a number that is not dealt"],
)
def test_who_does_the_work_of_whom(source: str, translated: str, found: list[int] | None):
    answer = same_work(module_of(source), module_of(translated), 6)
    assert (None if answer is None else answer.tolist()) == found
    assert same_work(module_of(source), module_of(translated), 7) is None  # of 7, `DEALT` leaves some out


def test_the_search_tries_it_where_there_are_several():
    tried = {name: PER_XCD in candidates(TARGETS[name], 4) for name in ("gfx942", "gfx950", "gfx1250", "gfx1201")}
    assert tried == {"gfx942": True, "gfx950": True, "gfx1250": False, "gfx1201": False}
