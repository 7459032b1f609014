"""A corpus translated on a cluster that is made trouble: the bytes of `-j 1`, nothing lost; and again with a warm cache.

    python bench/cluster_faults.py [FOLDER [--launches FILE]] [--only TEXT ...] [-t gfx950] [--every 5] [--most 12] [--seed 1] [--json FILE]

Runs over the fixtures, or over FOLDER as the other benches do. Four runs of `gluonize translate`, each on a machine that has kept
nothing itself, with a shared cache:

1. `-j 1`, with an empty cache.
2. On a scheduler and two workers, processes of their own, with an empty cache: about every `--every` seconds a worker gets
   SIGKILL, and entries of the cache are lost, cut off or changed; once the scheduler is killed and started again.
3. `-j 1`, with the cache that the first run filled.
4. `-j 1`, with the cache that the second run left, damaged once more.

Exit status 1 unless all have the same outputs and results, the third compiles nothing and takes less than 5 % of the time of the
first, the log of the second names the workers and the scheduler, and that of the fourth damaged entries. Without `--only`, a few
fixtures: about three minutes on two idle cores.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO), str(REPO / "tests" / "integration")]

from bench.launch_sets import Unit, chosen_units, write_launches  # noqa: E402
from cluster_processes import Cluster, Trouble, damage  # noqa: E402
from test_shared_cache import without_seconds  # noqa: E402

FIXTURES = ("softmax", "matmul", "layer_norm", "flash_attention", "rms_norm", "scan", "vector_add")
WARM_SHARE = 0.05  # of the time of the first run


@dataclass(frozen=True)
class Run:
    """One run. compiled: kernels of which machine code was made or fetched. outputs: name -> text."""

    status: int
    seconds: float
    compiled: int
    outputs: dict[str, str]
    results: list
    log: str

    @property
    def made(self) -> tuple:
        return self.status, self.outputs, self.results


def translate(folder: Path, name: str, arguments: list[str], search: Path | None, cache: Path) -> Run:
    """`gluonize translate` in a folder, with a cache that others may have, and a machine's own that is empty."""
    machine, out = folder / f"machine-{name}", folder / f"out-{name}"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("GLUONIZE_", "TRITON_CACHE", "TRITON_HOME"))}
    path = [str(REPO), *([str(search.resolve())] if search else []), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**inherited, "XDG_CACHE_HOME": str(machine), "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, "-m", "gluonize.product.cli", "-v", "translate", *arguments]
    command += ["--out-dir", str(out), "--json", f"{out}.json", "--keep-going", "--cache", f"file://{cache}"]
    started = time.perf_counter()
    with (folder / f"log-{name}").open("w+") as log:
        done = subprocess.run(command, cwd=folder, env=environment, stdout=log, stderr=log)
        log.seek(0)
        said = log.read()
    seconds = time.perf_counter() - started
    outputs = {str(p.relative_to(out)): p.read_text() for p in sorted(out.rglob("*.py"))}
    results = Path(f"{out}.json").read_text().replace(str(out), "OUT") if Path(f"{out}.json").exists() else "{}"
    compiled = len(list(machine.rglob("*.hsaco")))
    kept = without_seconds(json.loads(results).get("results", []))
    return Run(done.returncode, seconds, compiled, outputs, kept, said)


def with_trouble(
    folder: Path, arguments: list[str], search: Path | None, every: float, most: int, seed: int
) -> tuple[Run, list]:
    """The run on a cluster; and what was done to it."""
    shared = folder / "shared-far"
    with Cluster(folder / "elsewhere") as cluster:
        with Trouble(cluster, shared, random.Random(seed), every, most) as trouble:
            far = translate(folder, "far", [*arguments, "--cluster", cluster.address], search, shared)
    return far, trouble.faults


def wrong(alone: Run, far: Run, warm: Run, mended: Run, faults: list) -> list[str]:
    """What is not as it has to be."""
    done = {kind: any(what.startswith(kind) for _, what in faults) for kind in ("worker", "scheduler", "entries")}
    checks: dict[str, bool] = {
        "there are no outputs": not alone.outputs,
        "the run with trouble has other outputs": far.outputs != alone.outputs,
        "the run with trouble has other results or another status": far.made != alone.made,
        "a worker was killed and the log does not say so": done["worker"] and "worker tcp" not in far.log,
        "the scheduler was restarted and the log does not say so": done["scheduler"]
        and "connected again" not in far.log,
        "there was no trouble": not any(done.values()),
        "the second run has other outputs or results": warm.made != alone.made,
        "the run with a damaged cache has other outputs or results": mended.made != alone.made,
        "entries were damaged and the log does not say so": "damaged" not in mended.log,
        "the second run compiled something": warm.compiled > 0,
        f"the second run took more than {WARM_SHARE:.0%} of the first": warm.seconds > WARM_SHARE * alone.seconds,
    }
    return [what for what, so in checks.items() if so]


def report(alone: Run, far: Run, warm: Run, mended: Run, faults: list) -> str:
    """The figures as text."""
    names = {"-j 1": alone, "with trouble": far, "again, warm": warm, "again, damaged": mended}
    lines = [
        f"{name:14s} {len(run.outputs)} outputs, {len(run.results)} results, status {run.status}: {run.seconds:.1f} s,"
        f" {run.compiled} kernels of machine code"
        for name, run in names.items()
    ]
    lines += [f"  at {at:5.1f} s: {what}" for at, what in faults]
    told = {
        what: sum(what in line for run in (far, mended) for line in run.log.splitlines())
        for what in ("sent again", "connected again", "damaged")
    }
    lines.append("lines of the logs: " + ", ".join(f"{count} {what}" for what, count in told.items()))
    return "\n".join(lines)


def units_of(a: argparse.Namespace) -> list[Unit]:
    """What is translated: of the fixtures a few, unless something is asked for."""

    def wanted(name: str) -> bool:
        if a.only:
            return any(text in name for text in a.only)
        return bool(a.folder) or name.partition("/")[0] in FIXTURES

    units = chosen_units(a.folder, a.launches, "")
    chosen = [replace(unit, launches=tuple(s for s in unit.launches if wanted(s.id))) for unit in units]
    return [unit for unit in chosen if unit.launches]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--launches", type=Path)
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="only launches whose id has one of these in it")
    parser.add_argument("-t", "--target", default="gfx950")
    parser.add_argument("--every", type=float, default=5.0, metavar="SECONDS", help="between two faults, about")
    parser.add_argument("--most", type=int, default=12, help="rounds of faults, then the run may end in peace")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cluster-faults-") as name:
        folder = Path(name)
        write_launches(units_of(a), folder / "launches.json")
        arguments = ["--launches", str(folder / "launches.json"), "-t", a.target]
        alone = translate(folder, "alone", [*arguments, "-j", "1"], a.folder, folder / "shared-alone")
        print(f"-j 1: {alone.seconds:.1f} s", file=sys.stderr, flush=True)
        far, faults = with_trouble(folder, arguments, a.folder, a.every, a.most, a.seed)
        print(f"with trouble: {far.seconds:.1f} s", file=sys.stderr, flush=True)
        warm = translate(folder, "warm", [*arguments, "-j", "1"], a.folder, folder / "shared-alone")
        damage(folder / "shared-far", random.Random(a.seed))
        mended = translate(folder, "mended", [*arguments, "-j", "1"], a.folder, folder / "shared-far")
    print(report(alone, far, warm, mended, faults))
    found = wrong(alone, far, warm, mended, faults)
    print("\n".join(found) or "all as it has to be")
    if a.json:
        runs = {
            name: {k: v for k, v in asdict(run).items() if k != "outputs"}
            for name, run in (("alone", alone), ("far", far), ("warm", warm), ("mended", mended))
        }
        a.json.write_text(json.dumps({"wrong": found, "faults": faults, "runs": runs}, indent=1) + "\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
