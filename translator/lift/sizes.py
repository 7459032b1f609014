"""Runs of a kernel that show what does not depend on the sizes of one launch: other sizes, other programs."""

from __future__ import annotations

from dataclasses import dataclass

from translator.lift.arguments import arguments_of, numbers_of
from translator.lift.machine import NotLifted, Run
from translator.lift.pure_ops import HANDLERS
from translator.source.launch_spec import LaunchSpec
from translator.ttgir.module import Module, Op

STEPS = 150_000  # operations of all runs but the first
LARGE = 1024  # a size beyond which loops have enough iterations as they are
SMALL = 2  # programs along an axis, so that each has several tiles


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
    few = tuple(min(n, SMALL) for n in grid)
    given = set(module.entry.argument_names)  # what is fixed when it is compiled is not among them
    sizes = {name: n for name, n in numbers.items() if name in given and "stride" not in name and n > 1}
    changes = []
    for value in dict.fromkeys(sizes.values()):
        # Whole halves and doubles last, for kernels that take whole tiles only.
        others = (value // 2 + 1, value // 4 + 3, value + 64, *((value * 4 + 64,) if value < LARGE else ()))
        others += (value // 2, value * 2)
        changes += [{name: other for name, n in sizes.items() if n == value} for other in others]
    # One program of the launch shows its own loops; a grid of few programs, which costs more, shows loops over tiles.
    for program, programs in (((0, 0, 0), grid), (tuple(n - 1 for n in few), few)):
        for changed in [{}, *changes] if programs is few else changes:
            out += _tried(budget, module, spec, changed, program, programs)
    check_reached(module, out)
    check_counts(module, out)
    return out


@dataclass
class Budget:
    """Operations that may still be run."""

    left: int


def _run(module: Module, spec: LaunchSpec, changed: dict[str, int], program, grid) -> Run:
    return Run(module, arguments_of(module, spec, changed), program, grid, HANDLERS).go()


def _tried(budget: Budget, module: Module, spec: LaunchSpec, changed: dict[str, int], program, grid) -> list[Run]:
    """The run, or nothing where these sizes are none that the kernel takes. Raises: NotLifted that is certain."""
    if budget.left <= 0:
        return []
    try:
        run = Run(module, arguments_of(module, spec, changed), program, grid, HANDLERS)
        run.most = min(run.most, budget.left)
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
