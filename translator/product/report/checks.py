"""What compiling, comparing and validating a translation found, per launch: the facts beside a review."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field

from gluonize.diagnostics import Diagnostic, InternalError, TranslationError
from gluonize.judge.cycles.clocks import GATE, clocks_beside
from gluonize.judge.cycles.prediction import Walked
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.judge.lower.parity import Parity
from gluonize.read.spec.launch import LaunchSpec

LOWER = "gluonize.judge.cycles.job:lower_and_walk"
VALIDATE = "gluonize.judge.verdict:validate_launch"


@dataclass(frozen=True)
class Sources:
    """What is compared: the source's path or module, the translation's text and name, and how modules are found."""

    source: str
    text: str
    name: str
    target: str
    search_path: tuple[str, ...] = ()
    import_hosts: bool = False


@dataclass(frozen=True)
class Checked:
    """One launch. gluon, triton: both compiles (None when it failed); problems: why not. validation: {"status": ...}."""

    spec: LaunchSpec
    gluon: Walked | None = None
    triton: Walked | None = None
    problems: tuple[Diagnostic, ...] = ()
    validation: dict = field(default_factory=lambda: {"status": "skipped"}, hash=False)

    @property
    def parity(self) -> Parity | None:
        if self.gluon is None or self.triton is None:
            return None
        return Parity(self.spec.id, self.gluon.target, self.gluon.metrics, self.triton.metrics)

    @property
    def worse(self) -> tuple[str, ...]:
        """What is worse than in Triton's compile, clocks first."""
        if self.gluon is None or self.triton is None:
            return ()
        clocks = clocks_beside(self.gluon, self.triton)
        return tuple(filter(None, (clocks.above(GATE) if clocks else "", *self.parity.regressions())))


def check(
    pool: WorkerPool, given: Sources, specs: tuple[LaunchSpec, ...], *, validate: bool, stages: bool
) -> tuple[Checked, ...]:
    """Compile both sides of every launch in child processes, and run both on the reference machine with `validate`.

    stages: keep the translation's intermediate code, from which layouts are read.
    """
    with tempfile.TemporaryDirectory(prefix="gluonize-") as folder:
        draft = os.path.join(folder, os.path.basename(given.name) or "translation.py")
        with open(draft, "w", encoding="utf-8") as file:
            file.write(given.text)
        pending = []
        for spec in specs:
            shared = (spec, given.target, given.search_path, given.import_hosts)
            what = f"{spec.kernel} on {given.target}"
            ours = pool.submit(LOWER, draft, *shared, stages, what=what)
            theirs = pool.submit(LOWER, given.source, *shared, what=what)
            ran = (
                pool.submit(VALIDATE, given.source, draft, *shared, prove=True, what=f"validating {what}")
                if validate
                else None
            )
            pending.append((spec, ours, theirs, ran))
        return tuple(_collected(*job) for job in pending)


def _collected(spec: LaunchSpec, ours, theirs, ran) -> Checked:
    gluon, problems = _lowered(ours)
    triton, complaints = _lowered(theirs)
    validation = {"status": "skipped"}
    if ran is not None:
        try:
            validation = ran.result()
        except (TranslationError, InternalError) as error:
            validation = {"status": "not_runnable", "reason": str(error).splitlines()[0]}
    return Checked(spec, gluon, triton, problems + complaints, validation)


def _lowered(future) -> tuple[Walked | None, tuple[Diagnostic, ...]]:
    try:
        return future.result(), ()
    except TranslationError as error:
        return None, error.diagnostics
    except InternalError as error:
        return None, (Diagnostic("internal-error", "a bug in gluonize while compiling", why=str(error)),)


def summary_rows(checked: tuple[Checked, ...]) -> list[list[str]]:
    """A heading and a row per launch whose both sides compiled: the figures that decide, translation / Triton."""
    head = ["launch", "instructions", "hottest loop", "VGPRs", "spills", "LDS bytes", "occupancy", "worse in"]
    rows = []
    for entry in checked:
        if (p := entry.parity) is None:
            continue
        ours, theirs = p.translated, p.triton
        loop = f"{ours.loop.insns} / {theirs.loop.insns}" if ours.loop and theirs.loop else "-"
        rows.append(
            [
                entry.spec.id,
                f"{ours.mix.insns} / {theirs.mix.insns}",
                loop,
                f"{ours.vgpr} / {theirs.vgpr}",
                f"{ours.spill} / {theirs.spill}",
                f"{ours.lds_bytes} / {theirs.lds_bytes}",
                f"{ours.occupancy} / {theirs.occupancy}",
                p.note or "; ".join(p.regressions()) or "nothing",
            ]
        )
    return [head, *rows] if rows else []
