"""Scans need a blocked layout; a wave64 layout that became linear is converted around them."""

from __future__ import annotations

import re

from translator.device.encodings import blocked_text
from translator.device.module_text import aliases, spelled_out, tensor_parts
from translator.device.refusal import Refused
from translator.ttgir.types import split_top


def scans_on_blocked(text: str, warps: int) -> str:
    """Convert around scans of one tensor on a linear layout; scans on blocked layouts stay. `warps` of 32 lanes each.

    Raises: Refused for a scan of several tensors on a linear layout.
    """
    if "tt.scan" not in text:
        return text
    named = aliases(text)
    lines, out, pending = text.splitlines(), [], []
    for line in lines:
        found = re.match(r'^(\s*)(%[\w$.\-]+)(?::\d+)? = "tt\.scan"\(([^)]*)\)', line)
        if found:
            pending.append((len(out), found))
        out.append(line)
        if pending and re.match(r"^\s*\}\)(?: \{[^}]*\})? : \(", line):
            start, head = pending.pop()
            _convert(out, start, head, named, warps)
    return "\n".join(out) + "\n"


def _convert(out: list[str], start: int, head: re.Match, named: dict[str, str], warps: int) -> None:
    """Convert the operands of the scan at `out[start]` that ends with the last line, and its results back."""
    indent, result, operands = head.groups()
    # Attributes may stand before the types, and have types of their own.
    closing, _, kinds = out[-1].partition(" : (")
    inputs = split_top(split_top(f"({kinds}", "->")[0][1:-1])
    layout = tensor_parts(inputs[0])[2]
    if not _is_linear(layout, named):
        return
    if len(inputs) > 1:
        raise Refused("tt.scan", "a scan of several tensors on a linear layout")
    shape, element, _ = tensor_parts(inputs[0])
    blocked = scan_layout(shape, warps)
    kind = inputs[0].replace(layout, blocked)
    inner, moved = (f"%{what}_{result[1:]}" for what in ("scanned", "blocked"))
    out[start] = out[start].replace(f"({operands})", f"({moved})", 1).replace(result + " =", inner + " =", 1)
    out[-1] = f"{closing} : ({kind}) -> {kind}"
    out.insert(start, f"{indent}{moved} = ttg.convert_layout {operands} : {inputs[0]} -> {kind}")
    out.append(f"{indent}{result} = ttg.convert_layout {inner} : {kind} -> {inputs[0]}")


def _is_linear(layout: str, named: dict[str, str]) -> bool:
    text = spelled_out(layout, named)
    return "#ttg.linear" in text or "#ttg.nvidia_mma" in text


def scan_layout(shape: tuple[int, ...], warps: int) -> str:
    """Lanes along the last dimension, warps along the first."""
    threads, left = [1] * len(shape), 32
    for axis in reversed(range(len(shape))):
        threads[axis] = min(left, shape[axis])
        left //= threads[axis]
    threads[0] *= left
    return blocked_text([1] * len(shape), threads, [warps] + [1] * (len(shape) - 1), list(reversed(range(len(shape)))))
