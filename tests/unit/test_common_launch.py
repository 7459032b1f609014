"""What launches have in common that one text is written for."""

from __future__ import annotations

from gluonize.read.spec.common import common_launch, differing
from gluonize.read.spec.launch import LaunchSpec


def launch(stride: int, attrs: dict, **constexprs) -> LaunchSpec:
    signature = {"x_ptr": "*fp32", "stride": "constexpr" if stride == 1 else "i32", "BLOCK": "constexpr"}
    ones = {"stride": 1} if stride == 1 else {}
    return LaunchSpec("k", "k", signature=signature, constexprs={"BLOCK": 64} | ones | constexprs, attrs=attrs)


def test_flags_are_those_that_all_have():
    one, other = launch(32, {"x_ptr": "DS", "stride": "D"}), launch(48, {"x_ptr": "S", "stride": "D"})
    assert common_launch(one, [one, other]).attrs == {"x_ptr": "S", "stride": "D"}
    assert common_launch(other, [one, other]).attrs == {"x_ptr": "S", "stride": "D"}
    assert differing([one, other]) == ["x_ptr"]


def test_a_number_that_is_1_is_a_number():
    one, other = launch(1, {}), launch(48, {"stride": "D"})
    for spec in (one, other):
        made = common_launch(spec, [one, other])
        assert made.signature["stride"] == "i32" and made.constexprs == {"BLOCK": 64} and made.attrs == {}
    assert differing([one, other]) == ["stride"]


def test_launches_that_know_the_same_stay_as_they_are():
    one, other = launch(1, {"x_ptr": "D"}), launch(1, {"x_ptr": "D"})
    assert common_launch(one, [one, other]) == one and differing([one, other]) == [] and differing([one]) == []


def test_flags_of_tuples_are_kept_whole_or_not_at_all():
    one, other = launch(32, {"pair": ["D", ""]}), launch(32, {"pair": ["D", "D"]})
    assert common_launch(one, [one]).attrs == {"pair": ["D", ""]}
    assert common_launch(one, [one, other]).attrs == {}
