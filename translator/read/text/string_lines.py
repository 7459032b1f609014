"""Lines of Python that cannot be moved: strings have them as they are."""

from __future__ import annotations

import io
import tokenize


def inside_strings(text: str) -> frozenset[int]:
    """The lines that begin inside a string."""
    found: set[int] = set()
    begins: list[int] = []  # of strings with expressions inside, which have tokens of their own since Python 3.12
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind.endswith("STRING_START"):
            begins.append(token.start[0])
        elif kind == "STRING" or kind.endswith("STRING_END"):
            first = token.start[0] if kind == "STRING" else begins.pop()
            found |= set(range(first + 1, token.end[0] + 1))
    return frozenset(found)
