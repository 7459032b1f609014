"""Executed instructions -> operations with their times: what the walk needs of each, worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gluonize.judge.cycles.code.assembly import Line, Registers
from gluonize.judge.cycles.code.executed_paths import Step
from gluonize.judge.cycles.code.matrix import is_matrix, matrix_time
from gluonize.rules.targets import Target
from gluonize.rules.timing import Timing

# Conflicts between banks of LDS: how many times longer an access takes than one without any.

BANK_BYTES = 4


def conflict_factor(lanes: tuple[int, ...], width: int, write: bool, timing: Timing) -> float:
    """1.0 without conflicts. lanes: byte address of each lane; width: bytes per lane, 4, 8 or 16.

    LDS serves groups of lanes one after another; a group takes as long as its fullest bank has different words.
    """
    groups = (timing.write_phases if write else timing.read_phases)[width]
    banks = timing.lds_bytes // BANK_BYTES
    taken = 0
    for group in groups:
        words: dict[int, set[int]] = {}
        for lane in group:
            first = lanes[lane] // BANK_BYTES
            for word in range(first, first + width // BANK_BYTES):
                words.setdefault(word % banks, set()).add(word)
        taken += max(len(x) for x in words.values())
    return taken / len(groups)


# Kinds of operations.
ISSUE, VECTOR, MATRIX, LDS, MEMORY, WAIT, ARRIVE, MEET, BARRIER, PRIORITY, LATENCY, TILE = range(12)
# Counters of outstanding accesses.
LOADS, STORES, SHARED, SCALARS, ASYNC, TILES = range(6)
COUNTERS = 6

_WAIT_NAMES = {
    "vmcnt": LOADS,
    "loadcnt": LOADS,
    "vscnt": STORES,
    "storecnt": STORES,
    "lgkmcnt": SHARED,
    "dscnt": SHARED,
    "kmcnt": SCALARS,
    "asynccnt": ASYNC,
    "tensorcnt": TILES,
}
_TRANSCENDENTAL = ("exp", "log", "rcp", "rsq", "sqrt", "sin", "cos", "tanh")
_FREE = ("s_delay_alu", "s_clause", "s_code_end", "s_ttracedata", "s_set_inst_prefetch", "s_inst_prefetch", "s_sethalt")
_WORDS = {"byte": 4, "short": 4, "dword": 4, "dwordx2": 8, "dwordx3": 16, "dwordx4": 16}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the walk. line: index in the program.

    clk: what it holds its unit: the vector port (VECTOR), the matrix pipe (MATRIX), LDS (LDS), the memory unit (MEMORY, TILE).
    issue: what it holds its wave. counter: that counts it, -1 for none. size: KiB in flight.
    waits: (counter, how many may be outstanding). exclusive: a vector instruction that does not issue beside a matrix instruction,
    or a matrix instruction that does not beside a vector instruction. level: of priority.
    shadow: clk after it in which its SIMD issues no other vector instruction. reads, writes: registers whose results
    are waited for; latency: of its own result. work: operations of a matrix instruction.
    """

    kind: int
    line: int
    issue: int
    clk: float = 0
    counter: int = -1
    size: float = 0
    waits: tuple[tuple[int, int], ...] = ()
    exclusive: bool = False
    level: int = 0
    shadow: int = 0
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    latency: int = 0
    work: int = 0


class Translator:
    """Lines of one program -> operations.

    tiles: line of a copy of the tensor data mover -> bytes that it moves for one wave; one that is not there has a latency only.
    conflicts: line -> how many times longer its access to LDS takes because lanes meet in a bank. unknown: lines whose
    addresses are not known, taken as free of conflicts. inexact: matrix instructions that no row of the target times.
    """

    def __init__(self, lines: Sequence[Line], target: Target, timing: Timing, tiles: Mapping[int, float] | None = None):
        self.lines, self.target, self.timing, self.tiles = lines, target, timing, tiles or {}
        self.lanes = target.warp_size
        self.conflicts: dict[int, float] = {}
        self.unknown: set[int] = set()
        self.inexact: set[str] = set()
        self._plain: dict[int, Operation] = {}
        self._factors: dict[tuple, float] = {}

    def operations(self, steps: Sequence[Step]) -> tuple[Operation, ...]:
        return tuple(self._lds(step) if step.lanes is not None else self._operation(step.line) for step in steps)

    def _operation(self, line: int) -> Operation:
        if line not in self._plain:
            self._plain[line] = self._of(line, self.lines[line])
        return self._plain[line]

    def _of(self, n: int, line: Line) -> Operation:
        op, timing = line.op, self.timing
        if is_matrix(op):
            return self._matrix(n, line)
        if op.startswith("v_"):
            return self._vector(n, line)
        if op.startswith("ds_"):
            return self._lds(Step(n))
        if op.startswith(("global_", "buffer_", "flat_", "scratch_", "cluster_")):
            return self._memory(n, line)
        if op.startswith("tensor_"):
            return self._tile(n)
        if op in ("s_barrier", "s_barrier_signal", "s_barrier_wait") and not line.of_cluster:
            kind = {"s_barrier": BARRIER, "s_barrier_signal": ARRIVE, "s_barrier_wait": MEET}[op]
            return Operation(kind, n, timing.issue)
        if waits := _waits(line, timing):
            return Operation(WAIT, n, timing.issue, waits=waits)
        if op == "s_nop":
            return Operation(ISSUE, n, timing.issue * (1 + _first_number(line)))
        if op == "s_setprio":
            return Operation(PRIORITY, n, timing.issue, level=_first_number(line))
        if op.startswith(("s_load", "s_buffer_load")):
            counter = SCALARS if timing.scalars_apart else SHARED
            return Operation(LATENCY, n, timing.issue, clk=timing.scalar_latency, counter=counter)
        return Operation(ISSUE, n, 0 if op.startswith(_FREE) else timing.issue)

    def _tile(self, n: int) -> Operation:
        timing, size = self.timing, self.tiles.get(n, 0)
        if not size or not timing.tile_bytes:
            return Operation(LATENCY, n, timing.issue, counter=TILES)
        return Operation(TILE, n, timing.issue, clk=size / timing.tile_bytes, counter=TILES, size=size / 1024)

    def _matrix(self, n: int, line: Line) -> Operation:
        time = matrix_time(line, self.target)
        if not time.exact:
            self.inexact.add(line.op)
        reads, writes = self._registers(line)
        return Operation(
            MATRIX, n, self.timing.issue, clk=time.cycles, reads=reads, writes=writes, latency=time.cycles,
            shadow=min(self.timing.scaled_shadow if time.scaled else self.timing.shadow, time.cycles - 1),
            exclusive=not self.target.separate_matrix_pipe, work=time.work,
        )  # fmt: skip

    def _vector(self, n: int, line: Line) -> Operation:
        timing, op = self.timing, line.op
        slow = op.startswith(tuple(f"v_{x}_" for x in _TRANSCENDENTAL))
        packed = timing.packed_waits and op.startswith(("v_pk_", "v_dot")) and op.endswith(("f32", "8")) or (
            timing.packed_waits and op.startswith("v_dot")
        )  # fmt: skip
        reads, writes = self._registers(line)
        clk = timing.transcendental if slow else timing.valu
        latency = timing.transcendental_latency if slow else timing.valu_latency
        return Operation(
            VECTOR, n, timing.issue, clk=clk, exclusive=packed or not self.target.separate_matrix_pipe,
            reads=reads, writes=writes, latency=latency,
        )  # fmt: skip

    def _registers(self, line: Line) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Vector registers that are read and written, where the walk has to follow them."""
        if not self.timing.valu_latency:
            return (), ()
        reads: list[int] = []
        writes: list[int] = []
        for half in (line, line.pair):
            for position, operand in enumerate(half.arguments if half else ()):
                if isinstance(operand, Registers) and operand.file == "v":
                    (writes if position == 0 else reads).extend(range(operand.first, operand.first + operand.count))
        return tuple(reads), tuple(writes)

    def _lds(self, step: Step) -> Operation:
        line, timing = self.lines[step.line], self.timing
        width, count = _lds_shape(line.op)
        write = line.op.startswith(("ds_write", "ds_store"))
        factor = float(count)
        if step.lanes is not None and (write or line.op.startswith(("ds_read", "ds_load"))):
            factor = count * self._factor(step, width, write)
            if factor > count:
                self.conflicts[step.line] = factor / count
        elif step.lanes is None and "permute" not in line.op and "swizzle" not in line.op:
            self.unknown.add(step.line)
        size = self.lanes * width
        issue = timing.issue + (timing.write_issue * width * count // 4 if write else 0)
        return Operation(LDS, step.line, issue, clk=size / timing.lds_bytes * factor, counter=SHARED)

    def _factor(self, step: Step, width: int, write: bool) -> float:
        """The offset of one access, and what all addresses have in common, move every lane to other banks alike."""
        base = step.lanes[0] // BANK_BYTES * BANK_BYTES
        key = tuple(x - base for x in step.lanes), width, write
        if key not in self._factors:
            self._factors[key] = conflict_factor(*key, self.timing)
        return self._factors[key]

    def _memory(self, n: int, line: Line) -> Operation:
        op, timing = line.op, self.timing
        if "_inv" in op or "_wb" in op or op.startswith("buffer_gl"):
            return Operation(ISSUE, n, timing.issue)
        width = _memory_width(op)
        store = "_store" in op or "atomic" in op and not _returns(line)
        counter = STORES if store and timing.stores_apart else LOADS
        if "async" in op:
            counter = ASYNC
        clk = timing.memory_clk[width] * self.lanes / 64
        return Operation(MEMORY, n, timing.issue, clk=clk, counter=counter, size=width * self.lanes / 1024)


def _first_number(line: Line) -> int:
    return line.arguments[0] if line.arguments and isinstance(line.arguments[0], int) else 0


def _returns(line: Line) -> bool:
    return bool({"glc", "sc0"} & set(line.words)) or "RETURN" in (line.word("th") or "")


def _waits(line: Line, timing: Timing) -> tuple[tuple[int, int], ...]:
    """s_waitcnt vmcnt(1) lgkmcnt(0); s_waitcnt_vscnt null, 0x0; s_wait_loadcnt_dscnt 0x203."""
    if line.op == "s_waitcnt":
        texts = [str(x) for x in line.arguments] + list(line.words)
        pairs = [x.rstrip(")").partition("(")[::2] for x in texts if "(" in x]
        return tuple((_WAIT_NAMES[name], int(count)) for name, count in pairs if name in _WAIT_NAMES)
    name = line.op.removeprefix("s_waitcnt_").removeprefix("s_wait_")
    if name == line.op:
        return ()
    if name == "idle":
        return tuple((counter, 0) for counter in range(COUNTERS))
    counters = [_WAIT_NAMES[part] for part in name.split("_") if part in _WAIT_NAMES]
    number = next((x for x in line.arguments if isinstance(x, int)), 0)
    # Two counters in one: that of memory is in the bits above those of LDS.
    values = [number >> 8, number & 0xFF] if len(counters) == 2 else [number]
    return tuple(zip(counters, values))


def _lds_shape(op: str) -> tuple[int, int]:
    """(bytes per lane of one access, accesses): ds_read2st64_b64 is (8, 2). Narrow ones cost as 4 bytes."""
    words = op.split("_")
    count = 2 if words[1] in ("read2", "write2", "read2st64", "write2st64") or "2addr" in op else 1
    bits = [int(w[1:]) for w in words if w[0] in "bui" and w[1:].isdigit()]
    width = (
        max(bits, default=32) if "tr" not in op else int(next(w for w in words if w[0] == "b" and w[1:].isdigit())[1:])
    )
    return (16 if width > 64 else 8 if width > 32 else 4), count


def _memory_width(op: str) -> int:
    """Bytes per lane: 4, 8 or 16."""
    for word in op.split("_"):
        if word in _WORDS or word.lstrip("us") in _WORDS:
            return _WORDS.get(word) or _WORDS[word.lstrip("us")]
        if word[0] in "bui" and word[1:].isdigit():
            bits = int(word[1:])
            return 16 if bits > 64 else 8 if bits > 32 else 4
    return 4
