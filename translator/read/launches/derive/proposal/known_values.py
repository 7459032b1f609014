"""What the arguments of a launch hold, as far as the source says it: numbers, and the sizes of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gluonize.read.launches.derive.host.model import Model, known_sizes, rests_on_made_up_sizes
from gluonize.read.launches.derive.host.run import HostState
from gluonize.read.launches.derive.proposal.guess import Guess


def known_values(
    state: HostState | None, other: HostState | None, arguments: Mapping[str, Guess]
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """(values as launch specs have them, the grid); other: the state of a run with other made-up sizes. What rests on one of those is
    left out, and the grid is () then."""
    if state is None or other is None:
        return {}, ()
    sizes = state.grid if isinstance(state.grid, tuple) else (state.grid,)
    plain = 0 < len(sizes) <= 3 and all(type(size) is int and size > 0 for size in sizes)
    grid = sizes if plain and state.grid == other.grid else ()
    out: dict[str, Any] = {}
    for name, guess in arguments.items():
        if guess.is_constant or guess.items or guess.confidence == "given" or name not in other.arguments:
            continue
        value, again = state.arguments.get(name), other.arguments[name]
        if guess.kind.startswith("*") and isinstance(value, Model):
            sizes = known_sizes(value, again) if grid else None  # a grid that is made up may go past their end
            if sizes and all(type(size) is int and size > 0 for size in sizes):
                out[name] = _tensor(sizes, value.strides())
        elif type(value) in (int, float, bool) and value == guess.number and not rests_on_made_up_sizes(value, again):
            out[name] = value
    return out, grid


def _tensor(sizes: tuple[int, ...], strides: list[int]) -> dict[str, Any]:
    reached = sum((size - 1) * stride for size, stride in zip(sizes, strides)) + 1
    return {"tensor": {"dtype": "", "shape": list(sizes), "stride": list(strides), "storage": reached, "offset": 0}}
