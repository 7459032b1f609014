"""A kernel that computes something else: the smallest launch that shows it, found in its terms and run by the reference machine."""

from __future__ import annotations

import fixture_set
import pytest
from gluonize.judge.prove.terms.elements import Terms
from gluonize.judge.prove.terms.small_values import apart, evaluated
from gluonize.judge.verdict.witness import prove_launch
from gluonize.read.spec.launch import read_launches


def test_values_at_which_terms_differ():
    t = Terms()
    n = t.integer_of(t.node("argument", ("n",), (), "i32"))
    offs = t.index(0, 64)
    first, second = t.less(offs, n), t.no(t.less(n, offs))  # offs < n, offs <= n
    assert next(apart(first, second, {})) == {"n": 0} and next(apart(first, second, {"n": 16})) == {"n": 0}
    assert not list(apart(first, first, {}))
    bounded = t.node("argument", ("m",), (), "i32", 5, 100)
    values = next(apart(t.rem(t.integer_of(bounded), t.integer(7)), t.integer(5), {}))
    assert values == {"m": 7}
    assert evaluated(t.rem(t.integer_of(bounded), t.integer(7)), {bounded: 13}) == 6
    assert not list(apart(t.node("mem", ("i32", 4), (), "i32"), n, {}))  # it is not known what memory holds


@pytest.mark.parametrize(
    "before, after, word, said",
    [
        ("mask = col_offsets < n_cols", "mask = col_offsets <= n_cols", "refuted", "with n_cols = 0, n_rows = 2: "),
        ("gl.exp(row_minus_max)", "gl.exp2(row_minus_max)", "refuted", "elements differ"),
        # The same in other operations, which is not seen: the machine finds no difference, and it stays not known.
        ("row - gl.max(row, axis=0)", "row + gl.max(row, axis=0) * -1.0", "not proved", "not known to be the same"),
    ],
)
def test_an_edit_that_is_wrong_is_refuted(tmp_path, before, after, word, said):
    fixture = fixture_set.Fixture(fixture_set.ROOT / "softmax")
    text = fixture.golden_file("gfx950").read_text()
    assert before in text
    edited = tmp_path / "softmax_gfx950.py"
    edited.write_text(text.replace(before, after))
    spec = read_launches(str(fixture.launches_file))[0]
    found = prove_launch(str(fixture.kernel_file), str(edited), spec, "gfx950")
    assert found["status"] == word and said in found["reason"], found
    assert found["source"]["line"] and found["output"]["file"] == str(edited)
