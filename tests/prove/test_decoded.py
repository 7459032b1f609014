"""8-bit floats that are decoded by hand: the conversion that it is is seen, and one that is wrong for any code is not."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from gluonize.judge.machine.dtypes import decode
from gluonize.judge.prove.both_sides import PROVED
from gluonize.judge.prove.terms.decoded import FORMATS, number

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bulk_faults import pair  # noqa: E402


@pytest.mark.parametrize("kind", FORMATS)
def test_codes_are_those_of_the_machine(kind):
    codes = np.arange(256, dtype=np.uint8)
    for code, wanted in zip(codes, decode(codes, kind)):
        found = number(kind, int(code))
        assert found == wanted or math.isnan(found) and math.isnan(wanted), (kind, code)


def test_a_decoder_is_a_conversion():
    given = pair("fp8_matmul", 1, "gfx942")
    text = given.right.text
    assert given.proved(text).word == PROVED
    wrong = [
        ("dense<2.560000e+02>", "dense<1.280000e+02>"),
        ("dense<-16512>", "dense<-16640>"),
        ("dense<3.584000e+04>", "dense<2.560000e+02>"),
    ]
    for before, after in wrong:
        assert before in text
        assert not given.proved(text.replace(before, after)).holds, before
