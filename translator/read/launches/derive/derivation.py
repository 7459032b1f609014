"""The launches of one kernel, and the table that says what was guessed for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from gluonize.diagnostics import TranslationError
from gluonize.read.kernels.gluon_kernels import refuse_gluon
from gluonize.read.kernels.listing import list_kernels, nothing_to_launch
from gluonize.read.kernels.load import LoadedKernel, load_kernel
from gluonize.read.launches.derive.evidence import Evidence, gather_evidence
from gluonize.read.launches.derive.not_found import not_found
from gluonize.read.launches.derive.proposal.cover import Covered, covering_launches
from gluonize.read.launches.derive.proposal.described_tensors import described
from gluonize.read.launches.derive.proposal.guess import Proposal
from gluonize.read.launches.derive.proposal.propose import Proposer
from gluonize.read.launches.derive.proposal.revise import asked
from gluonize.read.launches.derive.proposal.verdict import Judge
from gluonize.read.launches.derive.table import Derivation, Row

Judging = Callable[[LoadedKernel], AbstractContextManager[Judge]]


def launchable_kernels(source: str, search_path: Iterable[str] | None = None) -> list[str]:
    """The kernels of a file that can be launched. Raises: TranslationError `source-no-kernels` when there are none."""
    infos = list_kernels(source, list(search_path or ()))
    names = [k.name for k in infos if k.is_kernel]
    if not names:
        raise nothing_to_launch(infos, source)
    return names


def derive_kernel(
    source: str, name: str, judging: Judging, *, settings: Mapping[str, Any] | None = None,
    search_path: Iterable[str] | None = None, all_configs: bool = False, fp8: str = "fp8e4nv",
) -> Derivation:  # fmt: skip
    """Launches of one kernel that Triton's front end accepts: of its autotune configs, and for every branch it has.

    all_configs: each config of a large list, instead of those that have every value at least once. fp8: the 8-bit floating-point type of
    the target, which a kernel is launched with that is named for fp8.

    Raises: TranslationError `spec-not-found` when no launch is accepted, with the front end's reason; what loading raises.
    """
    loaded = load_kernel(source, name, globals={}, search_path=list(search_path or ()))
    refuse_gluon(loaded)
    evidence = gather_evidence(source, name, loaded, dict(settings or {}), all_configs, fp8)
    changed: list[str] = []
    with judging(loaded) as judge:
        covered, refused = covering_launches(evidence, judge)
        if not covered and settings:
            asked_for = evidence.settings
            evidence, covered = _following(evidence, judge)
            changed = _changed(asked_for, covered)
        if not covered:
            raise TranslationError(not_found(evidence, refused))
        configured, notes = _configured(evidence, covered[0], judge)
        if refused is not None and not changed:
            found, site = not_found(evidence, refused), evidence.sites[0].place(loaded.path)
            notes.append(
                f"the launch at {site} is refused, and another one was made up: {found.why} (line {found.line})"
            )
    stem = Path(source).stem if source.endswith(".py") else source
    proposals = [covered[0].proposal, *configured, *(more.proposal for more in covered[1:])]
    single = len(proposals) == 1
    specs = tuple(
        proposal.spec(f"{stem}/{name}" + ("" if single else f"#{number}"), source)
        for number, proposal in enumerate(proposals, 1)
    )
    rows = tuple(Row(n, g.shown(), g.why, g.confidence) for n, g in covered[0].proposal.arguments.items())
    others = tuple(", ".join(more.differs) for more in covered[1:])
    return Derivation(name, specs, rows, others, (*evidence.unread, *changed, *notes))


def _configured(evidence: Evidence, first: Covered, judge: Judge) -> tuple[list[Proposal], list[str]]:
    """The first launch with each further autotune config; those that the front end refuses are passed over, as by autotuning."""
    out, notes = [], []
    kept = {n: g for n, g in first.proposal.arguments.items() if n not in evidence.heuristics}
    for number, config in enumerate(evidence.configs[1:], 2):
        own = {n: g for n, g in kept.items() if n not in config.kwargs}
        proposal = Proposer(evidence, None).proposal(config, own)
        proposal = proposal.with_guesses(described(evidence, first.proposal.described, proposal.arguments, config))
        options = {**proposal.options, **{k: v for k, v in first.proposal.options.items() if k not in proposal.options}}
        proposal = replace(proposal, options=options)
        if any(_same(proposal, other) for other in (first.proposal, *out)):
            continue  # it differs in nothing that is left to it
        verdict = asked(evidence, proposal, judge)
        if verdict.accepted:
            out.append(proposal)
        else:
            notes.append(f"config {number} is passed over: {_first_line(verdict.message)}")
    return out, notes


def _same(one: Proposal, other: Proposal) -> bool:
    values = [[(n, g.kind, repr(g.value)) for n, g in p.arguments.items()] for p in (one, other)]
    return values[0] == values[1] and one.options == other.options


def _following(evidence: Evidence, judge: Judge) -> tuple[Evidence, list[Covered]]:
    """Launches, and the evidence that they rest on, for what is set where that goes with no launch: what is set to the very value that is guessed for it may change,
    as in a line of all guesses in which one was corrected."""
    guessed, _ = covering_launches(replace(evidence, settings={}), judge)
    if not guessed:
        return evidence, []
    guesses = {n: g.shown() for n, g in guessed[0].proposal.arguments.items()}
    own = {n: x for n, x in evidence.settings.items() if n not in guesses or guesses[n] not in (x, str(x))}
    corrected = replace(evidence, settings=own)
    return corrected, covering_launches(corrected, judge)[0]


def _changed(settings: Mapping[str, Any], covered: list[Covered]) -> list[str]:
    """What is not as it was set."""
    now = {n: g.shown() for n, g in covered[0].proposal.arguments.items()} if covered else {}
    return [
        f"{n} is {now[n]}, not {x}, which goes with no launch"
        for n, x in settings.items()
        if n in now and now[n] not in (x, str(x))
    ]


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""
