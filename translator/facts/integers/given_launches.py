"""Numbers of the launches that a translation is made for: what is assumed of arguments must hold for these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gluonize.facts.integers.host_bounds import Condition
from gluonize.read.spec.launch import LaunchSpec

WHOLE_NUMBERS = frozenset(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64))


@dataclass(frozen=True)
class GivenNumbers:
    """Whole numbers that one launch passes, or leaves to the source's defaults, by argument; grid: () where none is said. floats: the
    same of these.

    unsaid: for whole numbers that the launch passes and does not say, the least that is of any use. What not even these keep to,
    a loop of unknown length times a stride, would refuse every launch.
    """

    numbers: Mapping[str, int]
    grid: tuple[int, ...] = ()
    unsaid: Mapping[str, int] = field(default_factory=dict)
    floats: Mapping[str, float] = field(default_factory=dict)

    def breaks(self, condition: Condition) -> bool:
        """Whether the launch check would refuse this launch for `condition`; False where it has arguments of other launches."""
        numbers = {**self.unsaid, **self.numbers}
        known = condition.bound.arguments() <= numbers.keys()
        try:
            return known and not condition.holds(numbers, self.grid)
        except ZeroDivisionError:
            return True


def given_numbers(specs: Iterable[LaunchSpec], defaults: Mapping[str, Any]) -> tuple[GivenNumbers, ...]:
    """The numbers of launches of one kernel, and the defaults of its parameters, which any launch may leave as they are."""
    found = [GivenNumbers(_of(int, defaults), floats=_of(float, defaults))]
    for spec in specs:
        given = {**defaults, **spec.constexprs, **spec.values}
        found.append(GivenNumbers(_of(int, given), spec.grid, _least(spec), _of(float, given)))
    return tuple(found)


def _least(spec: LaunchSpec) -> dict[str, int]:
    """1 for each whole number of a launch, 16 where it is said to be a multiple of it."""
    return {
        name: 16 if "D" in spec.attrs.get(name, "") else 1
        for name, kind in spec.signature.items()
        if isinstance(kind, str) and kind in WHOLE_NUMBERS
    }


def _of(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if type(value) is kind}


__all__ = ["GivenNumbers", "given_numbers"]
