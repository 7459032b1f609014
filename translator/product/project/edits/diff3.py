"""Three-way merges of sequences: lines, and the tokens of lines that both sides changed."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Chunk:
    """A run of the merge: `base`, and what each side makes of it; only one of them differs unless it is a conflict."""

    base: tuple[str, ...]
    mine: tuple[str, ...]
    theirs: tuple[str, ...]

    @property
    def conflict(self) -> bool:
        return self.mine != self.theirs and self.base not in (self.mine, self.theirs)

    @property
    def merged(self) -> tuple[str, ...]:
        assert not self.conflict, f"bug in gluonize: a conflict has no merge: {self}"
        return self.theirs if self.mine == self.base else self.mine


def merge_sequences(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> list[Chunk]:
    """Split three sequences into chunks: stretches that neither side touched, and stretches between them.

    Changes that touch without an unchanged element between them are one chunk, as git merges lines.
    """
    to_mine, to_theirs = _matches(base, mine), _matches(base, theirs)
    chunks: list[Chunk] = []
    starts = (0, 0, 0)
    for index in range(len(base)):
        if index not in to_mine or index not in to_theirs:
            continue
        here = (index, to_mine[index], to_theirs[index])
        _append(chunks, base[starts[0] : here[0]], mine[starts[1] : here[1]], theirs[starts[2] : here[2]])
        same = (base[index],)
        chunks.append(Chunk(same, same, same))
        starts = (here[0] + 1, here[1] + 1, here[2] + 1)
    _append(chunks, base[starts[0] :], mine[starts[1] :], theirs[starts[2] :])
    return chunks


def _append(chunks: list[Chunk], base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> None:
    if base or mine or theirs:
        chunks.append(Chunk(tuple(base), tuple(mine), tuple(theirs)))


def _matches(base: Sequence[str], other: Sequence[str]) -> dict[int, int]:
    """Index in base -> index of the same element in other, both increasing."""
    found = {}
    for block in difflib.SequenceMatcher(None, base, other, autojunk=False).get_matching_blocks():
        found |= {block.a + step: block.b + step for step in range(block.size)}
    return found
