"""Validate a translation: the source's TTIR and the translation's TTGIR on the same inputs, outputs compared.

result = validate_pair(ttir, ttgir, spec)          # texts of compiled stages
answer = validate_job({"source": ..., "output": ..., "target": ..., "launch": {...}})   # compiles both sides
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace

import numpy as np

from translator.source.launch_spec import LaunchSpec
from translator.validate.bind import bind, place_tensors
from translator.validate.compare import TensorComparison, compare
from translator.validate.dtypes import PRECISION, stored
from translator.validate.engine import Machine
from translator.validate.guess import guesses
from translator.validate.hazards import Finding, Hazard, NotRunnable, WaitsForever
from translator.validate.inputs import Inputs, alternatives, longer, make_inputs, variants, with_ties, with_values
from translator.ttgir.locations import UNKNOWN, Place
from translator.validate.memory import Memory
from translator.validate.partitions import SCHEDULES
from translator.ttgir.module import Module
from translator.ttgir.parse import ParseError, parse_module
from translator.validate.result import ValidationResult
from translator.validate.slices import loop_parameters

STEP_COST = 8.0  # microseconds per op, and per element of global traffic: measured on one core of a 2020s server
TRAFFIC_COST = 0.05
BUDGET = 600_000.0  # microseconds per side that the programs of one launch may take by that estimate
VARIANT_BUDGET = 100_000.0
SMALL = 0.05  # scale of the floats where standard normal ones overflow
FEWEST = 2  # programs that are always run
MANY = 4  # trips of a loop after which more show nothing new; the machine counts no further


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
    inputs: Inputs | None = None,
) -> ValidationResult:
    """Run both modules over (a part of) the launch's grid and compare what they wrote.

    `*_names` are the kernels' parameters in order, by default those of the signature. `*_file` are the files whose lines
    findings should name. Never raises for what the kernels do.
    """
    started = time.perf_counter()
    try:
        source = parse_module(source_text, source_file)
        translated = parse_module(translated_text, translated_file)
        names = (source_names, translated_names)
        if inputs is None and not spec.values and any(kind != "constexpr" for kind in spec.signature.values()):
            result = _with_made_up_values(source, translated, spec, names, with_variants)
        else:
            result = _Pair(source, translated, spec, *names).validate(inputs, with_variants)
    except NotRunnable as error:
        result = ValidationResult("not_runnable", str(error), error.op)
    except ParseError as error:
        result = ValidationResult("not_runnable", f"cannot read the module: {error}", "parse")
    return replace(result, seconds=time.perf_counter() - started)


def _with_made_up_values(source: Module, translated: Module, spec: LaunchSpec, names, with_variants: bool):
    """The result for the first made-up launch that the source can run. Raises: NotRunnable where there is none."""
    reason = "some of its arguments are neither pointers nor numbers"
    for guess in guesses(spec, source.text):
        result = _Pair(source, translated, guess, *names).validate(None, with_variants)
        if result.status != "not_runnable":
            numbers = {name: value for name, value in guess.values.items() if not isinstance(value, dict)}
            note = "the launch has no values: sizes and tensors were made up"
            return replace(result, notes=(note, *result.notes), made_up=numbers)
        reason = result.reason
    raise NotRunnable("launch", f"the launch spec has no values, and made-up ones are of no use: {reason}")


class _SourceFault(Exception):
    """The source kernel itself did something undefined on these inputs."""

    def __init__(self, finding: Finding):
        super().__init__(str(finding))
        self.finding = finding


class _Pair:
    """Both modules and the launch; runs them on one set of inputs after another."""

    def __init__(self, source: Module, translated: Module, spec: LaunchSpec, source_names, translated_names):
        self.source, self.translated, self.spec = source, translated, spec
        self.names = (source_names or list(spec.signature), translated_names or list(spec.signature))
        self.grid = tuple(extent or 1 for extent in spec.grid) or (1,)
        self.narrowest = narrowest(source.text)
        self.notes: list[str] = ["the launch's grid is empty; one program was run"] if 0 in spec.grid else []
        self.trips: dict[int, set[int]] = {}
        self.waits: dict[int, list] = {}
        self.sampled = True
        self.schedules = SCHEDULES if "ttg.warp_specialize" in translated.text else SCHEDULES[:1]

    def validate(self, inputs: Inputs | None, with_variants: bool) -> ValidationResult:
        given = inputs is not None
        inputs = inputs or make_inputs(self.spec)
        inputs, result = self._first(inputs)
        ran = []
        if with_variants and result.status == "validated" and not given and any(map(_says_little, result.tensors)):
            try:
                small = self.run(
                    replace(make_inputs(self.spec, SMALL), variant=f"values scaled by {SMALL}"), VARIANT_BUDGET
                )
                ran.append(small.variant)
                result = result if small.status == "validated" else small
            except _SourceFault:
                pass
        if with_variants and result.status == "validated":
            for changed in self._variants(inputs, given):
                try:
                    other = self.run(changed, VARIANT_BUDGET)
                except (_SourceFault, NotRunnable):
                    continue
                ran.append(changed.variant)
                if other.status != "validated":
                    result = other
                    break
        trips = {line: tuple(sorted(counts)) for line, counts in sorted(self.trips.items())}
        notes = tuple(dict.fromkeys((*self.notes, *self._idle_waits())))
        return replace(result, variants=tuple(ran), notes=notes, trips=trips)

    def _variants(self, inputs: Inputs, given: bool):
        loops = loop_parameters(self.source)
        for what, changed in variants(self.spec, loops):
            yield with_values(inputs, self.spec, changed, what)
        if any(max(counts) < MANY for counts in self.trips.values() if counts):
            yield from longer(self.spec, inputs, loops)
        if not given:
            yield with_ties(self.spec, inputs)

    def _first(self, inputs: Inputs) -> tuple[Inputs, ValidationResult]:
        """The launch as given; where its captured index tensors are of no use, with plausible ones instead."""
        try:
            result = self.run(inputs, BUDGET)
            if result.status != "validated" or _says_something(result):
                return inputs, result
            result = replace(
                result, status="not_runnable", reason="the source writes nothing that could be compared", op="launch"
            )
        except _SourceFault as fault:
            reason = f"the source itself is at fault on these inputs: {fault.finding}"
            result = ValidationResult("not_runnable", reason, fault.finding.op)
        kept = list(self.notes)
        for other in alternatives(inputs):
            try:
                attempt = self.run(other, BUDGET)
            except _SourceFault:
                continue
            if attempt.status != "validated" or _says_something(attempt):
                self.notes.append("the launch's index tensors hold one value throughout; other indices were made up")
                return other, attempt
            self.notes = list(kept)
        return inputs, result

    def _idle_waits(self) -> list[str]:
        return [
            f"{place}: this wait never waits for anything"
            for place, ran, landed, outstanding in self.waits.values()
            if ran and not landed and outstanding
        ]

    def run(self, inputs: Inputs, budget: float) -> ValidationResult:
        """One set of inputs. Raises: _SourceFault, NotRunnable.

        A program that never ends may wait for one that the sample left out: then the first programs run instead.
        """
        if self.sampled:
            try:
                return self._run(inputs, budget)
            except WaitsForever:
                self.sampled = False
        return self._run(inputs, budget)

    def _run(self, inputs: Inputs, budget: float) -> ValidationResult:
        memory, machine, chosen = self._run_source(inputs, budget)
        for schedule in self.schedules if not inputs.variant else self.schedules[:1]:
            result = self._judge(inputs, memory, machine, chosen, schedule)
            if result.status != "validated":
                break
        return result

    def _judge(
        self, inputs: Inputs, memory: Memory, machine: Machine, chosen: list[int], schedule: str
    ) -> ValidationResult:
        """Run the translation for programs `chosen` and compare with the source's `memory`."""
        other, second, fault = self._run_translated(inputs, memory, chosen, schedule, math.nan)
        common = {"variant": inputs.variant, "programs": len(chosen), "grid": machine.programs}
        if fault:
            return ValidationResult("hazard", str(fault), fault.op, hazards=(fault,), **common)
        self._remember(second)
        findings = list(second.findings)
        for name, byte in _new_races(memory, other):
            what = f"different values are stored to one element of {name}; the source does not"
            p = self._writer((name, byte), inputs, memory, chosen, schedule)
            findings.append(Finding("store-conflict", what, "", p.file, p.line, p.column))
        if not machine.broken:
            findings += second.broken.values()
        if findings:
            return ValidationResult("hazard", str(findings[0]), findings[0].op, hazards=tuple(findings), **common)
        reduction = max(machine.reduction, second.reduction)
        tensors = tuple(compare(memory, other, reduction, self.narrowest))
        if any(t.wrong for t in tensors) and self._relies_on_masked_lanes(inputs, chosen, memory, reduction):
            other, _, _ = self._run_translated(inputs, memory, chosen, schedule, 0.0)
            tensors = tuple(compare(memory, other, reduction, self.narrowest))
            self.notes.append(
                "the source uses lanes that its mask turned off and gave no value; they are taken as 0 on both sides"
            )
        if not inputs.variant:
            self._remark(memory, tensors)
        wrong = [t for t in tensors if t.wrong]
        if wrong:
            size = stored(next(b for b in other.buffers if b.name == wrong[0].name).element).itemsize
            place = self._writer((wrong[0].name, wrong[0].first * size), inputs, memory, chosen, schedule)
            written = f"stored at {place}" if place.line else "which the translation never stores"
            reason = f"{wrong[0]}, {written}"
            return ValidationResult("mismatch", reason, tensors=tensors, file=place.file, line=place.line, **common)
        return ValidationResult("validated", tensors=tensors, **common)

    def _run_source(self, inputs: Inputs, budget: float) -> tuple[Memory, Machine, list[int]]:
        """Run as many programs as the budget allows; -> which they were. Raises: _SourceFault."""
        memory = Memory(recording=True)
        addresses = place_tensors(memory, inputs)
        machine = Machine(self.source, memory, self.grid)
        try:
            arguments = bind(self.source, self.names[0], inputs, addresses)
            machine.run(arguments, [0])
            cost = machine.work * STEP_COST + memory.traffic * TRAFFIC_COST
            chosen = choose_programs(machine.programs, int(budget / max(cost, 1.0)))
            if not self.sampled:
                chosen = list(range(len(chosen)))
            machine.run(arguments, chosen[1:])
        except Hazard as hazard:
            raise _SourceFault(hazard.at("launch", UNKNOWN, ()).finding) from None
        return memory, machine, chosen

    def _writer(self, watch: tuple[str, int], inputs: Inputs, source: Memory, chosen, schedule: str) -> Place:
        """The op of the translation that last wrote the byte `watch`; it runs once more for that."""
        _, machine, _ = self._run_translated(inputs, source, chosen, schedule, math.nan, watch)
        return machine.blamed

    def _run_translated(
        self,
        inputs: Inputs,
        source: Memory,
        chosen: list[int],
        schedule: str,
        stale: float,
        watch: tuple[str, int] | None = None,
    ) -> tuple[Memory, Machine, Finding | None]:
        """`source` is the memory after the source's run: what that never read holds NaN, unless `stale` is a number."""
        memory = Memory(watch=watch)
        tight = len(chosen) == math.prod(self.grid)
        addresses = place_tensors(memory, inputs, source if math.isnan(stale) else None, tight)
        machine = Machine(self.translated, memory, self.grid)
        machine.schedule, machine.stale = schedule, stale
        try:
            machine.run(bind(self.translated, self.names[1], inputs, addresses), chosen)
        except Hazard as hazard:
            return memory, machine, hazard.at("launch", UNKNOWN, ()).finding
        except WaitsForever as endless:
            if self.sampled:
                raise
            what = f"does not end on inputs on which the source does: {endless.why}"
            return memory, machine, Finding("endless", what, endless.op)
        return memory, machine, None

    def _relies_on_masked_lanes(self, inputs: Inputs, chosen: list[int], expected: Memory, reduction: int) -> bool:
        """Whether the source's own results change when masked-off lanes hold NaN."""
        memory = Memory()
        addresses = place_tensors(memory, inputs)
        machine = Machine(self.source, memory, self.grid)
        machine.unset = math.nan
        try:
            machine.run(bind(self.source, self.names[0], inputs, addresses), chosen)
        except Hazard:
            return True
        return any(t.wrong for t in compare(expected, memory, reduction, self.narrowest))

    def _remember(self, translated: Machine) -> None:
        for line, counts in translated.trips.items():
            self.trips.setdefault(line, set()).update(counts)
        for key, record in translated.waits.items():
            mine = self.waits.setdefault(key, [record[0], 0, 0, 0])
            for i in (1, 2, 3):
                mine[i] += record[i]

    def _remark(self, memory: Memory, tensors: tuple[TensorComparison, ...]) -> None:
        for name in memory.racing():
            self.notes.append(f"the source stores different values to one element of {name}; those are not compared")
        for t in tensors:
            if t.compared and t.not_finite > t.compared // 2:
                self.notes.append(f"most of {t.name} is not finite, so the comparison says little")
        if memory.crossing:
            self.notes.append(
                f"a program reads what another one stored in {memory.crossing[0]}: the order of programs matters"
            )


def _new_races(source: Memory, translated: Memory) -> list[tuple[str, int]]:
    """Buffers with elements on which only the translation's stores conflict, each with the first such byte."""
    out = []
    for a, b in zip(source.buffers, translated.buffers):
        if b.racing is not None and (new := b.touched(b.racing) & ~a.touched(a.racing)).any():
            out.append((b.name, int(np.flatnonzero(new)[0])))
    return out


def _says_little(t: TensorComparison) -> bool:
    """Overflow or values so large that the tolerance hides much."""
    return t.not_finite > t.compared // 2 or t.scale > 1e6


def _says_something(result: ValidationResult) -> bool:
    return any(t.compared for t in result.tensors)


def choose_programs(count: int, affordable: int) -> list[int]:
    """Programs to run, in order: all if affordable, else first, last and an even sample with fixed jitter."""
    wanted = max(FEWEST, affordable)
    if count <= wanted:
        return list(range(count))
    rng = np.random.default_rng(count)
    edges = np.linspace(0, count, wanted - 1).astype(int)
    inner = {int(rng.integers(a, max(b, a + 1))) for a, b in zip(edges[:-1], edges[1:])}
    return sorted(inner | {0, count - 1})


def narrowest(text: str) -> str:
    """The least precise float type that the IR mentions."""
    present = [name for name in PRECISION if re.search(rf"\b(?:\d+x)*{name}\b", text)]
    return min(present, key=PRECISION.get) if present else "f32"


def validate_job(job: dict) -> dict:
    """Compile and validate one launch on one target; for worker processes.

    `job`: source (path or module), output (the Gluon file), target, launch (a launch as JSON or a LaunchSpec), search_path,
    import_hosts, variants, inputs (a file with `make_inputs`). -> the JSON form of the result; `status` is `skipped` when a side does not compile.
    """
    from translator.diagnostics import TranslationError
    from translator.validate.stages import source_stage, translated_stage

    started = time.perf_counter()
    launch = job["launch"]
    spec = launch if isinstance(launch, LaunchSpec) else LaunchSpec(**{k: v for k, v in launch.items() if k in _FIELDS})
    spec = replace(spec, grid=tuple(spec.grid))
    folders, hosts = tuple(job.get("search_path", ())), bool(job.get("import_hosts"))
    try:
        source = source_stage(job["source"], spec, job["target"], folders, hosts)
        translated = translated_stage(job["output"], spec, job["target"], folders, hosts)
    except TranslationError as error:
        reason = error.diagnostics[0].render() if error.diagnostics else str(error)
        return {"status": "skipped", "reason": reason, "seconds": time.perf_counter() - started}
    inputs = None
    if job.get("inputs"):
        from translator.validate.input_hook import apply_hook

        inputs = apply_hook(job["inputs"], spec, make_inputs(spec))
    result = validate_pair(
        source.text,
        translated.text,
        spec,
        source_names=source.names,
        translated_names=translated.names,
        source_file=source.file,
        translated_file=translated.file,
        with_variants=job.get("variants", True),
        inputs=inputs,
    )
    answer = result.as_json()
    answer["seconds"] = round(time.perf_counter() - started, 4)
    return answer


_FIELDS = frozenset(LaunchSpec.__dataclass_fields__)
