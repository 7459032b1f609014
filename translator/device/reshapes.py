"""Transposes and reshapes to or from a matrix layout: what the compiler infers for them depends on that layout, which has changed.

    %b = tt.trans %a : T<#linear> -> T<#dot>     ->     %a_flat = ttg.convert_layout %a : T<#linear> -> T<flat>
                                                        %b_flat = tt.trans %a_flat : T<flat> -> T<moved>
                                                        %b = ttg.convert_layout %b_flat : T<moved> -> T<#dot>

In `flat` consecutive elements lie in consecutive lanes, then warps, then registers; `moved` is what that becomes.
"""

from __future__ import annotations

import math
from dataclasses import replace

from translator.device.encodings import linear_text
from translator.device.refusal import Refused
from translator.ttgir.attributes import parse_attribute
from translator.ttgir.module_text import definitions, turned, with_ops
from translator.ttgir.op import Op

_MOVES = ("tt.trans", "tt.reshape")


def moves_on_linear(text: str, warps: int) -> str:
    """Convert around `tt.trans` and `tt.reshape` with a matrix layout on either side; `warps` of 32 lanes each.

    Raises: Refused where CTAs of a cluster share the tensor.
    """
    named = definitions(text)

    def change(op: Op, line: str) -> list[str] | None:
        kinds = (op.operand_types[0], op.type)
        layouts = [part for kind in kinds for part in parse_attribute(kind.layout, named).walk()]
        if not any(part.kind in ("ttg.nvidia_mma", "ttg.dot_op") for part in layouts):
            return None
        if any("CGALayout" in part.names for part in layouts):
            raise Refused(op.name, "a transpose or reshape of a product that the CTAs of a cluster share")
        return _converted(op, warps)

    return with_ops(text, _MOVES, change)


def _converted(op: Op, warps: int) -> list[str]:
    before, after, result = op.operand_types[0], op.type, op.results[0]
    axes = list(op.integers("order")) or None
    places = _places(math.prod(before.shape), warps)
    flat = linear_text(*([_coordinates(at, before.shape) for at in group] for group in places))
    moved = linear_text(*([_moved(at, before.shape, after.shape, axes) for at in group] for group in places))
    start, end = (f"%{side}_{result[1:]}" for side in ("from", "to"))
    source, target = replace(before, layout=flat).printed, replace(after, layout=moved).printed
    return [
        f"{start} = ttg.convert_layout {op.operands[0]} : {before.printed} -> {source}",
        turned(op, end, start, source, target),
        f"{result} = ttg.convert_layout {end} : {target} -> {after.printed}",
    ]


def _places(size: int, warps: int) -> tuple[list[int], list[int], list[int]]:
    """Which element each bit of a register, lane and warp number stands for, row by row; 0 where there are no more."""
    bits = [1 << b for b in range(size.bit_length() - 1)]
    lanes, spread = 5, warps.bit_length() - 1
    some = bits[: lanes + spread] + [0] * (lanes + spread - len(bits))
    return bits[lanes + spread :], some[:lanes], some[lanes:]


def _moved(at: int, shape: tuple[int, ...], new_shape: tuple[int, ...], axes: list[int] | None) -> list[int]:
    where = _coordinates(at, shape)
    return [where[d] for d in axes] if axes is not None else _coordinates(at, new_shape)


def _coordinates(at: int, shape: tuple[int, ...]) -> list[int]:
    """Of element `at`, row by row."""
    out = []
    for extent in reversed(shape):
        at, rest = divmod(at, extent)
        out.append(rest)
    return out[::-1]
