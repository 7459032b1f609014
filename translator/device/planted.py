"""Copies of a translated kernel's TTGIR with one synchronisation bug each: what the sanitizer run has to find.

A check that was never seen to fail says nothing, so bundles may carry these beside the kernel.
"""

from __future__ import annotations

import re

from translator.device.module_text import VALUE, without_locations

WAIT = re.compile(rf"^\s*({VALUE}) = (ttg\.async_wait|amdg\.async_tdm_wait)\b.*num = (\d+)")


def planted_bugs(ttgir: str) -> dict[str, str]:
    """Name of the bug -> module with it. Empty for a kernel without asynchronous copies."""
    lines = without_locations(ttgir).splitlines()
    out: dict[str, str] = {}
    waits = [i for i, line in enumerate(lines) if WAIT.match(line) and _is_needed(lines, i)]
    step = _copies_per_group(lines)
    for number, i in enumerate(waits):
        result, _, count = WAIT.match(lines[i]).groups()
        out[f"wait {number} removed"] = _text(_without(lines, i, result))
        more = int(count) + step
        out[f"wait {number} weakened from {count} to {more}"] = _text(_with(lines, i, lines[i].replace(f"num = {count}", f"num = {more}")))
    if len(waits) > 1:
        kept = lines
        for i in reversed(waits):
            kept = _without(kept, i, WAIT.match(kept[i]).group(1))
        out["all waits removed"] = _text(kept)
    out |= _wrong_slot(lines)
    out |= _barriers(lines)
    return out


def _is_needed(lines: list[str], at: int) -> bool:
    """Whether LDS is read after the wait: later on, or in the same loop. A last wait that only drains is no bug to drop."""
    in_loop = _indent(lines[at]) > min(_indent(line) for line in lines if "tt.return" in line)
    return in_loop or any("ttg.local_load " in line for line in lines[at:])


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
    token = re.compile(rf" token {re.escape(result)}(?![\w#])")
    return [token.sub("", line) for i, line in enumerate(lines) if i != at]


def _wrong_slot(lines: list[str]) -> dict[str, str]:
    """The loop reads the slot next to the right one: the first `memdesc_index` that a `local_load` in a loop reads."""
    depth_of_loop = False
    for i, line in enumerate(lines):
        depth_of_loop |= "scf.for" in line
        found = re.match(rf"^(\s*)({VALUE}) = ttg\.memdesc_index ({VALUE})\[({VALUE})\] : !ttg\.memdesc<(\d+)x", line)
        if not depth_of_loop or not found or "i64" in line or int(found.group(5)) < 2:
            continue
        indent, result, _, index, slots = found.groups()
        if not any(f"ttg.local_load {result} " in later for later in lines[i:]):
            continue
        if index.startswith("%c") and index[2:3].isdigit():
            continue
        new = [
            f"{indent}%planted_one = arith.constant 1 : i32",
            f"{indent}%planted_slots = arith.constant {slots} : i32",
            f"{indent}%planted_next = arith.addi {index}, %planted_one : i32",
            f"{indent}%planted_slot = arith.remsi %planted_next, %planted_slots : i32",
            line.replace(f"[{index}]", "[%planted_slot]", 1),
        ]
        return {"reads the wrong slot": _text([*lines[:i], *new, *lines[i + 1 :]])}
    return {}


def _barriers(lines: list[str]) -> dict[str, str]:
    """mbarriers: each wait removed, the first count one too high and one too low."""
    out = {}
    waits = [i for i, line in enumerate(lines) if line.strip().startswith("amdg.wait_barrier")]
    for number, i in enumerate(waits):
        out[f"mbarrier wait {number} removed"] = _text(lines[:i] + lines[i + 1 :])
    inits = [i for i, line in enumerate(lines) if line.strip().startswith("amdg.init_barrier")]
    if inits:
        i = inits[0]
        count = int(re.search(r", (\d+) :", lines[i]).group(1))
        out["mbarrier count halved"] = _text(_with(lines, i, lines[i].replace(f", {count} :", f", {count // 2} :")))
        out["mbarrier count doubled"] = _text(_with(lines, i, lines[i].replace(f", {count} :", f", {count * 2} :")))
    return out
