"""Predicted cycles of hand-written kernels beside published measurements of them.

    python bench/cycles.py FOLDER [--pairs FILE] [--latency CLK] [--json FILE] [--markdown FILE]

FOLDER has the assembly of each kernel, as NAME.amdgcn or NAME.TARGET.amdgcn, compiled from the sources that the table of published figures
(`bench/published/cycles.json`) names; they are not ours to keep here. Pairs that constants were fitted on and pairs that none was fitted
on are listed and summed up apart. The order of two kernels counts where they are at least a point apart. Pairs without a file are
listed as missing, not counted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gluonize.rules.targets import target as target_row  # noqa: E402
from gluonize.rules.timing import TIMINGS  # noqa: E402
from gluonize.judge.cycles.analysis import analyze  # noqa: E402
from gluonize.judge.lower.amdgcn import metadata_number  # noqa: E402

TABLE = ROOT / "bench" / "published" / "cycles.json"
APART = 1.0  # points of efficiency from which on an order is claimed


@dataclass(frozen=True)
class Pair:
    """One kernel: published and predicted efficiency in percent, predicted clocks of an iteration, seconds to predict."""

    name: str
    target: str
    fitted: bool
    published: float
    predicted: float
    cycles: float
    seconds: float

    @property
    def error(self) -> float:
        return self.predicted - self.published


def predict(entry: dict, path: Path, latency: int) -> Pair:
    """Walk one kernel; latency: of memory in clk, 0 for the target's."""
    text = path.read_text(encoding="utf-8")
    timing = TIMINGS[entry["target"]]
    warps = metadata_number(text, "max_flat_workgroup_size") // target_row(entry["target"]).warp_size
    started = time.perf_counter()
    timing = replace(timing, memory_latency=latency) if latency else timing
    hot = analyze(text, entry["target"], warps, entry["lds"], timing).hot
    if hot is None or hot.efficiency is None:
        raise SystemExit(f"{path}: no loop with matrix instructions")
    seconds = time.perf_counter() - started
    return Pair(
        entry["name"], entry["target"], entry["fitted"], entry["efficiency"], 100 * hot.efficiency, hot.cycles, seconds
    )


def find(folder: Path, entry: dict) -> Path | None:
    names = (f"{entry['name']}.amdgcn", f"{entry['name']}.{entry['target']}.amdgcn")
    return next((folder / name for name in names if (folder / name).is_file()), None)


def summed_up(pairs: list[Pair]) -> tuple[float, int, int]:
    """(mean absolute error in points, pairs of kernels in the right order, pairs that are apart)."""
    apart = [(a, b) for a, b in itertools.combinations(pairs, 2) if abs(a.published - b.published) >= APART]
    right = sum((a.published > b.published) == (a.predicted > b.predicted) for a, b in apart)
    return sum(abs(p.error) for p in pairs) / len(pairs), right, len(apart)


def report(pairs: list[Pair], missing: list[str]) -> list[str]:
    """Markdown: a table and a summary per group."""
    lines = ["# Predicted and published efficiencies of matrix cores", ""]
    for fitted in (True, False):
        group = [p for p in pairs if p.fitted == fitted]
        if not group:
            continue
        lines += [
            f"## {'Pairs that the memory latency was fitted on' if fitted else 'Pairs that nothing was fitted on'}",
            "",
        ]
        lines += ["| kernel | target | published | predicted | error | clk an iteration |", "|---|---|---|---|---|---|"]
        lines += [
            f"| {p.name} | {p.target} | {p.published:.2f} % | {p.predicted:.2f} % | {p.error:+.2f} | {p.cycles:.0f} |"
            for p in group
        ]
        error, right, apart = summed_up(group)
        lines += ["", f"Mean error {error:.2f} points; {right} of {apart} pairs in the right order.", ""]
    if pairs and any(not p.fitted for p in pairs):
        error, right, apart = summed_up(pairs)
        lines += [f"All together: mean error {error:.2f} points; {right} of {apart} pairs in the right order.", ""]
    if missing:
        lines += ["Without an assembly file, so not predicted: " + ", ".join(missing) + ".", ""]
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=Path, default=TABLE, help="table of published figures")
    parser.add_argument("--latency", type=int, default=0, metavar="CLK", help="of memory, instead of the targets'")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args(arguments)
    entries = json.loads(options.pairs.read_text(encoding="utf-8"))["pairs"]
    found = [(entry, find(options.folder, entry)) for entry in entries]
    missing = [entry["name"] for entry, path in found if path is None]
    pairs = [predict(entry, path, options.latency) for entry, path in found if path is not None]
    if not pairs:
        print(f"no assembly of {', '.join(missing)} in {options.folder}", file=sys.stderr)
        return 2
    text = "\n".join(report(pairs, missing))
    print(text)
    print(f"slowest: {max(p.seconds for p in pairs):.2f} s")
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    if options.json:
        rows = [{**p.__dict__, "predicted": round(p.predicted, 2), "cycles": round(p.cycles, 1)} for p in pairs]
        rows = [{k: v for k, v in row.items() if k != "seconds"} for row in rows]
        options.json.write_text(json.dumps({"pairs": rows, "missing": missing}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
