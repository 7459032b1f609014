"""What is assumed of arguments holds for the launches that a translation is made for: their own check does not refuse them."""

from __future__ import annotations

from pathlib import Path

import pytest

from translation_of import launch, tensor, translate
from gluonize.facts.integers.given_launches import given_numbers
from gluonize.facts.integers.host_bounds import Condition, argument, plus, programs, times

OFFSET = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, stride, low{default}, B: tl.constexpr = 64):
    r = tl.arange(0, B)
    p = x_ptr + (tl.program_id(0) + 1) * stride
    tl.store(y_ptr + tl.program_id(0) * B + r, tl.load(p + (r + low)))
"""
SIGNATURE = {"x_ptr": "*fp32", "y_ptr": "*fp32", "stride": "i32", "low": "i32"}
VALUES = {"x_ptr": tensor(700), "y_ptr": tensor(128), "stride": 200}


@pytest.fixture
def made_for(tmp_path):
    def made(*lows: int | None, default: str = "") -> str:
        return text_for(tmp_path, lows, default)

    return made


def text_for(folder: Path, lows: tuple[int | None, ...], default: str) -> str:
    """The translation for a launch with each of the values of `low`, None for one that leaves it out."""
    values = [VALUES | ({} if low is None else {"low": low}) for low in lows]
    specs = [
        launch("kernel", SIGNATURE, {"B": 64}, id=f"launch{i}", values=value, warps=1 << i)
        for i, value in enumerate(values)
    ]
    return translate(folder, OFFSET.format(default=default), *specs).text


def test_an_argument_that_no_launch_makes_negative_is_checked(made_for):
    assert "low >= 0" in made_for(5) and "low >= 0" in made_for(None)


@pytest.mark.parametrize(
    "lows, default",
    [((-5,), ""), ((5, -5), ""), ((None,), "=-5"), ((3,), "=-5")],
    ids=["given", "once", "left out", "default"],
)
def test_one_that_is_negative_is_not_assumed_to_be_otherwise(made_for, lows, default):
    text = made_for(*lows, default=default)
    assert "is negative" not in text and "low >= 0" not in text


def test_a_condition_that_a_launch_breaks_is_not_checked_but_avoided(made_for):
    assert "2**29 - 2" in made_for(5)
    assert "2**29 - 2" not in made_for(2**30)


CHUNKS = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, ends_ptr, stride, dim, B: tl.constexpr = 64):
    begin = tl.load(ends_ptr + tl.program_id(0)).to(tl.int32)
    end = tl.load(ends_ptr + tl.program_id(0) + 1).to(tl.int32) - begin
    x_ptr += begin * stride
    y_ptr += begin * stride
    column = tl.arange(0, B)
    for i in range(tl.cdiv(end, B)):
        start = i * B
        row = tl.arange(0, B)
        mask = ((start + row) < end)[:, None] & (column < dim)[None, :]
        x = tl.load(x_ptr + (start + row[:, None]) * stride + column[None, :], mask=mask, other=0.0)
        tl.store(y_ptr + (start + row[:, None]) * stride + column[None, :], x * 2, mask=mask)
"""


@pytest.mark.parametrize("stride", [{}, {"stride": 64}], ids=["unsaid", "said"])
@pytest.mark.parametrize("flags", ["", "D"])
def test_a_loop_of_unknown_length_gets_no_check_that_refuses_every_launch(tmp_path, stride, flags):
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "ends_ptr": "*i64", "stride": "i32", "dim": "i32"}
    attrs = {"x_ptr": "DS", "y_ptr": "DS"} | ({"stride": flags} if flags else {})
    spec = launch("kernel", signature, {"B": 64}, attrs=attrs, values=stride)
    assert "may overflow" not in translate(tmp_path, CHUNKS, spec).text


def test_the_least_of_numbers_that_a_launch_does_not_say():
    spec = launch("kernel", SIGNATURE, {"B": 64}, attrs={"stride": "D"}, values={})
    _, given = given_numbers([spec], {})
    assert given.unsaid == {"stride": 16, "low": 1}
    assert given.breaks(Condition(argument("stride"), 15)) and not given.breaks(Condition(argument("stride"), 16))


def test_numbers_of_a_launch():
    spec = launch("kernel", SIGNATURE, {"B": 64}, values=VALUES | {"low": -5})
    defaults, given = given_numbers([spec], {"low": 7, "eps": 1e-5, "flag": True})
    assert defaults.numbers == {"low": 7} and given.numbers == {"low": -5, "stride": 200, "B": 64}
    bound = plus(times(argument("B"), argument("stride")), programs(0))
    assert given.breaks(Condition(bound, 12800)) and not given.breaks(Condition(bound, 12801))
    assert not given.breaks(Condition(argument("other"), 0)), "its number is not there"
