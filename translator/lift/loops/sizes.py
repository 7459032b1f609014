"""Runs of a kernel that show what does not depend on the sizes of one launch: other sizes, other programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from gluonize.lift.machine.arguments import arguments_of, numbers_of
from gluonize.lift.machine.machine import NotLifted, Run
from gluonize.lift.machine.pure_ops import HANDLERS
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op

STEPS = 120_000  # operations of all runs but the first
CHEAP = 3_000  # operations of a run of which there may be many
PART, LEAST = 5, 4_000  # one of them takes a fifth of what is left, or so many
LARGE = 1024  # a size beyond which loops have enough iterations as they are
SMALL = 2  # programs along an axis, so that each has several tiles
MORE = 33  # programs beyond twice as many
SEVERAL = 1.7  # times as many operations are those of two tiles


def runs_of(module: Module, spec: LaunchSpec) -> list[Run]:
    """The launch as it is, and with other sizes where the kernel runs with them too. Raises: NotLifted for the launch itself."""
    grid = tuple(n or 1 for n in (*spec.grid, 1, 1, 1)[:3])
    last = tuple(n - 1 for n in grid)
    middle = tuple(n // 2 for n in grid)
    numbers = numbers_of(spec)
    out = [_run(module, spec, {}, (0, 0, 0), grid)]
    budget = Budget(STEPS)
    for program in dict.fromkeys((last, middle)):
        out += _tried(budget, module, spec, {}, program, grid)
    # Programs may be numbered anew where there are many of them: for each of eight dies its own, say.
    more = tuple(2 * n + MORE if n > 1 else n for n in grid)
    for program in dict.fromkeys((tuple(n - 1 for n in more), tuple(n // 2 for n in more))):
        out += _tried(budget, module, spec, {}, program, more)
    given = set(module.entry.argument_names)  # what is fixed when it is compiled is not among them
    sizes = {name: n for name, n in numbers.items() if name in given and "stride" not in name and n > 1}
    less = _smaller(budget, module, spec, sizes, grid, out)
    sizes |= less
    # One program of the launch shows its own loops; a grid of fewer programs, which costs more, shows loops over tiles.
    few = _fewer(budget, module, spec, less, grid, out)
    ends = tuple(n - 1 for n in few)
    for changed in _changes(sizes):
        for program, programs in (((0, 0, 0), grid), (ends, few)):
            out += _tried(budget, module, spec, less | changed, program, programs)
    check_reached(module, out)
    check_counts(module, out)
    return out


def _smaller(
    budget: Budget, module: Module, spec: LaunchSpec, sizes: dict[str, int], grid, runs: list[Run]
) -> dict[str, int]:
    """Smaller values for sizes that make loops long, so that many runs cost no more than one of the launch; these runs are added."""
    less: dict[str, int] = {}
    steps, deciding = runs[0].steps, runs[0].deciding
    values = sorted({n for name, n in sizes.items() if name in deciding}, reverse=True)
    together = [values] if len(values) > 1 else []  # of loops in loops each alone may leave the others too long
    for several in [*([value] for value in values), *together]:
        if steps <= CHEAP or less and several is values:
            break
        changed = less | {name: n // 4 + 3 for name, n in sizes.items() if n in several}
        found = _tried(budget, module, spec, changed, (0, 0, 0), grid, steps // 2)
        if found:
            less, steps = changed, found[0].steps
            runs += found
    return less


def _fewer(budget: Budget, module: Module, spec: LaunchSpec, less: dict[str, int], grid, runs: list[Run]):
    """Fewer programs, so that each has several tiles where it takes them in turns; the runs that show it are added."""
    steps, few = runs[-1].steps, grid
    while any(n > SMALL for n in few):
        fewer = tuple(max(n // 2, min(n, SMALL)) for n in few)
        found = _tried(budget, module, spec, less, tuple(n - 1 for n in fewer), fewer)
        if not found:
            break
        few = fewer
        runs += found
        if found[0].steps > SEVERAL * steps:
            break
    return few


def _changes(sizes: dict[str, int]) -> Iterator[dict[str, int]]:
    """Other values for sizes, those that are equal together: one of each, then a second one of each, and so on."""
    values = list(dict.fromkeys(sizes.values()))
    # Whole halves and doubles last, for kernels that take whole tiles only.
    others = [(n // 2 + 1, n // 4 + 3, n + 64, n // 2, n * 2, *((n * 4 + 64,) if n < LARGE else ())) for n in values]
    for row in zip_longest(*others):
        for value, other in zip(values, row):
            if other is not None:
                yield {name: other for name, n in sizes.items() if n == value}


@dataclass
class Budget:
    """Operations that may still be run. One run takes a part of them, so that one long loop leaves some for other sizes."""

    left: int

    @property
    def part(self) -> int:
        return max(self.left // PART, min(self.left, LEAST))


def _run(module: Module, spec: LaunchSpec, changed: dict[str, int], program, grid) -> Run:
    return Run(module, arguments_of(module, spec, changed), program, grid, HANDLERS).go()


def _tried(
    budget: Budget, module: Module, spec: LaunchSpec, changed: dict[str, int], program, grid, most: int = STEPS
) -> list[Run]:
    """The run, or nothing where these sizes are none that the kernel takes. Raises: NotLifted that is certain."""
    if budget.left <= 0:
        return []
    try:
        run = Run(module, arguments_of(module, spec, changed), program, grid, HANDLERS)
        run.most = min(most, budget.part)
        return [run.go()]
    except NotLifted as error:
        if error.certain:
            raise
        return []
    finally:
        budget.left -= run.steps


MOVES = (
    "ttng.async_tma",
    "ttng.tc_gen5_mma",
    "ttng.tmem_store",
    "ttng.tmem_copy",
    "ttng.warp_group_dot",
    "amdg.async_tdm",
    "amdg.buffer",
    "amdg.async_copy",
)


def check_reached(module: Module, runs: list[Run]) -> None:
    """Raises: NotLifted for code that stores or loads and that no run reached, whose meaning is then not known."""
    reached = set().union(*(run.reached for run in runs))
    for op in module.walk():
        if op not in reached and _matters(op) and not op.name.endswith("_wait"):
            raise NotLifted("no size that was tried reaches this, so that what it does is not known", op)


def _matters(op: Op) -> bool:
    if op.name.startswith(MOVES):
        return True
    return op.name in (
        "tt.store",
        "tt.load",
        "tt.dot",
        "ttg.local_store",
        "ttg.local_load",
        "ttg.async_copy_global_to_local",
    )


def check_counts(module: Module, runs: list[Run]) -> None:
    """Raises: NotLifted for a loop over tiles whose count depends on sizes and that only ever ran equally often."""
    counts: dict[Op, set[int]] = {}
    for run in runs:
        for op, trips in run.counted:
            counts.setdefault(op, set()).add(trips)
    for op, seen in counts.items():
        if len(seen) < 2 and any(_matters(inner) for region in op.regions for inner in region.walk()):
            raise NotLifted(
                f"this loop ran {seen.pop()} times at every size that was tried, so that nothing shows what more iterations do",
                op,
            )
