"""What the runs of both code objects say together.

| source's code object | translation's | verdict |
|---|---|---|
| agrees with the reference machine | agrees | validated |
| agrees | differs, or leaves its tensors | mismatch |
| differs, or does not run | agrees | validated, with a note |
| differs | differs | nothing: emulator, compiler or reference machine are at fault |
| any | cannot be run | nothing |
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gluonize.judge.emulator.request import Stopped
from gluonize.judge.verdict.compare import TensorComparison
from gluonize.judge.verdict.result import FINITE

CANNOT_SHOW = ("missing waits", "races between waves", "bank conflicts", "speed")
AT_FAULT = ("fault", "crash")  # runs that were stopped by what the kernel did


@dataclass(frozen=True)
class SideResult:
    """One code object on one set of inputs: tensors compared with the reference machine's, or why it stopped."""

    tensors: tuple[TensorComparison, ...] = ()
    stopped: Stopped | None = None

    @property
    def agrees(self) -> bool:
        return self.stopped is None and not any(t.wrong for t in self.tensors)

    @property
    def wrong(self) -> bool:
        """It ran, and did what the source does not."""
        return self.stopped.kind in AT_FAULT if self.stopped else any(t.wrong for t in self.tensors)

    def why(self) -> str:
        """What is wrong with it, or that nothing is."""
        if self.stopped is not None:
            where = f" ({self.stopped.instruction})" if self.stopped.instruction else ""
            return f"{self.stopped.kind}: {self.stopped.why}{where}"
        return next((str(t) for t in self.tensors if t.wrong), "agrees")


@dataclass(frozen=True)
class Verdict:
    """`status` is validated, mismatch or not_runnable, and `variant` the inputs that decided. inputs: how many sets ran.

    source, translation: what became of each code object there. instruction: the one that the emulator lacks.
    """

    status: str
    reason: str = ""
    variant: str = ""
    inputs: int = 0
    source: str = ""
    translation: str = ""
    instruction: str = ""
    notes: tuple[str, ...] = ()
    tensors: tuple[TensorComparison, ...] = field(default=(), repr=False)

    def as_json(self) -> dict:
        tensors = [
            {"name": t.name, "compared": t.compared, "wrong": t.wrong, "error": min(t.error, FINITE)}
            for t in self.tensors
        ]
        return {
            "status": self.status,
            "reason": self.reason,
            "variant": self.variant,
            "inputs": self.inputs,
            "source": self.source,
            "translation": self.translation,
            "instruction": self.instruction,
            "notes": list(self.notes),
            "tensors": tensors,
            "cannot_show": list(CANNOT_SHOW),
        }


def judge(source: SideResult, translation: SideResult, variant: str) -> Verdict:
    """The verdict on one set of inputs."""
    said = dict(variant=variant, inputs=1, source=source.why(), translation=translation.why())
    stopped = next((s.stopped for s in (translation, source) if s.stopped and not s.wrong), None)
    lacking = stopped.instruction if stopped and stopped.kind == "unknown-instruction" else ""
    if translation.agrees:
        note = () if source.agrees else (f"Triton's own compile of the source: {source.why()}",)
        return Verdict("validated", notes=note, tensors=translation.tensors, **said)
    if translation.wrong and source.agrees:
        return Verdict(
            "mismatch", f"the translation's machine code: {translation.why()}", tensors=translation.tensors, **said
        )
    if stopped is not None:
        return Verdict(
            "not_runnable",
            said["translation" if stopped is translation.stopped else "source"],
            instruction=lacking,
            **said,
        )
    reason = f"Triton's own compile of the source differs from the reference machine too: {source.why()}"
    return Verdict("not_runnable", reason, tensors=translation.tensors, **said)
