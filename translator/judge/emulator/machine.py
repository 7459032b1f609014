"""Runs workgroups with the emulator's instructions. For the emulator's process alone: it imports the checkout.

Of the emulator this takes the state of a wave and one compiled function per instruction. The order of waves and workgroups, barriers,
memory and the clock are here: a wave goes on until it waits at a barrier, ends, or has had its turn.
"""

from __future__ import annotations

import ctypes
import inspect
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import ContextManager

from gluonize.judge.emulator import registers
from gluonize.judge.emulator.checkout import TRIED
from gluonize.judge.emulator.guarded import LDS_WINDOW, Pages, tensor
from gluonize.judge.emulator.instructions import high_halves, lane_moves
from gluonize.judge.emulator.instructions.buffers import CDNA, RDNA4
from gluonize.judge.emulator.instructions.lanes import Lanes
from gluonize.judge.emulator.instructions.own import Own, own_instruction
from gluonize.judge.emulator.request import PLACE, Done, Run, Stopped
from gluonize.rules.targets import target as target_row

TURN = 2000  # instructions that a wave runs before another one has its turn
TTMP8, WAVE_BIT = 116, 25  # where gfx12 has the number of a wave in its workgroup; LLVM, `llvm.amdgcn.wave.id`
WORD_BYTES = 16  # more than the longest instruction
# What is used of `test.mockgpu.amd.emu`: function -> its parameters, None for what is no function.
INTERFACE = {
    "_init_wave": (
        "lib wave_start total_threads lx ly lz args_ptr rsrc2 scratch_size arch gidx gidy gidz user_data wave_size"
    ),
    "_decode_at": "pc arch",
    "_wave_size": "arch",
    "_op_name": "inst",
    "decode_inst": "data arch",
    "ir3": None,
    "ir4": None,
    "irc": None,
    "ENDPGM_PC": None,
    "_BARRIER_OPS": None,
}


class Refusal(Exception):
    """A run that cannot go on; `stopped` says why."""

    def __init__(self, stopped: Stopped):
        super().__init__(stopped.why)
        self.stopped = stopped


def load() -> object:
    """The emulator's module. Raises: Refusal `interface` or `start`."""
    try:
        from test.mockgpu.amd import emu

        from tinygrad.device import Device

        Device["CPU"]  # makes its own functions with a compiler, which may not be there
    except Exception as error:  # whatever goes wrong in foreign code says why it cannot be used
        raise Refusal(Stopped("start", f"{type(error).__name__}: {error}")) from error
    for name, parameters in INTERFACE.items():
        found = getattr(emu, name, None)
        if found is None:
            raise _other(f"it has no {name}")
        if parameters is not None and (has := " ".join(inspect.signature(found).parameters)) != parameters:
            raise _other(f"its {name} takes ({has.replace(' ', ', ')})")
    return emu


def _other(why: str) -> Refusal:
    return Refusal(Stopped("interface", f"{why}; its interface was tried with commit {TRIED[:12]}"))


@dataclass(frozen=True)
class Step:
    """One instruction. execute(wave): run it for a wave. barrier: the wave waits behind it. place: for the file of places."""

    execute: Callable[[Wave], None]
    barrier: bool
    place: tuple[int, bytes]


class Program:
    """A code object in memory, decoded as far as it has run."""

    def __init__(self, emulator, run: Run):
        self.emulator, self.run = emulator, run
        self.architecture = target_row(run.target).emulated_as
        self.steps: dict[int, Step] = {}
        self.places: list[Pages] = []  # code that is made here
        self.pages = Pages(max(s.address + s.size for s in run.segments) + WORD_BYTES)
        for segment in run.segments:
            self.pages.write(segment.data, segment.address)
        self.entry = self.pages.address + run.entry

    def step(self, pc: int) -> Step:
        """The instruction at an address. Raises: Refusal `unknown-instruction`, `fault`."""
        at = pc - self.pages.address
        if not 0 <= at < self.pages.size:
            raise Refusal(Stopped("fault", f"it jumps to {pc:#x}, outside of its code"))
        try:
            made = self._made(pc, at)
        except Exception as error:  # whatever the emulator raises says that it cannot do this instruction
            raise Refusal(_unknown(error, at, ctypes.string_at(pc, 8))) from error
        self.steps[pc] = made
        return made

    def _made(self, pc: int, at: int) -> Step:
        data, is_rdna = ctypes.string_at(pc, WORD_BYTES), self.architecture != CDNA
        if (move := lane_moves.decode_move(data, is_rdna, self._has_halves)) is not None:
            return self._rewritten(move.plain, move.size, at, lambda wave: lane_moves.moved(move, wave.lanes))
        if not is_rdna and (longer := high_halves.in_long_form(data, self._has_halves)) is not None:
            return self._rewritten(longer, high_halves.SIZE, at, lambda wave: nullcontext())
        if (own := own_instruction(self.emulator, data, self.run.target)) is not None:
            return Step(_done_here(own), False, (at, own.name.lower().encode()))
        (program, runtime), instruction = self.emulator._decode_at(pc, self.architecture)
        barrier = getattr(instruction, "op", None) in self.emulator._BARRIER_OPS
        name = self.emulator._op_name(instruction).lower().encode()
        return Step(_compiled(runtime.fxn, program.arg.globals), barrier, (at, name))

    def _rewritten(self, code: bytes, size: int, at: int, around: Callable[[Wave], ContextManager]) -> Step:
        """Run `code`, which gets a place of its own, for an instruction of `size` bytes, in the context that `around` gives."""
        place = Pages(len(code) + WORD_BYTES)
        place.write(code)
        self.places.append(place)
        made = self._made(place.address, at)

        def execute(wave: Wave) -> None:
            with around(wave), wave.lanes.elsewhere(place.address):
                made.execute(wave)
            wave.lanes.advance(size)

        return Step(execute, False, made.place)

    def _has_halves(self, plain: bytes) -> bool:
        """Whether an instruction works on 16 bits, so that its registers may be halves."""
        instruction = self.emulator.decode_inst(plain + bytes(WORD_BYTES), self.architecture)
        return "16" in self.emulator._op_name(instruction)

    def close(self) -> None:
        for pages in (self.pages, *self.places):
            pages.close()


def _compiled(function, buffers: list[int]) -> Callable[[Wave], None]:
    return lambda wave: function(*[wave.addresses[i] for i in buffers])


def _done_here(own: Own) -> Callable[[Wave], None]:
    def execute(wave: Wave) -> None:
        own.execute(wave.lanes)
        wave.lanes.advance(own.size)

    return execute


def _unknown(error: Exception, at: int, data: bytes) -> Stopped:
    words = " ".join(f"{word:08x}" for word in struct.unpack("<2I", data))
    said = str(error).splitlines()[0] if str(error) else type(error).__name__
    return Stopped("unknown-instruction", said[:300], f"{words} at offset {at:#x}")


class Wave:
    """State of one wave, and the addresses that the emulator's functions take."""

    def __init__(self, state, lds: Pages, scratch: Pages | None, lanes: int):
        self.state, self.scratch = state, scratch
        self.waits = self.ended = False
        self.addresses = [
            ctypes.c_uint64(address)
            for address in (
                state.sgpr_buf._buf.va_addr,
                state.vgpr_buf._buf.va_addr,
                0,
                lds.address,
                scratch.address if scratch else 0,
                state.accvgpr_buf._buf.va_addr,
            )
        ]
        scalars, vectors, _, shared, _, accumulators = (address.value for address in self.addresses)
        self.lanes = Lanes(scalars, vectors, accumulators, shared, lanes)


class Machine:
    """Runs what a request asks for. place: the mapped file in which the parent reads what runs."""

    def __init__(self, emulator, place):
        self.emulator, self.place = emulator, place
        self.count = 0
        self.deadline = 0.0

    def run(self, run: Run) -> Done | Stopped:
        """All programs of a request, on tensors of their own."""
        self.count, self.deadline = 0, time.monotonic() + run.seconds
        pages = [tensor(data) for data in run.tensors]
        try:
            with registers.prepared(run, [p.address for p in pages]) as prepared:
                program = Program(self.emulator, run)
                groups = (self._workgroup(program, prepared, number) for number in run.programs)
                self._in_turns(groups) if run.turns else self._in_order(groups)
                program.close()
            after = [p.read() for p in pages]
        except Refusal as refusal:
            return refusal.stopped
        except NotImplementedError as lacking:  # found out while an instruction is done here
            return Stopped("unknown-instruction", str(lacking))
        finally:
            for p in pages:
                p.close()
        return Done(tuple(None if a == b else a for a, b in zip(after, run.tensors)), self.count)

    def _in_order(self, groups) -> None:
        for group in groups:
            for _ in group:
                self._check_time()

    def _in_turns(self, groups) -> None:
        live = list(groups)
        while live:
            self._check_time()
            live = [group for group in live if next(group, self) is not self]

    def _check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise Refusal(Stopped("out-of-time", "the emulator did not come to the end in time"))

    def _workgroup(self, program: Program, prepared: registers.Prepared, number: int) -> Iterator[None]:
        """Run one workgroup; gives its turn away after each round of its waves."""
        waves, lds = self._waves(program, prepared, number)
        try:
            while any(not wave.ended for wave in waves):
                for wave in waves:
                    if not wave.ended and not wave.waits:
                        self._turn(program, wave, number)
                if all(wave.ended or wave.waits for wave in waves):
                    for wave in waves:
                        wave.waits = False
                yield
        finally:
            lds.close()
            for wave in waves:
                if wave.scratch is not None:
                    wave.scratch.close()

    def _waves(self, program: Program, prepared: registers.Prepared, number: int) -> tuple[list[Wave], Pages]:
        """The waves of a workgroup at their first instruction. LDS holds NaN, and any 32-bit address is within the mapping:
        the emulator also writes back what lanes that are turned off point to."""
        run, emulator = program.run, self.emulator
        lanes = emulator._wave_size(program.architecture)
        lds = Pages(LDS_WINDOW + WORD_BYTES)
        lds.fill(0xFF, run.lds)
        x, y, _ = run.grid
        place = (number % x, number // x % y, number // (x * y))
        waves = []
        for first in range(0, run.block, lanes):
            state = emulator._init_wave(
                program.entry, first, run.block, run.block, 1, 1, prepared.kernarg, run.resource2, run.scratch,
                program.architecture, *place, prepared.user_data, lanes,
            )  # fmt: skip
            wave = Wave(state, lds, Pages(run.scratch * lanes) if run.scratch else None, lanes)
            if program.architecture == RDNA4:
                wave.lanes.scalars[TTMP8] = first // lanes << WAVE_BIT
            waves.append(wave)
        return waves, lds

    def _turn(self, program: Program, wave: Wave, number: int) -> None:
        """Run one wave until it waits, ends, or has had its turn."""
        state, steps, end = wave.state, program.steps, self.emulator.ENDPGM_PC
        for _ in range(TURN):
            pc = state.pc
            if pc == end:
                wave.ended = True
                return
            step = steps.get(pc) or program.step(pc)
            at, name = step.place
            struct.pack_into(PLACE, self.place, 0, at, number, name)
            step.execute(wave)
            self.count += 1
            if step.barrier:
                wave.waits = True
                return
