"""Padding in place of a rotating layout: few bank conflicts too, with fewer addresses.

Triton's rotating layout exchanges vectors within a row by XOR. In a tile that is transposed within each lane before it is
stored, the exchange mixes rows that one lane holds with columns of other lanes, so each of a lane's stores has an address of its
own: 8 registers through a whole loop for a 64x64 tile of fp16. Padding adds where the exchange XORs, and a sum has its constant
part in the instruction. From the lowest offset to the highest, the elements become

    a vector | rows that lanes read together | the other columns | the other rows, each padded by a vector

Lanes that read together take neighbouring rows, which fill a line of the banks. Lanes that store together take rows far from each
other, each a vector further in the banks than the last.
"""

from __future__ import annotations

from collections.abc import Collection

from gluonize.trace.model.layouts import Bases, DotOperand, Ints, Layout, Linear, SharedLayout
from gluonize.trace.model.shared_layouts import Padded, SharedLinear

MOST_PADDING = 1 / 20  # of a tile
MOST_CONFLICTS = 1  # bits of the lane number, so two lanes of a store want the same bank


def padded_rows(
    shared: SharedLayout, stored: Layout | None, reads: Collection[Layout], bits: int, banks: int
) -> Padded | None:
    """`shared` without an exchange, for a tile stored from `stored` and read as `reads`.

    None where padding would be large or leave conflicts, and for what is not read as a matrix operand by vectors.
    """
    found = _vector(shared) if isinstance(shared, SharedLinear) and isinstance(stored, Linear) else None
    if found is None:
        return None
    column, vector = found
    row = 1 - column
    if not all(isinstance(read, DotOperand) and read.operand_index == row for read in reads):
        return None
    line = banks * 32 // bits  # elements
    units = line // vector
    low = [*_bases(column, vector), *_bases(row, min(units, stored.shape[row]))]
    middle = [basis for basis in _bases(column, stored.shape[column]) if basis not in low]
    high = [basis for basis in _bases(row, stored.shape[row]) if basis not in low]
    held = 1  # elements that one store moves
    while _basis(column, held) in stored.register[held.bit_length() - 1 :][:1]:
        held *= 2
    together = stored.lane[: (line // held).bit_length() - 1]
    if any(sum(map(bool, basis)) != 1 or 0 < basis[row] < units for basis in together):
        return None
    interval = 1 << len(low) + len(middle)
    if not high or 1 << len(low) < line or vector > interval * MOST_PADDING:
        return None
    if sum(basis in middle for basis in together) > MOST_CONFLICTS or sum(basis in high for basis in together) > len(
        _bases(row, units)
    ):
        return None
    return Padded(((interval, vector),), (*low, *middle, *high), (), stored.shape)


def _vector(shared: SharedLinear) -> tuple[int, int] | None:
    """The dimension along which elements are next to each other, and how many of them are exchanged as one."""
    if shared.rank != 2:
        return None
    column = 0 if shared.offsets[0][0] else 1
    exchanged = [basis[column] for basis in shared.offsets if basis[1 - column] and basis[column]]
    return (column, min(exchanged)) if exchanged else None


def _basis(dim: int, value: int) -> Ints:
    return (value, 0) if dim == 0 else (0, value)


def _bases(dim: int, extent: int) -> Bases:
    """One basis for each bit of the coordinates below `extent`."""
    return tuple(_basis(dim, 1 << i) for i in range(extent.bit_length() - 1))


__all__ = ["padded_rows"]
