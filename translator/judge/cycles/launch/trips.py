"""How often the loops of a kernel go round for one launch, from its scalar code and the integers it is launched with."""

from __future__ import annotations

from gluonize.judge.cycles.code.assembly import Line, Operand, Program, Registers
from gluonize.judge.cycles.code.executed_paths import Flow
from gluonize.judge.cycles.code.register_values import Registry

MOST_STEPS = 300_000
# What may stand in scalar registers before the pointer to the arguments, and how many it takes.
_BEFORE = {"private_segment_buffer": 4, "dispatch_ptr": 2, "queue_ptr": 2}


def count_trips(program: Program, words: dict[int, int]) -> dict[int, int | None]:
    """Header -> iterations each time the loop is entered, rounded; None where the launch does not decide it, 0 where it is skipped.

    words: values of the kernel's arguments by their offset in 32-bit words; pointers and floats are left out.
    """
    return _Count(program, words).run()


class _Count:
    def __init__(self, program: Program, words: dict[int, int]):
        self.program, self.words = program, words
        self.flow = Flow(program)
        self.registry = Registry(32 if program.properties.get("wavefront_size32") else 64)
        self.rounds: dict[int, int] = {}
        self.entries: dict[int, int] = {}
        self.undecided: set[int] = set()
        given = program.properties
        self.arguments_at: int | None = sum(n for x, n in _BEFORE.items() if given.get(f"user_sgpr_{x}"))
        self._preload()

    def _preload(self) -> None:
        """Arguments that are in scalar registers when the kernel starts."""
        given = self.program.properties
        length, first = (given.get(f"user_sgpr_kernarg_preload_{x}", 0) for x in ("length", "offset"))
        for n in range(length):
            if first + n in self.words:
                register = given.get("user_sgpr_count", 0) - length + n
                self.registry.scalars[register] = self.words[first + n] & 0xFFFFFFFF

    def run(self) -> dict[int, int | None]:
        at: int | None = 0
        before = -1
        for _ in range(MOST_STEPS):
            if at is None or at >= len(self.program.lines):
                break
            line = self.program.lines[at]
            if at in self.flow.loops:
                inside = before >= 0 and self.flow.block(before) in self.flow.loops[at]
                self.rounds[at] = self.rounds.get(at, 0) + 1
                self.entries[at] = self.entries.get(at, 0) + (not inside)
            if line.op == "s_endpgm":
                return self._result()
            before = at
            at = self._next(at, line) if line.op.startswith(("s_branch", "s_cbranch")) else at + 1
            if not line.op.startswith(("s_branch", "s_cbranch")):
                self._execute(line)
        self.undecided.update(self.rounds)  # it did not come to its end
        return self._result()

    def _result(self) -> dict[int, int | None]:
        return {
            header: (
                None
                if header in self.undecided
                else round(self.rounds.get(header, 0) / max(1, self.entries.get(header, 0)))
            )
            for header in self.flow.loops
        }

    def _execute(self, line: Line) -> None:
        if line.op.startswith(("s_load", "s_buffer_load")):
            self._load(line)
        elif line.op.startswith("s_") or line.op.startswith(("v_cmp", "v_readfirstlane")):
            self.registry.execute(line)
            if line.arguments and self._writes_pointer(line.arguments[0]):
                self.arguments_at = None

    def _load(self, line: Line) -> None:
        target, base, *rest = line.arguments
        if not isinstance(target, Registers):
            return
        self.registry.execute(line)  # forgets what was there
        own = isinstance(base, Registers) and base.first == self.arguments_at and line.op.startswith("s_load")
        if own and rest and isinstance(rest[0], int):
            for n in range(target.count):
                if (word := rest[0] // 4 + n) in self.words:
                    self.registry.scalars[target.first + n] = self.words[word] & 0xFFFFFFFF
        if self._writes_pointer(target):
            self.arguments_at = None

    def _writes_pointer(self, target: Operand) -> bool:
        at = self.arguments_at
        if at is None or not isinstance(target, Registers) or target.file != "s":
            return False
        return target.first <= at + 1 and at < target.first + target.count

    def _next(self, at: int, line: Line) -> int | None:
        target = self.program.position.get(line.operands.strip())
        if line.op == "s_branch" or target is None:
            return target if line.op == "s_branch" else at + 1
        if line.op.startswith("s_cbranch_scc") and self.registry.scc is not None:
            return target if self.registry.scc == line.op.endswith("1") else at + 1
        if line.op.startswith("s_cbranch_vcc") and isinstance(mask := self.registry.mask("vcc"), int):
            return target if (mask != 0) == line.op.endswith("nz") else at + 1
        around = [h for h, blocks in self.flow.loops.items() if self.flow.block(at) in blocks]
        inner = max(around, key=lambda h: -len(self.flow.loops[h]), default=None)
        if inner is None:
            return self.flow.preferred(at, (at + 1, target), None)
        leaving = [x for x in (at + 1, target) if self.flow.block(x) not in self.flow.loops[inner]]
        if len(leaving) == 1:  # nothing says when it ends: go on behind it
            self.undecided.add(inner)
            return leaving[0]
        return at + 1 if line.op.endswith("execz") else self._rejoining(at, target)

    def _rejoining(self, at: int, target: int) -> int:
        """Of two ways inside of a loop, the one that does not go back."""
        return target if target > at else at + 1
