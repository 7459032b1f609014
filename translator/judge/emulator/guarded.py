"""Tensors at addresses of their own in this process, with room around each that may not be touched.

A tensor ends where the guard behind it begins, less what keeps its start aligned to 16 bytes, so an access past its end is a
fault of the process and not a number. What is left of its pages holds NaN.
"""

from __future__ import annotations

import ctypes
import mmap

PAGE = mmap.PAGESIZE
GUARD = 1 << 32  # bytes around a tensor: what a 32-bit offset reaches
ALIGNMENT = 16  # bytes: what a launch promises of a pointer that is divisible by 16
LDS_WINDOW = 1 << 32  # bytes that a 32-bit LDS address reaches
PROT_NONE, PROT_READ, PROT_WRITE = 0, 1, 2
MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE = 2, 0x20, 0x4000
MAP_FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Pages:
    """`size` bytes of zeros from `address` on, between two guards of `guard` bytes; freed when closed."""

    def __init__(self, size: int, guard: int = PAGE, end_aligned: bool = False):
        pages = max(1, -(-size // PAGE))
        self._length = pages * PAGE + 2 * guard
        flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        base = _libc.mmap(None, self._length, PROT_NONE, flags, -1, 0)
        if base in (None, MAP_FAILED):
            raise MemoryError(f"no room for {size} bytes")
        self._base = base
        self.first, self.room = base + guard, pages * PAGE
        if _libc.mprotect(self.first, self.room, PROT_READ | PROT_WRITE):
            raise MemoryError(f"no room for {size} bytes")
        self.size = size
        filled = -(-size // ALIGNMENT) * ALIGNMENT
        self.address = self.first + (self.room - filled if end_aligned else 0)

    def write(self, data: bytes, at: int = 0) -> None:
        ctypes.memmove(self.address + at, data, len(data))

    def read(self) -> bytes:
        return ctypes.string_at(self.address, self.size)

    def fill(self, value: int, size: int | None = None) -> None:
        """Set bytes of the whole room, or its first `size`, to `value`."""
        ctypes.memset(self.first, value, self.room if size is None else size)

    def close(self) -> None:
        if self._length:
            _libc.munmap(self._base, self._length)
            self._length = 0

    def __enter__(self) -> Pages:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def tensor(data: bytes) -> Pages:
    """A tensor's storage; the guard is behind its last byte, less up to 15."""
    pages = Pages(len(data), GUARD, end_aligned=True)
    pages.fill(0xFF)
    pages.write(data)
    return pages
