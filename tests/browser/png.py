"""Reading the pixels of a screenshot: enough of PNG for what Chromium writes (8 bits, RGB or RGBA, not interlaced)."""

from __future__ import annotations

import struct
import zlib


def pixels(data: bytes) -> list[list[tuple[int, int, int]]]:
    """Rows of (red, green, blue)."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG"
    at, packed, width, height, channels = 8, b"", 0, 0, 0
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and color in (2, 6) and not interlaced, (depth, color, interlaced)
            channels = 3 if color == 2 else 4
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    raw, stride = zlib.decompress(packed), width * channels
    out, before = [], bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        line = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), before, channels)
        out.append([tuple(line[i : i + 3]) for i in range(0, stride, channels)])
        before = line
    return out


def _unfiltered(kind: int, line: bytearray, before: bytearray, channels: int) -> bytearray:
    for i in range(len(line)):
        left = line[i - channels] if i >= channels else 0
        up, corner = before[i], before[i - channels] if i >= channels else 0
        if kind == 1:
            line[i] = (line[i] + left) & 255
        elif kind == 2:
            line[i] = (line[i] + up) & 255
        elif kind == 3:
            line[i] = (line[i] + (left + up) // 2) & 255
        elif kind == 4:
            guess = left + up - corner
            best = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            line[i] = (line[i] + best) & 255
    return line


def brightness(rows: list[list[tuple[int, int, int]]]) -> float:
    """Mean of all channels, 0 to 255."""
    total = sum(sum(pixel) for row in rows[::8] for pixel in row[::8])
    return total / (3 * len(rows[::8]) * len(rows[0][::8]))
