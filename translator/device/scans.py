"""Scans need a blocked layout; a wave64 layout that became linear is converted around them."""

from __future__ import annotations

from dataclasses import replace

from translator.device.encodings import blocked_text
from translator.device.refusal import Refused
from translator.ttgir.attributes import Attribute
from translator.ttgir.module_text import indent_of
from translator.ttgir.op import Op
from translator.ttgir.parse import parse_module


def scans_on_blocked(text: str, warps: int) -> str:
    """Convert around scans of one tensor on a linear layout; scans on blocked layouts stay. `warps` of 32 lanes each.

    Raises: Refused for a scan on a linear layout of several tensors, or of one that CTAs of a cluster share.
    """
    module, lines = parse_module(text), text.splitlines()
    for scan in sorted((op for op in module.walk() if op.name == "tt.scan"), key=lambda op: -op.line):
        if _is_linear(module.attribute(scan.operand_types[0])):
            _convert(lines, scan, warps, module.clusters)
    return "\n".join(lines) + "\n"


def _convert(lines: list[str], scan: Op, warps: int, clusters: int) -> None:
    """Convert the operand of a scan, and its result back."""
    if len(scan.operands) > 1:
        raise Refused("tt.scan", "a scan of several tensors on a linear layout")
    if clusters > 1:
        raise Refused("tt.scan", "a scan on a linear layout that the CTAs of a cluster share")
    (operand,), (kind,), result = scan.operands, scan.operand_types, scan.results[0]
    blocked = replace(kind, layout=scan_layout(kind.shape, warps)).printed
    head, last = lines[scan.line - 1], lines[scan.end - 1]
    indent = indent_of(head)
    inner, moved = (f"%{what}_{result[1:]}" for what in ("scanned", "blocked"))
    # Attributes may stand before the types, and have types of their own.
    lines[scan.end - 1] = f"{last.partition(' : (')[0]} : ({blocked}) -> {blocked}"
    lines.insert(scan.end, f"{indent}{result} = ttg.convert_layout {inner} : {blocked} -> {kind.printed}")
    lines[scan.line - 1] = head.replace(f"({operand})", f"({moved})", 1).replace(f"{result} =", f"{inner} =", 1)
    lines.insert(scan.line - 1, f"{indent}{moved} = ttg.convert_layout {operand} : {kind.printed} -> {blocked}")


def _is_linear(layout: Attribute) -> bool:
    return any(part.kind in ("ttg.linear", "ttg.nvidia_mma") for part in layout.walk())


def scan_layout(shape: tuple[int, ...], warps: int) -> str:
    """Lanes along the last dimension, warps along the first."""
    threads, left = [1] * len(shape), 32
    for axis in reversed(range(len(shape))):
        threads[axis] = min(left, shape[axis])
        left //= threads[axis]
    threads[0] *= left
    return blocked_text([1] * len(shape), threads, [warps] + [1] * (len(shape) - 1), list(reversed(range(len(shape)))))
