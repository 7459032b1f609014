"""Both modules of a launch on one set of inputs: run, compared, judged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gluonize.judge.inputs.bind import bind, place_tensors
from gluonize.judge.inputs.chosen_programs import (
    FEWEST,
    IN_ORDER,
    LAST_FIRST,
    Programs,
    choose_programs,
    cost,
    together,
)
from gluonize.judge.inputs.inputs import Inputs
from gluonize.judge.inputs.overlaps import Touched, touched
from gluonize.judge.machine.coverage import Ran
from gluonize.judge.machine.dtypes import PRECISION, stored
from gluonize.judge.machine.engine import Machine
from gluonize.judge.machine.hazards import Finding, Hazard, NotRunnable, TooLong, WaitsForever
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.memory.handed_over import HandedOver
from gluonize.judge.machine.memory.races import Races
from gluonize.judge.machine.turns import TURNS, spins
from gluonize.judge.machine.warp_specialize import SCHEDULES
from gluonize.judge.verdict.compare import TensorComparison, compare, new_races
from gluonize.judge.verdict.cut_tiles import Dealing, dealings, observed, shared_launch
from gluonize.judge.verdict.renumbered import same_work
from gluonize.judge.verdict.result import RACE, ValidationResult
from gluonize.judge.verdict.tile_loops import Launched, badly_shared, launched
from gluonize.read.launches.sites.persistent import Shared
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.locations import UNKNOWN, Place
from gluonize.trace.model.module import Module

LEAST_STEPS = 50_000  # ops that a program of a translation may always take,
BRIEF = 4  # times the ops of the launch as given that a program may take where inputs ask for no more
STEPS_PER_STEP = 16  # and as many more for each op of the longest program of the source
OF_SCHEDULE = frozenset(
    {"deadlock", "mbarrier-underflow", "lds-uninitialised"}
)  # other turns of the partitions may not have them
EXCUSED = frozenset({"division-by-zero"})  # what a translation may do where its source, which goes on, does it too
MANY = 4  # trips of a loop of the translation after which more show nothing new; they are counted no further


def _schedules(module: Module) -> tuple[str, ...]:
    """The orders in which the partitions of a module are run."""
    return SCHEDULES if module.has("ttg.warp_specialize") else SCHEDULES[:1]


class SourceFault(Exception):
    """The source kernel itself did something undefined on these inputs."""

    def __init__(self, finding: Finding):
        super().__init__(str(finding))
        self.finding = finding


@dataclass(frozen=True)
class SourceRun:
    """The source on one set of inputs, for who wants to run the same elsewhere: `programs` of the `grid`, at the same time if
    `turns`; `translated`, which of the translation do their work, in what grid and on which inputs; the memory that it left, and the
    `reduction` and `narrowest` type that a comparison with it needs."""

    inputs: Inputs
    grid: tuple[int, ...]
    programs: tuple[int, ...]
    translated: tuple[int, ...]
    translated_grid: tuple[int, ...]
    translated_inputs: Inputs
    turns: bool
    memory: Memory
    reduction: int
    narrowest: str


Observer = Callable[[SourceRun], None]


class Pair:
    """Both modules and the launch; runs them on one set of inputs after another. `observe` is told of each run of the source."""

    def __init__(
        self,
        source: Module,
        translated: Module,
        spec: LaunchSpec,
        source_names,
        translated_names,
        observe: Observer | None = None,
        tiles: str = "",
        shared: Shared | None = None,
    ):
        self.observe, self.tiles, self.shared = observe, tiles, shared
        self.dealing: Dealing | None = None  # of the run that is judged
        self.source, self.translated, self.spec = source, translated, spec
        self.names = (source_names or list(spec.signature), translated_names or list(spec.signature))
        self.grid = tuple(extent or 1 for extent in spec.grid) or (1,)
        self.narrowest = narrowest(source)
        self.notes: list[str] = ["the launch's grid is empty; one program was run"] if 0 in spec.grid else []
        self.trips: dict[int, set[int]] = {}
        self.waits: dict[int, list] = {}
        self.ran = Ran()  # what of the source ran on the last inputs
        self.waits_for_others = spins(source)
        # Programs that tell each other something by atomic operations, or are specialized, have an order that is not looked into.
        self.may_race = not source.target and not any("atomic" in op.name for op in source.walk())
        self.races: Races | None = None  # of the launch as given
        self.last: tuple[int, ...] = ()  # programs that ran in order
        self.longest = 0  # ops that one program of the source took
        self.used: dict[str, Touched] = {}  # by tensor, what the source did in the launch as given
        self.usual = 0  # ops that one program of it took
        self.each = 0.0  # microseconds of one of the programs that ran at the same time, by the machine's estimate
        self.schedules = _schedules(translated)
        self.source_schedules = _schedules(source)  # the one first that the source got through
        self.of_source: dict[tuple[str, str, int], Finding] = {}  # hazards that the source has itself
        self.dealt: dict[int, np.ndarray | None] = {}  # by the extent of the first axis, what `same_work` says of it
        self.excused: frozenset[str] = frozenset()  # kinds of those that it had on the last inputs

    def run(self, inputs: Inputs, budget: float) -> ValidationResult:
        """One set of inputs. Raises: SourceFault, NotRunnable.

        Where a program spins until another one does something, programs run at the same time from then on.
        """
        if not self.waits_for_others:
            try:
                return self._run(inputs, budget, IN_ORDER)
            except WaitsForever:
                self.waits_for_others = True
        result = self._run(inputs, budget, TURNS[0])
        for order in () if inputs.variant else TURNS[1:]:
            if result.status == "validated":
                result = self._run(inputs, budget, order)
        return result

    def _run(self, inputs: Inputs, budget: float, order: str) -> ValidationResult:
        memory, machine, chosen = self._run_source(inputs, budget, order)
        grid, in_order = inputs.grid or self.grid, bool(memory.crossing or memory.racing())
        self.dealing = observed(self.shared, grid, chosen, in_order)
        if order in (IN_ORDER, TURNS[0]):
            self.ran = machine.ran
            if self.observe is not None:
                launch, given = self._launched(chosen, inputs, memory)
                here = inputs, machine.grid, chosen.numbers
                there = launch.programs.numbers, tuple((*launch.grid, 1, 1, 1)[:3]), given
                judged_by = memory, machine.reduction, self.narrowest
                self.observe(SourceRun(*here, *there, order != IN_ORDER, *judged_by))
        schedules = self.schedules if not inputs.variant else self.schedules[:1]
        ways = dealings(self.shared, grid, chosen, bool(inputs.variant), in_order)
        for schedule, self.dealing in itertools.product(schedules, ways):
            result = self._judge(inputs, memory, machine, chosen, schedule)
            if result.status != "validated":
                return result
        if order == IN_ORDER and not inputs.variant and (memory.racing() or memory.crossing):
            try:  # what depends on the order of programs must do so on both sides
                other = self._run(inputs, budget, LAST_FIRST)
            except SourceFault:
                return result
            return result if other.status == "validated" else other
        return result

    def _judge(
        self, inputs: Inputs, memory: Memory, machine: Machine, chosen: Programs, schedule: str
    ) -> ValidationResult:
        """Run the translation for programs `chosen` and compare with the source's `memory`."""
        common = {"variant": inputs.variant, "programs": len(chosen.numbers), "grid": machine.programs}
        whole = self.tiles and self.shared is None and not inputs.variant  # what programs share has no such rule
        if whole and (shared := badly_shared(self.translated, self.tiles)):
            return ValidationResult("hazard", str(shared), shared.op, hazards=(shared,), **common)
        other, second, fault = self._run_translated(inputs, memory, chosen, schedule, math.nan)
        if fault:
            return ValidationResult("hazard", str(fault), fault.op, hazards=(fault,), **common)
        self._remember(second)
        findings = list(second.findings)
        for name, byte in new_races(memory, other):
            what = f"different values are stored to one element of {name}; the source does not"
            p = self._writer((name, byte), inputs, memory, chosen, schedule)
            findings.append(Finding("store-conflict", what, "", p.file, p.line, p.column))
        if not machine.broken:
            findings += second.broken.values()
        if findings:
            return ValidationResult("hazard", str(findings[0]), findings[0].op, hazards=tuple(findings), **common)
        # A program that has several tiles sums up each by itself.
        reduction = machine.reduction if self.shared else max(machine.reduction, second.reduction)
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
            buffer = next(b for b in other.buffers if b.name == wrong[0].name)
            byte = buffer.place(np.array([wrong[0].first * stored(buffer.element).itemsize]))[0]
            place = self._writer((buffer.name, int(byte)), inputs, memory, chosen, schedule)
            written = f"stored at {place}" if place.line else "which the translation never stores"
            reason = f"{wrong[0]}, {written}"
            return ValidationResult("mismatch", reason, tensors=tensors, file=place.file, line=place.line, **common)
        return ValidationResult("validated", tensors=tensors, **common)

    def _run_source(self, inputs: Inputs, budget: float, order: str) -> tuple[Memory, Machine, Programs]:
        """Run as many programs as the budget allows; -> which they were. Raises: SourceFault.

        A specialized source that one order of its partitions brings to a halt is run by another one.
        """
        memory, machine, chosen = self._run_by_some_schedule(inputs, budget, order)
        self.longest = machine.longest
        self.excused = EXCUSED & {finding.kind for finding in machine.noted.values()}
        if inputs.shares:
            self._check_order(inputs, memory, chosen)
        if not inputs.variant and not self.used:
            self.used, self.usual = touched(inputs, memory), machine.longest
        return memory, machine, chosen

    def _run_by_some_schedule(self, inputs: Inputs, budget: float, order: str) -> tuple[Memory, Machine, Programs]:
        fault = None
        for number, schedule in enumerate(self.source_schedules):
            try:
                ran = self._run_source_by(schedule, inputs, budget, order)
            except Hazard as hazard:
                fault = fault or SourceFault(hazard.at("launch", UNKNOWN, ()).finding)
                if hazard.kind not in OF_SCHEDULE:
                    break
                continue
            if fault is not None:
                self.keep([fault.finding])
            if not inputs.variant and order == IN_ORDER:
                self._look_for_hazards(inputs, ran[2], self.source_schedules[number + 1 :])
            rest = (other for other in self.source_schedules if other != schedule)
            self.source_schedules = (schedule, *rest)
            return ran
        assert fault is not None, "bug in gluonize: no schedule"
        raise fault

    def source_races(self, inputs: Inputs, budget: float) -> bool:
        """Whether the source has a race on these inputs, which it is not at fault on."""
        try:
            self._run_source_by(self.source_schedules[0], inputs, budget, IN_ORDER)
        except (Hazard, NotRunnable):
            return False
        return self.races is not None and bool(self.races.found)

    def _run_source_by(
        self, schedule: str, inputs: Inputs, budget: float, order: str
    ) -> tuple[Memory, Machine, Programs]:
        """Raises: Hazard."""
        memory = Memory(recording=True)
        machine, arguments = self._source_machine(memory, inputs, schedule)
        if self.may_race and order == IN_ORDER and not inputs.variant:
            memory.observer = self.races = Races(lambda: (memory.program, machine.running.op.place))
        if order == IN_ORDER:
            machine.run(arguments, [0])
            numbers = choose_programs(machine.programs, 0 if inputs.brief else int(budget / cost(machine, memory)))
            chosen = Programs(tuple(sorted({*numbers, *inputs.programs})), order)
            machine.run(arguments, chosen.numbers[1:])
            self.last = chosen.numbers
        else:
            every = range(together(machine.programs, inputs, budget, self.each)) if order in TURNS else self.last
            chosen = Programs(tuple(every), order)
            chosen.run(machine, arguments)
            if order in TURNS and not self.each:
                self.each = cost(machine, memory) / len(chosen.numbers)
        self.keep(machine.noted.values())
        return memory, machine, chosen

    def _source_machine(self, memory: Memory, inputs: Inputs, schedule: str = "") -> tuple[Machine, list]:
        """A machine for the source on `inputs`, and its arguments. A source that is Gluon goes on in the order of its program."""
        addresses = place_tensors(memory, inputs)
        machine = Machine(self.source, memory, inputs.grid or self.grid)
        machine.in_program_order = bool(self.source.target)
        machine.schedule = schedule or self.source_schedules[0]
        if inputs.brief:
            machine.step_limit = BRIEF * self.usual
        return machine, bind(self.source, self.names[0], inputs, addresses)

    def keep(self, findings: Iterable[Finding]) -> None:
        """Hazards of the source, the first of each kind and line."""
        for finding in findings:
            self.of_source.setdefault((finding.kind, finding.file, finding.line), finding)

    def _look_for_hazards(self, inputs: Inputs, chosen: Programs, schedules: Sequence[str]) -> None:
        """Hazards that the source has when its partitions take other turns."""
        for schedule in schedules:
            machine, arguments = self._source_machine(Memory(), inputs, schedule)
            try:
                machine.run(arguments, chosen.numbers[:FEWEST])
            except Hazard as hazard:
                self.keep([hazard.at("launch", UNKNOWN, ()).finding])
            self.keep(machine.noted.values())

    def reach(self, inputs: Inputs) -> dict[str, int]:
        """Bytes of each storage up to the last that the source touches, by name of its first tensor. Raises: SourceFault, NotRunnable."""
        memory, _, _ = self._run_source(inputs, 0.0, IN_ORDER)
        return {views[0].name: buffer.used() for views, buffer in zip(inputs.storages(), memory.buffers)}

    def _check_order(self, inputs: Inputs, memory: Memory, chosen: Programs) -> None:
        """Where arguments share memory, the source has to do the same in every order of its accesses. Raises: SourceFault."""
        what = why_order_matters(memory)
        if not what and chosen.order == IN_ORDER and len(chosen.numbers) > 1:
            other = Memory(recording=True)
            replace(chosen, order=LAST_FIRST).run(*self._source_machine(other, inputs))
            for buffer in memory.buffers:
                buffer.catch_up()
            same = all(np.array_equal(a.data, b.data) for a, b in zip(memory.buffers, other.buffers))
            what = why_order_matters(other) or ("" if same else "the order of programs changes what they store")
        if what:
            raise SourceFault(Finding("store-conflict", f"where two arguments share memory, {what}"))

    def _writer(self, watch: tuple[str, int], inputs: Inputs, source: Memory, chosen: Programs, schedule: str) -> Place:
        """The op of the translation that last wrote the byte `watch`; it runs once more for that."""
        _, machine, _ = self._run_translated(inputs, source, chosen, schedule, math.nan, watch)
        return machine.blamed

    def _run_translated(
        self,
        inputs: Inputs,
        source: Memory,
        chosen: Programs,
        schedule: str,
        stale: float,
        watch: tuple[str, int] | None = None,
    ) -> tuple[Memory, Machine, Finding | None]:
        """`source` is the memory after the source's run: what that never read holds NaN, unless `stale` is a number."""
        memory = Memory(watch=watch)
        tight = len(chosen.numbers) == math.prod(inputs.grid or self.grid)
        launch, inputs = self._launched(chosen, inputs, source)
        if self.shared is not None:
            memory.peers = HandedOver(lambda: memory.program, self.shared.sums)
        addresses = place_tensors(memory, inputs, source if math.isnan(stale) else None, tight)
        machine = Machine(self.translated, memory, launch.grid)
        machine.schedule, machine.stale, machine.views_overlap = schedule, stale, inputs.shares
        machine.excused = self.excused
        machine.step_limit = (LEAST_STEPS + STEPS_PER_STEP * self.longest) * -(-launch.tiles // launch.grid[0])
        try:
            launch.programs.run(machine, bind(self.translated, self.names[1], inputs, addresses))
        except Hazard as hazard:
            return memory, machine, hazard.at("launch", UNKNOWN, ()).finding
        except (WaitsForever, TooLong) as endless:
            if isinstance(endless, WaitsForever) and not self.waits_for_others and self.shared is None:
                raise
            what = f"does not end on inputs on which the source does: {endless.why}"
            return memory, machine, Finding("endless", what, endless.op)
        return memory, machine, None

    def _same_work(self, chosen: Programs, inputs: Inputs) -> Programs:
        """The programs of the translation which do the work of those `chosen` of the source, in the same order."""
        extent = (inputs.grid or self.grid)[0]
        if extent not in self.dealt:
            self.dealt[extent] = same_work(self.source, self.translated, extent, self.tiles)
        return chosen.dealt(self.dealt[extent])

    def _launched(self, chosen: Programs, inputs: Inputs, source: Memory) -> tuple[Launched, Inputs]:
        """What the translation is launched with to do the work of the programs `chosen` of the source, which left `source`."""
        grid, alike = inputs.grid or self.grid, self._same_work(chosen, inputs)
        if self.shared is not None:
            return shared_launch(self.shared, grid, chosen, self.dealing, inputs)
        if not self.tiles:
            return Launched(grid, alike, grid[0]), inputs
        launch = launched(grid, chosen, alike, bool(source.crossing or source.racing()))
        return launch, replace(inputs, arguments=inputs.arguments | {self.tiles: np.int32(launch.tiles)})

    def _relies_on_masked_lanes(self, inputs: Inputs, chosen: Programs, expected: Memory, reduction: int) -> bool:
        """Whether the source's own results change when masked-off lanes hold NaN."""
        memory = Memory()
        machine, arguments = self._source_machine(memory, inputs)
        machine.unset = math.nan
        try:
            chosen.run(machine, arguments)
        except Hazard:
            return True
        return any(t.wrong for t in compare(expected, memory, reduction, self.narrowest))

    def _remember(self, translated: Machine) -> None:
        for line, counts in translated.ran.trips.items():
            self.trips.setdefault(line, set()).update(min(count, MANY) for count in counts)
        for key, record in translated.waits.items():
            mine = self.waits.setdefault(key, [record[0], 0, 0, 0])
            for i in (1, 2, 3):
                mine[i] += record[i]

    def _remark(self, memory: Memory, tensors: tuple[TensorComparison, ...]) -> None:
        self.notes += [f"{RACE}{race}" for race in self.races.found.values()] if self.races is not None else []
        for name in memory.racing():
            self.notes.append(
                f"the source stores different values to one element of {name}: compared after the same order"
            )
        for t in tensors:
            if t.compared and t.not_finite > t.compared // 2:
                self.notes.append(f"most of {t.name} is not finite, so the comparison says little")
        if memory.crossing:
            self.notes.append(
                f"a program reads what another one stored in {memory.crossing[0]}: the order of programs matters"
            )


def why_order_matters(memory: Memory) -> str:
    """Why a run of the source may do something else in another order of programs, threads or tiles; "" where it may not."""
    if memory.crossing:
        return f"a program reads what another one stored in {memory.crossing[0]}"
    if memory.reread:
        return "a program reads what it has stored itself"
    return f"different values are stored to one element of {memory.racing()[0]}" if memory.racing() else ""


def narrowest(module: Module) -> str:
    """The least precise float type that a module mentions."""
    return min((name for name in PRECISION if name in module.elements), key=PRECISION.get, default="f32")
