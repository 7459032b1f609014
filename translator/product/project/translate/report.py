"""What became of one output file and of each of its launches, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

from gluonize.diagnostics import Diagnostic
from gluonize.judge.cycles.clocks import GATE, Clocks
from gluonize.judge.lower.compile import Lowered
from gluonize.judge.lower.parity import Parity
from gluonize.product.project.launches.judge import HostLaunch
from gluonize.product.project.translate.plan import PlannedFile
from gluonize.read.launches.table import Derivation
from gluonize.request import LaunchOutcome


@dataclass(frozen=True)
class CheckedLaunch:
    """One launch after its checks. status, diagnostics: as in the JSON results. clocks: predicted, where both sides have a loop with
    products. validation: {"status": ...}."""

    outcome: LaunchOutcome
    status: str
    diagnostics: tuple[Diagnostic, ...] = ()
    gluon: Lowered | None = None
    triton: Lowered | None = None
    parity: Parity | None = None
    clocks: Clocks | None = None
    validation: dict = field(default_factory=lambda: {"status": "skipped"}, hash=False)

    @property
    def worse(self) -> tuple[str, ...]:
        """One line for each figure in which the translation is worse than Triton's compile. Clocks decide where they are known: a loop that
        takes no more of them may have more instructions or barriers."""
        if self.parity is None:
            return ()
        every = self.parity.worse()
        if self.clocks is not None and self.clocks.ratio <= 1:
            every = {kind: lines for kind, lines in every.items() if kind not in _OF_LOOPS}
        slower = self.clocks.above(GATE) if self.clocks is not None else ""
        return tuple(filter(None, (slower, *(line for lines in every.values() for line in lines))))

    def parity_json(self) -> dict | None:
        """As in the JSON results."""
        if self.parity is None:
            return None
        return self.parity.as_json() | (self.clocks.as_json() if self.clocks else {})


_OF_LOOPS = ("instructions", "mma", "barriers")


@dataclass(frozen=True)
class FileReport:
    """What became of one output file. text: still to be written; output: its path once written, else None.
    status: `mismatch` where the text computes something else than the source. bug: an internal error, as text.
    derivations: how launches that were not given were found. host_launches: those that stand in host code."""

    planned: PlannedFile
    status: str
    launches: tuple[CheckedLaunch, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    text: str | None = None
    output: str | None = None
    seconds: float = 0.0
    elapsed: float = 0.0
    bug: str = ""
    derivations: tuple[Derivation, ...] = ()
    host_launches: tuple[HostLaunch, ...] = ()

    @property
    def validations(self) -> list[dict]:
        """What the reference machine says of each launch that was translated."""
        return [x.validation for x in self.launches if x.status == "translated"]

    @property
    def clocks(self) -> list[Clocks]:
        """What is predicted of each launch that was translated, where both sides have a loop with products."""
        return [x.clocks for x in self.launches if x.status == "translated" and x.clocks is not None]

    @property
    def bugs(self) -> list[str]:
        """Internal errors, of the translation and of its validation, as text."""
        return [text for text in (self.bug, *(found.get("bug", "") for found in self.validations)) if text]
