"""Validate a translation: the source's TTIR and the translation's TTGIR on the same inputs, outputs compared.

result = validate_pair(ttir, ttgir, spec)          # texts of compiled stages
answer = validate_job({"source": ..., "output": ..., "target": ..., "launch": {...}})   # compiles both sides
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from gluonize.judge.inputs.adversarial import address_arguments, adversarial, alternatives, grown
from gluonize.judge.inputs.descriptor_sizes import with_smaller_descriptors
from gluonize.judge.inputs.enlarged import knobs_of
from gluonize.judge.inputs.inputs import Inputs, longer, make_inputs, variants, with_ties, with_values
from gluonize.judge.inputs.loop_slices import loop_parameters
from gluonize.judge.inputs.made_up import guesses, is_whole
from gluonize.judge.inputs.overlaps import fetches_ahead, overlapping
from gluonize.judge.inputs.steering import Steering, all_tokens, tokens_of
from gluonize.judge.inputs.strides import strides_by_use
from gluonize.judge.machine.coverage import Ran, coverage_of, points_of
from gluonize.judge.machine.hazards import NotRunnable
from gluonize.judge.prove.stated_bounds import Contract
from gluonize.judge.verdict.boundaries import at_boundaries
from gluonize.judge.verdict.compare import TensorComparison
from gluonize.judge.verdict.far_offsets import far
from gluonize.judge.verdict.launch_check import NO_ANSWER, launch_check, other_kernel
from gluonize.judge.verdict.pair import MANY, Observer, Pair, SourceFault
from gluonize.judge.verdict.renumbered import fewer_programs
from gluonize.judge.verdict.result import RACE, ValidationResult
from gluonize.judge.verdict.upheld import is_upheld
from gluonize.read.kernels.gluon_kernels import plain_launch
from gluonize.read.launches.sites.persistent import Shared
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.module import Module
from gluonize.trace.model.parse import ParseError, parse_module

Refusal = Callable[[Inputs], str]

BUDGET = 600_000.0  # microseconds per side that the programs of one launch may take by the machine's estimate
VARIANT_BUDGET = 100_000.0
STEERED = 8  # variants that are made to take other ways through the kernel
DEAREST = 60_000  # operations of the source in one program of such a variant
SMALL = 0.05  # scale of the floats where standard normal ones overflow


def validate_pair(
    source_text: str,
    translated_text: str,
    spec: LaunchSpec,
    *,
    source_names: list[str] | None = None,
    translated_names: list[str] | None = None,
    source_file: str = "",
    translated_file: str = "",
    with_variants: bool = True,
    most: int | None = None,
    inputs: Inputs | None = None,
    refusal: Refusal | None = None,
    defaults: dict[str, int] | None = None,
    observe: Observer | None = None,
    tiles: str = "",
    shared: Shared | None = None,
    proved: Contract | None = None,
) -> ValidationResult:
    """Run both modules over (a part of) the launch's grid and compare what they wrote.

    `*_names` are the kernels' parameters in order, by default those of the signature. `*_file` are the files whose lines
    findings should name. refusal(inputs): why the translation's launch check refuses them, "" where it does not; None where that is
    not known, and nothing is tried that a check may be needed for. most: of variants. defaults: of the source's parameters, which a launch may leave
    out. observe: is told of each run of the source. tiles: the parameter of the translation with the number of tiles, where its programs go from
    one to another; shared: what else it takes where they share steps. proved: under what both are proved to be the same, and nothing beside it;
    where the launch check upholds that, one variant that says something is enough. Never raises for what the kernels do.
    """
    started = time.perf_counter()
    try:
        source = parse_module(source_text, source_file)
        translated = parse_module(translated_text, translated_file)
        names = (source_names, translated_names)
        if 0 in spec.grid:
            raise NotRunnable(
                "launch", f"a grid of {list(spec.grid)} has no programs: nothing runs, and nothing can be checked"
            )
        if inputs is None and not is_whole(spec):
            of_pair = (*names, observe, tiles, shared)
            result = _with_made_up_values(
                source, translated, spec, of_pair, with_variants, most, refusal, defaults, proved
            )
        else:
            pair = Pair(source, translated, spec, *names, observe, tiles, shared)
            result = _Validation(pair, refusal, defaults, proved).result(inputs, with_variants, most)
    except NotRunnable as error:
        result = ValidationResult("not_runnable", str(error), error.op)
    except ParseError as error:
        result = ValidationResult("not_runnable", f"cannot read the module: {error}", "parse")
    return replace(result, seconds=time.perf_counter() - started)


def _with_made_up_values(source: Module, translated: Module, spec: LaunchSpec, of_pair, with_variants, most, *rest):
    """The result for the first made-up launch that the source can run. Raises: NotRunnable where there is none."""
    reason = "some of its arguments are neither pointers nor numbers"
    left: bool | None = None  # whether the source left the tensors of the launch before, which larger ones may help
    before: list[dict[str, Any]] = []
    for guess in guesses(spec, source.text, strides_by_use(source)):
        numbers = {name: value for name, value in guess.values.items() if not isinstance(value, dict)}
        tensors = {name: value for name, value in guess.values.items() if isinstance(value, dict)}
        known, before = numbers in before or tensors in before, [*before, numbers, tensors]
        if left is False and known:  # other tensors alone, or other places in the same
            continue
        indices = frozenset(_integers(guess) - _integers(spec))
        validation = _Validation(Pair(source, translated, guess, *of_pair), *rest, indices)
        result = validation.result(None, with_variants, most)
        if result.status != "not_runnable":
            result = replace(result, notes=tuple(_without_made_up_races(validation, result.notes)))
            made_up = {n: value for n, value in guess.values.items() if spec.values.get(n) != value}
            numbers = {name: value for name, value in numbers.items() if name in made_up}
            what = "some values" if len(made_up) < len(guess.values) else "no values"
            note = f"the launch has {what}: {'other ' if len(made_up) < len(guess.values) else ''}sizes and tensors were made up"
            return replace(result, notes=(note, *result.notes), made_up=numbers)
        reason, left = result.reason, validation.left_tensors
    why = f"the launch has no values, and made-up ones are of no use: {reason}"
    raise NotRunnable("launch", f"{why}; gluonize capture records a launch with its values")


def _integers(spec: LaunchSpec) -> set[str]:
    """The tensors of integers whose values a launch has."""
    kinds = {name: str(kind) for name, kind in spec.signature.items() if name in spec.values}
    return {name for name, kind in kinds.items() if kind.startswith(("*i", "*u"))}


def _without_made_up_races(validation: _Validation, notes: Sequence[str]) -> Iterator[str]:
    """Notes of a launch with made-up values: those of races only where programs meet with other indices too, which are all different."""
    still: bool | None = None
    for note in notes:
        if note.startswith(RACE) and validation.made_up and still is None:
            still = validation.races_with_other_indices()
        if not note.startswith(RACE) or still is not False:
            yield note


class _Validation:
    """One launch: the inputs to try, and what came of them. made_up: tensors of integers of whose values nothing is known."""

    def __init__(
        self,
        pair: Pair,
        refusal: Refusal | None,
        defaults: dict[str, int] | None,
        proved: Contract | None = None,
        made_up: frozenset[str] = frozenset(),
    ):
        self.proved = proved
        self.pair, self.spec, self.refusal, self.defaults = pair, pair.spec, refusal, defaults or {}
        self.made_up = made_up
        self.left_tensors = False  # whether the source did, in the launch as given
        self.ran: list[str] = []
        self.passed_over: dict[str, str] = {}  # variants that say nothing about the translation, each with the reason
        self.judged = Ran()  # what of the source ran on inputs on which both sides agree
        self.points = points_of(pair.source, int(self.spec.options.get("num_stages", 2)))
        self.steering = Steering(pair.source, pair.names[0], self.spec, pair.grid, self.points, self._accepts)

    def result(self, given: Inputs | None, with_variants: bool, most: int | None = None) -> ValidationResult:
        """Run the launch, then variants of it, at most `most`, until one is wrong. Raises: NotRunnable where the launch check refuses it."""
        asked = given or make_inputs(self.spec)
        if self.refusal is not None and (why := self.refusal(asked)) and not why.startswith(NO_ANSWER):
            raise NotRunnable("launch", f"the translation refuses this launch: {why}")
        inputs, result = self._first(asked)
        settled = self.proved is not None and self.refusal is not None
        settled = settled and is_upheld(self.proved, self.spec, inputs, self.refusal)
        most = 1 if settled else most
        if with_variants and result.status == "validated":
            for changed in self._changed(inputs, result, given is not None):
                other = self._tried(changed)
                if other is None:
                    continue
                self.ran.append(changed.variant)
                if other.status != "validated":
                    result = other
                    break
                if len(self.ran) == most:
                    break
        pair = self.pair
        trips = {line: tuple(sorted(counts)) for line, counts in sorted(pair.trips.items())}
        of_source = tuple(pair.of_source.values())
        told = [f"the source itself: {finding}" for finding in of_source]
        notes = tuple(dict.fromkeys((*pair.notes, *told, *self._idle_waits())))
        coverage = coverage_of(self.points, self.judged, self.steering.admitted())
        passed_over = tuple(self.passed_over.items())
        result = replace(
            result, source_hazards=of_source, variants=tuple(self.ran), passed_over=passed_over, settled=settled
        )
        return replace(result, notes=notes, trips=trips, coverage=coverage)

    def _tried(self, inputs: Inputs) -> ValidationResult | None:
        """A variant, with longer tensors if the source needs them; None where it says nothing about the translation."""
        if inputs.variant in self.ran:
            return None
        why = self.refusal(inputs) if self.refusal is not None else ""
        why = f"the launch check of the translation refuses them: {why}" if why else ""
        for bigger in () if why else (inputs, grown(inputs)):
            try:
                if bigger is not None:
                    return self._run(bigger, VARIANT_BUDGET)
            except NotRunnable as error:
                why = str(error)
                break
            except SourceFault as fault:
                why = f"the source itself is at fault: {fault.finding}"
                if fault.finding.kind != "out-of-bounds" or not inputs.programs:
                    break
        self.passed_over.setdefault(inputs.variant, why)
        return None

    def _accepts(self, inputs: Inputs) -> bool:
        """Whether the translation's launch check lets these inputs through."""
        return self.refusal is None or not self.refusal(inputs)

    def _run(self, inputs: Inputs, budget: float) -> ValidationResult:
        """One set of inputs; what ran of the source counts if both sides agree. Raises: SourceFault, NotRunnable."""
        result = self.pair.run(inputs, budget)
        if result.status == "validated":
            self.judged.add(self.pair.ran)
        return result

    def _changed(self, inputs: Inputs, first: ValidationResult, given: bool) -> Iterator[Inputs]:
        """Variants of the launch, those that say most first."""
        if not given and any(map(_says_little, first.tensors)):
            yield replace(make_inputs(self.spec, SMALL), variant=f"values scaled by {SMALL}")
        loops = loop_parameters(self.pair.source)
        sizes = variants(self.spec, loops)
        for what, changed in sizes[:1]:
            yield with_values(inputs, self.spec, changed, what)
        yield from with_smaller_descriptors(self.spec, inputs)
        for extent in fewer_programs(self.pair.source, self.pair.translated, self.pair.grid[0], bool(self.pair.tiles)):
            yield replace(inputs, grid=(extent, *self.pair.grid[1:]), variant=f"{extent} programs")
        yield from self._steered(inputs)
        for what, changed in sizes[1:]:
            yield with_values(inputs, self.spec, changed, what)
        read = {name for name, used in self.pair.used.items() if used.read.any()}
        yield from adversarial(self.pair.source, self.spec, inputs, self.defaults, read, self.ran)
        if not fetches_ahead(self.pair.source):
            yield from overlapping(self.spec, inputs, self.pair.used, self.ran)
        if not given and self.refusal is not None:
            addresses = address_arguments(self.pair.source, self.spec)
            knobs = knobs_of(self.spec, inputs, addresses, loops, self.pair.grid, read)
            yield from far(self.spec, inputs, self.pair, knobs, self.ran)
            yield from at_boundaries(self.spec, inputs, self.pair.grid, self.refusal, self.ran)
        if any(max(counts) < MANY for counts in self.pair.trips.values() if counts):
            yield from longer(self.spec, inputs, loops)
        if not given:
            yield with_ties(self.spec, inputs)

    def _steered(self, inputs: Inputs) -> Iterator[Inputs]:
        """Inputs that take branches and make trip counts that no inputs have shown so far."""
        tried: set[int] = set()
        wanted = all_tokens(self.points, {}) - tokens_of(self.points, self.judged)
        self.steering.explore(inputs, wanted)
        for _ in range(STEERED):
            wanted = all_tokens(self.points, {}) - tokens_of(self.points, self.judged)
            chosen = self.steering.best(inputs, wanted, tried, DEAREST)
            if chosen is None:
                return
            yield chosen

    def _first(self, inputs: Inputs) -> tuple[Inputs, ValidationResult]:
        """The launch as given; where its captured index tensors are of no use, with plausible ones instead."""
        try:
            result = self._run(inputs, BUDGET)
            if result.status != "validated" or _says_something(result):
                return inputs, result
            result = replace(
                result, status="not_runnable", reason="the source writes nothing that could be compared", op="launch"
            )
        except SourceFault as fault:
            self.left_tensors = fault.finding.kind == "out-of-bounds"
            if self.left_tensors and self.pair.source.target:
                bigger = self._with_room(inputs, fault)
                if bigger is not None:
                    return bigger
            reason = f"the source itself is at fault on these inputs: {fault.finding}"
            result = ValidationResult("not_runnable", reason, fault.finding.op)
        kept = list(self.pair.notes)
        for other in alternatives(inputs, self.made_up):
            try:
                attempt = self._run(other, BUDGET)
            except SourceFault:
                continue
            if attempt.status != "validated" or _says_something(attempt):
                if not self.made_up:
                    why = "the launch's index tensors hold one value throughout; other indices were made up"
                    self.pair.notes.append(why)
                return other, attempt
            self.pair.notes = list(kept)
        return inputs, result

    def _with_room(self, inputs: Inputs, fault: SourceFault) -> tuple[Inputs, ValidationResult] | None:
        """A source that is Gluon and leaves its tensors, run on longer ones; None where it leaves those too."""
        bigger = grown(inputs)
        try:
            result = self._run(bigger, BUDGET) if bigger is not None else None
        except SourceFault:
            return None
        if bigger is None or result is None:
            return None
        self.pair.keep([fault.finding])
        self.pair.notes.append("the source leaves its tensors: both sides were run on longer ones")
        return bigger, result

    def races_with_other_indices(self) -> bool:
        """Whether programs of the source store to one place where the values of each made-up tensor of integers differ."""
        others = alternatives(make_inputs(self.spec), self.made_up)
        return any(self.pair.source_races(other, VARIANT_BUDGET) for other in itertools.islice(others, 1))

    def _idle_waits(self) -> list[str]:
        return [
            f"{place}: this wait never waits for anything"
            for place, ran, landed, outstanding in self.pair.waits.values()
            if ran and not landed and outstanding
        ]


def _says_little(t: TensorComparison) -> bool:
    """Overflow or values so large that the tolerance hides much."""
    return t.not_finite > t.compared // 2 or t.scale > 1e6


def _says_something(result: ValidationResult) -> bool:
    return any(t.compared for t in result.tensors)


def validate_job(job: dict, observe: Observer | None = None) -> dict:
    """Compile and validate one launch on one target; for worker processes. observe: is told of each run of the source.

    `job`: source (path or module), output (the Gluon file), target, launch (a launch as JSON or a LaunchSpec), search_path,
    import_hosts, variants, most (of them), inputs (a file with `make_inputs`), output_launch (where the translation is launched with other options than its
    source), prove (whether it is proved first, in `proof`, and of what is proved only two sets of inputs are run). -> the JSON form of the result; `status` is `skipped` when a side does not compile.
    """
    from gluonize.diagnostics import TranslationError
    from gluonize.judge.machine.stages import source_stage, translated_stage
    from gluonize.read.files.modules import parse_file

    started = time.perf_counter()
    spec = _spec_of(job["launch"])
    output_spec = _spec_of(job["output_launch"]) if job.get("output_launch") else spec
    folders, hosts = tuple(job.get("search_path", ())), bool(job.get("import_hosts"))
    try:
        source = source_stage(job["source"], spec, job["target"], folders, hosts)
        if source.is_gluon and spec.target:
            spec, output_spec = plain_launch(spec), plain_launch(output_spec)
        translated = translated_stage(job["output"], output_spec, job["target"], folders, hosts)
    except TranslationError as error:
        reason = error.diagnostics[0].render() if error.diagnostics else str(error)
        return {"status": "skipped", "reason": reason, "seconds": time.perf_counter() - started}
    checked = parse_file(translated.file).tree, spec.kernel, spec, translated.defaults
    inputs = None
    if job.get("inputs"):
        from gluonize.judge.inputs.hook import apply_hook

        inputs = apply_hook(job["inputs"], spec, make_inputs(spec))
    answer, proved = {}, None
    if job.get("prove"):
        from gluonize.judge.verdict.proof import contract_of_file, proof_beside

        answer["proof"] = proof = proof_beside(source, translated, spec, job["target"])
        if proof["status"] == "proved" and not proof["assumed"]:
            proved = contract_of_file(translated, spec, job["target"])
    result = validate_pair(
        source.text,
        translated.text,
        spec,
        source_names=source.names,
        translated_names=translated.names,
        source_file=source.file,
        translated_file=translated.file,
        with_variants=job.get("variants", True),
        most=job.get("most"),
        inputs=inputs,
        refusal=other_kernel(*checked) or launch_check(*checked),
        defaults=source.defaults,
        observe=observe,
        tiles=translated.tiles,
        shared=translated.shared,
        proved=proved,
    )
    answer = result.as_json() | answer
    answer["seconds"] = round(time.perf_counter() - started, 4)
    return answer


def _spec_of(launch: dict | LaunchSpec) -> LaunchSpec:
    """A launch as JSON or as a spec."""
    spec = launch if isinstance(launch, LaunchSpec) else LaunchSpec(**{k: v for k, v in launch.items() if k in _FIELDS})
    return replace(spec, grid=tuple(spec.grid))


_FIELDS = frozenset(LaunchSpec.__dataclass_fields__)
