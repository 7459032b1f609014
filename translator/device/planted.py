"""Copies of a translated kernel's TTGIR with one synchronisation bug each: what the sanitizer run has to find.

A check that was never seen to fail says nothing, so bundles may carry these beside the kernel.
"""

from __future__ import annotations

import re

from translator.device.module_text import VALUE, without_locations

WAIT = re.compile(rf"^\s*({VALUE}) = (ttg\.async_wait|amdg\.async_tdm_wait)\b.*num = (\d+)")

INDEX = re.compile(
    rf"^(?P<indent>\s*)(?P<result>{VALUE}) = ttg\.memdesc_index {VALUE}\[(?P<index>{VALUE})\] "
    r": !ttg\.memdesc<(?P<slots>\d+)x(?!1xi64)"
)
VIEW = re.compile(rf"^\s*({VALUE}) = ttg\.memdesc_(?:trans|subslice|reshape|reinterpret)\b")
COPY = re.compile(
    r"\b(?:ttg\.async_copy_global_to_local|amdg\.buffer_load_to_local|amdg\.async_tdm_copy_global_to_local)\b"
)

INIT = re.compile(r"\s*amdg\.init_barrier .*, (\d+) : ")


def planted_bugs(ttgir: str) -> dict[str, str]:
    """Name of the bug -> module with it. Empty for a kernel without asynchronous copies and rings in LDS."""
    lines = without_locations(ttgir).splitlines()
    out: dict[str, str] = {}
    waits = [i for i, line in enumerate(lines) if WAIT.match(line) and _is_needed(lines, i)]
    step = _copies_per_group(lines)
    for number, i in enumerate(waits):
        result, _, count = WAIT.match(lines[i]).groups()
        out[f"wait {number} removed"] = _text(_without(lines, i, result))
        more = int(count) + step
        out[f"wait {number} weakened from {count} to {more}"] = _text(
            _with(lines, i, lines[i].replace(f"num = {count}", f"num = {more}"))
        )
    if len(waits) > 1:
        kept = lines
        for i in reversed(waits):
            kept = _without(kept, i, WAIT.match(kept[i]).group(1))
        out["all waits removed"] = _text(kept)
    out |= _wrong_slots(lines)
    out |= _barriers(lines)
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
    token = re.compile(rf" token {re.escape(result)}(?![\w#])")
    return [token.sub("", line) for i, line in enumerate(lines) if i != at]


def _wrong_slots(lines: list[str]) -> dict[str, str]:
    """In loops, each read from a ring and each copy into one takes the slot next to the right one."""
    out: dict[str, str] = {}
    reads = copies = 0
    for i, line in enumerate(lines):
        found = INDEX.match(line)
        if not found or not _in_loop(lines, i) or int(found.group("slots")) < 2:
            continue
        uses = _uses(lines, i, found.group("result"))
        if any("ttg.local_load " in use for use in uses):
            out[f"read {reads} takes the wrong slot"] = _next_slot(lines, i, found)
            reads += 1
        if any(COPY.search(use) for use in uses):
            out[f"copy {copies} goes into the wrong slot"] = _next_slot(lines, i, found)
            copies += 1
    return out


def _next_slot(lines: list[str], at: int, found: re.Match) -> str:
    indent, index = found.group("indent"), found.group("index")
    new = [
        f"{indent}%planted_one = arith.constant 1 : i32",
        f"{indent}%planted_slots = arith.constant {found.group('slots')} : i32",
        f"{indent}%planted_next = arith.addi {index}, %planted_one : i32",
        f"{indent}%planted_slot = arith.remsi %planted_next, %planted_slots : i32",
        lines[at].replace(f"[{index}]", "[%planted_slot]", 1),
    ]
    return _text([*lines[:at], *new, *lines[at + 1 :]])


def _uses(lines: list[str], at: int, result: str) -> list[str]:
    """The lines after `at` that mention a value or a view of it."""
    names, out = {result}, []
    for line in lines[at + 1 :]:
        mentioned = set(re.findall(VALUE, line.partition(" = ")[2] or line))
        if names & mentioned:
            out.append(line)
            if view := VIEW.match(line):
                names.add(view.group(1))
    return out


def _barriers(lines: list[str]) -> dict[str, str]:
    """mbarriers: each wait and each arrival of lanes removed, the count of the first of each size halved and doubled."""
    out = {}
    waits = [i for i, line in enumerate(lines) if line.strip().startswith("amdg.wait_barrier")]
    for number, i in enumerate(waits):
        out[f"mbarrier wait {number} removed"] = _text(lines[:i] + lines[i + 1 :])
    arrivals = ("amdg.arrive_barrier", "amdg.async_copy_mbarrier_arrive")
    arrives = [
        i for i, line in enumerate(lines) if line.strip().removeprefix("%").split(" = ")[-1].startswith(arrivals)
    ]
    for number, i in enumerate(arrives):
        out[f"mbarrier arrival {number} removed"] = _text(lines[:i] + lines[i + 1 :])
    inits = [(i, int(m.group(1))) for i, line in enumerate(lines) if (m := INIT.match(line))]
    firsts: dict[int, int] = {}
    for i, count in inits:
        firsts.setdefault(count, i)
    for count, i in firsts.items():
        if count > 1:
            halved = lines[i].replace(f", {count} :", f", {count // 2} :")
            out[f"mbarrier count {count} halved"] = _text(_with(lines, i, halved))
        doubled = lines[i].replace(f", {count} :", f", {count * 2} :")
        out[f"mbarrier count {count} doubled"] = _text(_with(lines, i, doubled))
    return out
