"""Several named files as the bytes of one entry."""

from __future__ import annotations

import json
import zlib

_HEADER_BYTES = 8


def pack(files: dict[str, bytes]) -> bytes:
    """The length of a table of names and sizes, the table as JSON, then the files one after another; compressed."""
    table = json.dumps([[name, len(data)] for name, data in files.items()]).encode()
    return zlib.compress(len(table).to_bytes(_HEADER_BYTES, "little") + table + b"".join(files.values()), 1)


def unpack(payload: bytes) -> dict[str, bytes] | None:
    """The inverse of `pack`; None for bytes that it did not make, and for names that are paths."""
    try:
        data = zlib.decompress(payload)
        start = _HEADER_BYTES + int.from_bytes(data[:_HEADER_BYTES], "little")
        files = {}
        for name, size in json.loads(data[_HEADER_BYTES:start]):
            if "/" in name or name in ("", ".", ".."):
                return None
            files[name] = data[start : start + size]
            start += size
    except (zlib.error, ValueError, TypeError):
        return None
    return files if start == len(data) else None
