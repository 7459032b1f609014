"""The interpreter: runs one function for the programs of a grid, one program after another.

    machine = Machine(module, memory, grid)
    machine.run(arguments, programs)          # arguments: one value per parameter of the entry function
    machine.findings, machine.racing, ...

Hazards end the run of the program and are raised with op, source line and program id filled in.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from gluonize.judge.machine.control import CONTROL, TERMINATORS, branch_target
from gluonize.judge.machine.coverage import Ran
from gluonize.judge.machine.dtypes import stored
from gluonize.judge.machine.hazards import OF_ORDER, Finding, Hazard, NotRunnable, TooLong
from gluonize.judge.machine.memory.clusters import Cluster
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.memory.lds import SharedMemory
from gluonize.judge.machine.memory.mbarriers import Barriers
from gluonize.judge.machine.memory.ordering import Partitions
from gluonize.judge.machine.memory.tensor_descriptors import Descriptor
from gluonize.judge.machine.ops.rows import ROWS
from gluonize.judge.machine.ops.wgmma import TAKE_UNFINISHED, check_finished
from gluonize.judge.machine.table import TABLE
from gluonize.judge.machine.turns import Turns, run_in_turns
from gluonize.rules.targets import TARGETS
from gluonize.trace.model.locations import UNKNOWN
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Block, Op, Region

# Promises about values: `multiple_of`, `max_contiguous` and `max_constancy`, printed as attributes of the op that made the value.
#
# The compiler widens accesses on their word, so a false one is wrong numbers on a device while the values here are right.


def broken_promise(op, value) -> str:
    """What of an op's promises is not true of its value, "" when all are."""
    value = np.atleast_1d(value)
    if value.dtype.kind not in "iu":
        return ""
    for name, numbers in op.promises.items():
        for axis, number in enumerate(numbers[: value.ndim]):
            lines = np.moveaxis(value, axis, -1).astype(np.int64)
            number = min(number, lines.shape[-1]) if name != "tt.divisibility" else number
            if number > 1 and not _holds(name, lines, number):
                return f"{name} = {number} in dimension {axis} is promised, but not true"
    return ""


def _holds(name: str, lines: np.ndarray, number: int) -> bool:
    steps = np.diff(lines, axis=-1)
    if name == "tt.divisibility":
        # The first of each run of consecutive values is divisible.
        first = np.ones(lines.shape, bool)
        first[..., 1:] = steps != 1
        return not (lines[first] % number).any()
    inside = np.arange(1, lines.shape[-1]) % number != 0
    return bool((steps[..., inside] == (1 if name == "tt.contiguity" else 0)).all())


assert ROWS  # they fill the table

STEP_LIMIT = 500_000  # ops per program of a source


class Program:
    """One program (workgroup) of the grid, and the services that op rows use.

    `memory` is shared by all programs, `lds` belongs to this one. `printed` collects `tt.print` output.
    """

    def __init__(self, machine: "Machine", program: tuple[int, int, int]):
        self.machine = machine
        self.module = machine.module
        self.memory = machine.memory
        self.program = program
        self.grid = machine.grid
        self.op: Op | None = None  # that runs now
        self.lds = SharedMemory(self.report, machine.in_program_order)
        self.lds.cluster = (
            Cluster(self.report, self.module) if machine.module.clusters > 1 and not machine.module.is_nvidia else None
        )
        self.warps = machine.module.warps
        self.barriers = Barriers(self.lds, self.warps, published=self.module.is_nvidia)
        if self.module.is_nvidia:
            self.lds.partitions = Partitions(self.module.most_partitions, agents=True)
        self.printed = machine.printed
        self.ran = machine.ran
        self.steps = 0
        self.turns: Turns | None = None  # among programs that run at the same time
        self.scratch = 0  # pieces of global memory of its own
        self.tensormaps: dict[int, Descriptor] = {}  # made in such pieces, by address
        self.taken = 0  # programs that have not begun and that this one does too
        self.frames = 0  # calls under way; shared memory of a callee has no known place
        self.reduction = 1

    def partition(self, warps: int) -> "Program":
        """A partition of this program: same shared memory and barriers, counters and warps of its own."""
        if self.lds.cluster is not None:
            raise NotRunnable("ttg.warp_specialize", "in a program of several workgroups")
        side = Program(self.machine, self.program)
        side.lds = self.lds.partition(side.report)
        side.barriers = Barriers(side.lds, warps, self.barriers.table, self.barriers.published)
        side.warps = warps
        side.turns = self.turns
        side.tensormaps, side.scratch = self.tensormaps, self.scratch
        return side

    def take_program(self, most: int) -> int | None:
        """The number of a program that has not begun and now will not, unless this one has taken `most`."""
        if self.taken >= most or not self.machine.waiting:
            return None
        self.taken += 1
        return self.machine.waiting.pop(0)

    def number_of(self, number: int) -> tuple[int, int, int]:
        """Where the program `number` stands in the grid."""
        return self.machine.position(number)

    def absorb(self, side: "Program") -> None:
        """A partition has ended: its work is this program's."""
        self.steps += side.steps
        self.reduction += side.reduction

    def report(self, hazard: Hazard) -> None:
        """A hazard of the op that runs: raised, or of a machine that goes on in program order, noted. Raises: Hazard."""
        goes_on = self.machine.in_program_order and hazard.kind in OF_ORDER
        if not goes_on and hazard.kind not in self.machine.excused:
            raise hazard
        assert self.op is not None, "bug in gluonize: a hazard outside of an operation"
        self.machine.note(hazard.at(self.op.name, self.op.place, self.program).finding)

    def take_turns(self, scheduler, me: int) -> None:
        """From now on give the turn away when waiting; with None, run alone again."""
        self.barriers.scheduler, self.barriers.me = scheduler, me

    @property
    def threads(self) -> int:
        return self.warps * self.module.lanes

    def note_reduction(self, length: int) -> None:
        """`length` more terms may have been summed into one value; the comparison's tolerance grows with it."""
        self.reduction += length

    def note_product(self, multiply_adds: int) -> None:
        """A matrix product took so many multiply-adds, those of masked-off parts of its tiles included."""
        self.machine.multiply_adds += multiply_adds

    def note_fetched(self, op: Op, elements: int, element: str) -> None:
        """A copy reads so many elements of memory, once for all CTAs that it brings them to."""
        self.machine.fetched[op.place.line] += int(elements) * stored(element).itemsize

    def note_loaded(self, op: Op, mask: object) -> None:
        """Lanes read memory: in a cluster, each CTA that has an element reads it for itself."""
        if self.lds.cluster is None:
            return
        ctas = self.module.layout(op.type).ctas if op.type.is_tensor else ()
        elements = op.type.size if mask is None else np.sum(mask)
        self.note_fetched(op, elements << sum(not any(basis) for basis in ctas), op.type.element)

    def check_steps(self, op: Op) -> None:
        """Raises: TooLong when the program has run more operations than the machine lets it."""
        if self.steps > self.machine.step_limit:
            raise TooLong(op.name, f"more than {self.machine.step_limit} ops in one program")

    def switch(self) -> None:
        """Before an access that programs which run at the same time may see."""
        if self.turns is not None:
            self.turns.switch()

    def uses(self, op: Op) -> bool:
        """Whether anything reads the result of `op`."""
        if "used" not in op.memo:
            op.memo["used"] = bool(op.results) and self.machine.mentions(op.results[0]) > 1
        return op.memo["used"]

    def call_region(self, region: Region, arguments) -> list:
        """Run a combine region; its free values are those of the op that is running."""
        env = self.env
        block = region.blocks[0]
        if len(region.blocks) > 1:
            inner = dict(env)
            for (name, _), value in zip(block.arguments, arguments):
                inner[name] = value
            return self.run_region(region, inner)[1]
        for (name, _), value in zip(block.arguments, arguments):
            env[name] = value
        _, values = self.run_block(block, env)
        self.env = env
        return values

    def _check_promises(self, op: Op, value) -> None:
        broken = broken_promise(op, value)
        if broken and op.line not in self.machine.broken:
            place = op.place
            self.machine.broken[op.line] = Finding(
                "false-hint", broken, op.name, place.file, place.line, place.column, self.program
            )

    def run_region(self, region: Region, env: dict) -> tuple[str, list]:
        """Run blocks from the first until one ends in something else than a branch."""
        block = region.blocks[0]
        if len(region.blocks) == 1:
            return self.run_block(block, env)
        labels = {b.label: b for b in region.blocks}
        while True:
            name, values = self.run_block(block, env)
            if name != "branch":
                return name, values
            label, arguments = values
            block = labels[label]
            for (argument, _), value in zip(block.arguments, arguments):
                env[argument] = value

    def run_block(self, block: Block, env: dict) -> tuple[str, list]:
        """Run the ops of a block; -> the terminator and its operands."""
        self.ran.blocks[block] += 1
        for op in block.ops:
            name = op.name
            if name in TERMINATORS:
                if name in ("cf.br", "cf.cond_br"):
                    return "branch", branch_target(self, op, env)
                return name, [env[o] for o in op.operands]
            self.steps += 1
            if self.lds.partitions is not None:
                self.lds.partitions.place = op.place
            try:
                self.op = op
                if self.lds.cluster is not None:
                    self.lds.cluster.begin(op, self.lds.epoch, self.uses(op))
                    self.memory.peers = None if self.machine.views_overlap else self.lds.cluster.peers
                row = TABLE.get(name)
                if row is not None:
                    self.env = env
                    if self.lds.products.groups and name not in TAKE_UNFINISHED:
                        check_finished(self, [env[o] for o in op.operands])
                    if op.scratch and not self.frames:
                        self.lds.use_scratch(*op.scratch)
                    result = row(self, op, *[env[o] for o in op.operands])
                elif name in CONTROL:
                    result = CONTROL[name](self, op, env)
                else:
                    raise NotRunnable(name)
            except Hazard as hazard:
                raise hazard.at(name, op.place, self.program)
            if self.memory.hit:
                self.memory.hit, self.machine.blamed = False, op.place
            names = op.results
            if not names:
                continue
            if len(names) == 1:
                env[names[0]] = result[0] if isinstance(result, (tuple, list)) else result
                if op.has_promises:
                    self._check_promises(op, env[names[0]])
            else:
                for key, value in zip(names, result):
                    env[key] = value
        return "", []


class Machine:
    """A module on guarded memory. `work` counts ops, `multiply_adds` those of matrix products, `reduction` is the longest
    chain of sums in one program.

    Masked-off lanes without `other` are undefined in the language: `unset` is what a load gives there (the AMD backend: 0),
    `stale` what a copy leaves in shared memory (whatever was there before: NaN shows it). `environment` holds the values of
    a program by name. `step_limit` is how many ops a program may take, `longest` how many one took. `in_program_order`: hazards of order are
    noted in `noted`, and the program goes on as if each asynchronous operation had been done where it stands; so a source is run.
    `excused`: kinds of hazards that are noted too, because the source has them on the same inputs. `views_overlap`:
    of arguments that share storage nobody says which workgroup of a cluster is first, nor does the source say which warp is.
    """

    def __init__(self, module: Module, memory: Memory, grid: tuple[int, ...], environment: type[dict] = dict):
        self.module = module
        self.environment = environment
        self.memory = memory
        self.grid = tuple((*grid, 1, 1, 1)[:3])
        self.schedule = "forward"
        self.unset = 0.0
        self.stale = math.nan
        self.printed: list = []
        self.broken: dict[int, Finding] = {}
        self.ran = Ran()
        self.waits: dict[int, list] = {}
        self.findings: list[Finding] = []
        self.waiting: list[int] = []  # programs that have not begun
        self.in_program_order = False
        self.excused: frozenset[str] = frozenset()
        self.views_overlap = False
        self.noted: dict[tuple[str, str, int], Finding] = {}
        self.blamed = UNKNOWN  # the last op that wrote the byte that the memory watches
        self.work = 0
        self.longest = 0
        self.step_limit = STEP_LIMIT
        self.running: Program | None = None  # that began last
        self.multiply_adds = 0
        self.fetched: Counter[int] = Counter()  # bytes that copies read from memory, by line
        self.reduction = 1

    def note(self, finding: Finding) -> None:
        """Keep the first finding of each kind and line."""
        self.noted.setdefault((finding.kind, finding.file, finding.line), finding)

    def mentions(self, value: str) -> int:
        """How often an SSA value is printed, its definition included."""
        return self.module.mentions[value]

    def run(self, arguments: list, programs) -> None:
        """Run the entry function for each program id in `programs` (linear indices). Raises: Hazard, NotRunnable."""
        with np.errstate(all="ignore"):
            self.waiting = list(programs)
            while self.waiting:
                number = self.memory.program = self.waiting.pop(0)
                self._run_one(arguments, number, None)

    def run_in_turns(self, arguments: list, programs: list[int], schedule: str) -> None:
        """Run programs that wait for each other at the same time. Raises: Hazard, NotRunnable."""
        run_in_turns(self.memory, programs, schedule, lambda number, turns: self._run_one(arguments, number, turns))

    def _run_one(self, arguments: list, number: int, turns: Turns | None) -> None:
        function = self.module.entry
        program = self.running = Program(self, self.position(number))
        program.turns = turns
        env = self.environment((name, value) for (name, _), value in zip(function.arguments, arguments))
        program.run_region(function.region, env)
        self._finish(program, number)

    def _end_waits(self) -> bool:
        """Whether the end of a program waits for its copies to shared memory. Nothing promises it of a target that has no row."""
        if self.module.is_nvidia or not self.module.target:
            return True
        row = TARGETS.get(self.module.target)
        return row is not None and row.copies_end_with_program

    def position(self, number: int) -> tuple[int, int, int]:
        """Where a program stands in the grid."""
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)

    def _finish(self, program: Program, number: int) -> None:
        findings = program.lds.close(program.program, self._end_waits()) + program.barriers.close(program.program)
        for finding in findings if self.in_program_order else ():
            self.note(finding)
        self.findings += () if self.in_program_order else findings
        self.work += program.steps
        self.longest = max(self.longest, program.steps)
        self.reduction = max(self.reduction, program.reduction)
        for key, record in program.lds.waits.items():
            mine = self.waits.setdefault(key, [record[0], 0, 0, 0])
            for i in (1, 2, 3):
                mine[i] += record[i]

    @property
    def programs(self) -> int:
        return math.prod(self.grid)
