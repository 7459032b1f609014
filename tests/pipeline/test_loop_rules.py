"""The loop of a matrix product where a compute unit holds one workgroup: more tiles under way, groups of warps that take turns."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.judge.verdict import validate_launch
from translation_of import launch, tensor, translate

MATMUL = (Path(__file__).parents[2] / "fixtures/matmul/kernel.py").read_text()
GIVEN = json.loads((Path(__file__).parents[2] / "fixtures/matmul/launches.json").read_text())["launches"][0]
PLAIN = choices_of(depth="launch", warp_groups="together")


def spec(m: int, n: int, k: int, warps: int, stages: int = 2):
    constexprs = {**GIVEN["constexprs"], "BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
    sizes = {"M": m, "N": n, "K": 3 * k - 16}
    strides = {"stride_am": 3 * k, "stride_bk": n, "stride_cm": n}
    a = tensor(m, 3 * k - 16, stride=[3 * k, 1], storage=m * 3 * k)
    values = {"a_ptr": a, "b_ptr": tensor(3 * k - 16, n), "c_ptr": tensor(m, n), **sizes, **strides}
    signature = {name: kind for name, kind in GIVEN["signature"].items() if kind != "constexpr"}
    made = launch("matmul_kernel", signature, constexprs, attrs=GIVEN["attrs"], warps=warps, stages=stages)
    return replace(made, values=values)


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    "target, tile, warps, depth, slices, alternating",
    [
        ("gfx950", (256, 256, 64), 8, 2, ["acc_0", "acc_1"], True),
        ("gfx950", (256, 256, 32), 8, 4, [], True),
        ("gfx950", (128, 256, 64), 8, 3, [], True),
        ("gfx950", (128, 128, 64), 8, 2, [], False),  # two workgroups fit
        ("gfx950", (256, 256, 64), 4, 2, [], False),  # one wave on each SIMD
        ("gfx942", (256, 256, 64), 8, 1, ["acc_0", "acc_3"], True),
        ("gfx942", (128, 256, 64), 8, 1, ["acc_0", "acc_1"], True),
        ("gfx942", (128, 128, 64), 8, 1, [], False),
        ("gfx1250", (256, 256, 64), 8, 4, [], False),
        ("gfx1250", (256, 128, 64), 8, 2, [], False),
    ],
)
def test_what_a_loop_is_by_default(target, tile, warps, depth, slices, alternating, tmp_path):
    result = translate(tmp_path, MATMUL, spec(*tile, warps), target=target)
    assert f"NUM_BUFFERS: gl.constexpr = {depth}" in result.text
    assert [name in result.text for name in slices] == [True] * len(slices) and bool(slices) == ("acc_0" in result.text)
    assert ("warp_pipeline_stage" in result.text) is alternating
    said = [line for line in result.outcomes[0].choices if line.startswith("a compute unit holds one workgroup")]
    assert bool(said) == (alternating or depth > 2), result.outcomes[0].choices


@pytest.mark.parametrize("choices", [PLAIN, choices_of(slot_form="told-apart"), choices_of(depth="2")])
def test_what_is_asked_for_holds(choices: Choices, tmp_path: Path):
    text = translate(tmp_path, MATMUL, spec(256, 256, 64, 8), target="gfx950", choices=choices).text
    assert "warp_pipeline_stage" not in text and "acc_0" not in text


@pytest.mark.parametrize("whole", [False, True])
def test_groups_do_not_alternate_in_two_slots_that_nobody_fills_again(whole: bool, tmp_path: Path):
    """Operands that are looked at between are read whole: no slot is free before the product."""
    looked = "        if a.dtype != b.dtype:\n            tl.static_assert(False)\n        acc = tl.dot("
    source = MATMUL.replace("        acc = tl.dot(", looked) if whole else MATMUL
    assert (source != MATMUL) is whole
    text = translate(tmp_path, source, spec(256, 256, 64, 8), target="gfx950").text
    assert ("warp_pipeline_stage" in text) is not whole and "NUM_BUFFERS: gl.constexpr = 2" in text


def test_choices_that_are_as_triton_keep_its_loops():
    assert PLAIN.keeps_loops and PLAIN.keeps_depth
    assert not choices_of(warp_groups="alternating").keeps_loops and not choices_of(depth="3").keeps_depth


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize(
    "target, tile, mistake",
    [
        # One copy more is under way than the ring allows, in the loop and in front of it.
        ("gfx950", (256, 256, 64), (r"((?:wait_group|async_wait)\(.*NUM_BUFFERS.*)\)$", r"\1 + 1)", "lds-in-flight")),
        ("gfx950", (256, 256, 32), (r"((?:wait_group|async_wait)\(.*NUM_BUFFERS.*)\)$", r"\1 + 1)", "lds-in-flight")),
        ("gfx1250", (256, 256, 64), (r"((?:wait_group|async_wait)\(.*NUM_BUFFERS.*)\)$", r"\1 + 1)", "lds-in-flight")),
        # A part of the accumulator is added up with the rows of another one.
        ("gfx942", (256, 256, 64), (r"mfma\(a_3,", r"mfma(a_2,", "")),
    ],
)
def test_it_computes_what_the_source_does(target: str, tile: tuple, mistake: tuple[str, str, str], tmp_path: Path):
    text = translate(tmp_path, MATMUL, spec(*tile, 8), target=target).text
    assert _status(tmp_path, text, target, tile)[0] == "validated"
    old, new, kind = mistake
    wrong = re.sub(old, new, text, flags=re.MULTILINE)
    assert wrong != text, text
    found, kinds = _status(tmp_path, wrong, target, tile)
    assert found == "mismatch" and (not kind or kind in kinds)


def _status(folder: Path, text: str, target: str, tile: tuple[int, int, int]) -> tuple[str, set[str]]:
    output = folder / "output.py"
    output.write_text(text)
    answer = validate_launch(str(folder / "source.py"), str(output), spec(*tile, 8), target)
    return answer["status"], {h["kind"] for h in answer["hazards"]}
