"""Names that are still to be had."""

from __future__ import annotations

from collections.abc import Callable


def numbered(name: str, taken: Callable[[str], bool]) -> str:
    """The first of `name`, `name_2`, `name_3` and so on that is not taken."""
    candidate, n = name, 2
    while taken(candidate):
        candidate, n = f"{name}_{n}", n + 1
    return candidate
