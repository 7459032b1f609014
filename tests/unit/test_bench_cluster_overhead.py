"""The figures of the bench of cluster jobs, as it prints them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from bench.cluster_overhead import cpu_seconds, report, resident, run  # noqa: E402
from gluonize.judge.lower.children.worker import WorkerPool  # noqa: E402


def test_the_report_compares_the_second_quarter_of_the_samples_with_the_last():
    memory = [
        [0, 1e6, 1e6],
        [10, 2e6, 2e6],
        [20, 10e6, 20e6],
        [30, 12e6, 22e6],
        *[[40, 9e9, 9e9]] * 2,
        [60, 12e6, 20e6],
        [70, 12e6, 20e6],
    ]
    found = {
        "jobs": 80, "overhead_ms": 2.5, "memory": memory, "work_ms": 200.0, "cpu_ms": {"client": 1.5, "workers": 2.0},
        "efficiency": 0.934, "cpu_efficiency": 0.951, "load_before": (0.1, 0, 0), "load_after": (2.0, 0, 0),
    }  # fmt: skip
    text = report(found)
    assert "80 jobs that do nothing, one worker: 2.50 ms each" in text
    assert "client 1.50, workers 2.00; together 3.50" in text
    assert "client +1.0 MB of 11 MB, scheduler -1.0 MB of 21 MB" in text
    assert "93.4% by the clock, 95.1% in CPU seconds" in text and "0.1, 2.0" in text


def test_cpu_time_of_children_counts_that_have_ended():
    before = cpu_seconds(os.getpid())
    code = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert 0.25 < cpu_seconds(os.getpid()) - before < 3


def test_every_job_of_a_run_is_done_and_memory_is_sampled():
    samples: list = []
    with WorkerPool(1) as pool:
        assert run(pool, 40, 0.0, __file__, samples, (os.getpid(),)) > 0
    assert [number for number, _ in samples] == list(range(40)) and all(size > 1e6 for _, size in samples)
    assert resident(os.getpid()) > 1e6
