"""What launches say that arguments hold: what may be left out, and what is refused with its place."""

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.read.spec.launch import parse_launches

LAUNCH = {"kernel": "k", "signature": {"x_ptr": "*fp16", "pair": ["*fp32", "i32"], "d": "tensordesc<fp16[8, 8]>"}}
WHOLE = {"shape": [4, 8], "stride": [8, 1], "storage": 32, "offset": 0, "dtype": ""}


def given(name: str, value, **more):
    return parse_launches({**LAUNCH, "values": {name: value}, **more})[0].values[name]


def test_a_tensor_is_as_its_shape_says_where_nothing_else_is_said():
    assert given("x_ptr", {"tensor": {"shape": [4, 8]}}) == {"tensor": WHOLE}
    assert given("pair", {"$tuple": [{"tensor": {"shape": [4, 8]}}, 3]}) == {"$tuple": [{"tensor": WHOLE}, 3]}
    assert given("x_ptr", {"tensor": {"shape": [0, 8]}})["tensor"]["storage"] == 0
    apart = given("x_ptr", {"tensor": {"shape": [4, 8], "stride": [1, 16], "offset": 3}})["tensor"]
    assert apart["storage"] == 3 + 3 + 7 * 16 + 1
    inside = {"base": {"shape": [4, 8]}, "shape": [4, 8], "strides": [8, 1]}
    assert given("d", {"descriptor": inside})["descriptor"]["base"] == {"tensor": WHOLE}


def test_what_is_given_stays_as_it_is():
    tensor = {"dtype": "float16", "shape": [4, 8], "stride": [8, 1], "storage": 99, "offset": 7, "range": [0, 3]}
    assert list(given("x_ptr", {"tensor": tensor})["tensor"].items()) == list(tensor.items())
    assert given("pair", [None, 4]) == [None, 4] and given("x_ptr", {"$float": "inf"}) == {"$float": "inf"}


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("x_ptr", {"tensor": [4, 8]}, "a tensor is an object"),
        ("x_ptr", {"tensor": {"dtype": "float16"}}, "needs a shape"),
        ("x_ptr", {"tensor": {"shape": 8}}, "needs a shape"),
        ("x_ptr", {"tensor": {"shape": [4, -1]}}, "needs a shape"),
        ("x_ptr", {"tensor": {"shape": [4, True]}}, "needs a shape"),
        ("x_ptr", {"tensor": {"shape": [4, 8], "stride": [8]}}, "strides of a tensor"),
        ("x_ptr", {"tensor": {"shape": [4, 8], "storage": 31}}, "32 elements at least, not 31"),
        ("x_ptr", {"tensor": {"shape": [4, 8], "offset": "0"}}, "offset of a tensor"),
        ("x_ptr", {"tensor": {"shape": [4, 8], "dtype": "float17"}}, 'no element type "float17"'),
        ("pair", {"$tuple": [{"tensor": {}}, 3]}, "needs a shape"),
        ("d", {"descriptor": {"base": {"shape": [4, 8]}, "shape": [4, 8]}}, "shape and strides"),
        ("d", {"descriptor": {"shape": [4, 8], "strides": [8, 1]}}, "the base of a descriptor"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(name, value, message):
    with pytest.raises(TranslationError) as caught:
        given(name, value)
    (found,) = caught.value.diagnostics
    assert found.code == "spec-value" and f"(k).values.{name}: " in found.message and message in found.message


def test_a_misspelt_option_is_refused_and_others_are_left_to_triton():
    with pytest.raises(TranslationError, match="did you mean num_warps?"):
        given("x_ptr", 1, options={"num_wraps": 4})
    assert given("x_ptr", 1, options={"kpack": 2, "schedule_hint": "none"}) == 1
