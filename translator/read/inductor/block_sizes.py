"""The block sizes and warps that a kernel of Inductor's is launched with, from the sizes that its decorator states.

Inductor picks them when the program runs, in ways that differ from release to release, and may time several. A translation has one, which
its decorator then states too, so that the kernel that runs is the one that was checked. The sizes follow Inductor's own first choice: a tile
has up to 1024 elements, a row of a reduction up to 2048; a lane has 4 of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gluonize.read.inductor.stated import Stated

_TILE, _ROW, _LEAST = 1024, 2048, 256
_WIDE_TILE = {1: {"x": _TILE}, 2: {"x": 32, "y": 32}, 3: {"x": 16, "y": 8, "z": 8}}
_MOST_SPLITS = 64
_PER_LANE, _MOST_WARPS = 4, 8
_BLOCK = re.compile(r"(XBLOCK|YBLOCK|ZBLOCK|R0_BLOCK|R1_BLOCK|RBLOCK)(_\d+)?")
_DIMENSION = {"XBLOCK": "x", "YBLOCK": "y", "ZBLOCK": "z", "R0_BLOCK": "r0_", "R1_BLOCK": "r1_", "RBLOCK": "r0_"}
# A kernel that an NVIDIA GPU was to run has its copies under way in shared memory of four times the size.
STAGES_OF_OTHERS = 2


@dataclass(frozen=True)
class Config:
    """values: constexpr arguments; num_warps, num_stages; options: what else is given to the compiler."""

    values: Mapping[str, Any]
    num_warps: int
    num_stages: int = 1
    options: Mapping[str, Any] = None  # type: ignore[assignment]

    def written(self) -> dict[str, Any]:
        """As `triton_heuristics.user_autotune` takes it."""
        return {"num_warps": self.num_warps, "num_stages": self.num_stages, **self.values}


def config_of(stated: Stated, open_arguments: list[str], fixed: Mapping[str, int], lanes: int, units: int) -> Config:
    """The configuration of a kernel.

    open_arguments: constexpr arguments without a value. fixed: block sizes that the kernel's own text has. lanes: of a warp; units: compute
    units of the target.
    """
    known = _given(stated)
    hip = stated.device.get("type", "hip") == "hip"
    if known is not None:
        stages = known.get("num_stages", 1) if hip else min(known.get("num_stages", 1), STAGES_OF_OTHERS)
        values = {name: known[name] for name in open_arguments if name in known}
        return Config(values, known.get("num_warps", 4), stages, _options(stated))
    if stated.kind == "foreach":
        return Config({}, _MOST_WARPS, 1, _options(stated))
    sizes = _sizes(stated, fixed, units)
    values: dict[str, Any] = {}
    for name in open_arguments:
        if (found := _BLOCK.fullmatch(name)) is not None:
            values[name] = sizes.get(_DIMENSION[found.group(1)], 1)
        elif name == "RSPLIT":
            values[name] = _splits(stated, units)
        elif name in stated.inductor_meta:
            values[name] = stated.inductor_meta[name]
        elif name == "NUM_STAGES":
            values[name] = 1
    elements = math.prod(sizes.values())
    warps = max(1, min(_MOST_WARPS, elements // (lanes * _PER_LANE)))
    return Config(values, warps, 1, _options(stated))


def _given(stated: Stated) -> dict[str, Any] | None:
    """A configuration that is stated; None where Inductor chooses one."""
    if stated.kind == "template":
        return {name: value for name, value in stated.arguments.items() if isinstance(value, int)}
    if stated.kind == "fixed_config":
        return dict(stated.arguments.get("config") or {})
    if stated.kind == "user_autotune":
        configs = stated.arguments.get("configs") or [{}]
        return dict(configs[0].get("kwargs", {})) | {k: v for k, v in configs[0].items() if k != "kwargs"}
    return None


def _options(stated: Stated) -> dict[str, Any]:
    """Options of the compiler that the decorator has beside the signature; 0 leaves a number to it."""
    names = ("waves_per_eu", "matrix_instr_nonkdim", "kpack", "enable_fp_fusion")
    found = {name: stated.meta.get(name, stated.arguments.get(name)) for name in names}
    return {name: value for name, value in found.items() if isinstance(value, int) and (value or value is False)}


def _sizes(stated: Stated, fixed: Mapping[str, int], units: int) -> dict[str, int]:
    """Block sizes by dimension."""
    hints = _merged(stated.hints)
    rows = {name: size for name, size in hints.items() if name in ("x", "y", "z")}
    reduced = {name: size for name, size in hints.items() if name not in rows}
    if not reduced:
        return _tile(rows)
    if stated.kind == "split_scan":
        return {"x": 1, "r0_": min(_ROW, max(_LEAST, reduced.get("r0_", 1)))}
    length = math.prod(reduced.values())
    if stated.kind == "cooperative_reduction":
        length = max(1, length // _splits(stated, units))
    outer = stated.arguments.get("reduction_hint") == "OUTER"
    persistent = stated.kind == "persistent_reduction" or any(name in fixed for name in ("R0_BLOCK", "RBLOCK"))
    if persistent:
        length = math.prod(
            fixed.get(n, hints.get(d, 1)) for n, d in (("R0_BLOCK", "r0_"), ("R1_BLOCK", "r1_")) if d in hints
        )
    # Rows that lie beside one another in memory are read together; else a program has as many as fill a tile.
    wanted = 64 if outer and not persistent else max(1, _TILE // length)
    row = 8 if outer and not persistent else length if persistent else min(_ROW, length)
    sizes = {name: 1 for name in rows} | {"x": fixed.get("XBLOCK", min(wanted, rows.get("x", 1)))}
    left = row
    for name, size in reversed(reduced.items()):  # the innermost first
        sizes[name] = min(size, left) if not persistent else size
        left = max(1, left // sizes[name])
    return sizes


def _tile(rows: Mapping[str, int]) -> dict[str, int]:
    """A tile of `_TILE` elements, or of all there are: what one dimension leaves goes to the next."""
    if len(rows) == 1:
        size = rows.get("x", 1)
        return {"x": min(size, max(_LEAST, min(_TILE, size // 128)))}
    sizes = {name: min(_WIDE_TILE[len(rows)][name], size) for name, size in rows.items()}
    for name, size in rows.items():
        while math.prod(sizes.values()) < _TILE and sizes[name] < size:
            sizes[name] *= 2
    return sizes


def _splits(stated: Stated, units: int) -> int:
    """How many programs share a row: as many as keep the compute units busy."""
    rows = max(1, stated.hints.get("x", 1))
    return max(1, min((1 << (units.bit_length() - 1)) // rows, _MOST_SPLITS))


def _merged(hints: Mapping[str, int]) -> dict[str, int]:
    """Sizes by dimension; of kernels that were combined (`x_0`, `x_1`) the largest."""
    found: dict[str, int] = {}
    for name, size in hints.items():
        plain = re.sub(r"(?<=[xyz])_\d+$|(?<=r\d_)\d+$", "", name)
        found[plain] = max(found.get(plain, 1), size)
    return found


__all__ = ["Config", "config_of"]
