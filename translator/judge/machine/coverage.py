"""Which statements, branches and trip counts of the source ran: what the word "validated" is worth.

Points are those of the source's TTIR, in lines of the source. Those of a condition that the front end folded are not among them:
a launch with other constants has its own. What several launches of a file ran is united (`united`).
"""

from __future__ import annotations

import ast
import linecache
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gluonize.trace.model.locations import Place
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Block, Op, Region

# Trips of a loop: `few` fill a pipeline at most, with `many` its ring of buffers comes round.
CLASSES = ("none", "one", "few", "many")
_TRIPS = {"none": "no trip", "one": "one trip only", "few": "few trips", "many": "many trips"}
_WHOLE_TENSORS = ("tt.reduce", "tt.scan", "tt.map_elementwise")  # their regions run on all elements at once
_LIBRARY = os.path.join("triton", "language", "")  # of Triton itself: its functions are taken as one statement
SHOWN = 3  # gaps that a sentence names


@dataclass
class Ran:
    """What ran so far. blocks: how often each; sides: (line of the module, side) of branches; trips: by line of the module."""

    blocks: Counter[Block] = field(default_factory=Counter)
    sides: set[tuple[int, int]] = field(default_factory=set)
    trips: dict[int, set[int]] = field(default_factory=dict)

    def add(self, other: "Ran") -> None:
        self.blocks.update(other.blocks)
        self.sides |= other.sides
        for line, counts in other.trips.items():
            self.trips.setdefault(line, set()).update(counts)


@dataclass(frozen=True)
class Branch:
    """A run-time condition. lines: of the statements under its sides, true first; block: in which it stands."""

    op: Op
    block: Block
    lines: tuple[frozenset[int], frozenset[int]]


@dataclass(frozen=True)
class Points:
    """What there is to run in a module. statements: the operations of each block; loops: those without constant bounds."""

    statements: tuple[tuple[Block, Op], ...]
    branches: tuple[Branch, ...]
    loops: tuple[Op, ...]
    few: int

    def classes(self, counts: Iterable[int]) -> set[str]:
        return {trip_class(count, self.few) for count in counts}


def trip_class(count: int, few: int) -> str:
    """`few`: the most trips that a pipeline takes to fill."""
    return "many" if count > few else CLASSES[min(count, 2)]


def points_of(module: Module, stages: int) -> Points:
    """The points of a source. stages: of the software pipeline that the launch asks for."""
    statements: list[tuple[Block, Op]] = []
    branches: list[Branch] = []
    loops: list[Op] = []
    constants = {name for op in module.walk() if op.name == "arith.constant" for name in op.results}
    for function in module.functions.values():
        labels = {block.label: block for block in function.region.blocks}
        for block, op in _walk(function.region):
            if op.name != "arith.constant":  # gathered at the top, wherever the source has them
                statements.append((block, op))
            if op.name == "scf.if":
                sides = [_lines(region) for region in op.regions] + [frozenset()]
                branches.append(Branch(op, block, (sides[0], sides[1])))
            elif op.name == "cf.cond_br":
                sides = [_lines(Region("", (labels[label],))) for label, _ in op.branches]
                branches.append(Branch(op, block, (sides[0], sides[1])))
            elif op.name == "scf.for" and not {op.for_loop.low, op.for_loop.high, op.for_loop.step} <= constants:
                loops.append(op)
    return Points(tuple(statements), tuple(branches), tuple(loops), max(stages, 2))


def _walk(region: Region) -> Iterator[tuple[Block, Op]]:
    for block in region.blocks:
        for op in block.ops:
            yield block, op
            if op.name not in _WHOLE_TENSORS:
                for inner in op.regions:
                    yield from _walk(inner)


def _lines(region: Region) -> frozenset[int]:
    ops = (op for _, op in _walk(region) if op.name not in ("scf.yield", "arith.constant"))
    return frozenset(place.line for op in ops if (place := _place(op)).line)


def _place(op: Op) -> Place:
    """Where the statement stands; a function of Triton's own library counts as the call."""
    inner = op.locations.innermost(op.location) if op.location else op.place
    return op.place if _LIBRARY in inner.file else inner


@dataclass(frozen=True)
class Gap:
    """Lines of the source, first to last, that did not run, or not in every way; why: of what there is no launch."""

    file: str
    first: int
    last: int
    why: str

    def __str__(self) -> str:
        lines = f"line {self.first}" if self.first == self.last else f"lines {self.first}-{self.last}"
        return f"{lines} ({self.why})"


@dataclass(frozen=True)
class Coverage:
    """What ran, by place of the source, as JSON has it.

    statements: (file, line) -> whether it ran. branches: (file, line, column) -> (ran when true, when false, lines under each).
    loops: (file, line) -> (classes of trip counts that ran, that the launch admits). proved: whether all of it is, so that nothing needs to run.
    """

    statements: dict[tuple[str, int], bool] = field(default_factory=dict, hash=False)
    branches: dict[tuple[str, int, int], tuple] = field(default_factory=dict, hash=False)
    loops: dict[tuple[str, int], tuple] = field(default_factory=dict, hash=False)
    proved: bool = False

    def gaps(self) -> tuple[Gap, ...]:
        """What neither ran nor is proved, from top to bottom."""
        if self.proved:
            return ()
        found = [*self._idle_statements(), *self._idle_sides(), *self._other_trips()]
        return tuple(sorted(found, key=lambda gap: (gap.file, gap.first, gap.last)))

    def _idle_statements(self) -> Iterator[Gap]:
        """Runs of lines between which nothing ran."""
        run: list[tuple[str, int]] = []
        for key in [*sorted(self.statements), ("", 0)]:
            idle = key[1] > 0 and not self.statements[key]
            if run and (not idle or key[0] != run[-1][0]):
                yield Gap(run[0][0], run[0][1], run[-1][1], self._reason(*run[0]))
                run = []
            if idle:
                run.append(key)

    def _reason(self, file: str, line: int) -> str:
        """The nearest condition whose side did not run."""
        sides = [
            (len(under), condition_text(file, key[1]), side)
            for key, (*ran, lines) in self.branches.items()
            for side, under in enumerate(lines)
            if key[0] == file and line in under and not ran[side] and any(ran)
        ]
        if not sides:
            return "no launch gets there"
        _, text, side = min(sides)
        return f"{text} in every launch" if side else f"{text} is not in any launch"

    def _idle_sides(self) -> Iterator[Gap]:
        for (file, line, _), (when_true, when_false, lines) in self.branches.items():
            if when_true == when_false or any(
                not self.statements.get((file, n), True) for n in lines[when_true]
            ):  # never reached, or told by its lines
                continue
            text = condition_text(file, line)
            yield Gap(file, line, line, f"{text} in every launch" if when_true else f"{text} is not in any launch")

    def _other_trips(self) -> Iterator[Gap]:
        for (file, line), (ran, admitted) in self.loops.items():
            if missing := [_TRIPS[name] for name in CLASSES if ran and name in admitted and name not in ran]:
                yield Gap(file, line, line, f"no launch has a loop of {', '.join(missing)}")

    def verdict(self) -> str:
        """`validated`, `proved`, or `validated except lines 31-38 (mode == 2 is not in any launch)`."""
        gaps = self.gaps()
        if not gaps:
            return "proved" if self.proved else "validated"
        files = Counter(file for file, _ in self.statements)
        same = len({gap.file for gap in gaps}) == 1 and files[gaps[0].file] == max(files.values(), default=0)
        main = gaps[0].file if same else ""  # a line of a library's function has its file
        told = [f"{'' if gap.file == main else os.path.basename(gap.file) + ' '}{gap}" for gap in gaps[:SHOWN]]
        told += [f"and {len(gaps) - SHOWN} more"] if len(gaps) > SHOWN else []
        return f"validated except {', '.join(told)}"

    def with_others(self, all_launches: Coverage) -> Coverage:
        """The same places with what ran of them in any launch of the file."""
        return Coverage(
            {key: all_launches.statements[key] for key in self.statements},
            {key: all_launches.branches[key] for key in self.branches},
            {key: all_launches.loops[key] for key in self.loops},
            self.proved,
        )

    def as_json(self) -> dict:
        gaps = self.gaps()
        return {
            "complete": not gaps,
            "verdict": self.verdict(),
            "proved": self.proved,
            "missing": [{"file": gap.file, "first": gap.first, "last": gap.last, "why": gap.why} for gap in gaps],
            "statements": [[*key, ran] for key, ran in sorted(self.statements.items())],
            "branches": [
                [*key, when_true, when_false, [sorted(side) for side in lines]]
                for key, (when_true, when_false, lines) in sorted(self.branches.items())
            ],
            "loops": [
                [*key, *([n for n in CLASSES if n in names] for names in value)]
                for key, value in sorted(self.loops.items())
            ],
        }

    @staticmethod
    def of_json(data: dict) -> "Coverage":
        return Coverage(
            {(file, line): ran for file, line, ran in data["statements"]},
            {(f, n, c): (yes, no, tuple(map(frozenset, lines))) for f, n, c, yes, no, lines in data["branches"]},
            {(file, line): (frozenset(ran), frozenset(asked)) for file, line, ran, asked in data["loops"]},
            data.get("proved", False),
        )

    def as_covered(self) -> Coverage:
        """The same, where all that is proved counts as what ran."""
        if not self.proved:
            return self
        return Coverage(
            dict.fromkeys(self.statements, True),
            {key: (True, True, lines) for key, (_, _, lines) in self.branches.items()},
            {key: (admitted, admitted) for key, (_, admitted) in self.loops.items()},
            True,
        )


def coverage_of(points: Points, ran: Ran, admitted: dict[int, set[str]]) -> Coverage:
    """admitted: classes of trip counts that some launch of the kernel makes, by line of the module; all where it has none."""
    statements: dict = {}
    for block, op in points.statements:
        place = _place(op)
        if place.line:
            key = (place.file, place.line)
            statements[key] = statements.get(key, False) or ran.blocks[block] > 0
    out = Coverage(statements)
    for branch in points.branches:
        place = _place(branch.op)
        if place.line:
            sides = tuple((branch.op.line, side) in ran.sides for side in (0, 1))
            _unite_branch(out.branches, (place.file, place.line, place.column), (*sides, branch.lines))
    for op in points.loops:
        place = _place(op)
        if place.line:
            classes = frozenset(points.classes(ran.trips.get(op.line, ())))
            _unite_loop(
                out.loops, (place.file, place.line), (classes, frozenset(admitted.get(op.line, CLASSES)) | classes)
            )
    return out


def united(several: Iterable[Coverage]) -> Coverage:
    """What ran or is proved in any of several launches, of what any of them has."""
    several = list(several)
    out = Coverage(proved=bool(several) and all(one.proved for one in several))
    for one in (one.as_covered() for one in several):
        for key, ran in one.statements.items():
            out.statements[key] = out.statements.get(key, False) or ran
        for key, value in one.branches.items():
            _unite_branch(out.branches, key, value)
        for key, value in one.loops.items():
            _unite_loop(out.loops, key, value)
    return out


def _unite_branch(branches: dict, key, value) -> None:
    when_true, when_false, lines = branches.get(key, (False, False, (frozenset(), frozenset())))
    both = tuple(a | b for a, b in zip(lines, value[2]))
    branches[key] = (when_true or value[0], when_false or value[1], both)


def _unite_loop(loops: dict, key, value) -> None:
    ran, admitted = loops.get(key, (frozenset(), frozenset()))
    loops[key] = (ran | value[0], admitted | value[1])


def condition_text(file: str, line: int) -> str:
    """The condition that stands in a line of a file, as its author wrote it; "its condition" where that is not known."""
    return _conditions(file).get(line, "its condition")


def _conditions(file: str) -> dict[int, str]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    tests = (n for n in ast.walk(tree) if isinstance(n, (ast.If, ast.IfExp, ast.While)))
    return {node.lineno: " ".join(ast.unparse(node.test).split()) for node in tests}
