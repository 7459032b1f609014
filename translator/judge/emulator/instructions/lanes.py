"""Registers, shared and global memory of one wave as arrays, for instructions that are done here and not by the emulator."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

PC, EXEC, M0_CDNA = 256, 126, 124  # indices of the scalar file; the program counter is the emulator's own
SCALARS, VECTORS = 260, 256
FIRST_VECTOR = 256  # the first operand that is a vector register
_LOWEST = 4096  # addresses below are in no process
_MEMORY = np.frombuffer((ctypes.c_uint8 * ((1 << 47) - _LOWEST)).from_address(_LOWEST), np.uint8)


def _words(address: int, count: int) -> np.ndarray:
    return np.frombuffer((ctypes.c_uint32 * count).from_address(address), np.uint32)


class Lanes:
    """scalars: 32-bit words. vectors, accumulators: register x lane; on RDNA one and the same. lds: address."""

    def __init__(self, scalars: int, vectors: int, accumulators: int, lds: int, count: int):
        self.count, self.lds = count, lds
        self.scalars = _words(scalars, SCALARS)
        self.vectors = _words(vectors, VECTORS * count).reshape(VECTORS, count)
        self.accumulators = _words(accumulators, VECTORS * count).reshape(VECTORS, count)

    def active(self) -> np.ndarray:
        """Which lanes are on: bool[count]."""
        words = self.scalars[EXEC : EXEC + self.count // 32]
        return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)

    def turn_on(self, lanes: np.ndarray) -> None:
        """Let just these lanes be on: bool[count]."""
        words = np.packbits(lanes, bitorder="little").view(np.uint32)
        self.scalars[EXEC : EXEC + words.size] = words

    def quad(self, register: int) -> tuple[int, int, int, int]:
        """Four scalar registers from an even one on."""
        return tuple(int(word) for word in self.scalars[register : register + 4])

    @contextmanager
    def elsewhere(self, address: int) -> Iterator[None]:
        """The program counter at `address`, and back."""
        kept = self.scalars[PC : PC + 2].copy()
        self.scalars[PC], self.scalars[PC + 1] = address & 0xFFFFFFFF, address >> 32
        yield
        self.scalars[PC : PC + 2] = kept

    def advance(self, size: int) -> None:
        """Go on behind an instruction of `size` bytes."""
        pc = int(self.scalars[PC]) + (int(self.scalars[PC + 1]) << 32) + size
        self.scalars[PC], self.scalars[PC + 1] = pc & 0xFFFFFFFF, pc >> 32


def load(addresses: np.ndarray, size: int) -> np.ndarray:
    """`size` bytes at each address: uint8[lane, size]. An address where no memory is ends the process."""
    return _MEMORY[_places(addresses, size)]


def store(addresses: np.ndarray, data: np.ndarray) -> None:
    """Bytes to each address, lane after lane. data: uint8[lane, size]."""
    _MEMORY[_places(addresses, data.shape[1])] = data


def _places(addresses: np.ndarray, size: int) -> np.ndarray:
    return addresses.astype(np.int64)[:, None] + np.arange(size) - _LOWEST
