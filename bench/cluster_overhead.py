"""What sending a job to a cluster costs: time per job, memory of client and scheduler, efficiency of two workers.

    python bench/cluster_overhead.py [--jobs 10000] [--work 0.2] [--json FILE]

Scheduler and workers are processes of their own on this machine. A job uses the CPU for `--work` seconds in a child of a worker and
reads one source file that is sent with it. Overhead is the time of jobs that do nothing, on one worker. Efficiency is what two workers do in the time that two single runs (one child each, without Dask) take for the
same jobs. Load of the machine from elsewhere falsifies both: the load average is written beside them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO), str(REPO / "tests" / "integration")]

from cluster_processes import Cluster  # noqa: E402
from translator.cluster.pool import ClusterPool  # noqa: E402
from translator.lowering.worker import WorkerPool  # noqa: E402

SPIN = "translator.cluster.small_job:spin"
SAMPLES = 20  # of memory, over a run


def resident(pid: int) -> int:
    """Bytes of a process in memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def run(
    pool: ClusterPool | WorkerPool, jobs: int, work: float, file: str, samples: list, pids: tuple[int, ...]
) -> float:
    """Seconds for `jobs` jobs, a bounded number of them submitted at a time; memory of `pids` goes into `samples`."""
    room = threading.Semaphore(256)
    failed: list[BaseException | None] = []
    started = time.perf_counter()
    every = max(1, jobs // SAMPLES)
    for number in range(jobs):
        room.acquire()
        future = pool.submit(SPIN, file, work, number)
        future.add_done_callback(lambda done: (failed.append(done.exception()), room.release()))
        if number % every == 0:
            samples.append([number, *map(resident, pids)])
    for _ in range(256):
        room.acquire()
    if errors := [error for error in failed if error is not None]:
        raise errors[0]
    return time.perf_counter() - started


@contextlib.contextmanager
def cluster_pool(folder: Path, workers: int) -> Iterator[tuple[Cluster, ClusterPool]]:
    with Cluster(folder, workers) as cluster:
        pool = ClusterPool(cluster.address, timeout=60.0)
        try:
            deadline = time.monotonic() + 60
            while pool._connection.threads() < workers and time.monotonic() < deadline:
                time.sleep(0.1)
            run(pool, 8 * workers, 0.0, __file__, [], ())  # children start, their imports are done
            yield cluster, pool
        finally:
            pool.close()


def single(jobs: int, work: float) -> float:
    """Seconds of one run with one child, without Dask."""
    pool = WorkerPool(1, max_jobs=10**9)
    try:
        run(pool, 8, 0.0, __file__, [], ())
        return run(pool, jobs, work, __file__, [], ())
    finally:
        pool.close()


def two_singles(jobs: int, work: float) -> float:
    """Seconds in which two single runs at the same time, in processes of their own, do `jobs` jobs together."""
    command = [sys.executable, __file__, "--single", str(jobs // 2), "--work", str(work)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return max(float(process.communicate()[0]) for process in both)


def measure(jobs: int, work: float) -> dict:
    """All figures; of the rounds of the efficiency, which take turns, the best of each side."""
    found: dict = {"jobs": jobs, "load_before": os.getloadavg()}
    with tempfile.TemporaryDirectory(prefix="cluster-overhead-") as folder:
        with cluster_pool(Path(folder, "one"), 1) as (cluster, pool):
            samples: list = []
            seconds = run(pool, jobs, 0.0, __file__, samples, (os.getpid(), cluster.scheduler.pid))
        found |= {"seconds": seconds, "overhead_ms": seconds / jobs * 1000, "memory": samples}
        print(f"{jobs} jobs in {seconds:.1f} s", file=sys.stderr, flush=True)
        some = max(50, int(10 / work))
        rounds = []
        for number in range(3):
            with cluster_pool(Path(folder, f"two-{number}"), 2) as (_, pool):
                far = run(pool, some, work, __file__, [], ())
            rounds.append([far, two_singles(some, work)])
            print(f"two workers {far:.1f} s, two single runs {rounds[-1][1]:.1f} s", file=sys.stderr, flush=True)
    best = [min(column) for column in zip(*rounds)]
    found |= {"work_ms": work * 1000, "efficiency_jobs": some, "rounds": rounds, "efficiency": best[1] / best[0]}
    found["load_after"] = os.getloadavg()
    return found


def report(found: dict) -> str:
    """The figures as text."""
    first, last = found["memory"][1], found["memory"][-1]
    grown = [f"{(b - a) / 1e6:+.1f} MB of {a / 1e6:.0f} MB" for a, b in zip(first[1:], last[1:])]
    loads = [f"{found[when][0]:.1f}" for when in ("load_before", "load_after")]
    return "\n".join(
        [
            f"{found['jobs']} jobs that do nothing, one worker: {found['overhead_ms']:.2f} ms each",
            f"memory from job {first[0]} to job {last[0]}: client {grown[0]}, scheduler {grown[1]}",
            f"two workers against two single runs, jobs of {found['work_ms']:.0f} ms: {found['efficiency']:.1%}",
            f"load average before and after: {', '.join(loads)} on {os.cpu_count()} cores",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--work", type=float, default=0.2, help="seconds of CPU time of a job, for the efficiency")
    parser.add_argument("--single", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json")
    a = parser.parse_args()
    if a.single:
        print(single(a.single, a.work))
        return
    found = measure(a.jobs, a.work)
    print(report(found))
    if a.json:
        Path(a.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
