"""A Dask scheduler and workers as processes of their own, which tests kill and start again, and trouble that does so at random."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from distributed import Client

MOMENT = 0.1  # seconds; an answer that more is needed takes less


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Cluster:
    """One scheduler and some workers; workers that end are started again, as a service manager does.

    folder: working folder of all, in which nothing of the project is.
    """

    def __init__(self, folder: Path, workers: int = 2):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.environment = {**os.environ, "TMPDIR": str(folder), "DASK_TEMPORARY_DIRECTORY": str(folder)}
        self.environment |= {"XDG_CACHE_HOME": str(folder / "cache"), "FLEET_MODE": "of the worker"}
        self.log = (folder / "log").open("ab")
        self.kills = 0
        self._stop = threading.Event()
        self.scheduler = self._scheduler()
        self.workers = [self._worker(number) for number in range(workers)]
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def restart_scheduler(self) -> None:
        kill(self.scheduler)
        time.sleep(1)
        self.scheduler = self._scheduler()

    def kill_worker(self, number: int) -> None:
        self.kills += 1
        kill(self.workers[number])

    def kill_busy_worker(self, stop: threading.Event) -> int | None:
        """Kill a worker that has been at one job for a moment, as soon as there is one; its number, None when stopped before."""
        before: set[tuple[str, str]] = set()
        with Client(self.address, set_as_default=False) as client:
            while not stop.wait(MOMENT):
                now = {(worker, job) for worker, jobs in client.processing().items() for job in jobs}
                known = client.scheduler_info(n_workers=-1)["workers"]
                for worker, _ in sorted(before & now):
                    if worker in known:
                        self.kill_worker(number := int(known[worker]["name"]))
                        return number
                before = now
        return None

    def close(self) -> None:
        self._stop.set()
        self._keeper.join()
        for process in (*self.workers, self.scheduler):
            kill(process)
        self.log.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep(self) -> None:
        while not self._stop.wait(0.2):
            for number, process in enumerate(self.workers):
                if process.poll() is not None:
                    self.workers[number] = self._worker(number)

    def _scheduler(self) -> subprocess.Popen:
        port = self.address.rpartition(":")[2]
        return self._start("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")

    def _worker(self, number: int) -> subprocess.Popen:
        name = ("--name", str(number))
        return self._start("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *name)

    def _start(self, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "dask", *arguments]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=self.log, stderr=self.log, start_new_session=True
        )


class Trouble:
    """While a block runs: a worker is killed every few seconds, entries of a cache are lost or damaged, once the scheduler is restarted.

    The first to be killed is the first worker that is at a job, so that there is trouble however fast the machine is.
    every: seconds between two rounds, about; most: of them, as no job ends on a machine that is slower than its workers are killed.
    faults: what was done, each with the seconds since the beginning.
    """

    SCHEDULER_ROUND = 3

    def __init__(self, cluster: Cluster, cache: Path, chance: random.Random, every: float, most: int = 12):
        self.cluster, self.cache, self.chance, self.every, self.most = cluster, cache, chance, every, most
        self.faults: list[tuple[float, str]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._make, daemon=True)

    def __enter__(self) -> Trouble:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def count(self, kind: str) -> int:
        return sum(what.startswith(kind) for _, what in self.faults)

    def _make(self) -> None:
        started, rounds = time.monotonic(), 0
        if (busy := self.cluster.kill_busy_worker(self._stop)) is not None:
            self.faults.append((time.monotonic() - started, f"worker {busy} killed at a job"))
        while rounds < self.most and not self._stop.wait(self.every * self.chance.uniform(0.7, 1.3)):
            rounds += 1
            done = []
            if rounds == self.SCHEDULER_ROUND:
                self.cluster.restart_scheduler()
                done.append("scheduler restarted")
            else:
                number = self.chance.randrange(len(self.cluster.workers))
                self.cluster.kill_worker(number)
                done.append(f"worker {number} killed")
            if self.cache.exists() and (damaged := damage(self.cache, self.chance)):
                done.append(f"entries of the cache lost or damaged: {damaged}")
            self.faults += [(time.monotonic() - started, what) for what in done]


def kill(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def damage(folder: Path, chance: random.Random) -> int:
    """Lose, cut off or change some entries of a cache; returns how many."""
    done = 0
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # evicted or replaced meanwhile
            raw = path.read_bytes() if path.is_file() and not path.name.startswith(".") else b""
            kind = chance.choice(("keep", "keep", "keep", "lose", "cut", "change")) if raw else "keep"
            done += kind != "keep"
            if kind == "lose":
                path.unlink()
            elif kind == "cut":
                path.write_bytes(raw[: chance.randrange(len(raw))])
            elif kind == "change":
                place = chance.randrange(len(raw))
                path.write_bytes(raw[:place] + bytes([raw[place] ^ 255]) + raw[place + 1 :])
    return done
