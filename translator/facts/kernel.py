"""What is known of a kernel before anything is decided: its trace, the operations that Triton placed, and its launch."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from typing import Any

from gluonize.facts.integers.given_launches import GivenNumbers
from gluonize.facts.integers.host_bounds import Condition
from gluonize.read.names.file_names import words_in
from gluonize.rules.builtins import BUILTINS
from gluonize.rules.rows import RuleSet
from gluonize.rules.targets import Target
from gluonize.trace.front.trace import Trace
from gluonize.trace.model.layouts import Bases
from gluonize.trace.passes.anchors import Anchors


@dataclass(frozen=True, eq=False)
class KernelFacts:
    """One launch of one kernel, shared by all its functions.

    small_pointers: parameters whose storage is known to be within 2 GiB. divisible: integer parameters that are multiples of 16, and strides of descriptors, as `desc.strides.0`.
    num_ctas: workgroups of a program, a cluster where more than one.
    staging: Triton's staged loads. operands_in_lds: initialised LDS buffers. rows: gathers and scatters of the data mover.
    descriptor_layouts: of tensor descriptors' tiles in LDS, by path of the visit or name of the argument. loops: whether
    Triton's final module has one. lds_bytes: of Triton's kernel, 0 where that does not matter; loop_lds: of its loops beside
    rings, by path of loads. given: numbers of the launches that it is translated for, and defaults. loose: whether its text
    is to be that of other sizes too; loads_once: whether what is loaded is moved, however little it is. Paths are chains of visits of calls that end in the operation's.
    """

    trace: Trace
    anchors: Anchors
    target: Target
    num_warps: int
    small_pointers: frozenset[str]
    rules: RuleSet = BUILTINS
    divisible: frozenset[str] = frozenset()
    num_ctas: int = 1
    staging: dict[tuple[int, ...], Any] = field(default_factory=dict)
    buffer_atomics: frozenset[tuple[int, ...]] = frozenset()
    operands_in_lds: dict[tuple[int, ...], Any] = field(default_factory=dict)
    descriptor_layouts: dict[tuple[int | str, ...], Any] = field(default_factory=dict)
    rows: dict[tuple[int, ...], Any] = field(default_factory=dict)
    loops: bool = True
    lds_bytes: int = 0
    loop_lds: dict[tuple[int, ...], int] = field(default_factory=dict)
    given: tuple[GivenNumbers, ...] = ()
    loose: bool = False
    loads_once: bool = False

    @functools.cached_property
    def given_negative(self) -> frozenset[str]:
        """Arguments that a launch it is translated for makes negative, or a default does."""
        return frozenset(name for launch in self.given for name, value in launch.numbers.items() if value < 0)

    def given_extreme(self, least: float, most: float) -> frozenset[str]:
        """Arguments to which a launch it is translated for gives a number that is not from `least` to `most`, or a default does."""
        every = [item for launch in self.given for item in (*launch.numbers.items(), *launch.floats.items())]
        return frozenset(name for name, value in every if not least <= value <= most)

    def refuses(self, condition: Condition) -> bool:
        """Whether checking `condition` would refuse a launch that it is translated for."""
        return any(launch.breaks(condition) for launch in self.given)

    def whole(self, rank: int) -> Bases:
        """How the CTAs of a cluster share a tensor that each of them has whole; () for a program of one workgroup."""
        return ((0,) * rank,) * (self.num_ctas.bit_length() - 1)

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
        return frozenset().union(*(words_of(frame.fn.file_name or "", frame.fn.src) for frame in self.trace.frames))

    @property
    def buffer_module(self) -> str:
        """The Gluon module whose buffer operations serve this target."""
        return self.target.buffer_module

    @property
    def dot_module(self) -> str:
        return self.target.gluon_module


@functools.lru_cache(maxsize=64)
def words_of(path: str, source: str) -> frozenset[str]:
    """Every word of a function's file and source."""
    text = ""
    if os.path.isfile(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
    return words_in(text) | words_in(source)
