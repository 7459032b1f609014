"""What a store is, and the checksum that every entry carries."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

_DIGEST_BYTES = 32  # sha256


@dataclass(frozen=True)
class Entry:
    """One entry as a listing shows it. size: bytes. used: when it was last used, where the store keeps that, else written,
    in seconds since 1970."""

    name: str
    size: int
    used: float


class Store(Protocol):
    """Where entries are. Names are relative paths with `/`. Every method may raise OSError when the store cannot be reached."""

    url: str

    def read(self, name: str) -> bytes | None:
        """The bytes of an entry, None when there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Make or replace an entry: readers see the old bytes or the new ones."""

    def delete(self, name: str) -> None:
        """Remove an entry; one that is gone already is no error."""

    def touch(self, name: str) -> None:
        """Note that an entry was used, where the store can."""

    def entries(self) -> Iterator[Entry]:
        """All entries, in no order."""


def seal(payload: bytes) -> bytes:
    """The bytes of an entry: a checksum, then the payload."""
    return hashlib.sha256(payload).digest() + payload


def unseal(data: bytes) -> bytes | None:
    """The payload of an entry, None when a byte of it is missing or another."""
    digest, payload = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    return payload if hashlib.sha256(payload).digest() == digest else None
