"""What is known of a kernel before anything is decided: its trace, the operations that Triton placed, and its launch."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass, field
from typing import Any

from rules.builtins import BUILTINS
from rules.rows import RuleSet
from rules.targets import Target
from translator.frontend.anchors import Anchors
from translator.frontend.trace import Trace


@dataclass(frozen=True, eq=False)
class KernelFacts:
    """One launch of one kernel, shared by all its functions.

    small_pointers: parameters whose storage is known to be within 2 GiB. divisible: integer parameters that are multiples of 16.
    staging: Triton's staged loads. operands_in_lds: initialised LDS buffers. rows: gathers and scatters of the data mover.
    descriptor_layouts: of tensor descriptors' tiles in LDS, by path of the visit or name of the argument. loops: whether
    Triton's final module has one. lds_bytes: of Triton's kernel, 0 where that does not matter; loop_lds: of its loops beside
    rings, by path of loads. Paths are chains of visits of calls that end in the operation's.
    """

    trace: Trace
    anchors: Anchors
    target: Target
    num_warps: int
    small_pointers: frozenset[str]
    rules: RuleSet = BUILTINS
    divisible: frozenset[str] = frozenset()
    staging: dict[tuple[int, ...], Any] = field(default_factory=dict)
    buffer_atomics: frozenset[tuple[int, ...]] = frozenset()
    operands_in_lds: dict[tuple[int, ...], Any] = field(default_factory=dict)
    descriptor_layouts: dict[tuple[int | str, ...], Any] = field(default_factory=dict)
    rows: dict[tuple[int, ...], Any] = field(default_factory=dict)
    loops: bool = True
    lds_bytes: int = 0
    loop_lds: dict[tuple[int, ...], int] = field(default_factory=dict)

    @functools.cached_property
    def multiplies(self) -> bool:
        """Whether the kernel has matrix products."""
        return any(op.name in ("tt.dot", "tt.dot_scaled") for op in self.anchors.ops)

    @property
    def only_multiplies(self) -> bool:
        """Whether the kernel has matrix products and no loop."""
        return not self.loops and self.multiplies

    @functools.cached_property
    def words(self) -> frozenset[str]:
        """Every word of the files that the kernel's functions are in: what the output adds gets another name."""
        return frozenset().union(*(_words(frame.fn.file_name or "", frame.fn.src) for frame in self.trace.frames))

    @property
    def buffer_module(self) -> str:
        """The Gluon module whose buffer operations serve this target."""
        return self.target.buffer_module

    @property
    def dot_module(self) -> str:
        return self.target.gluon_module


@functools.lru_cache(maxsize=64)
def _words(path: str, source: str) -> frozenset[str]:
    text = ""
    if os.path.isfile(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
    return frozenset(re.findall(r"\w+", text) + re.findall(r"\w+", source))
