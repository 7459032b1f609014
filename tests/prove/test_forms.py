"""Forms of loops that choices give: they compute what the source computes, and the prover sees it."""

from __future__ import annotations

import pytest

import fixture_set
from gluonize.decide.choices.chosen import parse_choices
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.prove.both_sides import PROVED
from gluonize.judge.verdict.proof import proved
from gluonize.read.spec.launch import read_launches
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

MATMUL = fixture_set.Fixture(fixture_set.ROOT / "matmul")


@pytest.mark.parametrize("words", [("accumulator-slices=2x2",), ("depth=3", "copy-order=after-reads")])
def test_forms_are_proved(tmp_path, words):
    spec = read_launches(str(MATMUL.launches_file))[0]
    request = TranslateRequest(str(MATMUL.kernel_file), "gfx950", launches=(spec,), choices=parse_choices(words))
    output = tmp_path / "matmul_gfx950.py"
    output.write_text(translate_kernel(request).text)
    left = source_stage(str(MATMUL.kernel_file), spec, "gfx950")
    verdict = proved(left, translated_stage(str(output), spec, "gfx950"), spec, "gfx950", None)
    assert verdict.word == PROVED, verdict.why
    # A slice that is read from another place is another kernel.
    text = output.read_text()
    if "a.slice(64, 64, 0)" in text:
        output.write_text(text.replace("a.slice(64, 64, 0)", "a.slice(0, 64, 0)"))
        assert not proved(left, translated_stage(str(output), spec, "gfx950"), spec, "gfx950", None).holds
