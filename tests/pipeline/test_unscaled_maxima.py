"""Maxima of products that are scaled behind them: where, under which condition, and that results are the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from launch_checks_of import check_of
from translation_of import launch, tensor, translate, validated

from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.prove.both_sides import PROVED
from gluonize.judge.verdict import validate_launch
from gluonize.judge.verdict.proof import proved
from gluonize.read.spec.launch import LaunchSpec

HEAD = """
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.44269504)


@triton.jit
def scores(q_ptr, k_ptr, z_ptr, scale, n, B: tl.constexpr, FACTOR: tl.constexpr):
    o = tl.arange(0, B)
    q = tl.load(q_ptr + o[:, None] * B + o[None, :])
    m = tl.full([B], -float("inf"), tl.float32)
    l = tl.zeros([B], tl.float32)
    log_scale = scale * 1.44269504
"""
LOOP = """
    for start in range(0, n, B):
        k = tl.load(k_ptr + (start + o)[None, :] * B + o[:, None])
        qk = tl.dot(q, k) * log_scale
        m_new = tl.maximum(m, tl.max(qk, 1))
        l = l * tl.exp2(m - m_new) + tl.sum(tl.exp2(qk - m_new[:, None]), 1)
        m = m_new
"""
END = """
    tl.store(z_ptr + o, m + l)
"""
SIGNATURE = {"q_ptr": "*fp16", "k_ptr": "*fp16", "z_ptr": "*fp32", "scale": "fp32", "n": "i32"}
B, TILES = 32, 3
SCALED = choices_of(maxima="scaled")
ALTERNATING = choices_of(warp_groups="alternating", slot_form="told-apart", depth="2")


MASK = "* log_scale\n        qk = tl.where(start + o[None, :] < n, qk, -float('inf'))\n"
FACTORS = MASK.replace("log_scale", "log_scale * LOG2E")
TWICE = MASK + "        qk = tl.where(o[:, None] > start + o[None, :], float('-inf'), qk)\n"


def spec_of(scale: float = 0.25, tiles: int = TILES, warps: int = 4) -> LaunchSpec:
    values = {"q_ptr": tensor(B, B), "k_ptr": tensor(TILES * B, B), "z_ptr": tensor(B)}
    values |= {"scale": scale, "n": tiles * B}
    constants = {"B": B, "FACTOR": 2.0}
    return launch("scores", SIGNATURE, constants, attrs=dict.fromkeys(SIGNATURE, "") | {
        "q_ptr": "DS", "k_ptr": "DS", "z_ptr": "DS", "n": "D"
    }, values=values, warps=warps)  # fmt: skip


def text_of(*changes: tuple[str, str]) -> str:
    text = HEAD.lstrip("\n") + LOOP.lstrip("\n") + END.lstrip("\n")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def chosen(
    folder: Path, text: str, choices: Choices = Choices(), spec: LaunchSpec | None = None, target: str = "gfx950"
):
    return validated(folder, text, spec or spec_of(), target, chosen=(("scores", choices),))


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", ["gfx942", "gfx950", "gfx1250", "gfx1201"])
def test_the_greatest_product_is_scaled(target: str, tmp_path: Path):
    written = chosen(tmp_path, text_of(), target=target)
    assert "qk = qk_unscaled * log_scale\n" in written and "gl.max(qk_unscaled, 1) * log_scale" in written
    assert "#   assumes scale positive, from 2**-30 to 2**30\n" in written


def test_as_the_source_has_it_nothing_is_assumed(tmp_path: Path):
    written = chosen(tmp_path, text_of(), SCALED)
    assert "unscaled" not in written and "positive" not in written


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "changes, line",
    [
        ([("tl.dot(q, k) * log_scale", "log_scale * tl.dot(q, k)")], "qk = log_scale * qk_unscaled\n"),
        ([("* log_scale", "* 0.5")], "gl.max(qk_unscaled, 1) * 0.5"),
        ([("scale * 1.44269504", "1.44269504 / scale")], "gl.max(qk_unscaled, 1) * log_scale"),
        ([("tl.maximum(m, tl.max(qk, 1))", "tl.maximum(m, -tl.min(qk, axis=1))")], "-(gl.min(qk_unscaled, axis=1) * log_scale)"),
        ([("tl.max(qk, 1)", "tl.max(qk, 1, keep_dims=True).reshape([B])")], "gl.max(qk_unscaled, 1, keep_dims=True) * log_scale"),
        ([("* log_scale", "* scale * LOG2E")], "gl.max(qk_unscaled, 1) * scale * LOG2E"),
        ([("* log_scale", "* (scale * LOG2E)")], "gl.max(qk_unscaled, 1) * (scale * LOG2E)"),
        ([("scale * 1.44269504", "scale * FACTOR")], "gl.max(qk_unscaled, 1) * log_scale"),
    ],
    ids=["scale first", "a constant", "a quotient", "a minimum", "kept dimensions", "two factors", "a product", "a compile-time argument"],
)  # fmt: skip
def test_what_may_stand_around_it(changes, line: str, tmp_path: Path):
    assert line in chosen(tmp_path, text_of(*changes))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
@pytest.mark.parametrize("mask, rows", [(MASK, 1), (TWICE, 2)], ids=["once", "twice"])
def test_behind_masks_the_product_is_scaled(mask: str, rows: int, target: str, tmp_path: Path):
    """Rows of which nothing is left have a maximum of minus infinity, and NaN for weights, as in the source."""
    written = chosen(tmp_path, text_of(("* log_scale\n", mask)), target=target)
    assert "qk = qk_unscaled * log_scale\n" in written and "gl.max(qk_unscaled, 1) * log_scale" in written
    assert written.count("qk_unscaled = gl.where(") == 1 and written.count("gl.where(") == rows


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "changes",
    [
        [("scale * 1.44269504", "scale + 1.44269504")],
        [("scale * 1.44269504", "scale * -1.44269504")],
        [("* log_scale", "* -0.5")],
        [("* log_scale", "* scale * -1.0")],
        [("* log_scale\n", "* log_scale\n        qk = tl.where(start + o[None, :] < n, qk, 0.0)\n")],
        [("* log_scale\n", "* log_scale\n        log_scale = log_scale * 1.0\n")],
        [("tl.max(qk, 1)", "tl.max(qk, 1, return_indices=True)[0]")],
        [("tl.max(qk, 1)", "tl.max(tl.abs(qk), 1)")],
        [("tl.dot(q, k) * log_scale", "tl.dot(q, k).to(tl.float16) * log_scale")],
        [("* log_scale\n", MASK.replace("-float('inf')", "-1.0e6"))],
        [("* log_scale\n", MASK.replace("        qk", "        l += tl.sum(qk, 1)\n        qk"))],
        [("* log_scale\n", MASK.replace("qk, -", "qk * float('inf'), -"))],
    ],
    ids=[
        "a sum", "negative", "a negative constant", "a negative factor", "masked", "changed in the loop", "with indices",
        "not of the variable", "rounded before", "masked with a number", "read before the mask", "infinite elsewhere",
    ],
)  # fmt: skip
def test_near_misses(changes, tmp_path: Path):
    written = chosen(tmp_path, text_of(*changes))
    assert "unscaled" not in written and "positive" not in written


@pytest.mark.parametrize("scale", [-0.25, 0.0, 1e12])
def test_a_launch_with_another_scale_keeps_the_order(scale: float, tmp_path: Path):
    assert "unscaled" not in chosen(tmp_path, text_of(), spec=spec_of(scale))


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "scale, refused", [(-0.25, True), (0.0, True), (float("inf"), True), (float("nan"), True), (2.0, False)]
)
def test_other_launches_are_refused(scale: float, refused: bool, tmp_path: Path):
    written = translate(tmp_path, text_of(), spec_of(), target="gfx950").text
    check = check_of(written, "scores")
    arguments = (None, None, None, scale, B)
    if refused:
        with pytest.raises(ValueError, match=f"scores: 2\\*\\*-30 <= scale <= 2\\*\\*30 is false for scale={scale}"):
            check(*arguments)
    else:
        check(*arguments)


def test_in_stages_the_product_stands_alone(tmp_path: Path):
    """Two groups of warps that alternate: what is made of a product belongs to the next stage."""
    text = text_of(("        m = m_new\n", "        m = m_new\n        acc = tl.dot(q, k, acc)\n"), ("    log_scale =", "    acc = tl.zeros([B, B], tl.float32)\n    log_scale ="), ("m + l", "m + l + tl.sum(acc, 1)"))  # fmt: skip
    written = chosen(tmp_path, text, ALTERNATING, spec_of(warps=8))
    stage = written[written.index("qk_unscaled = ") :]
    assert stage.index("with gl.amd") < stage.index("qk = qk_unscaled * log_scale")


MISTAKES = [
    (None, "gl.max(qk_unscaled, 1) * log_scale", "gl.max(qk_unscaled, 1)"),
    (None, "gl.max(qk_unscaled, 1)", "gl.max(qk, 1)"),
    (None, "qk = qk_unscaled * log_scale", "qk = qk_unscaled"),
    (TWICE, "gl.max(qk_unscaled, 1) * log_scale", "gl.max(qk_unscaled, 1)"),
    (TWICE, "gl.max(qk_unscaled, 1)", "gl.max(qk, 1)"),
    (TWICE, "qk = qk_unscaled * log_scale", "qk = qk_unscaled"),
    (TWICE, "gl.max(qk_unscaled, 1)", "gl.max(gl.where(qk_unscaled == float('-inf'), 0.0, qk_unscaled), 1)"),
]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("mask, right, wrong", MISTAKES)
def test_planted_mistakes_are_found(mask: str | None, right: str, wrong: str, tmp_path: Path):
    written = chosen(tmp_path, text_of(("* log_scale\n", mask)) if mask else text_of())
    assert written.count(right) == 1
    (tmp_path / "output.py").write_text(written.replace(right, wrong))
    answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "output.py"), spec_of(), "gfx950")
    assert answer["status"] == "mismatch"


def test_unchecked_the_wrong_order_would_show(tmp_path: Path):
    """What the check is for: with a negative scale the greatest of the scaled products is that of the least."""
    written = chosen(tmp_path, text_of())
    (tmp_path / "output.py").write_text(written.replace("2**-30 <= scale <= 2**30", "True"))
    spec = replace(spec_of(-0.25), id="negative")
    answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "output.py"), spec, "gfx950")
    assert answer["status"] == "mismatch"


@pytest.mark.one_of(3)
@pytest.mark.parametrize("mask", [None, MASK, TWICE, FACTORS], ids=["plain", "once", "twice", "two factors"])
def test_it_is_proved_by_what_the_header_says(mask: str | None, tmp_path: Path):
    written = translate(
        tmp_path, text_of(("* log_scale\n", mask)) if mask else text_of(), spec_of(), target="gfx950"
    ).text
    source = source_stage(str(tmp_path / "source.py"), spec_of(), "gfx950")

    def verdict_of(text: str):
        (tmp_path / "proved.py").write_text(text)
        return proved(
            source, translated_stage(str(tmp_path / "proved.py"), spec_of(), "gfx950"), spec_of(), "gfx950", None
        )

    verdict = verdict_of(written)
    assert verdict.word == PROVED, verdict.why
    wrong = [("#   assumes scale positive, from 2**-30 to 2**30\n", ""), ("scale * 1.44269504", "scale * -1.44269504")]
    wrong += [(before, after) for on, before, after in MISTAKES if on in (None, mask)]
    wrong += [("-float('inf')", "-1.0e6")] if mask else []
    for before, after in wrong:
        assert before in written, before
        assert not verdict_of(written.replace(before, after)).holds, (before, after)
