"""Inputs at the edge of what the launch check of a translation takes: the last value, which both sides must agree on, and the first refused.

    if (grid[0] - 1) * n["stride"] > 2**31 - 1: raise ...     # with a grid of 9: stride = 268435455, and 268435456

The check is asked, not read: what matters is what it does. Between a value that it takes and one that it refuses it is taken to change
its mind once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from gluonize.judge.inputs.enlarged import Knob, argument_knob, most_programs
from gluonize.judge.inputs.inputs import Inputs, with_values
from gluonize.judge.inputs.scalar_candidates import INTEGERS, integer_arguments
from gluonize.judge.verdict.far_offsets import limits_of, small_sizes, stood
from gluonize.read.spec.launch import LaunchSpec

MOST = 4  # boundaries of one launch
Refusal = Callable[[Inputs], str]


@dataclass(frozen=True)
class Boundary:
    """last: of the values of a knob, the last that the check takes; first: the next one, which it refuses."""

    knob: Knob
    last: int
    first: int


def at_boundaries(
    spec: LaunchSpec, inputs: Inputs, grid: tuple[int, ...], refusal: Refusal, judged: Sequence[str]
) -> Iterator[Inputs]:
    """Inputs on both sides of each boundary, with a few rows of a tile, or with the sizes of the launch where the source has nothing
    to say of those. judged: the variants that both sides have run so far."""
    small = small_sizes(spec)
    for boundary in boundaries(spec, inputs, grid, refusal)[:MOST]:
        knob, limits = boundary.knob, limits_of(spec, inputs)[0]
        others = {name: size for name, size in small.items() if name != knob.name}
        for few in () if boundary.last == knob.now else (True, False) if others else (False,):
            chosen = with_values(inputs, spec, others, "small sizes") if few else inputs
            at = stood(spec, knob, chosen, boundary.last, limits)
            at = replace(at, variant=f"{at.variant}, the last that is taken")
            yield at
            if at.variant in judged:
                break
        beyond = stood(spec, knob, inputs, boundary.first, limits)
        yield replace(beyond, variant=f"{beyond.variant}, the first that is refused")


def boundaries(spec: LaunchSpec, inputs: Inputs, grid: tuple[int, ...], refusal: Refusal) -> list[Boundary]:
    """Where the check begins to refuse values of a scalar or counts of programs, upper limits first."""
    above, below = [], []
    for knob in [*(argument_knob(spec, name) for name in integer_arguments(spec)), *_grids(spec, grid)]:
        sign, bits = INTEGERS.get(str(spec.signature.get(knob.name)), ("u", 32))
        least = -(1 << (bits - 1)) if sign == "i" and bits > 1 else 0
        for end, found in ((knob.most // knob.step * knob.step, above), (least, below)):
            edge = _edge(inputs, knob, end, refusal)
            found += [edge] if edge is not None else []
    return above + below


def _edge(inputs: Inputs, knob: Knob, end: int, refusal: Refusal) -> Boundary | None:
    """The boundary between the value of the launch and `end`; None where the check takes that too."""
    taken, refused = 0, (end - knob.now) // knob.step if end > knob.now else -((knob.now - end) // knob.step)
    asked = lambda steps: refusal(knob.turned(inputs, knob.now + steps * knob.step)[0])  # noqa: E731
    if not refused or not asked(refused):
        return None
    while abs(refused - taken) > 1:
        middle = (taken + refused) // 2
        taken, refused = (taken, middle) if asked(middle) else (middle, refused)
    return Boundary(knob, knob.now + taken * knob.step, knob.now + refused * knob.step)


def _grids(spec: LaunchSpec, grid: tuple[int, ...]) -> list[Knob]:
    def knob(axis: int) -> Knob:
        def turned(inputs: Inputs, value: int) -> tuple[Inputs, str]:
            other = tuple(value if i == axis else extent for i, extent in enumerate(inputs.grid or grid))
            return replace(inputs, grid=other), f"a grid of {' x '.join(map(str, other))}"

        return Knob("", grid[axis], 1, most_programs(spec, axis), turned)

    return [knob(axis) for axis in range(len(grid))]


__all__ = ["Boundary", "at_boundaries", "boundaries"]
