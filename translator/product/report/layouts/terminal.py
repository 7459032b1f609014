"""Layouts as text: who holds each element, or where in LDS it is and which banks an access asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gluonize.product.report.layouts.drawing import as_rows, coordinates, runs
from gluonize.product.report.layouts.expression import LayoutView, Pieces
from gluonize.product.report.layouts.linear_map import BankUse, DistributedMap, SharedMap, bank_use
from gluonize.trace.model.layouts import Ints

Line = list[tuple[str, int | None]]  # pieces of text, each with the number that picks its colour


def layout_lines(view: LayoutView, banks: int) -> Iterator[Line]:
    """The drawing of a layout. banks: of LDS, each 4 bytes wide."""
    yield [(view.spelled, None)]
    if view.starts:
        yield [(f"the part of the first of {ctas_text(view.starts)}", None)]
    placed = view.placed
    if isinstance(placed, DistributedMap):
        yield from _distributed(placed)
    elif isinstance(placed, SharedMap):
        yield from _shared(placed, banks)
    else:
        yield from _pieces(placed, banks)


def ctas_text(starts: Sequence[Ints]) -> str:
    """`4 CTAs, which begin at [0, 0], [0, 64], [64, 0], [64, 64]`."""
    return f"{len(starts)} CTAs, which begin at {', '.join(str(list(start)) for start in starts)}"


def _distributed(held: DistributedMap) -> Iterator[Line]:
    copies = "" if held.copies == 1 else f"; every element is there {held.copies} times, shown where it is first"
    yield [(f"{held.warps} warps, {held.lanes} lanes, {held.registers} registers a lane{copies}", None)]
    yield [("warp.lane:registers", None)]
    rows, columns = as_rows(held.shape)
    found: dict[int, list] = {}
    for run in runs(held, rows, columns):
        found.setdefault(run.row, []).append(run)
    texts = {id(run): _cell(run) for row in found.values() for run in row}
    width = max(map(len, texts.values()))
    for row in range(rows):
        line: Line = [(f"{_label(held.shape, row)} ", None)]
        line += [(f"{texts[id(run)]:<{width}} ", run.holder.warp) for run in found[row]]
        yield line


def _cell(run) -> str:
    first, last = run.registers[0], run.registers[-1]
    return f"{run.holder.warp}.{run.holder.lane}:{first}" + (f"-{last}" if last != first else "")


def _shared(stored: SharedMap, banks: int) -> Iterator[Line]:
    yield [(f"{stored.size} bytes of LDS for elements of {stored.bits} bits, {banks} banks", None)]
    yield [("offset of the first of so many elements in elements, its bank in brackets", None)]
    rows, columns = as_rows(stored.shape)
    cells = [list(_stretches(stored, row, columns)) for row in range(rows)]
    texts = [
        [f"{first}{f'+{length}' if length > 1 else ''} [{_bank(stored, first, banks)}]" for first, length in row]
        for row in cells
    ]
    width = max(len(text) for row in texts for text in row)
    for row in range(rows):
        line: Line = [(f"{_label(stored.shape, row)} ", None)]
        line += [(f"{text:<{width}} ", _bank(stored, first, banks)) for text, (first, _) in zip(texts[row], cells[row])]
        yield line


def _stretches(stored: SharedMap, row: int, columns: int) -> Iterator[tuple[int, int]]:
    """(offset of the first, how many) of elements of a row that are next to each other in LDS too."""
    start = length = 0
    for column in range(columns):
        offset = stored.offsets[coordinates(stored.shape, row, column)]
        if length and offset == start + length:
            length += 1
            continue
        if length:
            yield start, length
        start, length = offset, 1
    yield start, length


def _bank(stored: SharedMap, offset: int, banks: int) -> int:
    return offset * stored.bits // 32 % banks


def _pieces(cut: Pieces, banks: int) -> Iterator[Line]:
    size = cut.piece.shape[cut.dim]
    for i in range(cut.shape[cut.dim] // size):
        where = f"{i * size} to {(i + 1) * size - 1} of dimension {cut.dim}"
        yield [(f"piece {i}: {where}, partition {i % cut.partitions}, group {i // cut.partitions}", i % cut.partitions)]
    yield [("each piece:", None)]
    yield from _shared(cut.piece, banks)


def _label(shape: Ints, row: int) -> str:
    columns = as_rows(shape)[1]
    return f"{row * columns if len(shape) == 1 else row:>5}"


def conflict_lines(held: DistributedMap, stored: SharedMap, banks: int) -> Iterator[Line]:
    """What one access of each warp's first vector costs, and which banks are asked for more than one word."""
    for warp in range(held.warps):
        use = bank_use(held, stored, banks, warp=warp)
        what = "no conflicts" if not use.conflicts else f"{use.conflicts} cycles lost to conflicts"
        said = f"warp {warp}: {use.vector_bytes} bytes a lane, {use.cycles} cycles for {use.ideal}: {what}"
        yield [(said, 1 if use.conflicts else None)]
        yield from ([(f"  phase {i}: {text}", None)] for i, text in enumerate(_crowded(use)) if text)


def _crowded(use: BankUse) -> Sequence[str]:
    out = []
    for phase in use.phases:
        most = max((len(words) for words in phase.values()), default=0)
        crowded = [str(bank) for bank, words in phase.items() if len(words) == most]
        out.append(f"{most} words of each of {len(crowded)} banks ({', '.join(crowded[:8])}...)" if most > 1 else "")
    return out


def common_accesses(stored: SharedMap, lanes: int) -> dict[str, DistributedMap]:
    """Two accesses that kernels make: 16 bytes a lane along rows, and one element a lane down a column."""
    fastest = max(range(len(stored.shape)), key=lambda d: stored.offset[0][d] if stored.offset else 0)
    others = [d for d in range(len(stored.shape)) if d != fastest]
    vector = min(max(1, 128 // stored.bits), stored.shape[fastest])

    def basis(dim: int, size: int) -> Ints:
        return tuple(size if d == dim else 0 for d in range(len(stored.shape)))

    def lane_bases(order: Sequence[int], first: int) -> tuple[Ints, ...]:
        out, size = [], first
        for dim in order:
            while size < stored.shape[dim] and 1 << len(out) < lanes:
                out.append(basis(dim, size))
                size *= 2
            size = 1
        return (*out, *((0,) * len(stored.shape) for _ in range(lanes.bit_length() - 1 - len(out))))

    registers = tuple(basis(fastest, 1 << i) for i in range(vector.bit_length() - 1))
    found = {
        "16 bytes a lane along rows": DistributedMap(
            registers, lane_bases([fastest, *others], vector), (), stored.shape
        )
    }
    if others:
        found["one element a lane down a column"] = DistributedMap(
            (), lane_bases([*others, fastest], 1), (), stored.shape
        )
    return found
