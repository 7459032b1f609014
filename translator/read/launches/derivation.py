"""The launches of one kernel, those guessed and those that stand in host code, and the table that says what was guessed for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from gluonize.diagnostics import TranslationError
from gluonize.read.evaluate.spec_values import decode_value, encode_value
from gluonize.read.kernels.gluon_kernels import refuse_gluon
from gluonize.read.kernels.listing import list_kernels, nothing_to_launch
from gluonize.read.kernels.load import LoadedKernel, load_kernel
from gluonize.read.launches.bound.binding import BoundConfig, LaunchBinding
from gluonize.read.launches.bound.completed import BoundLaunch, bound_launches
from gluonize.read.launches.bound.launches import bindings_of
from gluonize.read.launches.derive.certain import check_certain
from gluonize.read.launches.derive.evidence import Evidence, gather_evidence
from gluonize.read.launches.derive.not_found import not_found
from gluonize.read.launches.derive.proposal.cover import Covered, covering_launches
from gluonize.read.launches.derive.proposal.described_tensors import described
from gluonize.read.launches.derive.proposal.guess import Guess, Proposal, has_form
from gluonize.read.launches.derive.proposal.propose import Proposer
from gluonize.read.launches.derive.proposal.revise import asked
from gluonize.read.launches.derive.proposal.verdict import Branch, Judge
from gluonize.read.launches.table import Derivation, Row
from gluonize.read.spec.descriptors import descriptor_type
from gluonize.read.spec.launch import LaunchSpec, compiled_as
from gluonize.triton_api.package import triton

# Launches of host code that a kernel is translated for beside the guessed ones: each is compiled twice and validated.
_WRITTEN = 8

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
    search_path: Iterable[str] | None = None, all_configs: bool = False, fp8: str = "fp8e4nv", certain: bool = False,
) -> Derivation:  # fmt: skip
    """Launches of one kernel that Triton's front end accepts: of its autotune configs, and for every branch it has.

    all_configs: each config of a large list, instead of those that have every value at least once. fp8: the 8-bit floating-point type of
    the target, which a kernel is launched with that is named for fp8. certain: only what the source says for certain is taken.

    Raises: TranslationError `spec-not-found` when no launch is accepted, with the front end's reason; `spec-missing` for what is nothing but
    a guess, if that is not to be taken; what loading raises.
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
            without = evidence.settings and covering_launches(replace(evidence, settings={}), judge)[0]
            raise TranslationError(not_found(evidence, refused, evidence.settings if without else {}))
        bindings = tuple(bindings_of(evidence))
        covered[0] = _as_written(evidence, bindings, covered[0], judge)
        if certain:
            check_certain(evidence, covered[0].proposal)
            del covered[1:]
        configured, notes = _configured(evidence, covered[0], judge)
        if refused is not None and not changed:
            found, site = not_found(evidence, refused), evidence.sites[0].place(loaded.path)
            notes.append(
                f"the launch at {site} is refused, and another one was made up: {found.why} (line {found.line})"
            )
        proposals = [covered[0].proposal, *configured, *(more.proposal for more in covered[1:])]
        guessed = [proposal.spec(name, source) for proposal in proposals]
        written, branches, left_out = _written(evidence, bindings, guessed, 1 + len(configured), judge)
    if left_out:
        notes.append(f"{left_out} more launches in host code were not translated for; they may be served all the same")
    stem = Path(source).stem if source.endswith(".py") else source
    # A guess that only goes where a launch of host code goes is not needed beside it.
    further = [more for more in covered[1:] if more.branches - covered[0].branches - branches]
    specs = [*guessed[: 1 + len(configured)], *(more.proposal.spec(name, source) for more in further), *written]
    if any(not _same_descriptors(spec, specs[0]) for spec in specs):
        specs = [spec for spec in specs if _same_descriptors(spec, specs[0])]
        notes.append("launches with pointers and descriptors in each other's place are not translated for, as one is")
    numbered = [f"{stem}/{name}" + (f"#{number}" if specs[1:] else "") for number in range(1, len(specs) + 1)]
    launches = tuple(replace(spec, id=id) for spec, id in zip(specs, numbered))
    rows = tuple(Row(n, g.shown(), g.why, g.confidence) for n, g in covered[0].proposal.arguments.items())
    others = tuple(", ".join(more.differs) for more in further)
    return Derivation(name, launches, rows, others, (*evidence.unread, *changed, *notes), bindings)


def _same_descriptors(one: LaunchSpec, other: LaunchSpec) -> bool:
    """Whether two launches have descriptors for the same arguments: the text of one has no place for a pointer."""
    pairs = [(one.signature[name], other.signature.get(name, "")) for name in one.signature]
    return all(
        "constexpr" in pair or (descriptor_type(pair[0]) is None) == (descriptor_type(pair[1]) is None)
        for pair in pairs
    )


def _chosen(evidence: Evidence, bindings: tuple[LaunchBinding, ...]) -> list[LaunchBinding]:
    """The launches of host code with the configurations that are translated for."""
    # One that goes around `triton.autotune` has the configuration that it passes.
    every = evidence.configs
    own = [[not c.options or not every or any(_is(c, x) for x in every) for c in b.configs] for b in bindings]
    return [replace(b, configs=tuple(itertools.compress(b.configs, kept))) for b, kept in zip(bindings, own)]


def _is(bound: BoundConfig, config: triton.Config) -> bool:
    """Whether a configuration of a launch in host code is this one."""
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    given = {n: encode_value(v) for n, v in config.kwargs.items() if has_form(v)} | options
    told = bound.constexprs | bound.options
    return all(told.get(name, value) == value for name, value in given.items())


def _as_written(evidence: Evidence, bindings: tuple[LaunchBinding, ...], first: Covered, judge: Judge) -> Covered:
    """The first launch as host code has it, where what was guessed is put together from several of its launches."""
    guessed = first.proposal.spec(evidence.name, evidence.source)
    every = bound_launches([replace(b, configs=b.configs[:1]) for b in _chosen(evidence, bindings)], [guessed])
    same = any(compiled_as(way.spec.as_json()) == compiled_as(guessed.as_json()) for way in every)
    for way in every if not same else ():
        if not way.differs or any(name in evidence.settings for name, _ in way.differs):
            continue
        proposal = first.proposal.with_guesses(_corrections(evidence, way, guessed))
        proposal = replace(proposal, options=dict(way.spec.options), values=dict(way.spec.values), grid=way.spec.grid)
        if (verdict := asked(evidence, proposal, judge)).accepted:
            return replace(first, proposal=proposal, branches=verdict.branches)
    return first


def _corrections(evidence: Evidence, way: BoundLaunch, guessed: LaunchSpec) -> dict[str, Guess]:
    """What a launch in host code has otherwise than it was guessed."""
    out: dict[str, Guess] = {}
    for name, kind in way.spec.signature.items():
        parts = [(s.signature[name], s.constexprs.get(name), s.attrs.get(name, "")) for s in (way.spec, guessed)]
        if parts[0] == parts[1] or not isinstance(kind, str):
            continue
        known = way.binding.arguments[name]
        place = f"line {way.binding.line}" + (f", {way.binding.caller}" if way.binding.caller else "")
        why = f"`{known.text}` at {place}" if known.text else f"the launch at {place}"
        if kind == "constexpr":
            value = decode_value(way.spec.constexprs[name], evidence.loaded.load_jit)
            out[name] = Guess.constant(value, why, "computed")
        else:
            out[name] = Guess(kind, None, why, "computed", "D" in way.spec.attrs.get(name, ""), known.number)
    return out


def _written(
    evidence: Evidence, bindings: tuple[LaunchBinding, ...], guessed: list[LaunchSpec], kept: int, judge: Judge
) -> tuple[list[LaunchSpec], frozenset[Branch], int]:
    """The launches that stand in host code beside the first `kept` of those that were guessed, which the front end accepts, with the
    branches that they go into, and how many more there are. Those come first that differ in more than in what numbers are multiples of.
    """
    chosen = _chosen(evidence, bindings)
    unique: dict[str, BoundLaunch] = {}
    for way in sorted(bound_launches(chosen, guessed), key=lambda way: not way.differs):
        is_set = any(name in evidence.settings for name, _ in way.differs)  # what is set beats what is written
        open_answer = evidence.heuristics.keys() & set(way.unknown)
        if not is_set and not (open_answer and (way.spec.values or not way.differs)):
            unique.setdefault(compiled_as(way.spec.as_json()), way)
    known = {compiled_as(spec.as_json()) for spec in guessed[:kept]}
    asked = [way for key, way in unique.items() if key not in known]
    verdicts = [(way.spec, judge(way.spec)) for way in asked[:_WRITTEN]]
    accepted = [(spec, verdict.branches) for spec, verdict in verdicts if verdict.accepted]
    branches = frozenset(branch for _, own in accepted for branch in own)
    return [spec for spec, _ in accepted], branches, len(asked[_WRITTEN:])


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
