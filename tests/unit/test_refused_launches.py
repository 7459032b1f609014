"""Launches with mistakes among others: they are refused, and with `keep_going` the others are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from translator.diagnostics import TranslationError
from translator.request import TranslateRequest
from translator.source.launch_spec import RefusedLaunch, parse_launches
from translator.translation import translate_kernel

GOOD = {
    "id": "good",
    "kernel": "k",
    "source": "k.py",
    "signature": {"x_ptr": "*fp32"},
    "constexprs": {"B": 64},
    "options": {"num_warps": 4},
}
BAD = [
    GOOD | {"id": "options", "options": {"num_warps": 3}},
    GOOD | {"id": "type", "signature": {"x_ptr": "*float"}},
    GOOD | {"id": "field", "grids": [1]},
]
SOURCE = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x_ptr, B: tl.constexpr):\n    tl.store(x_ptr, B)\n"


def test_all_are_refused_together():
    with pytest.raises(TranslationError) as found:
        parse_launches([GOOD, *BAD])
    assert len(found.value.diagnostics) == len(BAD)


@pytest.mark.parametrize("bad", BAD, ids=[bad["id"] for bad in BAD])
def test_each_is_refused_by_itself(bad: dict, tmp_path: Path):
    refused, good = parse_launches(json.dumps([bad, GOOD]), keep_going=True)
    assert isinstance(refused, RefusedLaunch) and not isinstance(good, RefusedLaunch) and refused.id == bad["id"]
    (tmp_path / "k.py").write_text(SOURCE)
    results = [
        translate_kernel(TranslateRequest(str(tmp_path / "k.py"), "gfx950", launches=(s,))) for s in (refused, good)
    ]
    assert [result.text is None for result in results] == [True, False]
    assert results[0].outcomes[0].diagnostics == refused.problems


def test_what_names_no_kernel_stops_all():
    with pytest.raises(TranslationError):
        parse_launches([{"id": "nameless", "source": "k.py"}, GOOD], keep_going=True)
    with pytest.raises(TranslationError, match="used by several launches"):
        parse_launches([BAD[0] | {"id": "good"}, GOOD], keep_going=True)
