"""What a check found of one generated file: is it current, and does it compute what its source does."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.diagnostics import Diagnostic
from gluonize.product.project.checks.check import FileState
from gluonize.product.project.checks.validation import ValidatedLaunch
from gluonize.product.project.output.verdict import clocks_said, level_of, proof_word, united_coverage


@dataclass(frozen=True)
class CheckedFile:
    """One file: its state, and with `--validate` what running its launches found; refused where the source has none."""

    state: FileState
    launches: tuple[ValidatedLaunch, ...] | None = None
    refused: tuple[Diagnostic, ...] = ()

    @property
    def level(self) -> str:
        """How far the file was validated or proved: now, else by its header; an edited text was not."""
        if self.launches is not None:
            if proof_word([launch.found for launch in self.launches]):
                return "proved"
            coverage = united_coverage([launch.found for launch in self.launches])
            return "none" if coverage is None else "partly" if coverage.gaps() else "fully"
        if self.state.edited or self.state.state not in ("current", "outdated"):
            return "none"
        with open(self.state.file.output, encoding="utf-8", errors="replace") as file:
            return level_of(file.read())

    @property
    def clocks(self) -> float | None:
        """Predicted clocks of the slowest launch beside Triton's, by the file's header; None where it says nothing, or the text is another."""
        if self.state.edited or self.state.state not in ("current", "outdated"):
            return None
        with open(self.state.file.output, encoding="utf-8", errors="replace") as file:
            return clocks_said(file.read())

    @property
    def wrong(self) -> bool:
        """Whether a launch was run and is not right, is refuted, or could not be run."""
        return bool(self.refused) or any(
            x.found["status"] != "validated" or x.found.get("proof", {}).get("status") == "refuted"
            for x in self.launches or ()
        )
