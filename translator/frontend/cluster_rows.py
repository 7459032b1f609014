"""Clusters that share the rows of products alone: where a row is reduced, its workgroup must have all of it.

Triton's passes split a product of several workgroups in both dimensions as soon as its rows alone would be short. Here the bits of a
workgroup's number that split columns split rows instead, in what has rows of products, and nothing in what has none:

    product [[0, 1], [1, 0]]    ->    [[1, 0], [2, 0]]
    first operand [[0, 0], [1, 0]]    ->    [[1, 0], [2, 0]]
    second operand [[0, 1], [0, 0]]    ->    [[0, 0], [0, 0]]
"""

from __future__ import annotations

import ast
import os
import tempfile
from typing import Any

from triton._C.libtriton import ir

from translator.ttgir.layouts import Bases, lists
from translator.ttgir.parse import parse_module

_NAME = "CGALayout = "


def with_rows_split(module: Any) -> Any:
    """A module of TTGIR with layouts of workgroups, in which they share rows; itself where products are not split in both ways."""
    text = module.str()
    bits = column_bits(text)
    if not bits:
        return module
    return module_of("".join(_rewritten(line, bits) for line in text.splitlines(keepends=True)), module.context)


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
    module = parse_module(text)
    found = {module.layout(op.type).ctas for op in module.walk() if op.name in ("tt.dot", "tt.dot_scaled")}
    if len(found) != 1:
        return frozenset()
    (ctas,) = found
    columns = frozenset(bit for bit, basis in enumerate(ctas) if basis[-1])
    rows = frozenset(bit for bit, basis in enumerate(ctas) if basis[-2])
    return columns if columns and rows and not columns & rows else frozenset()


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


def _rewritten(line: str, columns: frozenset[int]) -> str:
    """A definition of a layout with other CTAs; any other line as it is."""
    if not line.startswith("#") or _NAME not in line:
        return line
    before, _, rest = line.partition(_NAME)
    end = rest.index("]]") + 2
    ctas = tuple(map(tuple, ast.literal_eval(rest[:end])))
    return f"{before}{_NAME}{lists(rows_instead(ctas, columns))}{rest[end:]}"


__all__ = ["column_bits", "module_of", "rows_instead", "with_rows_split"]
