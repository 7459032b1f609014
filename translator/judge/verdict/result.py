"""What a validation found, as data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gluonize.judge.machine.coverage import Coverage
from gluonize.judge.machine.hazards import Finding
from gluonize.judge.verdict.compare import TensorComparison

RACE = "the source has a race: "  # begins a note
FINITE = 1.7e308  # JSON has no infinity


@dataclass(frozen=True)
class ValidationResult:
    """`status` is one of

    * `validated`: both sides ran, outputs agree, no hazard was found;
    * `mismatch`: outputs differ;
    * `hazard`: the translation did what no correct kernel does (`hazards`), whatever its numbers;
    * `not_runnable`: the machine lacks something (`op`, `reason`), or the launch cannot be run.

    `source_hazards` are what a source that is Gluon does so itself; they count against nobody. `variant` is the input variant that decided, "" for the launch as given. `notes` are remarks that fail nothing. `variants`
    are the inputs that both sides ran beside the launch's, `passed_over` those that say nothing about the translation, each
    with the reason. `made_up` are the numbers of a launch that gave none (`gluonize.judge.inputs.made_up`). `coverage` is what ran of the source on inputs that were judged. `settled`: the launch is proved, so that no more inputs were to run. `file` and `line` of a mismatch are where the first wrong element was stored last.
    """

    status: str
    reason: str = ""
    op: str = ""
    variant: str = ""
    hazards: tuple[Finding, ...] = ()
    source_hazards: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    tensors: tuple[TensorComparison, ...] = ()
    programs: int = 0
    grid: int = 0
    variants: tuple[str, ...] = ()
    passed_over: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
    file: str = ""
    line: int = 0
    trips: dict[int, tuple[int, ...]] = field(default_factory=dict, hash=False)
    made_up: dict[str, float] = field(default_factory=dict, hash=False)
    coverage: Coverage = field(default_factory=Coverage, hash=False)
    settled: bool = False

    @property
    def bitwise(self) -> bool:
        return bool(self.tensors) and all(t.bitwise for t in self.tensors)

    def as_json(self) -> dict:
        """For `--json`: a hazard counts as a mismatch there, with the hazards beside it."""
        return {
            "status": "mismatch" if self.status == "hazard" else self.status,
            "found": self.status,
            "reason": self.reason,
            "op": self.op,
            "variant": self.variant,
            "file": self.file,
            "line": self.line,
            "hazards": [h.as_json() for h in self.hazards],
            "source_hazards": [h.as_json() for h in self.source_hazards],
            "notes": list(self.notes),
            "made_up": self.made_up,
            "bitwise": self.bitwise,
            "tensors": [
                {
                    "name": t.name,
                    "compared": t.compared,
                    "wrong": t.wrong,
                    "racing": t.racing,
                    "error": min(t.error, FINITE),
                }
                for t in self.tensors
            ],
            "programs": self.programs,
            "grid": self.grid,
            "variants": list(self.variants),
            "passed_over": [{"variant": variant, "why": why} for variant, why in self.passed_over],
            "seconds": round(self.seconds, 4),
            "coverage": replace(self.coverage, proved=self.settled).as_json() if self.status == "validated" else None,
        }
