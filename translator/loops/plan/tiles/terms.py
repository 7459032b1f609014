"""Terms of the address of a tile: atoms for the positions along its dimensions, and products that stay short."""

from __future__ import annotations

from gluonize.facts.integers.polynomials import INDEX, Polynomial, add, product

_AXIS = "<axis "


class NotATile(Exception):
    """Why a load is not a strided tile with its bounds as mask."""


def axis_atom(dimension: int) -> str:
    """The atom for the position along a dimension of the tile."""
    return f"{_AXIS}{dimension}>"


def axis_of(atom: str) -> int | None:
    """The dimension behind an atom that `axis_atom` made, None for another atom."""
    return int(atom[len(_AXIS) : -1]) if atom.startswith(_AXIS) else None


def short(polynomial: Polynomial | None) -> Polynomial:
    """Raises: NotATile for a product of too many terms."""
    if polynomial is None:
        raise NotATile("its address is too long a sum")
    return polynomial


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    """Raises: NotATile for a product of too many terms."""
    return short(product(a, b))


def strides_of(address: Polynomial, rank: int) -> tuple[list[Polynomial], Polynomial]:
    """(stride of each dimension, what is left) of an address. Raises: NotATile."""
    strides: list[Polynomial] = [{} for _ in range(rank)]
    rest: Polynomial = {}
    for monomial, coefficient in address.items():
        axes = [d for a in monomial if (d := axis_of(a)) is not None]
        if not axes:
            rest[monomial] = coefficient
        elif len(axes) > 1 or INDEX in monomial:
            raise NotATile("its address is not affine")
        else:
            left = tuple(a for a in monomial if axis_of(a) is None)
            strides[axes[0]] = add(strides[axes[0]], {left: coefficient}, 1)
    return strides, rest
