"""What a search over the named choices buys: predicted cycles of loops with matrix products, beside Triton's own compile.

    python bench/search.py [FOLDER [--launches FILE]] [-t TARGETS] [--only ID] [--every N] [--budget TRIALS] [-j 2] [--json FILE]
                           [--again FILE]

For each launch whose hottest loop multiplies matrices: the cost of Triton's compile of the source, of the translation by default, and of
what the search found, by the same model, and what it chose. Nothing is validated here. A launch that cannot be costed is listed.
--every N: the first of each N sources, in the order of the launches. The file is written after each row.
--again FILE: no search; the launches of an earlier FILE, with what was chosen there.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import geometric_mean

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gluonize.decide.choices.chosen import Choices, parse_choices  # noqa: E402
from gluonize.diagnostics import TranslationError  # noqa: E402
from gluonize.judge.lower.children.worker import WorkerPool  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec  # noqa: E402
from gluonize.search.choose import LOWER, Tried, best, common_work, figures_of, try_candidates  # noqa: E402
from gluonize.search.cost import cost  # noqa: E402
from gluonize.search.search import compiled, search_tried  # noqa: E402

from bench.launch_sets import Unit, chosen_units  # noqa: E402


@dataclass(frozen=True)
class Row:
    """One launch on one target. triton, default, found: costs, in the unit of `gluonize.search.cost`; efficiencies: of the matrix
    cores in the hottest loop, of the same three. chosen: the choices found; trials: how many were compiled for that. why: what could not be costed.
    """

    id: str
    target: str
    triton: float = 0.0
    default: float = 0.0
    found: float = 0.0
    efficiencies: tuple[float, ...] = ()
    chosen: tuple[str, ...] = ()
    trials: int = 0
    why: str = ""


def measured(
    pool: WorkerPool, unit: Unit, spec: LaunchSpec, target: str, budget: int, before: Row | None = None
) -> Row | None:
    """The figures of one launch; None where its hottest loop multiplies no matrices. before: what was chosen, in place of a search."""
    request = replace(unit.request(target), kernels=(spec.kernel,), launches=(spec,), budget=budget)
    try:
        walked = pool.call(LOWER, unit.source, spec, target, unit.search_path, False, False, True)
    except TranslationError as error:
        return Row(spec.id, target, why=f"Triton's compile: {error.diagnostics[0].message}")
    triton = cost(walked.cycles, walked.lds_overflow() is None)
    if triton.efficiency is None:
        return None
    if not triton.fits:
        return Row(spec.id, target, triton.cycles, why="Triton's compile needs more LDS than a workgroup can have")
    if before is None:
        chosen, tried = search_tried(request, [spec], pool)
    else:
        tried = try_candidates(request, spec, pool, (Choices(), parse_choices(before.chosen)), costs_only=True)
        chosen = best(tried)[spec.kernel]
    default = figures_of(tried, spec.id, Choices())
    if default is None or default.cost is None:
        return Row(spec.id, target, triton.cycles, why="the translation cannot be compiled")
    triton = cost(walked.cycles, True, work=common_work(tried, spec.id))
    found: Tried | None = figures_of(tried, spec.id, chosen)
    least = found.cost if found is not None and found.cost is not None else default.cost
    efficiencies = tuple(round(c.efficiency or 0.0, 3) for c in (triton, default.cost, least))
    costs = (round(c.cycles, 3) for c in (triton, default.cost, least))
    trials = len(compiled(tried)) if before is None else before.trials
    return Row(spec.id, target, *costs, efficiencies, chosen.words(), trials)


def earlier_rows(path: Path | None) -> dict[tuple[str, str], Row]:
    """Rows of a file of this bench by launch and target."""
    entries = json.loads(path.read_text()) if path else []
    return {(e["id"], e["target"]): Row(**e | {"chosen": tuple(e["chosen"])}) for e in entries}


def summary(rows: list[Row]) -> str:
    """Geometric means for each target, and the launches that stay above Triton's."""
    lines = []
    for target in dict.fromkeys(row.target for row in rows):
        own = [row for row in rows if row.target == target and not row.why]
        every = ([getattr(row, name) / row.triton for row in own] for name in ("default", "found"))
        by_default, found = (ratios or [math.nan] for ratios in every)
        above = [row for row in own if row.found > row.triton * 1.001]
        means = f"{geometric_mean(by_default):.3f} by default, {geometric_mean(found):.3f} found"
        worst = f"(worst {max(found):.3f}, {len(above)} above 1)"
        lines.append(f"{target}: {len(own)} launches, cost against Triton's: {means} {worst}")
        lines += [f"  {row.id}: {row.found / row.triton:.3f}" for row in above]
        lines += [f"  {row.id}: {row.why}" for row in rows if row.target == target and row.why]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--launches", type=Path)
    parser.add_argument("-t", "--targets", default="gfx950")
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--budget", type=int, default=40)
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--again", type=Path)
    given = parser.parse_args(arguments)
    rows: list[Row] = []
    earlier = earlier_rows(given.again)
    with WorkerPool(given.jobs, timeout=120.0) as pool:
        for target in given.targets.split(","):
            for unit in chosen_units(given.folder, given.launches, given.only)[:: given.every]:
                for spec in unit.launches:
                    before = earlier.get((spec.id, target))
                    if given.again and before is None:
                        continue
                    if (row := measured(pool, unit, spec, target, given.budget, before)) is not None:
                        rows.append(row)
                        print(row, file=sys.stderr, flush=True)
                        if given.json:
                            given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    print(summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
