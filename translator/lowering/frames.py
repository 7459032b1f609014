"""Values on a pipe between two processes of ours: an 8-byte little-endian length and a pickle."""

from __future__ import annotations

import pickle
from typing import Any, BinaryIO

HEADER_BYTES = 8


def write_frame(stream: BinaryIO, value: Any) -> None:
    """Send one value; raises what pickle raises before anything is written."""
    data = pickle.dumps(value)
    stream.write(len(data).to_bytes(HEADER_BYTES, "little") + data)
    stream.flush()


def read_frame(stream: BinaryIO) -> Any:
    """Receive one value. Raises EOFError when the other side is gone."""
    header = stream.read(HEADER_BYTES)
    size = int.from_bytes(header, "little")
    data = stream.read(size) if len(header) == HEADER_BYTES else b""
    if not header or len(data) < size:
        raise EOFError
    return pickle.loads(data)
