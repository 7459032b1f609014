"""How long translating takes, without compiling anything, and in how much memory; upstream's translator in the same run.

    python bench/translate_speed.py [FOLDER [--launches FILE]] [-t TARGETS] [--only ID] [--jobs 1,2] [--out STEM]

Runs `gluonize translate` in batch mode over every launch of the fixtures, or of the launch file of FOLDER, on every target,
once per number of jobs, and upstream's translator over the same in as many child processes. Writes STEM.json and STEM.md
(bench/results/translate_speed by default). Exit status 1 when the median is above 0.25 s or the 95th percentile above 1.3 s.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.launch_sets import TARGETS, Unit, chosen_units, write_launches  # noqa: E402
from bench.process_memory import MemoryUse, watched_memory  # noqa: E402
from gluonize.diagnostics import InternalError, TranslationError  # noqa: E402
from gluonize.judge.lower.children.worker import WorkerPool  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec  # noqa: E402

MEDIAN_LIMIT, TAIL_LIMIT = 0.25, 1.3  # seconds per kernel and target


@dataclass(frozen=True)
class Run:
    """One tool over everything with so many jobs. Times in seconds, of what was translated; memory in MiB of all processes.

    mean_cpu: of all processes, starting included, per translation asked for; it does not depend on what else the machine does.
    first_third, last_third: the peak during those parts of the run; memory that grows with the number of kernels shows there.
    """

    tool: str
    jobs: int
    asked: int
    translated: int
    median: float
    p95: float
    longest: float
    wall: float
    mean_cpu: float
    peak_mib: int
    first_third_mib: int
    last_third_mib: int


def summarize(tool: str, jobs: int, rows: list[dict], wall: float, cpu: float, memory: MemoryUse) -> Run:
    """rows: one per launch and target, with `seconds`, None where nothing was translated. wall, cpu: of the whole run."""
    times = sorted(row["seconds"] for row in rows if row["seconds"] is not None)
    median = statistics.median(times) if times else 0.0
    parts = (memory.peak_mib(), memory.peak_mib(0, 1 / 3), memory.peak_mib(2 / 3, 1))
    tail = (nearest_rank(times, 0.95), nearest_rank(times, 1.0))
    mean_cpu = round(cpu / len(rows), 3) if rows else 0.0
    return Run(tool, jobs, len(rows), len(times), round(median, 3), *tail, round(wall, 1), mean_cpu, *parts)


def children_cpu() -> float:
    """CPU seconds of all processes below this one that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def nearest_rank(ordered: list[float], part: float) -> float:
    """The least value that at least `part` of all values do not exceed; 0 of none."""
    return round(ordered[max(0, -int(-part * len(ordered) // 1) - 1)], 3) if ordered else 0.0


def run_gluonize(
    launches: Path, units: list[Unit], targets: tuple[str, ...], jobs: int, folder: Path
) -> tuple[list[dict], Run]:
    """`gluonize translate` in batch mode, as a user runs it, from an empty cache."""
    results = launches.parent / "results.json"
    command = [
        sys.executable,
        "-m",
        "gluonize.product.cli",
        "translate",
        "--launches",
        str(launches),
        "-t",
        ",".join(targets),
    ]
    command += ["--out-dir", str(folder), "--keep-going", "--no-compile", "--no-cache", "-q", "-j", str(jobs)]
    paths = dict.fromkeys(
        [str(ROOT), *(path for unit in units for path in unit.search_path if not unit.source.endswith(".py"))]
    )
    given = [*paths, *filter(None, [os.environ.get("PYTHONPATH")])]
    started, cpu = time.monotonic(), children_cpu()
    with subprocess.Popen(
        [*command, "--json", str(results)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(given)},
        stderr=subprocess.DEVNULL,
    ) as process:
        with watched_memory(process.pid) as memory:
            process.wait()
    wall, cpu = time.monotonic() - started, children_cpu() - cpu
    rows = [
        {
            "id": entry["id"],
            "target": entry["target"],
            "seconds": entry["seconds"] if entry["status"] == "translated" else None,
            "why": "; ".join(found["message"] for found in entry["diagnostics"]),
        }
        for entry in json.loads(results.read_text())["results"]
    ]
    return rows, summarize("gluonize", jobs, rows, wall, cpu, memory)


def run_upstream(units: list[Unit], targets: tuple[str, ...], jobs: int, timeout: float) -> tuple[list[dict], Run]:
    """Upstream's translator over the same, in child processes that stay."""
    started, cpu, rows = time.monotonic(), children_cpu(), []
    with WorkerPool(jobs, timeout=timeout) as pool, watched_memory(os.getpid(), with_root=False) as memory:
        pending = [
            (
                spec,
                target,
                pool.submit("bench.translate_speed:timed_upstream", unit.source, spec, target, unit.search_path),
            )
            for unit in units
            for spec in unit.launches
            for target in targets
        ]
        for spec, target, future in pending:
            row = {"id": spec.id, "target": target, "seconds": None, "why": ""}
            try:
                row["seconds"] = round(future.result(), 4)
            except TranslationError as error:
                row["why"] = error.diagnostics[0].why or error.diagnostics[0].message
            except InternalError as error:
                row["why"] = str(error).strip().splitlines()[-1]
            rows.append(row)
    return rows, summarize("upstream", jobs, rows, time.monotonic() - started, children_cpu() - cpu, memory)


def timed_upstream(source: str, spec: LaunchSpec, target: str, search_path: tuple[str, ...]) -> float:
    """Seconds that upstream's translator takes for one kernel, the import of its source included. For a child process."""
    from gluonize.product.report.upstream_job import upstream_text

    # Its own import is not part of what is timed.
    importlib.import_module("triton.tools.triton_to_gluon_translator.translator")

    started = time.perf_counter()
    upstream_text(source, spec, target, search_path)
    return time.perf_counter() - started


def markdown(report: dict) -> str:
    """The runs as a table."""
    head = [
        "translator",
        "jobs",
        "translated",
        "median s",
        "95 % s",
        "longest s",
        "wall s",
        "mean CPU s",
        "peak MiB",
        "first third",
        "last third",
    ]
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] * len(head)) + " |"]
    for run in report["runs"]:
        cells = [run["tool"], run["jobs"], f"{run['translated']} of {run['asked']}"]
        cells += [
            run[name]
            for name in (
                "median",
                "p95",
                "longest",
                "wall",
                "mean_cpu",
                "peak_mib",
                "first_third_mib",
                "last_third_mib",
            )
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    about = (
        f"`{report['command']}` on {report['cores']} cores (load {report['load']} before), Python {report['python']}, "
        f"Triton {report['triton']}. One kernel on one target, nothing compiled; memory of all processes together."
    )
    return "# Time to translate\n\n" + about + "\n\n" + "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder", nargs="?", type=Path, help="folder in which the modules that the launches name are found"
    )
    parser.add_argument("--launches", type=Path, help="launch file; FOLDER/launches.json when left out")
    parser.add_argument("-t", "--target", default="all")
    parser.add_argument("--only", default="", metavar="ID", help="only launches whose id contains this")
    parser.add_argument("--jobs", default="1,2", help="numbers of child processes to try")
    parser.add_argument("--no-upstream", action="store_true")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one kernel of upstream's")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "translate_speed", metavar="STEM")
    a = parser.parse_args()
    targets = TARGETS if a.target == "all" else tuple(a.target.split(","))
    units = chosen_units(a.folder, a.launches, a.only)
    load = round(os.getloadavg()[0], 1)
    runs, rows = [], []
    for jobs in map(int, a.jobs.split(",")):
        with tempfile.TemporaryDirectory(prefix="gluonize-speed-") as name:
            folder = Path(name)
            write_launches(units, folder / "launches.json")
            found = {"gluonize": run_gluonize(folder / "launches.json", units, targets, jobs, folder / "out")}
        if not a.no_upstream:
            found["upstream"] = run_upstream(units, targets, jobs, a.timeout)
        runs += [asdict(run) for _, run in found.values()]
        rows += [{"tool": tool, "jobs": jobs} | row for tool, (measured, _) in found.items() for row in measured]
    report = {
        "command": shlex.join(["python", "bench/translate_speed.py", *sys.argv[1:]]),
        "cores": len(os.sched_getaffinity(0)),
        "load": load,
        "python": platform.python_version(),
        "triton": importlib.metadata.version("triton"),
        "runs": runs,
        "rows": rows,
    }
    a.out.parent.mkdir(parents=True, exist_ok=True)
    a.out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    a.out.with_suffix(".md").write_text(markdown(report))
    print(markdown(report), end="")
    ours = [run for run in runs if run["tool"] == "gluonize"]
    return 1 if any(run["median"] > MEDIAN_LIMIT or run["p95"] > TAIL_LIMIT for run in ours) else 0


if __name__ == "__main__":
    sys.exit(main())
