"""Terms of the address of a tile: atoms for the positions along its dimensions, and products that stay short."""

from __future__ import annotations

from translator.facts.polynomials import Polynomial, product

_AXIS = "<axis "


class NotATile(Exception):
    """Why a load is not a strided tile with its bounds as mask."""


def axis_atom(dimension: int) -> str:
    """The atom for the position along a dimension of the tile."""
    return f"{_AXIS}{dimension}>"


def axis_of(atom: str) -> int | None:
    """The dimension behind an atom that `axis_atom` made, None for another atom."""
    return int(atom[len(_AXIS) : -1]) if atom.startswith(_AXIS) else None


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    """Raises: NotATile for a product of too many terms."""
    found = product(a, b)
    if found is None:
        raise NotATile("its address is too long a sum")
    return found
