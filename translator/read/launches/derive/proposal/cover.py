"""Which launches of a kernel are needed: the fewest that go into every branch that some consistent launch goes into."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gluonize.read.launches.derive.evidence import Evidence
from gluonize.read.launches.derive.host.model import Model
from gluonize.read.launches.derive.host.run import size_asked_for
from gluonize.read.launches.derive.proposal.guess import Guess, Proposal
from gluonize.read.launches.derive.proposal.other_heuristics import heuristic_choices
from gluonize.read.launches.derive.proposal.propose import Proposer
from gluonize.read.launches.derive.proposal.revise import settled
from gluonize.read.launches.derive.proposal.several_tiles import fitting_sizes
from gluonize.read.launches.derive.proposal.stored_types import with_stored_types
from gluonize.read.launches.derive.proposal.tensor_types import roots
from gluonize.read.launches.derive.proposal.verdict import Branch, Judge, Verdict

# Launch sites looked at, and launches that are tried for more branches.
_SITES, _TRIED = 4, 28
# Questions for one of them: it differs from an accepted launch in a flag or two.
_BUDGET = 10
_HALVES = ("bf16", "fp16")


@dataclass(frozen=True)
class Covered:
    """An accepted launch, the branches that it goes into, and how it differs from the first one."""

    proposal: Proposal
    branches: frozenset[Branch]
    differs: tuple[str, ...] = ()


def covering_launches(evidence: Evidence, judge: Judge) -> tuple[list[Covered], Verdict | None]:
    """The first launch that is accepted, and those that are needed beside it; with the verdict of those that host code makes where none of
    them is accepted."""
    config = evidence.configs[0] if evidence.configs else None
    sites = list(evidence.sites[:_SITES])
    proposers = sorted((Proposer(evidence, site) for site in sites), key=lambda p: not p.reaches)
    refused: Verdict | None = None
    for proposer in itertools.chain(proposers, _lacking(evidence, proposers), [Proposer(evidence, None)]):
        proposer = _with_trips(evidence, proposer, config)
        proposal, verdict = settled(evidence, proposer.proposal(config), judge)
        if verdict.accepted:
            proposal, verdict = with_stored_types(evidence, proposal, verdict, judge)
            others = proposers if proposer.site is not None else []
            of_file = refused if proposer.site is None and proposers else None
            return _cover(evidence, judge, Covered(proposal, verdict.branches), proposer, others), of_file
        if refused is None or verdict.progress > refused.progress:
            refused = verdict
    return [], refused


def _with_trips(evidence: Evidence, proposer: Proposer, config: Any) -> Proposer:
    """The proposer with other sizes in the place of made-up ones with which a loop would not run, or be unrolled too often."""
    fitting = fitting_sizes(evidence, proposer.proposal(config))
    passed = proposer.site.arguments if proposer.site is not None else {}
    host = {ast.unparse(passed[n]): g.value for n, g in fitting.items() if n in passed and _is_size(passed[n])}
    if host:
        proposer = Proposer(evidence, proposer.site, {**proposer.names, **host})
        fitting = fitting_sizes(evidence, proposer.proposal(config))
    proposer.larger = {n: g for n, g in fitting.items() if n not in passed}
    return proposer


def _is_size(passed: ast.expr) -> bool:
    """Whether what a launch passes is a name of the host function, or one size of a tensor that it names."""
    return isinstance(passed, ast.Name) or size_asked_for(passed) is not None


def _lacking(evidence: Evidence, proposers: list[Proposer]) -> Iterator[Proposer]:
    """The same launches without the tensors that may be missing, which callers pass."""
    for proposer in proposers:
        assert proposer.site is not None
        told = evidence.history(proposer.site).passed
        if absent := [name for name in proposer.defaulted if name in told and told[name].present]:
            yield Proposer(evidence, proposer.site, dict.fromkeys(absent))


def _cover(
    evidence: Evidence, judge: Judge, first: Covered, proposer: Proposer, others: list[Proposer]
) -> list[Covered]:
    found: list[Covered] = []
    seen = {_values(first.proposal)}
    count = 0
    for proposal in _alternatives(evidence, first.proposal, proposer, others):
        if _values(proposal) in seen:
            continue
        seen.add(_values(proposal))
        if (count := count + 1) > _TRIED:
            break
        changed, verdict = settled(evidence, proposal, judge, _BUDGET)
        if verdict.accepted:
            found.append(Covered(changed, verdict.branches, _difference(first.proposal, changed)))
    out, known = [first], set(first.branches)
    while found:
        best = max(found, key=lambda covered: len(covered.branches - known))
        if not best.branches - known:
            break
        out.append(best)
        known |= best.branches
        found.remove(best)
    return out


def _values(proposal: Proposal) -> tuple:
    return tuple((name, guess.kind, repr(guess.value)) for name, guess in proposal.arguments.items())


def _difference(first: Proposal, other: Proposal) -> tuple[str, ...]:
    return tuple(
        f"{name}={guess.shown()}"
        for name, guess in other.arguments.items()
        if (guess.kind, repr(guess.value)) != (first.arguments[name].kind, repr(first.arguments[name].value))
    )


def _alternatives(
    evidence: Evidence, first: Proposal, proposer: Proposer, others: list[Proposer]
) -> Iterator[Proposal]:
    """Launches that may go elsewhere: everything optional at once, what further callers pass, each choice alone, the other launch sites."""
    config = evidence.configs[0] if evidence.configs else None
    fixed = {n: g for n, g in first.arguments.items() if "front end" in g.why or g.stored}
    host = _host_choices(evidence, proposer)
    kernel = [*heuristic_choices(evidence, first, proposer), *_kernel_choices(evidence, first, proposer)]
    on = {name: value for name, value in host if value is not None and value is not False}
    once = {name: guess for name, guess in reversed(kernel)}
    site = proposer.site
    if on or once:
        yield proposer.changed(on).proposal(config, {**fixed, **once})
    if on and once:
        yield proposer.changed(on).proposal(config, fixed)
        yield proposer.proposal(config, {**fixed, **once})
    for row in evidence.history(site).calls if site is not None else ():
        yield proposer.changed(row).proposal(config, fixed)
    for types in _other_types(first, proposer):
        yield proposer.changed(types).proposal(config, fixed)
    for name, value in host:
        changed = proposer.changed({name: value})
        if changed.reaches or not proposer.reaches:
            yield changed.proposal(config, fixed)
    for name, guess in kernel:
        yield proposer.proposal(config, {**fixed, name: guess})
    for other in others:
        if other is not proposer:
            tiles = _open_tiles(evidence, other.proposal(config, fixed), first)
            yield other.proposal(config, {**fixed, **tiles})


def _open_tiles(evidence: Evidence, proposal: Proposal, first: Proposal) -> dict[str, Guess]:
    """Sizes of tiles that a launch site does not say, as the first launch has them: several large ones do not fit into LDS together."""
    return {
        name: first.arguments[name]
        for name, guess in proposal.arguments.items()
        if guess.is_constant and guess.confidence == "use" and type(guess.value) is int
        if first.arguments[name].is_constant and evidence.uses.arguments[name].any("tile", "static")
    }


def _host_choices(evidence: Evidence, proposer: Proposer) -> list[tuple[str, Any]]:
    """Names of the host function that have another value worth trying: flags, and tensors that may be missing."""
    out: list[tuple[str, Any]] = []
    if proposer.state is None or proposer.site is None:
        return out
    annotations = {
        arg.arg: arg.annotation
        for function in proposer.site.functions
        for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    }
    for name, value in proposer.state.parameters.items():
        text = ast.unparse(annotations[name]) if annotations.get(name) is not None else ""
        if isinstance(value, bool):
            out.append((name, not value))
        elif value is None:
            out.append((name, Model(name, is_tensor="Tensor" in text or not text, why="its annotation")))
        elif isinstance(value, Model) and ("None" in text or "Optional" in text):
            out.append((name, None))
        elif isinstance(value, Model) and text == "bool":
            out += [(name, True), (name, False)]
    out += _other_modes(evidence, proposer)
    for argument in sorted(evidence.optional & proposer.site.arguments.keys()):
        passed, value = proposer.site.arguments[argument], proposer.state.arguments[argument]
        if isinstance(passed, ast.Name) and isinstance(value, Model) and passed.id not in {name for name, _ in out}:
            out.append((passed.id, None))
    return out


def _other_types(first: Proposal, proposer: Proposer) -> Iterator[dict[str, Any]]:
    """Other element types for tensors whose type host code asks for: each that it compares with, and the other half precision; those that have
    the same type have the other one together."""
    asked = proposer.state.open_types if proposer.state is not None else {}
    known = proposer.state.parameters if proposer.state is not None else {}
    tensors = {root: first.arguments[n].kind[1:] for n, root in roots(proposer.state).items() if root in known}
    for root in sorted(asked.keys() & tensors.keys()):
        same = [other for other, kind in tensors.items() if kind == tensors[root]]
        for kind in sorted({*asked[root], *(_HALVES if tensors[root] in _HALVES else ())} - {tensors[root]}):
            why = f"the host asks whether {root} is {kind}"
            yield {other: Model(other, kind, is_tensor=True, why=why, confidence="use") for other in same}


def _other_modes(evidence: Evidence, proposer: Proposer) -> list[tuple[str, Any]]:
    """Parameters of the host function that are a text or number which the kernel compares with others, with each of these, and a
    text with none of them where no callers say it."""
    assert proposer.site is not None and proposer.state is not None
    out: list[tuple[str, Any]] = []
    told = {name for row in evidence.history(proposer.site).calls for name in row}
    for argument, passed in proposer.site.arguments.items():
        known = proposer.state.parameters.get(passed.id) if isinstance(passed, ast.Name) else None
        if type(known) not in (str, int) or proposer.state.arguments[argument] != known:
            continue
        use = evidence.uses.arguments[argument]
        modes: list[Any] = []
        if isinstance(known, str) and use.texts:
            modes = [*use.texts, *([] if passed.id in told else [None])]
        elif known in use.numbers:
            modes = use.numbers
        out += [(passed.id, other) for other in modes if other != known]
    return out


def _kernel_choices(evidence: Evidence, first: Proposal, proposer: Proposer) -> list[tuple[str, Guess]]:
    """Arguments that nothing fixes and that decide between branches: flags, texts, numbers that are compared, and pointers
    that may be missing."""
    out: list[tuple[str, Guess]] = []
    for name, guess in first.arguments.items():
        use, param = evidence.uses.arguments[name], evidence.parameters[name]
        if name in evidence.settings or name in evidence.heuristics:
            continue
        by_default = guess.why == "its default"
        at_site = proposer.site is not None and name in proposer.site.arguments
        if guess.confidence not in ("use", "name") and not by_default and not guess.kind.startswith("*"):
            continue
        if isinstance(guess.value, bool) and param.is_constexpr:
            out.append((name, Guess.constant(not guess.value, "the other side of the flag", "use")))
        elif param.is_constexpr and use.texts:
            out += [(name, Guess.constant(t, "it is compared with it", "use")) for t in use.texts if t != guess.value]
        elif param.is_constexpr and use.numbers and guess.value in use.numbers:
            out += [(name, Guess.constant(n, "it is compared with it", "use")) for n in use.numbers if n != guess.value]
        elif guess.kind.startswith("*") and name in evidence.optional and not at_site:
            out.append((name, Guess.constant(None, "it may be missing", "use")))
        elif guess.value is None and guess.is_constant and name in evidence.uses.pointers:
            free = Proposer(evidence, None).proposal(None).arguments[name]
            out.append((name, free if free.kind.startswith("*") else Guess.pointer("fp32", "it may be there", "use")))
    return out
