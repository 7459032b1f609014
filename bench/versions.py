"""How much the same kernel differs from one Triton to the next: sources as Triton compiles them, and their translations; no GPU.

    python bench/versions.py PYTHON... [-t TARGETS] [--all] [--only ID] [-j 2] [--out STEM] [--readme]

Each PYTHON has another Triton (`python -m venv V; V/bin/pip install triton==3.8.*`). Under each, every launch with a dot (`--all`: every
launch) of the fixtures is compiled from its source and from its golden, and the clocks of its hottest loop for one workgroup (of all of
it where it has none) are predicted. Of a launch that all of them compile, the worst version over the best is what a user sees change with Triton.
Writes STEM.json and STEM.md (bench/results/versions by default); `--readme` puts the two numbers into the README.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import Future
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.launch_sets import TARGETS, fixture_units  # noqa: E402
from gluonize.diagnostics import InternalError, TranslationError  # noqa: E402
from gluonize.judge.cycles.analysis import analyze  # noqa: E402
from gluonize.judge.lower.children.worker import WorkerPool  # noqa: E402
from gluonize.product.cli.other_triton import environment  # noqa: E402
from gluonize.versions import release_of, triton_version  # noqa: E402

LOWER = "gluonize.judge.lower.jobs:lower_file"
SIDES = {"source": "Triton's compile of the source", "output": "the translation"}
FIGURES = {"cycles": "predicted clocks", "insns": "instructions"}
MARKS = "<!-- versions -->\n", "<!-- /versions -->\n"


def figures(lowered, target: str) -> dict:
    """The instructions of a compiled kernel, and the predicted clocks of its hottest loop, or of all of it, of one workgroup: how many share
    a compute unit differs with the registers that a Triton gives them."""
    cycles = analyze(lowered.stages["amdgcn"], target, lowered.num_warps, lowered.lds_bytes)
    hot = cycles.hot
    return {"insns": lowered.metrics.mix.insns, "cycles": hot.per_workgroup if hot else cycles.outside}


def measured(targets: list[str], only: str, every: bool, jobs: int) -> dict[str, dict]:
    """`ID TARGET SIDE` -> figures, or why there are none, under the Triton that runs this."""
    asked: dict[str, tuple[str, Future]] = {}
    found: dict[str, dict] = {}
    own = release_of(triton_version())
    with WorkerPool(jobs) as pool:
        for unit in fixture_units(only):
            goldens = Path(unit.source).parent / "golden"
            if not every and "dot" not in Path(unit.source).read_text():
                continue
            for spec in unit.launches:
                for target in targets:
                    golden = goldens / own / f"{target}.py"
                    golden = golden if golden.exists() else goldens / f"{target}.py"
                    for side, path in (("source", unit.source), ("output", str(golden))):
                        if spec.target in ("", target) and os.path.exists(path):
                            job = pool.submit(LOWER, path, spec, target, unit.search_path, False, True)
                            asked[f"{spec.id} {target} {side}"] = target, job
        for name, (target, job) in asked.items():
            try:
                found[name] = figures(job.result(), target)
            except (TranslationError, InternalError) as error:
                found[name] = {"refused": str(error).splitlines()[0]}
    return found


def under(python: str, argv: list[str]) -> tuple[str, dict]:
    """The release of a Python's Triton, and what is measured under it."""
    with tempfile.TemporaryDirectory(prefix="gluonize-versions-") as folder:
        out = Path(folder) / "figures.json"
        command = [python, __file__, "--figures", str(out), *argv]
        subprocess.run(command, check=True, env=environment(folder))
        data = json.loads(out.read_text())
    return release_of(data["triton"]), data["found"]


def ratios(by_release: dict[str, dict], side: str, figure: str) -> dict[str, float]:
    """Of each launch that every release compiles: the worst figure over the best."""
    names = [name for name in next(iter(by_release.values())) if name.endswith(f" {side}")]
    out = {}
    for name in names:
        values = [found.get(name, {}).get(figure) for found in by_release.values()]
        if all(values):
            out[name.removesuffix(f" {side}")] = max(values) / min(values)
    return out


def report(by_release: dict[str, dict]) -> dict:
    """{side: {figure: {launch: worst over best}}} of the launches that both sides have."""
    all_of = {side: {figure: ratios(by_release, side, figure) for figure in FIGURES} for side in SIDES}
    both = {figure: set.intersection(*(set(all_of[side][figure]) for side in SIDES)) for figure in FIGURES}
    return {
        side: {f: {name: r for name, r in found.items() if name in both[f]} for f, found in all_of[side].items()}
        for side in SIDES
    }


def summary(by_release: dict[str, dict], found: dict) -> str:
    """A table of both sides."""
    releases = ", ".join(sorted(by_release, key=lambda r: tuple(map(int, r.split(".")))))
    lines = [
        f"| worst over best of Triton {releases} | launches | clocks, median | clocks, greatest | instructions, median | greatest |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for side, told in SIDES.items():
        cells = [str(len(found[side]["cycles"]))]
        for figure in FIGURES:
            values = list(found[side][figure].values()) or [float("nan")]
            cells += [f"{statistics.median(values):.2f}", f"{max(values):.2f}"]
        lines.append(f"| {told} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(by_release: dict[str, dict], found: dict) -> str:
    """The summary, each launch, and what a release does not compile."""
    lines = ["# From one Triton to the next", "", summary(by_release, found), "## Launches", ""]
    lines += ["| launch | clocks, source | clocks, translation |", "| --- | --- | --- |"]
    for name, value in sorted(found["source"]["cycles"].items(), key=lambda pair: -pair[1]):
        lines.append(f"| {name} | {value:.2f} | {found['output']['cycles'][name]:.2f} |")
    lines += ["", "## Not compiled", ""]
    for release, figures_of in by_release.items():
        for name, one in figures_of.items():
            if "refused" in one:
                lines.append(f"- Triton {release}: {name}: {one['refused']}")
    return "\n".join(lines) + "\n"


def put_into_readme(readme: Path, text: str) -> None:
    """Replace what stands between the two markers of the README."""
    before, begin, rest = readme.read_text().partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    assert begin and end, f"{readme} has no markers {MARKS}"
    readme.write_text(before + begin + text + end + after)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("-t", "--targets", default=",".join(TARGETS))
    parser.add_argument("--all", action="store_true", help="launches without a dot too")
    parser.add_argument("--only", default="", help="launches whose id contains this")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "versions")
    parser.add_argument("--readme", action="store_true", help="put the summary into the README")
    parser.add_argument("--figures", type=Path, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.figures:
        found = measured(a.targets.split(","), a.only, a.all, a.jobs)
        a.figures.write_text(json.dumps({"triton": triton_version(), "found": found}))
        return 0
    passed = ["-t", a.targets, "-j", str(a.jobs), "--only", a.only, *(["--all"] if a.all else [])]
    by_release = dict(under(python, passed) for python in a.pythons)
    found = report(by_release)
    a.out.with_suffix(".json").write_text(json.dumps(by_release, indent=1) + "\n")
    a.out.with_suffix(".md").write_text(page(by_release, found))
    print(summary(by_release, found), end="")
    if a.readme:
        put_into_readme(ROOT / "README.md", summary(by_release, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
