"""`--choose stores=copied` beside other choices."""

from __future__ import annotations

from pathlib import Path

import pytest

from gluonize.decide.choices.chosen import choices_of
from gluonize.read.spec.launch import read_launches
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

MATMUL = Path(__file__).resolve().parents[2] / "fixtures/matmul"


@pytest.mark.parametrize("partitions", ["one", "two"])
def test_what_cannot_be_written_to_lds_is_refused_by_name(partitions: str):
    """In the layout that spreads warps over partitions, no tile can be written to LDS."""
    launches = tuple(read_launches(str(MATMUL / "launches.json")))[:1]
    chosen = (("matmul_kernel", choices_of(**{"stores": "copied", "lds-partitions": partitions})),)
    made = translate_kernel(TranslateRequest(str(MATMUL / "kernel.py"), "gfx1250", launches=launches, chosen=chosen))
    found = [d for outcome in made.outcomes for d in outcome.diagnostics]
    if partitions == "one":
        assert made.text is not None and "store_by_copy(" in made.text, found
    else:
        assert made.text is None and [d.code for d in found] == ["strategy"] and found[0].line
        assert "lds-partitions=two" in found[0].message and "stores=copied" in found[0].message
