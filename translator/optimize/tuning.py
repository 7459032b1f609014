"""What one candidate changes about the pipelined loops of a kernel; the default changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Tuning:
    """Transformations of pipelined loops and their parameters.

    num_buffers: LDS buffers of a ring, 0 for as many as Triton takes. matrix_size: rows and columns of the matrix
    instruction, 0 for Triton's. unroll: one copy of the body per buffer, so that ring indices are literals. prefetch:
    dot operands are read from LDS one iteration ahead. ping_pong: memory and matrix stages that two groups of warps
    alternate in. l2_ahead: tiles beyond the ring that the data mover asks for in the L2 cache. partitioned: halves of tiles
    in partitions of LDS that warps read at the same time. copied_stores: products leave through LDS by asynchronous copies.
    slices: parts of M and N that the accumulator of a dot is kept in. lean: slots in a form that the compiler can tell
    apart; a loop that runs at most once is a branch.
    """

    num_buffers: int = 0
    matrix_size: int = 0
    unroll: bool = False
    prefetch: bool = False
    ping_pong: bool = False
    slices: tuple[int, int] = (1, 1)
    lean: bool = False
    l2_ahead: int = 0
    partitioned: bool = False
    copied_stores: bool = False

    @property
    def is_parity(self) -> bool:
        """Whether nothing about the loops is changed."""
        return self == Tuning()

    @property
    def as_triton(self) -> bool:
        """Whether loops are written as Triton's compiler would, whatever their depth."""
        return replace(self, num_buffers=0).is_parity

    def __post_init__(self):
        assert self.num_buffers >= 0 and self.matrix_size in (0, 16, 32), f"{self.num_buffers}, {self.matrix_size}"
        assert all(n > 0 and n & (n - 1) == 0 for n in self.slices), f"slices {self.slices}"
        # Slices read LDS between matrix instructions; ping-pong keeps the two apart.
        assert not self.ping_pong or self.slices == (1, 1), "ping-pong with slices"

    @property
    def name(self) -> str:
        """`parity`, or the transformations in a word each, fit for a file name: `3-buffers_unrolled`."""
        words = [f"{self.num_buffers}-buffers"] * bool(self.num_buffers)
        words += [f"{self.matrix_size}x{self.matrix_size}"] * bool(self.matrix_size)
        words += [f"{self.slices[0]}x{self.slices[1]}-slices"] * (self.slices != (1, 1))
        words += ["unrolled"] * self.unroll + ["prefetch"] * self.prefetch + ["ping-pong"] * self.ping_pong
        words += ["copied-stores"] * self.copied_stores
        words += ["partitioned"] * self.partitioned + [f"l2-{self.l2_ahead}-ahead"] * bool(self.l2_ahead)
        return "_".join(words) or ("lean" if self.lean else "parity")
