"""Machine code of the translation, of Triton's own compile and of upstream's translator, side by side; no GPU.

    python bench/parity_table.py [FOLDER [--launches FILE]] [-t TARGETS] [--all] [--only ID] [-j 2] [--out STEM] [--readme]

Compares every launch with a dot (`--all`: every launch) of the fixtures, or of the launch file of FOLDER, whose
sources are modules in it, on every target. Writes STEM.json and STEM.md (bench/results/parity by default) and prints the
summary; `--readme` also puts it into the README. Exit status 1 when a launch that Triton compiles has no translation.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import math
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.launch_sets import TARGETS, Unit, chosen_units  # noqa: E402
from gluonize.judge.lower.children.worker import job_count  # noqa: E402
from gluonize.diagnostics import InternalError, TranslationError  # noqa: E402
from gluonize.judge.lower.compile import Lowered  # noqa: E402
from gluonize.judge.lower.metrics import KernelMetrics  # noqa: E402
from gluonize.judge.lower.parity import Parity, accesses  # noqa: E402
from gluonize.product.cluster.open_pool import open_pool  # noqa: E402
from gluonize.product.project.cache.kept_jobs import KeptJobs  # noqa: E402
from gluonize.judge.lower.children.worker import WorkerPool  # noqa: E402
from gluonize.request import TranslateRequest  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec  # noqa: E402

LOWER = "gluonize.judge.lower.jobs:lower_file"
TRANSLATE = "gluonize.translation:translate_kernel"
UPSTREAM = "gluonize.product.report.upstream_job:upstream_text"
# kind of `Parity.worse` -> how the summary heads the number of launches that are worse in it
KINDS = {
    "instructions": "instructions above 1.10",
    "mma": "more mma",
    "lds": "fewer workgroups by LDS",
    "barriers": "more barriers",
    "spills": "more spills",
    "widths": "narrower",
}
# figure -> how its column is headed; of the hottest loop where the name starts with loop
FIGURES = {
    "loop_insns": "loop",
    "insns": "total",
    "loop_mma": "mma in loop",
    "mma": "mma",
    "lds_bytes": "LDS bytes",
    "loop_barriers": "barriers in loop",
    "barriers": "barriers",
    "vgpr": "VGPR",
    "spill": "spills",
    "sgpr_spill": "scalar spills",
    "load_bits": "load bits",
    "store_bits": "store bits",
}


def figures(metrics: KernelMetrics) -> dict[str, int | None]:
    """The figures of one compiled kernel; those of the loop are None without one.

    load_bits, store_bits: of the widest access per lane; loads include the copies straight to LDS, TDM excepted.
    """
    loop = metrics.loop
    loads, stores = (accesses(metrics.mix, kind) for kind in ("load", "store"))
    return {
        "loop_insns": loop.insns if loop else None,
        "insns": metrics.mix.insns,
        "loop_mma": loop.mma if loop else None,
        "mma": metrics.mix.mma,
        "lds_bytes": metrics.lds_bytes,
        "loop_barriers": loop.barrier if loop else None,
        "barriers": metrics.mix.barrier,
        "vgpr": metrics.vgpr,
        "spill": metrics.spill,
        "sgpr_spill": metrics.sgpr_spill,
        "load_bits": max(loads, default=0),
        "store_bits": max(stores, default=0),
    }


def compared(side: KernelMetrics, triton: KernelMetrics, target: str) -> dict:
    """A side against Triton's: {"loop": ratio of the hottest loops or None, "insns": ratio, "worse": {kind: lines}}."""
    parity = Parity("", target, side, triton)
    loop = parity.loop_ratios()
    return {"loop": loop and loop["insns"], "insns": parity.ratios()["insns"], "worse": parity.worse()}


@dataclass(frozen=True)
class Refused:
    """Why one side has no figures, in one line."""

    reason: str


@dataclass(frozen=True)
class Compilers:
    """Child processes: `many` keep what they imported, `single` is renewed for every job, as upstream needs it."""

    many: KeptJobs
    single: WorkerPool

    def lower(self, path: str, spec: LaunchSpec, target: str, unit: Unit, import_hosts=False, stages=False):
        return _attempt(self.many, LOWER, path, spec, target, unit.search_path, import_hosts, stages)


def measure(unit: Unit, target: str, every: bool, upstream: bool, compilers: Compilers) -> list[dict]:
    """The rows of one unit on one target: of its launches with a dot, or of every one. A side is its figures or why not."""
    triton = {spec.id: compilers.lower(unit.source, spec, target, unit, stages=True) for spec in unit.launches}
    dots = {name: isinstance(side, Lowered) and "tt.dot" in side.stages["ttir"] for name, side in triton.items()}
    wanted = [spec for spec in unit.launches if every or dots[spec.id]]
    if not wanted:
        return []
    rows = []
    with tempfile.TemporaryDirectory(prefix="gluonize-") as folder:
        path = os.path.join(folder, f"{Path(unit.source).stem}_{target}.py")
        ours = _ours(compilers, unit, unit.request(target), wanted, path)
        for spec in wanted:
            sides = {"ours": ours[spec.id], "triton": triton[spec.id]}
            if upstream:
                sides["upstream"] = _upstream(compilers, unit, spec, target, folder)
            rows.append({"id": spec.id, "target": target, "dot": dots[spec.id], **shown_sides(sides, target)})
    return rows


def _ours(
    compilers: Compilers, unit: Unit, request: TranslateRequest, wanted: list[LaunchSpec], path: str
) -> dict[str, Lowered | Refused]:
    """The compiled launches of what a request gives, by id."""
    refused = _translated(compilers.many, unit, request, path)
    return {spec.id: refused.get(spec.id) or compilers.lower(path, spec, request.target, unit) for spec in wanted}


def _progress(rows: list[dict]) -> list[dict]:
    for row in rows:
        loops = [str(row[side].get("loop_insns", "-")) for side in ("ours", "triton", "upstream") if side in row]
        print(f"{row['target']} {row['id']}: loop {' / '.join(loops)}", file=sys.stderr, flush=True)
    return rows


def _translated(pool: KeptJobs, unit: Unit, request: TranslateRequest, path: str) -> dict[str, Refused]:
    """Write the translation of a unit; returns the launches that it does not hold, by id."""
    result = _attempt(pool, TRANSLATE, request)
    if isinstance(result, Refused):
        return {spec.id: result for spec in unit.launches}
    Path(path).write_text(result.text or "")
    return {
        outcome.spec.id: Refused("; ".join(d.message for d in (*outcome.diagnostics, *result.diagnostics)))
        for outcome in result.outcomes
        if outcome.status != "translated" or result.text is None
    }


def _upstream(compilers: Compilers, unit: Unit, spec: LaunchSpec, target: str, folder: str) -> Lowered | Refused:
    text = _attempt(compilers.single, UPSTREAM, unit.source, spec, target, unit.search_path)
    if isinstance(text, Refused):
        return text
    # The file is imported, in a process that knows modules by name.
    digest = hashlib.sha256(f"{spec.id} {target}".encode()).hexdigest()
    path = os.path.join(folder, f"upstream_{digest[:16]}.py")
    Path(path).write_text(text)
    # Its helpers are modules of Triton that are not read statically.
    return compilers.lower(path, spec, target, unit, import_hosts=True)


def _attempt(pool: KeptJobs | WorkerPool, function: str, *arguments):
    """What the function returns in a child, or Refused."""
    try:
        return pool.call(function, *arguments)
    except TranslationError as error:
        first = error.diagnostics[0]
        return Refused((first.why or first.message).strip().splitlines()[0])
    except InternalError as error:
        return Refused(str(error).strip().splitlines()[-1])


def shown_sides(sides: dict[str, Lowered | Refused], target: str) -> dict[str, dict]:
    """Per side its figures, with what `compared` finds unless it is Triton's own, or {"refused": why}."""
    shown = {name: _shown(side) for name, side in sides.items()}
    compiled = [name for name in sides if "refused" not in shown[name]]
    if "triton" in compiled:
        for name in compiled:
            if name != "triton":
                shown[name]["against_triton"] = compared(sides[name].metrics, sides["triton"].metrics, target)
    return shown


def _shown(side: Lowered | Refused) -> dict:
    if isinstance(side, Refused):
        return {"refused": side.reason}
    overflow = side.lds_overflow()
    return {"refused": overflow.message} if overflow else figures(side.metrics)


def summarize(rows: list[dict]) -> list[dict]:
    """Per target: geometric means of our figures and upstream's over Triton's, and by id what is worse than a limit."""
    return [_target_summary(target, [row for row in rows if row["target"] == target]) for target in _targets(rows)]


def _targets(rows: list[dict]) -> list[str]:
    return list(dict.fromkeys(row["target"] for row in rows))


def _target_summary(target: str, rows: list[dict]) -> dict:
    found = {
        side: {row["id"]: row[side]["against_triton"] for row in rows if "against_triton" in row.get(side, {})}
        for side in ("ours", "upstream")
    }
    refused = [row["id"] for row in rows if "refused" in row["ours"] and "refused" not in row["triton"]]
    return {
        "target": target,
        "launches": len(rows),
        "refused": refused,
        "loop": _geomean(found["ours"], "loop"),
        "insns": _geomean(found["ours"], "insns"),
        "worse": {kind: [id for id, entry in found["ours"].items() if kind in entry["worse"]] for kind in KINDS},
        "upstream_accepts": len(found["upstream"]),
        "upstream_loop": _geomean(found["upstream"], "loop"),
        "upstream_insns": _geomean(found["upstream"], "insns"),
    }


def _geomean(compared: dict[str, dict], name: str) -> float | None:
    """Geometric mean of a ratio, of the launches that have it."""
    ratios = [entry[name] for entry in compared.values() if entry[name]]
    return round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 3) if ratios else None


# heading -> what the summary shows there
COLUMNS = {
    "target": lambda entry: entry["target"],
    "launches": lambda entry: entry["launches"],
    "hottest loop": lambda entry: _number(entry["loop"]),
    "all instructions": lambda entry: _number(entry["insns"]),
    "beyond a limit": lambda entry: len({id for ids in entry["worse"].values() for id in ids}),
    **{heading: lambda entry, kind=kind: len(entry["worse"][kind]) for kind, heading in KINDS.items()},
    "upstream compiles": lambda entry: entry["upstream_accepts"],
    "its hottest loop": lambda entry: _number(entry["upstream_loop"]),
    "its instructions": lambda entry: _number(entry["upstream_insns"]),
}
README_COLUMNS = ("target", "launches", "hottest loop", "all instructions", "beyond a limit", *list(COLUMNS)[-3:])


def summary_table(summary: list[dict], columns: Iterable[str] = COLUMNS) -> str:
    """The summary as a markdown table: ratios to Triton, and numbers of launches."""
    rows = [_line([COLUMNS[name](entry) for name in columns]) for entry in summary]
    return "\n".join([_line(list(columns)), _line(["---"] * len(list(columns))), *rows]) + "\n"


def markdown(report: dict) -> str:
    """The whole table: a summary, then for each target a line per launch with ours / Triton's / upstream's figures."""
    parts = [
        "# Parity with Triton's own compile",
        f"`{report['command']}`, Triton {report['triton']}. Ratios to Triton are geometric means.",
        summary_table(report["summary"]),
    ]
    for entry in report["summary"]:
        rows = [row for row in report["rows"] if row["target"] == entry["target"]]
        upstream = any("upstream" in row for row in rows)
        parts.append(
            f"## {entry['target']}\nours / Triton" + (" / upstream; - where there is none" if upstream else "")
        )
        sides = ("ours", "triton", "upstream") if upstream else ("ours", "triton")
        table = [_line(["launch", *FIGURES.values()]), _line(["---"] * (len(FIGURES) + 1))]
        for row in rows:
            table.append(
                _line([row["id"], *(" / ".join(_figure(row[side], name) for side in sides) for name in FIGURES)])
            )
        parts.append("\n".join(table))
        worse = {row["id"]: row["ours"].get("against_triton", {}).get("worse", {}) for row in rows}
        if any(worse.values()):
            parts.append(
                "\n".join(f"- {id}: {'; '.join(sum(found.values(), []))}" for id, found in worse.items() if found)
            )
        reasons: dict[str, list[str]] = {}
        for row in rows:
            for side in sides:
                if "refused" in row[side]:
                    reasons.setdefault(f"{side}: {row[side]['refused']}", []).append(row["id"])
        parts += ["\n".join(f"- {', '.join(ids)}: {reason}" for reason, ids in reasons.items())] if reasons else []
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _figure(side: dict, name: str) -> str:
    value = side.get(name)
    return "-" if value is None else str(value)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _line(cells: list) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def put_into_readme(readme: Path, summary: str) -> None:
    """Replace what stands between the two markers of the README."""
    before, begin, rest = readme.read_text().partition("<!-- parity -->\n")
    _, end, after = rest.partition("<!-- /parity -->")
    assert begin and end, f"{readme} has no parity markers"
    readme.write_text(before + begin + summary + end + after)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder", nargs="?", type=Path, help="folder on which the modules that the launches name are found"
    )
    parser.add_argument("--launches", type=Path, help="launch file; FOLDER/launches.json when left out")
    parser.add_argument("-t", "--target", default="all")
    parser.add_argument("--all", action="store_true", help="launches without a dot too")
    parser.add_argument("--only", default="", metavar="ID", help="only launches whose id contains this")
    parser.add_argument("--no-upstream", action="store_true")
    parser.add_argument("-j", "--jobs", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one compile")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "parity", metavar="STEM")
    parser.add_argument("--readme", action="store_true", help="put the summary into the README")
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="as of gluonize translate; upstream's translator runs here"
    )
    a = parser.parse_args()
    targets = TARGETS if a.target == "all" else tuple(a.target.split(","))
    units, jobs = chosen_units(a.folder, a.launches, a.only), job_count(a.jobs)
    work = [(unit, target) for target in targets for unit in units]
    with (
        open_pool(a.jobs, a.timeout, cached=False, cluster=a.cluster) as many,
        WorkerPool(jobs, timeout=a.timeout, max_jobs=1) as single,
        ThreadPoolExecutor(many.jobs) as threads,
    ):
        compilers = Compilers(many, single)
        found = threads.map(lambda item: measure(*item, a.all, not a.no_upstream, compilers), work)
        rows = [row for measured in found for row in _progress(measured)]
    report = {
        "command": shlex.join(["python", "bench/parity_table.py", *sys.argv[1:]]),
        "triton": importlib.metadata.version("triton"),
        "summary": summarize(rows),
        "rows": rows,
    }
    a.out.parent.mkdir(parents=True, exist_ok=True)
    a.out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    a.out.with_suffix(".md").write_text(markdown(report))
    print(summary_table(report["summary"]), end="")
    if a.readme:
        put_into_readme(ROOT / "README.md", summary_table(report["summary"], README_COLUMNS))
    return 1 if any(entry["refused"] for entry in report["summary"]) else 0


if __name__ == "__main__":
    sys.exit(main())
