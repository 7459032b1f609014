"""Fields of an instruction's words, by the names that the emulator's own tables have."""

from __future__ import annotations

from collections.abc import Callable


def fields(kind: type, data: bytes) -> Callable[[str], int]:
    """`field(name)` -> the bits of a field as a number. kind: the emulator's class of the instruction."""
    word = int.from_bytes(data, "little")

    def field(name: str) -> int:
        place = getattr(kind, name)
        return word >> place.lo & place.mask

    return field
