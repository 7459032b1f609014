"""Follows a validation: each set of inputs that the source ran on, on the reference machine, runs on both code objects too."""

from __future__ import annotations

import time
from dataclasses import replace

from gluonize.judge.device.bundles.expected import APPROXIMATE, APPROXIMATION
from gluonize.judge.device.refusal import Refused
from gluonize.judge.emulator.request import Stopped
from gluonize.judge.emulator.session import Session
from gluonize.judge.emulator.sides import Side, end_of, start_of
from gluonize.judge.emulator.verdict import SideResult, Verdict, judge
from gluonize.judge.inputs.inputs import Tensor
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.verdict.compare import compare
from gluonize.judge.verdict.pair import SourceRun

FOR_ALL_INPUTS = ("interface", "start", "registers", "unknown-instruction", "not-emulated")


class EmulatedLaunch:
    """Both code objects of one launch. `seconds` is the time for all sets of inputs together, by the clock."""

    def __init__(self, session: Session, source: Side, translation: Side, seconds: float):
        self.session, self.source, self.translation = session, source, translation
        self.end = time.monotonic() + seconds
        self.slack = APPROXIMATION if source.module.has(*APPROXIMATE) else 0.0
        self.ran = self.left_out = 0
        self.not_held = ""  # why inputs cannot be in the emulator's memory
        self.decided: Verdict | None = None  # a verdict that no more inputs change
        self.notes: list[str] = []
        self.unclear: Verdict | None = None
        self.agreed: Verdict | None = None
        self.last: Verdict | None = None

    def observe(self, run: SourceRun) -> None:
        """Run both code objects on what the source ran on.

        Where tensors overlap in one storage it depends on the order of waves what they do, and a storage of gibibytes is not there.
        """
        storages = run.inputs.storages()
        if self.decided is not None:
            return
        if not_held := _not_held(storages):
            self.not_held = self.not_held or not_held
            return
        if self.last is not None and time.monotonic() > self.end:
            self.left_out += 1
            return
        other = replace(run, programs=run.translated, grid=run.translated_grid, inputs=run.translated_inputs)
        sides = [self._run(self.source, run, start_of(run)), self._run(self.translation, other, start_of(other))]
        found = judge(*sides, run.inputs.variant)
        self.ran += 1
        self.last = found
        self.notes += found.notes
        self.agreed = found if found.status == "validated" else self.agreed
        if found.status == "mismatch" or any(s.stopped and s.stopped.kind in FOR_ALL_INPUTS for s in sides):
            self.decided = found
        elif found.status == "not_runnable" and (run.inputs.variant == "" or not sides[0].wrong):
            self.unclear = self.unclear or found
        elif found.status == "not_runnable":
            self.notes.append(f"not compared with {run.inputs.variant}: {found.reason}")

    def verdict(self) -> Verdict:
        """What all inputs say together: the first that is wrong decides, then the first that says nothing.

        Variants on which Triton's own compile of the source differs from the reference machine are notes: where programs or
        lanes touch one element in an order that nothing defines, each may be right.
        """
        found = self.decided or self.unclear or self.agreed or self.last
        if found is None:
            return Verdict("not_runnable", self.not_held or "the reference machine ran the source on no inputs")
        notes = list(dict.fromkeys(self.notes))
        if self.left_out:
            notes.append(f"{self.left_out} more sets of inputs were not run: the time was over")
        return replace(found, inputs=self.ran, notes=tuple(notes))

    def _run(self, side: Side, run: SourceRun, start: Memory) -> SideResult:
        try:
            request = side.request(run, start, max(1.0, self.end - time.monotonic()))
        except Refused as refused:
            return SideResult(stopped=Stopped("not-emulated", str(refused)))
        done = self.session.run(request)
        if isinstance(done, Stopped):
            return SideResult(stopped=done)
        return SideResult(tuple(compare(run.memory, end_of(start, done), run.reduction, run.narrowest, self.slack)))


def _not_held(storages: list[list[Tensor]]) -> str:
    """Why the emulator is not given these tensors, "" where it is."""
    if any(views[0].pages is not None for views in storages):
        return "its tensors take gibibytes, which the emulator has no memory for: validate a launch with smaller ones"
    if any(len(views) > 1 for views in storages):
        return "its tensors overlap in one storage: what they hold depends on the order of waves"
    return ""
