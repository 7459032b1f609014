"""Reading AMDGCN assembly text: instructions, labels and the metadata block."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = re.compile(r"([.\w$@]+):")
_INSTRUCTION = re.compile(r"\s+([a-z][a-z0-9_]+)\b(.*)")


@dataclass(frozen=True)
class Instruction:
    """One line of code: `label` for a label, else `op` (mnemonic) and `operands` (text)."""

    op: str = ""
    operands: str = ""
    label: str = ""


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


def metadata_number(text: str, name: str) -> int:
    """The largest value of an integer metadata field such as `vgpr_count`; 0 when it is absent."""
    return max((int(x) for x in re.findall(rf"\.{name}:\s+(\d+)", text)), default=0)


def comment_number(text: str, name: str) -> int:
    """The largest value of a number that LLVM prints as `; NAME: 12`; 0 when it is absent."""
    return max((int(x) for x in re.findall(rf"; {name}: (\d+)", text)), default=0)
