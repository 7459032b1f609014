"""Conflicts between banks of LDS: how many times longer an access takes than one without any."""

from __future__ import annotations

from rules.timing import Timing

BANK_BYTES = 4


def conflict_factor(lanes: tuple[int, ...], width: int, write: bool, timing: Timing) -> float:
    """1.0 without conflicts. lanes: byte address of each lane; width: bytes per lane, 4, 8 or 16.

    LDS serves groups of lanes one after another; a group takes as long as its fullest bank has different words.
    """
    groups = (timing.write_phases if write else timing.read_phases)[width]
    banks = timing.lds_bytes // BANK_BYTES
    taken = 0
    for group in groups:
        words: dict[int, set[int]] = {}
        for lane in group:
            first = lanes[lane] // BANK_BYTES
            for word in range(first, first + width // BANK_BYTES):
                words.setdefault(word % banks, set()).add(word)
        taken += max(len(x) for x in words.values())
    return taken / len(groups)
