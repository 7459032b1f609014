"""bench/derive.py: how guessed launches are compared with captured ones."""

import pytest

from bench.derive import agreement, compare, constant_kind, pointer_class
from gluonize.read.spec.launch import LaunchSpec

CAPTURED = {
    "signature": {"x": "*fp16", "bias": "constexpr", "n": "i32", "scale": "fp32", "B": "constexpr"},
    "constexprs": {"bias": None, "B": 64},
}


def guess(signature, constexprs):
    return LaunchSpec("k", "k", "", {**CAPTURED["signature"], **signature}, {**CAPTURED["constexprs"], **constexprs})


def test_a_guess_that_agrees():
    rows = compare(guess({}, {"B": 128}), CAPTURED)  # the value of a tile is the caller's choice, its kind is not
    assert agreement(rows) == 5 and [len(part) for part in rows.values()] == [1, 2, 2]


def test_what_differs_is_named():
    rows = compare(guess({"x": "*bf16", "bias": "*fp32", "scale": "i32"}, {"B": True}), CAPTURED)
    wrong = [row for part in rows.values() for row in part if row[1] != row[2]]
    assert wrong == [
        ("x", "*fp16", "*bf16"), ("bias", "None", "*fp32"), ("B", "int", "bool"), ("scale", "float", "int"),
    ]  # fmt: skip


def test_an_integer_that_is_one_is_still_an_integer():
    assert agreement(compare(guess({"n": "constexpr"}, {"n": 1}), CAPTURED)) == 5


@pytest.mark.parametrize(
    "kind,expected",
    [
        ("*bf16", "float"),
        ("*fp32", "float"),
        ("*fp8e4nv", "fp8"),
        ("*u1", "bool"),
        ("*i64", "i64"),
        ("constexpr", "constexpr"),
    ],
)
def test_classes_of_pointers(kind, expected):
    assert pointer_class(kind) == expected


@pytest.mark.parametrize(
    "value,expected",
    [
        ({"$dtype": "fp16"}, "dtype"),
        ({"$constexpr": 2}, "int"),
        ({"$jit": "m:f"}, "jit"),
        (None, "None"),
        (1.5, "float"),
    ],
)
def test_kinds_of_constants(value, expected):
    assert constant_kind(value) == expected
