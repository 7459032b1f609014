"""Values on a pipe between two processes of ours: an 8-byte little-endian length and a pickle."""

from __future__ import annotations

import os
import pickle
import select
import time
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


def wait_for_frame(stream: BinaryIO, deadline: float) -> Any:
    """The next frame of an unbuffered pipe, None at the deadline (of `time.monotonic`, in seconds). Raises: EOFError at the pipe's end."""
    data, wanted = bytearray(), HEADER_BYTES
    while len(data) < wanted:
        ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        chunk = os.read(stream.fileno(), 1 << 20)
        if not chunk:
            raise EOFError
        data += chunk
        if len(data) >= HEADER_BYTES:
            wanted = HEADER_BYTES + int.from_bytes(data[:HEADER_BYTES], "little")
    return pickle.loads(data[HEADER_BYTES:])
