"""Commands and files of a documentation page, in order.

A fenced `console` block holds commands (`$ ...`, continued with `> ...`) and what they print; `...` stands for lines that are
left out. In front of a fence, a comment may say more:

    <!-- file: NAME -->           the block is the content of a file, written into the working folder
    <!-- edit: NAME -->           a `diff` block: its `-` lines are replaced by its `+` lines in the file
    <!-- status: N -->            the last command of the block leaves with status N
    <!-- not run: REASON -->      the block is not executed
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(
    r"(?:^<!-- (?P<note>[a-z ]+): (?P<value>.*?) -->\n\s*)?^(?P<fence>```+)(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=fence)\s*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Command:
    """A command line, its expected status and output (`...` for any lines)."""

    text: str
    output: tuple[str, ...]
    status: int
    line: int


@dataclass(frozen=True)
class File:
    """A file to write, or, with `edits`, pieces of one to replace."""

    name: str
    text: str
    edits: tuple[tuple[str, str], ...] = ()
    line: int = 0


@dataclass(frozen=True)
class Skipped:
    """A block that is not executed."""

    reason: str
    line: int


def steps(page: Path) -> Iterator[Command | File | Skipped]:
    """What a reader of the page does, in order."""
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start("fence")) + 1
        note, value, body = found["note"], found["value"], found["body"]
        if note == "not run":
            yield Skipped(value, line)
        elif note == "file":
            yield File(value, body, line=line)
        elif note == "edit":
            yield File(value, "", tuple(_edits(body)), line)
        elif found["language"] == "console":
            yield from _commands(body, int(value) if note == "status" else 0, line)


def _edits(body: str) -> Iterator[tuple[str, str]]:
    """Runs of `-` and `+` lines, with the unchanged lines of the block around them."""
    old = [line[1:] for line in body.splitlines() if line[:1] in "- "]
    new = [line[1:] for line in body.splitlines() if line[:1] in "+ "]
    yield "\n".join(old) + "\n", "\n".join(new) + "\n"


def _commands(body: str, status: int, line: int) -> Iterator[Command]:
    commands: list[tuple[list[str], list[str], int]] = []
    for offset, text in enumerate(body.splitlines()):
        if text.startswith("$ "):
            commands.append(([text[2:]], [], line + 1 + offset))
        elif text.startswith("> ") and commands and not commands[-1][1]:
            commands[-1][0].append(text[2:])
        else:
            assert commands, f"line {line + 1 + offset}: output without a command"
            commands[-1][1].append(text)
    for index, (words, output, at) in enumerate(commands):
        yield Command("\n".join(words), tuple(output), status if index == len(commands) - 1 else 0, at)


def missing_output(expected: tuple[str, ...], printed: str) -> str | None:
    """The first expected line that the output lacks, or None; seconds and digests may differ."""
    lines = [_normal(line) for line in printed.splitlines()]
    position, anywhere = 0, False
    for line in expected:
        if line.strip() == "...":
            anywhere = True
            continue
        wanted = _normal(line)
        rest = lines[position:] if anywhere or position == 0 else lines[position : position + 1]
        if wanted not in rest:
            return line
        position += rest.index(wanted) + 1
        anywhere = False
    return None


def _normal(line: str) -> str:
    line = re.sub(r"\d+\.\d+ s\b", "0.0 s", line)
    line = re.sub(r"\b[0-9a-f]{12}\b|\b[0-9a-f]{7}\b", "0" * 12, line)
    return re.sub(r"\s+", " ", line).strip()
