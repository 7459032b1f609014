"""Numbers of the launches that a translation is made for: what is assumed of arguments must hold for these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from translator.facts.host_bounds import Condition
from translator.source.launch_spec import LaunchSpec


@dataclass(frozen=True)
class GivenNumbers:
    """Whole numbers that one launch passes, or leaves to the source's defaults, by argument; grid: () where none is said."""

    numbers: Mapping[str, int]
    grid: tuple[int, ...] = ()

    def breaks(self, condition: Condition) -> bool:
        """Whether the launch check would refuse this launch for `condition`; False where its numbers are not all there."""
        known = condition.bound.arguments() <= self.numbers.keys()
        try:
            return known and not condition.holds(self.numbers, self.grid)
        except ZeroDivisionError:
            return True


def given_numbers(specs: Iterable[LaunchSpec], defaults: Mapping[str, Any]) -> tuple[GivenNumbers, ...]:
    """The numbers of launches of one kernel, and the defaults of its parameters, which any launch may leave as they are."""
    found = [GivenNumbers(_whole(defaults))]
    found += [GivenNumbers(_whole({**defaults, **spec.constexprs, **spec.values}), spec.grid) for spec in specs]
    return tuple(found)


def _whole(values: Mapping[str, Any]) -> dict[str, int]:
    return {name: value for name, value in values.items() if type(value) is int}


__all__ = ["GivenNumbers", "given_numbers"]
