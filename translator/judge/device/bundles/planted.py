"""Copies of a translated kernel's TTGIR with one synchronisation bug each: what the sanitizer run has to find.

A check that was never seen to fail says nothing, so bundles may carry these beside the kernel.
"""

from __future__ import annotations

from gluonize.trace.model.module_text import op_name, without_locations
from gluonize.trace.model.op import Op
from gluonize.trace.model.parse import parse_module, parse_op

_WAITS = ("ttg.async_wait", "amdg.async_tdm_wait")
_VIEWS = ("ttg.memdesc_trans", "ttg.memdesc_subslice", "ttg.memdesc_reshape", "ttg.memdesc_reinterpret")
_COPIES = ("ttg.async_copy_global_to_local", "amdg.buffer_load_to_local", "amdg.async_tdm_copy_global_to_local")
_READ = ("ttg.local_load",)
_ARRIVALS = ("amdg.arrive_barrier", "amdg.async_copy_mbarrier_arrive")


def planted_bugs(ttgir: str) -> dict[str, str]:
    """Name of the bug -> module with it. Empty for a kernel without asynchronous copies and rings in LDS."""
    text = without_locations(ttgir)
    lines = text.splitlines()
    ops = {op.line - 1: op for op in parse_module(text).walk()}
    out: dict[str, str] = {}
    waits = [i for i, op in ops.items() if op.name in _WAITS and _is_needed(lines, i)]
    step = _copies_per_group(lines)
    for number, i in enumerate(waits):
        result, count = ops[i].results[0], ops[i].attribute("num")
        out[f"wait {number} removed"] = _text(_without(lines, i, result))
        more = count + step
        out[f"wait {number} weakened from {count} to {more}"] = _text(
            _with(lines, i, lines[i].replace(f"num = {count}", f"num = {more}"))
        )
    if len(waits) > 1:
        kept = lines
        for i in reversed(waits):
            kept = _without(kept, i, ops[i].results[0])
        out["all waits removed"] = _text(kept)
    out |= _wrong_slots(lines, ops)
    out |= _barriers(lines, ops)
    return out


def _is_needed(lines: list[str], at: int) -> bool:
    """Whether LDS is read after the wait: later on, or in the same loop. A last wait that only drains is no bug to drop."""
    return _in_loop(lines, at) or any("ttg.local_load " in line for line in lines[at:])


def _in_loop(lines: list[str], at: int) -> bool:
    """Whether a line is deeper than the body of its function."""
    return _indent(lines[at]) > min(_indent(line) for line in lines if "tt.return" in line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _copies_per_group(lines: list[str]) -> int:
    """What one tile adds to a wait count: TDM copies are counted one by one, two per tile; groups once."""
    return 2 if any("amdg.async_tdm_copy_global_to_local" in line for line in lines) else 1


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _with(lines: list[str], at: int, line: str) -> list[str]:
    return [*lines[:at], line, *lines[at + 1 :]]


def _without(lines: list[str], at: int, result: str) -> list[str]:
    """Without line `at`, whose result may be the token of later loads."""
    return [_without_token(line, result) for i, line in enumerate(lines) if i != at]


def _without_token(line: str, result: str) -> str:
    op = parse_op(line) if op_name(line) in _READ else None
    waits = op is not None and result in (op.operands[i] for i in op.keywords("token"))
    return line.replace(f" token {result}", "", 1) if waits else line


def _wrong_slots(lines: list[str], ops: dict[int, Op]) -> dict[str, str]:
    """In loops, each read from a ring and each copy into one takes the slot next to the right one."""
    out: dict[str, str] = {}
    reads = copies = 0
    for i, op in ops.items():
        if op.name != "ttg.memdesc_index" or not _in_loop(lines, i):
            continue
        ring = op.operand_types[0]
        if ring.shape[0] < 2 or (ring.shape[1:] == (1,) and ring.element == "i64"):  # one slot, or barriers
            continue
        uses = _uses(ops, i)
        if any(use.name in _READ for use in uses):
            out[f"read {reads} takes the wrong slot"] = _next_slot(lines, i, op)
            reads += 1
        if any(use.name in _COPIES for use in uses):
            out[f"copy {copies} goes into the wrong slot"] = _next_slot(lines, i, op)
            copies += 1
    return out


def _next_slot(lines: list[str], at: int, op: Op) -> str:
    indent, index = lines[at][: _indent(lines[at])], op.operands[1]
    new = [
        f"{indent}%planted_one = arith.constant 1 : i32",
        f"{indent}%planted_slots = arith.constant {op.operand_types[0].shape[0]} : i32",
        f"{indent}%planted_next = arith.addi {index}, %planted_one : i32",
        f"{indent}%planted_slot = arith.remsi %planted_next, %planted_slots : i32",
        lines[at].replace(f"[{index}]", "[%planted_slot]", 1),
    ]
    return _text([*lines[:at], *new, *lines[at + 1 :]])


def _uses(ops: dict[int, Op], at: int) -> list[Op]:
    """The operations after `at` that take its value or a view of it."""
    names, out = {*ops[at].results}, []
    for i, op in ops.items():
        if i > at and not names.isdisjoint(op.operands):
            out.append(op)
            if op.name in _VIEWS:
                names |= {*op.results}
    return out


def _barriers(lines: list[str], ops: dict[int, Op]) -> dict[str, str]:
    """mbarriers: each wait and each arrival of lanes removed, the count of the first of each size halved and doubled."""
    out = {}
    for what, names in (("wait", ("amdg.wait_barrier",)), ("arrival", _ARRIVALS)):
        for number, i in enumerate(i for i, op in ops.items() if op.name in names):
            out[f"mbarrier {what} {number} removed"] = _text(lines[:i] + lines[i + 1 :])
    firsts: dict[int, int] = {}
    for i, op in ops.items():
        if op.name == "amdg.init_barrier":
            firsts.setdefault(op.counted, i)
    for count, i in firsts.items():
        if count > 1:
            halved = lines[i].replace(f", {count} :", f", {count // 2} :")
            out[f"mbarrier count {count} halved"] = _text(_with(lines, i, halved))
        doubled = lines[i].replace(f", {count} :", f", {count * 2} :")
        out[f"mbarrier count {count} doubled"] = _text(_with(lines, i, doubled))
    return out
