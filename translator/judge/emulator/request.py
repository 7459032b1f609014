"""What is asked of the emulator's process, and what it answers: plain data, sent as frames."""

from __future__ import annotations

from dataclasses import dataclass, field

from gluonize.judge.device.code_object import Segment
from gluonize.judge.emulator.kernarg import Kernarg

PLACE = "<QI40s"  # what runs now, in a file that both processes map: offset in the code, program, instruction
PLACE_BYTES = 4096


@dataclass(frozen=True)
class Run:
    """Workgroups of one code object on one set of tensors.

    target: which it is for. segments, entry, resource2, properties: of the code object. scratch, lds: bytes of a lane, of a
    workgroup. grid: workgroups; programs: which of them run, x fastest, one after the other or in turns. block: lanes of a
    workgroup. seconds: by the clock.
    """

    target: str
    segments: tuple[Segment, ...] = field(repr=False)
    entry: int
    resource2: int
    properties: int
    scratch: int
    lds: int
    kernarg: Kernarg = field(repr=False)
    tensors: tuple[bytes, ...] = field(repr=False)
    grid: tuple[int, int, int]
    programs: tuple[int, ...]
    block: int
    turns: bool
    seconds: float


@dataclass(frozen=True)
class Done:
    """All programs ran to their end. tensors: their bytes now, None where unchanged. steps: instructions of all waves."""

    tensors: tuple[bytes | None, ...] = field(repr=False)
    steps: int


@dataclass(frozen=True)
class Stopped:
    """A run that did not end, or an emulator that cannot be used. `kind` is one of

    * `interface`: the checkout is of another version than the one that was tried;
    * `start`: it cannot be imported, or has no compiler for its own use;
    * `unknown-instruction`: it lacks an instruction, or cannot make one of its own code;
    * `registers`: the code object wants something to be set that is not;
    * `fault`: an access outside of all tensors; `crash`: the process ended in another way;
    * `out-of-time`.

    instruction: where it stopped, as the emulator prints it.
    """

    kind: str
    why: str
    instruction: str = ""
