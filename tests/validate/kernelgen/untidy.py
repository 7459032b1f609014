"""`untidied(kernel, seed)`: the same kernel as people write it who have no formatter.

Expressions go on in lines that begin anywhere, comments that look like code stand at the left edge, bodies are indented by tabs.
"""

from __future__ import annotations

import io
import tokenize
from dataclasses import replace

from kernelgen.draw import Draw, RandomKernel

COMMENTS = ("# nothing = nothing * 2", "#", "    # as before", "# if False:", "# about '''this'''")
BROKEN = 0.15  # share of operators in brackets behind which a line ends
BRACKETED = 0.3  # share of assignments whose value gets brackets
COMMENTED = 0.15  # share of lines with a comment above them
TABS = 0.2  # share of kernels that are indented by tabs
_OPERATORS = frozenset(("+", "-", "*", "//", "%", "&", "|", "<", ">", ",", "==", "<=", ">="))


def untidied(kernel: RandomKernel, seed: int) -> RandomKernel:
    draw = Draw(f"untidy {seed}")
    text = _broken(_bracketed(kernel.text, draw), draw)
    return replace(kernel, text=_by_tabs(text) if draw.chance(TABS) else text)


def _statements(text: str) -> list[list[tokenize.TokenInfo]]:
    """The tokens of each line of Python, without what says where it begins."""
    out: list[list[tokenize.TokenInfo]] = [[]]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            out.append([])
        elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT):
            out[-1].append(token)
    return [tokens for tokens in out if tokens]


def _with(text: str, new: list[tuple[tuple[int, int], str]]) -> str:
    """The text with something put in at each (line, column)."""
    lines = text.splitlines(keepends=True)
    for (line, column), what in sorted(new, reverse=True):
        row = lines[line - 1]
        lines[line - 1] = row[:column] + what + row[column:]
    return "".join(lines)


def _bracketed(text: str, draw: Draw) -> str:
    """Brackets around some of the values that are assigned to a name."""
    new = []
    for tokens in _statements(text):
        assigned = len(tokens) > 2 and tokens[0].type == tokenize.NAME and tokens[1].string in ("=", "+=")
        if assigned and draw.chance(BRACKETED):
            new += [(tokens[2].start, "("), (tokens[-1].end, ")")]
    return _with(text, new)


def _broken(text: str, draw: Draw) -> str:
    """Ends of lines within brackets of bodies, and comments above statements there."""
    new = []
    for tokens in _statements(text):
        if tokens[0].start[1] > 0 and draw.chance(COMMENTED):
            new.append(((tokens[0].start[0], 0), draw.pick(*COMMENTS) + "\n"))
        depth = 0
        for token in tokens:
            depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
            if depth and token.string in _OPERATORS and tokens[0].start[1] > 0 and draw.chance(BROKEN):
                comment = draw.pick("", "", "  # of it")
                new.append((token.end, comment + "\n" + " " * draw.pick(0, 1, 3, 6, 14)))
    return _with(text, new)


def _by_tabs(text: str) -> str:
    lines = []
    for line in text.splitlines(keepends=True):
        bare = line.lstrip(" ")
        deep, rest = divmod(len(line) - len(bare), 4)
        lines.append("\t" * deep + " " * rest + bare)
    return "".join(lines)
