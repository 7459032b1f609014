"""Which line of an edited text is which line of the text before the edit, so that what is known of one is shown in the other."""

from __future__ import annotations

import difflib
from functools import cached_property


class LineMap:
    """Lines of `now`, from 1, and those of `before` that say the same; a line that was edited has no counterpart, nor has one that the other text lacks."""

    def __init__(self, before: str, now: str):
        self.before, self.now = before, now

    def back(self, line: int) -> int | None:
        """The line of `before` for one of `now`."""
        return self._pairs.get(line)

    def forth(self, line: int) -> int | None:
        """The line of `now` for one of `before`."""
        return self._forth.get(line)

    @cached_property
    def _pairs(self) -> dict[int, int]:
        old, new = self.before.splitlines(), self.now.splitlines()
        shorter = min(len(old), len(new))
        head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
        rest = shorter - head
        tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
        middle = difflib.SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], False)
        found = {i + 1: i + 1 for i in range(head)}
        for block in middle.get_matching_blocks():
            found |= {head + block.b + i + 1: head + block.a + i + 1 for i in range(block.size)}
        return found | {len(new) - i: len(old) - i for i in range(tail)}

    @cached_property
    def _forth(self) -> dict[int, int]:
        return {old: new for new, old in self._pairs.items()}
