"""Kernels of many kinds as clusters: each is translated, compiled and validated, and costs no more than what Triton makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_sources import SOURCES
from translation_of import compiled, validated

from gluonize.judge.lower.jobs import lower_file
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

# Those that Triton's own backend compiles for several workgroups; the others need what one workgroup has in another one.
OF_TRITON = (
    "elementwise",
    "elementwise of a tile",
    "masked",
    "sum of rows",
    "greatest of rows",
    "softmax",
    "scan of rows",
    "histogram",
    "atomics",
    "pairs",
    "gathered rows",
    "descriptor copy",
    "descriptor elementwise",
)


# Of 128 rows each of 16 workgroups would have 8.
TOO_SMALL = [("attention", 16), ("causal attention", 16)]


# Each for the fewest workgroups, and in turn for more.
COUNTS = [(name, count) for i, name in enumerate(SOURCES) for count in (2, (4, 16)[i % 2])]


@pytest.mark.slow
@pytest.mark.parametrize("name, count", [case for case in COUNTS if case not in TOO_SMALL])
def test_a_source_is_validated_and_costs_no_more_than_what_triton_makes_of_it(name: str, count: int, tmp_path: Path):
    spec = SOURCES[name].launch(count)
    text = validated(tmp_path, SOURCES[name].file, spec, "gfx1250")
    assert f"gl.num_ctas() == {count}" in text
    ours = compiled(tmp_path, text, spec, "gfx1250").metrics
    assert ours.mix.insns
    if name in OF_TRITON and count <= 4:
        theirs = lower_file(str(tmp_path / "source.py"), spec, "gfx1250").metrics
        assert ours.mix.insns <= theirs.mix.insns and ours.spill <= theirs.spill
        assert theirs.loop is None or ours.loop is not None and ours.loop.insns <= theirs.loop.insns


@pytest.mark.parametrize("name, count", TOO_SMALL)
def test_a_product_is_not_split_below_a_matrix_instruction(name: str, count: int, tmp_path: Path):
    (tmp_path / "source.py").write_text(SOURCES[name].file)
    request = TranslateRequest(str(tmp_path / "source.py"), "gfx1250", launches=(SOURCES[name].launch(count),))
    found = translate_kernel(request).outcomes[0].diagnostics
    assert [d.code for d in found] == ["clusters"] * len(found) and found, found
