"""Lines of the output: behind an indentation, and without it."""

from __future__ import annotations


def indented(blocks: list[str], indent: str) -> str:
    """Dedented blocks of lines, one after the other, behind `indent`; empty lines stay empty."""
    lines = "\n".join(blocks).splitlines()
    return "\n".join(indent + line if line.strip() else line for line in lines)


def without_indent(text: str, indent: str) -> str | None:
    """`text` with `indent` off all its lines but the first; None where one has less."""
    first, *others = text.split("\n")
    if not all(line.startswith(indent) and line.strip() or not line for line in others):
        return None
    return "\n".join([first, *(line.removeprefix(indent) for line in others)])
