"""Memory of a process and all below it while something runs; Linux only."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

INTERVAL = 0.25  # seconds between two looks


@dataclass
class MemoryUse:
    """(seconds since the start, bytes) of each look; shared pages count once."""

    samples: list[tuple[float, int]] = field(default_factory=list)

    def peak_mib(self, first: float = 0.0, last: float = 1.0) -> int:
        """The most during a part of the run, from fraction `first` to `last` of its time."""
        length = self.samples[-1][0] if self.samples else 0.0
        return max((size for at, size in self.samples if first * length <= at <= last * length), default=0) >> 20


@contextlib.contextmanager
def watched_memory(root: int, with_root: bool = True) -> Iterator[MemoryUse]:
    """Look at the processes below `root` (and at itself with `with_root`) until the block is left."""
    found, stop, started = MemoryUse(), threading.Event(), time.monotonic()

    def watch() -> None:
        while not stop.wait(INTERVAL):
            pids = descendants(root) | ({root} if with_root else set())
            found.samples.append((time.monotonic() - started, sum(map(proportional_bytes, pids))))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()


def descendants(root: int) -> set[int]:
    """Ids of all processes below one."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat") as file:
                # The name of the program, in parentheses, may hold anything.
                parent = int(file.read().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    out, todo = set(), [root]
    while todo:
        below = children.get(todo.pop(), [])
        out.update(below)
        todo += below
    return out


def proportional_bytes(pid: int) -> int:
    """Resident memory of a process, each shared page divided among those that share it; 0 when it has ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
    except OSError:
        return 0
