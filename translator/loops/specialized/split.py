"""What taking a warp-specialized loop apart has to know of it, and what it may find against it."""

from __future__ import annotations

from dataclasses import dataclass


class CannotSplit(Exception):
    """Why a loop cannot be taken apart."""


@dataclass(frozen=True)
class PartitionFunction:
    """The source of a partition: it has none. Stands where a translated helper names its source function."""

    __name__: str
    src: str = ""
    file_name: str = ""
    def_file_line_number: int = 0
    noinline: bool = False


@dataclass(frozen=True)
class Split:
    """One loop to take apart. counter: of its iterations, where its index is no such; else empty.

    rings: LDS buffers of each group; barriers: ready and empty of each group.
    twins: what the producer's versions of shared variables are called, and the names they may have where they are alone.
    tensors: names known to be tensors.
    """

    index: str
    counter: str
    rings: tuple[tuple[str, ...], ...]
    barriers: tuple[tuple[str, str], ...]
    slot: str
    phase: str
    barrier_module: str
    producer_warps: int
    twins: tuple[tuple[str, str], ...]
    tensors: frozenset[str]
