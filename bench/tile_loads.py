"""Which loads the tensor data mover of gfx1250 makes, and why it does not make the others.

    python bench/tile_loads.py [FOLDER [--launches FILE]] [--only ID] [-j 2 | --cluster ADDRESS] [--list] [--json FILE]

Looks at every load of a tensor in the fixtures, or in the launch file of FOLDER, whose sources are modules in it. Prints the
number of loads with the data mover and without it by reason; `--list` every load. Exit status 1 when a launch is not
translated or a load has no reason.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.launch_sets import Unit, chosen_units  # noqa: E402
from gluonize.product.cluster.open_pool import open_pool  # noqa: E402
from gluonize.diagnostics import TranslationError  # noqa: E402
from gluonize.judge.lower.children.worker import JOB_SECONDS  # noqa: E402
from gluonize.product.project.cache.kept_jobs import KeptJobs  # noqa: E402
from gluonize.product.report.explain.data_mover import TileLoad  # noqa: E402

TARGET = "gfx1250"
LOADS = "gluonize.product.report.explain.job:loads_of_launch"


def loads_of(pool: KeptJobs, unit: Unit) -> dict[str, tuple[TileLoad, ...] | str]:
    """Launch -> its loads, or why it is not translated."""
    out: dict[str, tuple[TileLoad, ...] | str] = {}
    for spec in unit.launches:
        try:
            out[spec.id] = pool.call(LOADS, unit.request(TARGET), spec)
        except TranslationError as error:
            out[spec.id] = error.diagnostics[0].message
    return out


def kind_of(reason: str) -> str:
    """The reason without what is particular to one kernel."""
    return re.sub(r"`[^`]*`", "...", re.sub(r"line \d+", "line N", reason))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--launches", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--cluster", metavar="ADDRESS", help="as of gluonize translate")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    units = chosen_units(given.folder, given.launches, given.only)
    with (
        open_pool(given.jobs, JOB_SECONDS, cached=False, cluster=given.cluster) as pool,
        ThreadPoolExecutor(pool.jobs) as threads,
    ):
        found = {k: v for part in threads.map(lambda unit: loads_of(pool, unit), units) for k, v in part.items()}
    failed = {launch: why for launch, why in found.items() if isinstance(why, str)}
    loads = {launch: each for launch, each in found.items() if not isinstance(each, str)}
    reasons = collections.Counter(kind_of(load.reason) for each in loads.values() for load in each)
    by_data_mover = reasons.pop("", 0)
    print(f"{len(loads)} launches, {by_data_mover + reasons.total()} loads, {by_data_mover} by the tensor data mover")
    for reason, count in reasons.most_common():
        print(f"{count:5d}  {reason}")
    for launch, each in loads.items() if given.list else ():
        for load in each:
            print(f"{launch}:{load.line}: {load.text}: {load.reason or 'by the tensor data mover'}")
    for launch, why in failed.items():
        print(f"{launch}: {why}", file=sys.stderr)
    if given.json is not None:
        rows = {launch: [[load.line, load.text, load.reason] for load in each] for launch, each in loads.items()}
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if failed or reasons["it is no tile"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
