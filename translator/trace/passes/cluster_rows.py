"""How else the workgroups of a cluster may share tensors than Triton's passes say, where a workgroup would need what another one has.

Clusters share the rows of products alone: where a row is reduced, its workgroup must have all of it.

Triton's passes split a product of several workgroups in both dimensions as soon as its rows alone would be short. Here the bits of a
workgroup's number that split columns split rows instead, in what has rows of products, and nothing in what has none:

    product [[0, 1], [1, 0]]    ->    [[1, 0], [2, 0]]
    first operand [[0, 0], [1, 0]]    ->    [[1, 0], [2, 0]]
    second operand [[0, 1], [0, 0]]    ->    [[0, 0], [0, 0]]

Where they split columns alone, they are asked for more workgroups, until these share rows as well; those that differ in columns alone
are then one:

    product [[0, 1]]    ->    of twice as many [[0, 1], [1, 0]]    ->    [[1, 0]]
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from gluonize.trace.model.layouts import Bases
from gluonize.trace.model.module_text import with_ctas, with_number, with_tiles_of_all
from gluonize.trace.model.parse import parse_module
from gluonize.triton_api.libtriton import ir


def with_rows_split(module: Any) -> Any:
    """A module of TTGIR with layouts of workgroups, in which they share rows; itself where products are not split in both ways."""
    text = module.str()
    bits = column_bits(text)
    if not bits:
        return module
    return module_of(with_ctas(text, lambda ctas: rows_instead(ctas, bits)), module.context)


def splits_columns_alone(module: Any) -> bool:
    """Whether the workgroups of a module share columns of products and no rows of any."""
    rows, columns = _product_bits(module.str())
    return bool(columns) and not rows


def without_columns(module: Any, count: int) -> Any | None:
    """The module of a program of more workgroups than `count` as one of `count`, which share the rows of products as these do, and no
    columns; None where it has not as many parts of rows."""
    text = module.str()
    bits = column_bits(text)
    rows, _ = _product_bits(text)
    if not bits or 1 << len(rows) != count:
        return None
    counted = _counted(text, 1 << len(rows | bits), count)
    return module_of(with_ctas(counted, lambda ctas: without_bits(ctas, bits)), module.context)


def with_vectors_whole(module: Any) -> Any:
    """A module in which every workgroup has all of each vector that is no row or column of a tile: it may be needed along either.

    ... order = [0], CGALayout = [[1]]    ->    order = [0], CGALayout = [[0]]
    """
    return module_of(with_ctas(module.str(), _vector_whole), module.context)


def of_whole_tiles(module: Any, count: int) -> Any:
    """The module of a program of one workgroup as one of `count`, of which each has all of every tensor and does all of the work.

    order = [1, 0]}>                                    ->    order = [1, 0], CGALayout = [[0, 0]]}>
    lane = [[1, 0]], warp = [[2, 0]], block = []}>      ->    lane = [[1, 0]], warp = [[2, 0]], block = [[0, 0]]}>

    Raises: RuntimeError where Triton does not take it.
    """
    text = _counted(module.str(), 1, count)
    return module_of(with_tiles_of_all(text, count.bit_length() - 1), module.context)


def _counted(text: str, before: int, after: int) -> str:
    """The text of a module of `before` workgroups that says it has `after`."""
    counted = with_number(text, "ttg.num-ctas", after)
    assert counted != text, f"bug in gluonize: the module does not say that it is of {before} workgroups"
    return counted


def module_of(text: str, context: Any) -> Any:
    """The module that `text` prints, which Triton reads from a file alone."""
    with tempfile.TemporaryDirectory(prefix="gluonize-") as folder:
        path = os.path.join(folder, "module.ttgir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        made = ir.parse_mlir_module(path, context)
    made.context = context
    return made


def column_bits(text: str) -> frozenset[int]:
    """The bits of a workgroup's number that split columns of products, where others split rows; nothing where products disagree."""
    rows, columns = _product_bits(text)
    return columns if columns and rows and not columns & rows else frozenset()


def _product_bits(text: str) -> tuple[frozenset[int], frozenset[int]]:
    """The bits of a workgroup's number that split rows of products, and those that split columns; none where products disagree."""
    module = parse_module(text)
    found = {module.layout(op.type).ctas for op in module.walk() if op.name in ("tt.dot", "tt.dot_scaled")}
    if len(found) != 1:
        return frozenset(), frozenset()
    (ctas,) = found
    rows, columns = (frozenset(bit for bit, basis in enumerate(ctas) if basis[d]) for d in (-2, -1))
    return rows, columns


def rows_instead(ctas: Bases, columns: frozenset[int]) -> Bases:
    """How workgroups share a tensor in which those bits do not split columns any more."""
    rank = len(ctas[0])
    dims = {d for bit, basis in enumerate(ctas) if bit not in columns for d, step in enumerate(basis) if step}
    if len(dims) != 1:  # without rows of a product
        return tuple((0,) * rank if bit in columns else basis for bit, basis in enumerate(ctas))
    (rows,) = dims
    order = sorted(columns) + [bit for bit in range(len(ctas)) if bit not in columns]
    steps = {bit: 1 << place for place, bit in enumerate(order)}
    return tuple(tuple(steps[bit] if d == rows else 0 for d in range(rank)) for bit in range(len(ctas)))


def without_bits(ctas: Bases, bits: frozenset[int]) -> Bases:
    """How workgroups share a tensor when those that differ in these bits alone are one: [[1], [2]] without the first is [[1]]."""
    kept = [basis for bit, basis in enumerate(ctas) if bit not in bits]
    steps = [sorted({basis[d] for basis in kept} - {0}) for d in range(len(ctas[0]))]
    return tuple(tuple(1 << steps[d].index(step) if step else 0 for d, step in enumerate(basis)) for basis in kept)


def _vector_whole(ctas: Bases) -> Bases:
    return tuple((0,) for _ in ctas) if len(ctas[0]) == 1 else ctas


__all__ = [
    "column_bits",
    "module_of",
    "of_whole_tiles",
    "rows_instead",
    "splits_columns_alone",
    "with_rows_split",
    "with_vectors_whole",
    "without_bits",
    "without_columns",
]
