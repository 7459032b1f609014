"""Jobs that do next to nothing, to try a cluster with and to measure what sending jobs costs (`bench/cluster_overhead.py`)."""

from __future__ import annotations

import os
import signal
import time

from gluonize.product.project.cache.results import switches
from gluonize.read.files.modules import parse_file


def spin(file: str, seconds: float, number: int) -> tuple[int, int]:
    """Use the CPU for so long; -> the number, and how long the text of the file is."""
    text = parse_file(file).text
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return number, len(text)


def where() -> tuple[int, dict[str, str]]:
    """The process that runs this, and its compiler switches."""
    return os.getpid(), dict(switches())


def hold(size: int) -> int:
    """Ask for so many bytes; -> how many there were."""
    return len(bytearray(size))


def die(name: str) -> None:
    """End the process by a signal, as a compiler may."""
    os.kill(os.getpid(), signal.Signals[name])
