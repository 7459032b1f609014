"""Whether configurations that were measured to be the fastest are predicted to be: the order of estimates of whole launches.

    python bench/tuned_order.py FOLDER [--tables FILE] [--only TEXT] [-j 2] [--json FILE] [--markdown FILE]

The table of tuned configurations (`bench/published/tuned.json`) says where each is from. FOLDER has the packages that its kernels are in; they
are not ours to keep here. For each problem of a table, the configuration that is published for it is compared with those published for the
table's other problems: it was found to be the fastest by those who tuned. A pair counts as ordered where the estimate of the published one is the shorter.
Estimates less than a thousandth apart, as of launches that the bandwidth of memory bounds, are listed as alike and not counted. Problems
with fewer rows than a tile of any configuration are compared like all others.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gluonize.rules.timing import TIMINGS  # noqa: E402
from gluonize.diagnostics import InternalError, TranslationError  # noqa: E402
from gluonize.judge.lower.children.worker import WorkerPool  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec, parse_launches  # noqa: E402

TABLES = ROOT / "bench" / "published" / "tuned.json"
JOB = "gluonize.judge.cycles.job:launch_estimates"
ALIKE = 1e-3
_OPTIONS = ("num_warps", "num_stages", "waves_per_eu", "matrix_instr_nonkdim")
_KNOWN = {"ceil": math.ceil, "max": max, "min": min, "cdiv": lambda a, b: -(-a // b)}

Names = dict[str, int]  # of a problem, and of a configuration


@dataclass(frozen=True)
class Order:
    """One table. ordered, misordered, alike: pairs. excess: how much longer the published configuration is estimated to take than the one
    that is estimated to be the fastest, in the mean over problems. left_out: configurations that do not compile, or have no estimate.
    """

    kernel: str
    target: str
    given: str
    problems: int
    ordered: int
    misordered: int
    alike: int
    excess: float
    left_out: int


def value_of(expression: Any, names: Names) -> Any:
    """What an expression of the table is for a problem and a configuration; what is no text is itself."""
    if not isinstance(expression, str):
        return expression
    return eval(expression, {"__builtins__": {}}, names | _KNOWN)  # noqa: S307 - a file of this repository


def launches_of(kernel: dict, names: Names, folder: Path) -> list[LaunchSpec]:
    """The launches that solve a problem with a configuration."""
    found = []
    for own in kernel["launches"]:
        known = names | {name: value_of(text, names) for name, text in own.items()}
        options = {name: known[name] for name in _OPTIONS if known.get(name)}
        found.append(
            {
                "kernel": kernel["kernel"],
                "source": str(folder / kernel["source"]),
                "signature": kernel["signature"] | dict.fromkeys(kernel["constexprs"], "constexpr"),
                "constexprs": {name: value_of(x, known) for name, x in kernel["constexprs"].items()},
                "attrs": kernel["attrs"],
                "options": options,
                "grid": [value_of(kernel["grid"], known)],
                "values": {name: value_of(x, known) for name, x in kernel["values"].items()},
            }
        )
    return list(parse_launches(found))


def alike_but_for_values(spec: LaunchSpec) -> str:
    """What decides how a launch is compiled."""
    return repr((spec.signature, spec.constexprs, spec.attrs, spec.options))


def microseconds(pool: WorkerPool, kernel: dict, folder: Path, specs: list[LaunchSpec]) -> dict[str, float | None]:
    """The estimate of each launch, by its text; None where there is none."""
    groups: dict[str, list[LaunchSpec]] = {}
    for spec in specs:
        groups.setdefault(alike_but_for_values(spec), []).append(spec)
    started = [
        (group, pool.submit(JOB, str(folder / kernel["source"]), group, kernel["target"], (str(folder),)))
        for group in groups.values()
    ]
    found: dict[str, float | None] = {}
    for group, job in started:
        try:
            estimates = job.result()
        except (TranslationError, InternalError) as error:
            print(f"{group[0].constexprs} {group[0].options}: {str(error).splitlines()[0]}", file=sys.stderr)
            estimates = [""] * len(group)
        for spec, estimate in zip(group, estimates):
            found[repr(spec)] = None if isinstance(estimate, str) else estimate.microseconds
    return found


def moved(kernel: dict, names: Names) -> float:
    """Microseconds to move what a problem reads and writes, once."""
    return value_of(kernel["bytes"], names) / (TIMINGS[kernel["target"]].memory_tbs * 1e6)


def problems_of(kernel: dict, table: dict) -> Iterator[tuple[Names, int, list[Names]]]:
    """(a problem, which of the table's configurations is published for it, all of these)."""
    columns = kernel["columns"]
    configs = [dict(zip(columns, row)) for row in table["configurations"]]
    for rows, number in table["fastest"].items():
        yield {"M": int(rows), **table["given"]}, number, configs


def orders(pool: WorkerPool, kernel: dict, folder: Path) -> Iterator[Order]:
    """Each table of a kernel."""
    all_problems = [list(problems_of(kernel, table)) for table in kernel["tables"]]
    specs = [
        spec
        for problem, _, configs in itertools.chain(*all_problems)
        for config in configs
        for spec in launches_of(kernel, problem | config, folder)
    ]
    times = microseconds(pool, kernel, folder, specs)
    for table, problems in zip(kernel["tables"], all_problems):
        counts, excess, missing = [0, 0, 0], [], set()
        for problem, number, configs in problems:
            found: dict[int, float] = {}
            for n, config in enumerate(configs):
                parts = [times[repr(spec)] for spec in launches_of(kernel, problem | config, folder)]
                if None in parts:
                    missing.add(n)
                else:
                    found[n] = max(sum(parts), moved(kernel, problem))
            if number not in found:
                continue
            for n, time in found.items():
                if n != number:
                    near = abs(time / found[number] - 1) < ALIKE
                    counts[2 if near else 0 if time > found[number] else 1] += 1
            excess.append(found[number] / min(found.values()) - 1)
        given = ", ".join(f"{name}={value}" for name, value in table["given"].items())
        mean = sum(excess) / len(excess) if excess else 0.0
        yield Order(kernel["name"], kernel["target"], given, len(problems), *counts, round(mean, 3), len(missing))


def in_words(found: list[Order]) -> str:
    """All pairs of each kernel."""
    lines = []
    for kernel, group in itertools.groupby(found, lambda order: f"{order.kernel} on {order.target}"):
        rows = list(group)
        right, wrong, alike = (sum(getattr(row, name) for row in rows) for name in ("ordered", "misordered", "alike"))
        excess = sum(row.excess * row.problems for row in rows) / sum(row.problems for row in rows)
        share = right / max(1, right + wrong)
        lines.append(
            f"{kernel}: {right} of {right + wrong} pairs ordered ({share:.1%}), {alike} alike; "
            f"the published configuration is estimated at {excess:.1%} above the fastest"
        )
    return "\n".join(lines)


def as_markdown(found: list[Order]) -> str:
    """A row for each table."""
    lines = [
        "| kernel | target | given | problems | ordered | misordered | alike | above the fastest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {x.kernel} | {x.target} | {x.given} | {x.problems} | {x.ordered} | {x.misordered} | {x.alike} | {x.excess:.1%} |"
        for x in found
    ]
    return "\n".join([*lines, "", *in_words(found).splitlines()]) + "\n"


def main() -> int:
    """Run; -> the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", type=Path, default=TABLES)
    parser.add_argument("--only", default="")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    kernels = [x for x in json.loads(options.tables.read_text())["kernels"] if options.only in x["name"]]
    found: list[Order] = []
    with WorkerPool(options.jobs, timeout=120) as pool:
        for kernel in kernels:
            found += orders(pool, kernel, options.folder)
    print(in_words(found))
    if options.json:
        options.json.write_text(json.dumps([asdict(x) for x in found], indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(as_markdown(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
