"""What sending a job to a cluster costs: time per job, memory of client and scheduler, efficiency of two workers.

    python bench/cluster_overhead.py [--jobs 10000] [--work 0.2] [--json FILE]

Scheduler and workers are processes of their own on this machine. A job uses the CPU for `--work` seconds in a child of a worker and
reads one source file that is sent with it. Overhead is the time of jobs that do nothing, on one worker. Memory is compared between
the second quarter of these jobs and the last. Efficiency is what two workers do in the time that two single runs (one child each,
without Dask) take for the same jobs.

Load of the machine from elsewhere falsifies what a clock says, so the load average is written beside it, and the CPU seconds of
client, scheduler and workers, which it hardly changes. About four minutes on two idle cores.
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
sys.path[:0] = [str(REPO), str(REPO / "bench"), str(REPO / "tests" / "integration")]

from cluster_processes import Cluster  # noqa: E402
from process_memory import descendants  # noqa: E402
from gluonize.product.cluster.pool import ClusterPool  # noqa: E402
from gluonize.judge.lower.children.worker import WorkerPool  # noqa: E402

SPIN = "gluonize.product.cluster.small_job:spin"
SAMPLES = 40  # of memory, over a run
TICK = os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """Bytes of a process in memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def cpu_seconds(root: int) -> float:
    """CPU time of a process, of all below it, and of those below it that have ended."""
    total = 0
    for pid in {root} | descendants(root):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, words[11:15]))  # utime, stime, cutime, cstime
    return total / TICK


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


def single(jobs: int, work: float) -> tuple[float, float]:
    """Seconds, and CPU seconds, of one run with one child, without Dask."""
    pool = WorkerPool(1, max_jobs=10**9)
    try:
        run(pool, 8, 0.0, __file__, [], ())
        before = cpu_seconds(os.getpid())
        return run(pool, jobs, work, __file__, [], ()), cpu_seconds(os.getpid()) - before
    finally:
        pool.close()


def two_singles(jobs: int, work: float) -> tuple[float, float]:
    """Seconds in which two single runs at the same time, in processes of their own, do `jobs` jobs together; CPU seconds of both."""
    command = [sys.executable, __file__, "--single", str(jobs // 2), "--work", str(work)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    found = [tuple(map(float, process.communicate()[0].split())) for process in both]
    return max(seconds for seconds, _ in found), sum(cpu for _, cpu in found)


class Watched:
    """CPU seconds of the parts of a cluster while a block runs; `spent` when it is left."""

    def __init__(self, cluster: Cluster):
        self.pids = {"client": [os.getpid()], "scheduler": [cluster.scheduler.pid]}
        self.pids["workers"] = [worker.pid for worker in cluster.workers]
        self.spent: dict[str, float] = {}

    def _all(self) -> dict[str, float]:
        # Scheduler and workers are started by this process too: what is theirs is not the client's.
        found = {name: sum(map(cpu_seconds, pids)) for name, pids in self.pids.items()}
        return found | {"client": found["client"] - found["scheduler"] - found["workers"]}

    def __enter__(self) -> Watched:
        self.before = self._all()
        return self

    def __exit__(self, *_: object) -> None:
        self.spent = {name: after - self.before[name] for name, after in self._all().items()}


def measure_overhead(folder: Path, jobs: int) -> dict:
    """Jobs that do nothing, one after another on one worker."""
    with cluster_pool(folder, 1) as (cluster, pool):
        samples: list = []
        with Watched(cluster) as watched:
            seconds = run(pool, jobs, 0.0, __file__, samples, (os.getpid(), cluster.scheduler.pid))
    print(f"{jobs} jobs in {seconds:.1f} s", file=sys.stderr, flush=True)
    cpu = {name: spent / jobs * 1000 for name, spent in watched.spent.items()}
    return {"jobs": jobs, "seconds": seconds, "overhead_ms": seconds / jobs * 1000, "cpu_ms": cpu, "memory": samples}


def measure_efficiency(folder: Path, work: float, rounds: int = 3) -> dict:
    """Two workers and two single runs take turns; the best time of each side, and the CPU seconds of all rounds."""
    some, clock, cpu = max(50, int(10 / work)), [], []
    for number in range(rounds):
        with cluster_pool(folder / str(number), 2) as (cluster, pool), Watched(cluster) as watched:
            far = run(pool, some, work, __file__, [], ())
        near, near_cpu = two_singles(some, work)
        clock.append([far, near])
        cpu.append([sum(watched.spent.values()), near_cpu])
        print(f"two workers {far:.1f} s, two single runs {near:.1f} s", file=sys.stderr, flush=True)
    best, spent = [min(column) for column in zip(*clock)], [sum(column) for column in zip(*cpu)]
    return {
        "work_ms": work * 1000, "efficiency_jobs": some, "rounds": clock, "cpu_rounds": cpu,
        "efficiency": best[1] / best[0], "cpu_efficiency": spent[1] / spent[0],
    }  # fmt: skip


def measure(jobs: int, work: float) -> dict:
    """All figures."""
    found: dict = {"load_before": os.getloadavg()}
    with tempfile.TemporaryDirectory(prefix="cluster-overhead-") as folder:
        found |= measure_overhead(Path(folder, "one"), jobs)
        found |= measure_efficiency(Path(folder, "two"), work)
    return found | {"load_after": os.getloadavg()}


def grown(samples: list) -> list[tuple[float, float]]:
    """Of each process: bytes in the second quarter of the samples, and how many more in the last."""
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    means = [[sum(column) / quarter for column in list(zip(*part))[1:]] for part in (early, late)]
    return [(before, after - before) for before, after in zip(*means)]


def report(found: dict) -> str:
    """The figures as text."""
    more = [f"{more / 1e6:+.1f} MB of {before / 1e6:.0f} MB" for before, more in grown(found["memory"])]
    loads = [f"{found[when][0]:.1f}" for when in ("load_before", "load_after")]
    cpu = ", ".join(f"{name} {spent:.2f}" for name, spent in found["cpu_ms"].items())
    return "\n".join(
        [
            f"{found['jobs']} jobs that do nothing, one worker: {found['overhead_ms']:.2f} ms each",
            f"CPU ms of each: {cpu}; together {sum(found['cpu_ms'].values()):.2f}",
            f"memory, second quarter to last quarter: client {more[0]}, scheduler {more[1]}",
            f"two workers against two single runs, jobs of {found['work_ms']:.0f} ms: {found['efficiency']:.1%} by the clock,"
            f" {found['cpu_efficiency']:.1%} in CPU seconds",
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
        print(*single(a.single, a.work))
        return
    found = measure(a.jobs, a.work)
    print(report(found))
    if a.json:
        Path(a.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
