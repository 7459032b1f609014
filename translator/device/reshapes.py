"""Transposes and reshapes to or from a matrix layout: what the compiler infers for them depends on that layout, which has changed.

    %b = tt.trans %a : T<#linear> -> T<#dot>     ->     %a_flat = ttg.convert_layout %a : T<#linear> -> T<flat>
                                                        %b_flat = tt.trans %a_flat : T<flat> -> T<moved>
                                                        %b = ttg.convert_layout %b_flat : T<moved> -> T<#dot>

In `flat` consecutive elements lie in consecutive lanes, then warps, then registers; `moved` is what that becomes.
"""

from __future__ import annotations

import math
import re

from translator.device.encodings import linear_text
from translator.device.module_text import VALUE, aliases, spelled_out, tensor_parts
from translator.ttgir.types import split_top

_MOVE = re.compile(rf"^(\s*)({VALUE}) = (tt\.trans|tt\.reshape) ({VALUE})(.*?) : (tensor<.*)$")
_ORDER = re.compile(r"order = array<i32: ([\d, ]+)>")


def moves_on_linear(text: str, warps: int) -> str:
    """Convert around `tt.trans` and `tt.reshape` with a matrix layout on either side; `warps` of 32 lanes each."""
    named = aliases(text)
    out = []
    for line in text.splitlines():
        found = _MOVE.match(line)
        kinds = split_top(found.group(6), "->") if found else []
        if len(kinds) == 2 and any(_is_matrix(tensor_parts(kind)[2], named) for kind in kinds):
            out += _converted(found, *kinds, warps)
        else:
            out.append(line)
    return "\n".join(out) + "\n"


def _converted(found: re.Match, before: str, after: str, warps: int) -> list[str]:
    indent, result, name, value, attributes, _ = found.groups()
    (shape, _, layout), (new_shape, _, new_layout) = tensor_parts(before), tensor_parts(after)
    order = _ORDER.search(attributes)
    axes = [int(x) for x in order.group(1).split(",")] if order else None
    places = _places(math.prod(shape), warps)
    flat = linear_text(*([_coordinates(at, shape) for at in group] for group in places))
    moved = linear_text(*([_moved(at, shape, new_shape, axes) for at in group] for group in places))
    start, end = (f"%{side}_{result[1:]}" for side in ("from", "to"))
    source, target = before.replace(layout, flat), after.replace(new_layout, moved)
    return [
        f"{indent}{start} = ttg.convert_layout {value} : {before} -> {source}",
        f"{indent}{end} = {name} {start}{attributes} : {source} -> {target}",
        f"{indent}{result} = ttg.convert_layout {end} : {target} -> {after}",
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


def _is_matrix(layout: str, named: dict[str, str]) -> bool:
    text = spelled_out(layout, named)
    return "#ttg.nvidia_mma" in text or "#ttg.dot_op" in text
