"""Try the candidates of a request in child processes and choose one per kernel by predicted cycles.

Deterministic: the same source, launches, target and versions give the same choice, whatever the number of jobs.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gluonize.decide.choices.chosen import Choices
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.cycles.launch.spread import compute_units
from gluonize.judge.cycles.prediction import Walked
from gluonize.judge.lower.amdgcn import parse_instructions
from gluonize.judge.lower.compile import Lowered
from gluonize.judge.lower.loops import find_loops
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest, with_options
from gluonize.rules.targets import target as target_row
from gluonize.search.candidates import candidates, two_waves
from gluonize.search.cost import Cost, cost

# Whether compiled ping-pong loops have their barriers at stage borders only.
#
# The two groups of warps meet at every barrier. One inside a stage (a reduction across warps, a conversion through LDS)
# would pair the middle of one group's stage with the border of the other's, so that neither border holds any more. Every
# stage sets its priority once, so in each loop barriers and priorities have to be equally many.

_BARRIERS = ("s_barrier", "s_barrier_signal")


def barriers_inside_stages(assembly: str) -> int:
    """Barriers that loops with stages have beyond one per stage; 0 is sound."""
    code = parse_instructions(assembly)
    extra = 0
    for loop in find_loops(code):
        ops = [line.op for line in code[loop.first : loop.last + 1]]
        stages = ops.count("s_setprio")
        if loop.innermost and stages:
            extra += abs(sum(ops.count(name) for name in _BARRIERS) - stages)
    return extra


if TYPE_CHECKING:
    from gluonize.judge.lower.children.worker import WorkerPool

TRANSLATE = "gluonize.translation:translate_kernel"
LOWER = "gluonize.judge.cycles.job:lower_and_walk"


@dataclass(frozen=True)
class Tried:
    """One candidate for one launch. same_as: those of an earlier one with the same text and options. diagnostics: why it is none."""

    spec: LaunchSpec
    choices: Choices
    text: str = ""
    lowered: Lowered | None = None
    cost: Cost | None = None
    same_as: Choices | None = None
    diagnostics: tuple[Diagnostic, ...] = ()


def make_choices(request: TranslateRequest, pool: "WorkerPool") -> TranslateRequest:
    """`request` with its launches planned and choices made for each kernel."""
    from gluonize.search.planning import planned

    launches = planned(request, pool)
    if request.strategy == "ping-pong":
        _check_warps(request, launches)
    tried = [
        t for spec in launches for t in try_candidates(request, spec, pool, rows_for(request, spec), costs_only=True)
    ]
    if request.strategy == "ping-pong" and not any(t.cost is not None for t in tried):
        raise TranslationError(*[t.diagnostics[0] for t in tried if t.diagnostics][:1])
    return replace(request, chosen=tuple(sorted(best(tried).items())))


def rows_for(request: TranslateRequest, spec: LaunchSpec, timed: bool = False) -> tuple[Choices, ...]:
    """What the rows that can pay for a launch choose. No clusters and no programs that stay beside a fallback, which launches one workgroup
    for each program; none that stay where there are no more tiles than compute units.

    timed: with rows that predicted cycles cannot choose.
    """
    row = target_row(request.target)
    found = candidates(row, int(spec.options.get("num_warps", 4)), request.asked, timed)
    left_out = {"num-ctas", "programs"} if request.fallback is not None else set()
    few = request.grid and request.grid <= compute_units(row, row.timing)
    if few and "programs" not in dict(request.asked.overrides):
        left_out.add("programs")
    return tuple(x for x in found if not left_out & dict(x.overrides).keys())


def try_candidates(
    request: TranslateRequest,
    spec: LaunchSpec,
    pool: "WorkerPool",
    tries: tuple[Choices, ...] | None = None,
    before: Sequence[Tried] = (),
    costs_only: bool = False,
) -> list[Tried]:
    """Candidates for one launch, translated, compiled and costed, in order: where none are given, those of all rows.

    before: what was tried already, which is not compiled again. costs_only: without where their time goes.
    """
    row = target_row(request.target)
    tries = rows_for(request, spec, timed=True) if tries is None else tries
    requests = [
        replace(
            request, kernels=(spec.kernel,), launches=(spec,), standalone=True, fallback=None,
            chosen=((spec.kernel, choices),),
        )
        for choices in tries
    ]  # fmt: skip
    results = [
        pool.submit(TRANSLATE, made, what=f"translating {spec.kernel} for {row.name} ({choices.name})")
        for made, choices in zip(requests, tries)
    ]
    tried: list[Tried] = []
    seen = {
        _digest(spec, t.choices, t.text): t.choices for t in before if t.spec.id == spec.id and t.lowered is not None
    }
    with tempfile.TemporaryDirectory(prefix="gluonize-tune-") as folder:
        pending = []
        for choices, future in zip(tries, results):
            try:
                result = future.result()
            except TranslationError as error:
                tried.append(Tried(spec, choices, diagnostics=error.diagnostics))
                pending.append(None)
                continue
            found = [d for o in result.outcomes for d in o.diagnostics] + list(result.diagnostics)
            digest = _digest(spec, choices, result.text or "")
            entry = Tried(spec, choices, result.text or "", same_as=seen.get(digest), diagnostics=tuple(found))
            future = None
            if result.text is not None and entry.same_as is None:
                seen[digest] = choices
                path = os.path.join(folder, f"{spec.kernel.rpartition('.')[2]}_{len(tried)}.py")
                future = _lowered(entry, path, request, pool, costs_only)
            tried.append(entry)
            pending.append(future)
        costed: list[Tried] = []
        for entry, job in zip(tried, pending):
            costed.append(
                entry if job is None else _costed(entry, job, common_work([*before, *costed], spec.id), request.grid)
            )
        return costed


def _lowered(entry: Tried, path: str, request: TranslateRequest, pool: "WorkerPool", costs_only: bool) -> Future:
    """The compile of a candidate's text, written to `path`."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(entry.text)
    launched = with_options(entry.spec, entry.choices)
    arguments = (path, launched, request.target, request.search_path, request.import_hosts, True, costs_only)
    return pool.submit(LOWER, *arguments, what=f"{entry.spec.kernel} on {request.target} ({entry.choices.name})")


def _digest(spec: LaunchSpec, choices: Choices, text: str) -> str:
    """Of what the compiler is given."""
    return hashlib.sha256(f"{sorted(with_options(spec, choices).options.items())}{text}".encode()).hexdigest()


def common_work(tried: Sequence[Tried], spec_id: str) -> float:
    """The matrix work of an iteration by which all candidates for a launch pay for what is outside of loops: that of the first one."""
    works = (t.lowered.cycles.work for t in tried if t.spec.id == spec_id and t.lowered is not None)
    return next((work for work in works if work), 0)


def _costed(entry: Tried, job: Future, work: float, grid: int) -> Tried:
    """A candidate with what its compile found. work: see `common_work`; grid: of the request."""
    try:
        lowered: Walked = job.result()
    except TranslationError as error:
        return replace(entry, diagnostics=error.diagnostics)
    alternating = entry.choices.asks("warp-groups", "alternating")
    if alternating and (extra := barriers_inside_stages(lowered.stages["amdgcn"])):
        return replace(entry, diagnostics=(_unsound(entry, extra),))
    overflow = lowered.lds_overflow()
    figures = cost(lowered.cycles, overflow is None, (grid,) if grid else (), work=work)
    diagnostics = (overflow,) if overflow else ()
    return replace(entry, lowered=replace(lowered, stages={}), cost=figures, diagnostics=diagnostics)


def _check_warps(request: TranslateRequest, launches: tuple[LaunchSpec, ...]) -> None:
    row = target_row(request.target)
    for spec in launches:
        num_warps = int(spec.options.get("num_warps", 4))
        if not two_waves(row, num_warps):
            message = f"{spec.kernel} cannot alternate warps on {row.name} with {num_warps} warps"
            why = "two groups of warps share the SIMDs: there have to be two waves on each, beside matrix instructions"
            help = f"{2 * row.simds} warps on a CDNA target, or leave --strategy out"
            raise TranslationError(Diagnostic("ping-pong", message, request.source, why=why, help=help))


def _unsound(entry: Tried, extra: int) -> Diagnostic:
    message = f"{entry.spec.kernel} cannot alternate warps: {extra} barriers inside stages"
    why = "a reduction or a conversion between warps needs a barrier, at which both groups of warps would meet"
    return Diagnostic("ping-pong", message, why=why, help="leave --strategy out")


def best(tried: list[Tried]) -> dict[str, Choices]:
    """The choices for each kernel: least cost in the geometric mean over its launches, the earlier row among equals.

    Only a candidate that compiles and fits for every launch can be chosen; where there is none, parity is.
    """
    kernels = dict.fromkeys(t.spec.kernel for t in tried)
    return {
        kernel: next(iter(mean_costs([t for t in tried if t.spec.kernel == kernel])), Choices()) for kernel in kernels
    }


def mean_costs(tried: list[Tried]) -> dict[Choices, float]:
    """What choices for one kernel cost, in the geometric mean over its launches, best first: of equals those that spill fewer registers,
    then the earlier ones. Without those that do not compile and fit for every launch."""
    launches = list(dict.fromkeys(t.spec.id for t in tried))
    ranked = []
    for order, choices in enumerate(dict.fromkeys(t.choices for t in tried)):
        figures = [f for spec_id in launches if (f := figures_of(tried, spec_id, choices)) is not None]
        if len(figures) == len(launches) and all(f.cost is not None and f.cost.fits for f in figures):
            mean = math.exp(sum(math.log(max(f.cost.cycles, 1e-9)) for f in figures) / len(figures))
            spills = max(f.lowered.metrics.spill for f in figures)
            ranked.append((round(mean, 3), spills, order, choices))
    return {choices: mean for mean, _, _, choices in sorted(ranked, key=lambda x: x[:3])}


def figures_of(tried: list[Tried], spec_id: str, choices: Choices) -> Tried | None:
    """The entry with the figures of `choices` for one launch: its own, or that of the candidate with the same text."""
    entry = next((t for t in tried if t.spec.id == spec_id and t.choices == choices), None)
    if entry is not None and entry.same_as is not None:
        return figures_of(tried, spec_id, entry.same_as)
    return entry if entry is not None and entry.lowered is not None else None
