"""One code object of a launch, ready to run in the emulator on one set of inputs after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gluonize.judge.device import code_object
from gluonize.judge.device.launch_arguments import arguments_of
from gluonize.judge.device.refusal import Refused
from gluonize.judge.emulator.kernarg import pack
from gluonize.judge.emulator.request import Done, Run
from gluonize.judge.inputs.bind import place_tensors
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.verdict.pair import SourceRun
from gluonize.trace.model.module import Module
from gluonize.trace.model.parse import parse_module

UNREAD = 0xA5  # what bytes start as that the source writes and never reads


@dataclass(frozen=True)
class Side:
    """`built` as `compile_native` returns it, its TTGIR parsed, for `target`."""

    built: dict
    module: Module
    target: str

    @classmethod
    def of(cls, built: dict, target: str) -> Side:
        return cls(built, parse_module(built["ttgir"]), target)

    def request(self, source: SourceRun, start: Memory, seconds: float) -> Run:
        """The run that does here what the source did on the reference machine. start: the tensors before it. Raises: Refused."""
        b = self.built
        if b["global_scratch"] or b["profile_scratch"]:
            raise Refused("scratch memory", "the emulator gives a launch none", "not-emulated")
        arguments = arguments_of(self.module, b["names"], source.inputs)
        if any(argument.get("descriptor") for argument in arguments):
            raise Refused("tensor descriptor argument", "the emulator has no host part of AMD's TDM", "not-emulated")
        kernel = code_object.check(b["code"], b["symbol"], arguments, b["block"], b["shared"], self.target)
        tensors = [buffer.name for buffer in start.buffers]
        lds = b["shared"] + kernel.static_lds
        return Run(
            target=self.target,
            segments=code_object.segments(b["code"]),
            entry=kernel.entry,
            resource2=kernel.resource2,
            properties=kernel.properties,
            scratch=kernel.scratch,
            lds=lds,
            kernarg=pack(kernel, arguments, tensors, source.grid, b["block"], lds),
            tensors=tuple(buffer.data.tobytes() for buffer in start.buffers),
            grid=source.grid,
            programs=source.programs,
            block=b["block"],
            turns=source.turns,
            seconds=seconds,
        )


def start_of(source: SourceRun) -> Memory:
    """The tensors before a run: what the source never reads is NaN, or `UNREAD` where no float is and it only writes."""
    memory = Memory()
    place_tensors(memory, source.inputs, source.memory)
    for buffer, known in zip(memory.buffers, source.memory.buffers):
        if known.changed is None:
            continue
        item = len(known.data) // known.seen.size if known.seen.size else 1
        read = np.repeat(known.seen, item)[: len(known.data)]
        buffer.data[known.touched(known.changed) & ~read & ~_floats(buffer.element, len(read))] = UNREAD
    return memory


def _floats(element: str, count: int) -> np.ndarray:
    return np.full(count, element[0] in "fb")


def end_of(start: Memory, done: Done) -> Memory:
    """The tensors after a run, with the bytes that differ as those that were written."""
    memory = Memory()
    for before, after in zip(start.buffers, done.tensors):
        data = before.data if after is None else np.frombuffer(after, np.uint8)
        buffer = memory.add(before.name, before.element, data)
        buffer.track(1)
        buffer.changed = buffer.data != before.data
    return memory
