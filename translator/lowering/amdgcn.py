"""Reading AMDGCN assembly text: instructions, labels, loops and the metadata block."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = re.compile(r"([.\w$@]+):")
_INSTRUCTION = re.compile(r"\s+([a-z][a-z0-9_]+)\b(.*)")
_BRANCH = re.compile(r"s_c?branch")


@dataclass(frozen=True)
class Instruction:
    """One line of code: `label` for a label, else `op` (mnemonic) and `operands` (text)."""

    op: str = ""
    operands: str = ""
    label: str = ""


@dataclass(frozen=True)
class Loop:
    """A range of instruction indices, header first and backward branch last; `depth` counts from 1."""

    first: int
    last: int
    depth: int
    innermost: bool


def parse_instructions(text: str) -> tuple[Instruction, ...]:
    """The code part of an assembly text, labels included; directives, comments and padding are left out."""
    out = []
    for line in text.splitlines():
        if ".amdgpu_metadata" in line:
            break
        line = line.partition(";")[0].rstrip()
        if found := _LABEL.match(line):
            out.append(Instruction(label=found.group(1)))
        elif (found := _INSTRUCTION.match(line)) and found.group(1) != "s_code_end":
            out.append(Instruction(op=found.group(1), operands=found.group(2)))
    return tuple(out)


def find_loops(code: tuple[Instruction, ...]) -> tuple[Loop, ...]:
    """Loops closed by a backward branch, one per header, in program order.

    A branch back from code behind the end of the program, where a block that is rarely needed was put, closes no loop.
    A loop that sleeps until a barrier's word in LDS changes is a wait and no loop: it counts in the loop around it.
    """
    position: dict[str, int] = {}
    ends: dict[int, int] = {}
    for index, line in enumerate(code):
        if line.label:
            position[line.label] = index
        elif _BRANCH.match(line.op) and (header := position.get(line.operands.strip())) is not None:
            ends[header] = index
    spans = sorted((f, e) for f, e in ends.items() if not _polls(code[f : e + 1]) and _returns(code, f, e, position))
    return tuple(
        Loop(
            first,
            last,
            depth=sum(f <= first and last <= e for f, e in spans),
            innermost=not any(f > first and e <= last for f, e in spans),
        )
        for first, last in spans
    )


def _returns(code: tuple[Instruction, ...], first: int, last: int, position: dict[str, int]) -> bool:
    """Whether the branch at `last` can be reached from the header at `first` by instructions between the two."""
    seen, pending = set(), [first]
    while pending:
        index = pending.pop()
        while first <= index <= last and index not in seen:
            if index == last:
                return True
            seen.add(index)
            line = code[index]
            if _BRANCH.match(line.op):
                pending.append(position.get(line.operands.strip(), -1))
            if line.op in ("s_branch", "s_endpgm"):
                break
            index += 1
    return False


def _polls(body: tuple[Instruction, ...]) -> bool:
    ops = {line.op for line in body}
    return "s_sleep" in ops and not any(
        op.startswith(("v_wmma", "v_mfma", "global_", "buffer_", "ds_store")) for op in ops
    )


def metadata_number(text: str, name: str) -> int:
    """The largest value of an integer metadata field such as `vgpr_count`; 0 when it is absent."""
    return max((int(x) for x in re.findall(rf"\.{name}:\s+(\d+)", text)), default=0)


def comment_number(text: str, name: str) -> int:
    """The largest value of a number that LLVM prints as `; NAME: 12`; 0 when it is absent."""
    return max((int(x) for x in re.findall(rf"; {name}: (\d+)", text)), default=0)
