"""Forms of loops that choices give: they compute what the source computes, and the prover sees it; and it sees a mistake in each."""

from __future__ import annotations

from dataclasses import replace

import pytest

import fixture_set
from gluonize.decide.choices.chosen import parse_choices
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.prove.both_sides import PROVED, REORDERED
from gluonize.judge.verdict.proof import proved
from gluonize.read.spec.launch import read_launches
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

MATMUL = fixture_set.Fixture(fixture_set.ROOT / "matmul")
STAGE = '        with gl.amd.warp_pipeline_stage("memory", priority=1):\n'
FILLED = "            # Both groups have read this operand: its next tile takes its place.\n"
WAIT = "        async_copy.wait_group(NUM_BUFFERS - 2)\n"
# What is chosen, the word, and mistakes as (text, what stands in its place).
FORMS = {
    ("accumulator-slices=2x2",): (PROVED, [("a.slice(64, 64, 0)", "a.slice(0, 64, 0)")]),
    ("depth=3", "copy-order=after-reads"): (PROVED, [("NUM_BUFFERS - 2)", "NUM_BUFFERS - 1)")]),
    # Half of the warps is a stage behind: a wait has to stand before the stage in which that half multiplies.
    ("warp-groups=alternating",): (PROVED, [(WAIT + '        with gl.amd.warp_pipeline_stage("compute"', '        with gl.amd.warp_pipeline_stage("compute"')]),
    # What the other half may still read is not filled again: a stage less is too early.
    ("warp-groups=alternating", "accumulator-slices=2x2", "refill=after-read"): (PROVED, [(STAGE + FILLED, "")]),
    # Iterations beyond the last one add zeros; not so where what they copy is not masked.
    ("slot-indices=literal",): (REORDERED, [("K - k_ahead * BLOCK_K", "K - k * BLOCK_K"), ("+ NUM_BUFFERS - 1) % ", "+ NUM_BUFFERS) % ")]),
    ("programs=persistent",): (
        PROVED,
        [
            ("    async_copy.wait_group(0)\n", ""),
            ("tile, count, a_ptr", "gl.program_id(0), count, a_ptr"),
            ("range(gl.program_id(0), count,", "range(gl.program_id(0) + 1, count,"),
        ],
    ),
}  # fmt: skip


@pytest.mark.one_of(3)
@pytest.mark.parametrize("words", FORMS, ids=",".join)
def test_forms_are_proved_and_mistakes_in_them_are_not(tmp_path, words):
    word, mistakes = FORMS[words]
    spec = read_launches(str(MATMUL.launches_file))[0]
    request = TranslateRequest(str(MATMUL.kernel_file), "gfx950", launches=(spec,), choices=parse_choices(words))
    text = translate_kernel(request).text
    left = source_stage(str(MATMUL.kernel_file), spec, "gfx950")

    def verdict_of(text: str):
        output = tmp_path / "matmul_gfx950.py"
        output.write_text(text)
        return proved(left, translated_stage(str(output), spec, "gfx950"), spec, "gfx950", None)

    verdict = verdict_of(text)
    assert verdict.word == word, verdict.why
    for before, after in mistakes:
        assert before in text, before
        assert not verdict_of(text.replace(before, after)).holds, (before, after)


def test_pointers_that_run_ahead_come_back_step_by_step(tmp_path):
    """Two steps of the largest stride that the launch check lets through do not fit into 32 bits, in which a product of them is made."""
    attention = fixture_set.Fixture(fixture_set.ROOT / "flash_attention")
    spec = read_launches(str(attention.launches_file))[1]
    spec = replace(spec, options=spec.options | {"num_stages": 3})
    text = translate_kernel(TranslateRequest(str(attention.kernel_file), "gfx950", launches=(spec,))).text
    steps = "    for _ in gl.static_range(NUM_BUFFERS - 1):\n        k_base -= BLOCK_N * stride_kn\n"
    at_once = "    k_base -= (NUM_BUFFERS - 1) * (BLOCK_N * stride_kn)\n" + steps.partition("        k_base")[0]
    left = source_stage(str(attention.kernel_file), spec, "gfx950")
    for kernel, holds in ((text, True), (text.replace(steps, at_once), False)):
        output = tmp_path / "attention_gfx950.py"
        output.write_text(kernel)
        right = translated_stage(str(output), spec, "gfx950")
        assert proved(left, right, spec, "gfx950", None).holds == holds
    assert steps in text
