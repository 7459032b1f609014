"""How much two review units resemble each other, and the best order-preserving pairing of two sequences of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gluonize.product.report.review.units import Unit

# Below this two statements have nothing to do with each other.
RELATED = 0.34
_ASSIGNMENTS = ("Assign", "AugAssign", "AnnAssign")


def similarity(a: Unit, b: Unit) -> float:
    """0 (unrelated) to 2 (the same text); between statements of different kinds 0."""
    if a.text == b.text:
        return 2.0
    if a.spelled == b.spelled:
        return 1.9
    if _family(a) != _family(b):
        return 0.0
    common = sum(min(n, b.words.get(word, 0)) for word, n in a.words.items())
    total = sum(a.words.values()) + sum(b.words.values())
    score = 2 * common / total if total else 0.0
    if _family(a) == "assign":
        if a.targets and a.targets == b.targets:
            score += 0.4 if (a.kind == "AugAssign") == (b.kind == "AugAssign") else 0.15
        elif (a.kind == "AugAssign") != (b.kind == "AugAssign"):
            score *= 0.6
        elif not {stem(t) for t in a.targets} & {stem(t) for t in b.targets}:
            score *= 0.7
    return min(score, 1.5)


def stem(name: str) -> str:
    """The first part of a name: what `offs_k` and `offs_k_b`, or `a_ptrs` and `a_offs`, have in common."""
    return name.split("_")[0] or name


def _family(unit: Unit) -> str:
    return "assign" if unit.kind in _ASSIGNMENTS else unit.kind


def pair(
    left: Sequence[Unit],
    right: Sequence[Unit],
    alike: Callable[[Unit, Unit], float] = similarity,
    related: float = RELATED,
) -> list[tuple[int, int]]:
    """Index pairs, increasing on both sides, of the pairing with the greatest total of `alike`."""
    n, m = len(left), len(right)
    scores = [[alike(a, b) for b in right] for a in left]
    best = [[0.0] * (m + 1) for _ in range(n + 1)]
    for i in reversed(range(n)):
        for j in reversed(range(m)):
            value = max(best[i + 1][j], best[i][j + 1])
            if scores[i][j] >= related:
                value = max(value, scores[i][j] + best[i + 1][j + 1])
            best[i][j] = value
    pairs, i, j = [], 0, 0
    while i < n and j < m:
        if scores[i][j] >= related and best[i][j] == scores[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs
