"""The figures of the bench of cluster jobs, as it prints them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from bench.cluster_overhead import report, resident, run  # noqa: E402
from translator.lowering.worker import WorkerPool  # noqa: E402


def test_the_report_compares_the_first_settled_sample_with_the_last():
    found = {
        "jobs": 100, "overhead_ms": 2.5, "memory": [[0, 1e6, 1e6], [50, 10e6, 20e6], [95, 11e6, 19e6]], "work_ms": 200.0,
        "efficiency": 0.934, "load_before": (0.1, 0, 0), "load_after": (2.0, 0, 0),
    }  # fmt: skip
    text = report(found)
    assert "100 jobs that do nothing, one worker: 2.50 ms each" in text
    assert "client +1.0 MB of 10 MB, scheduler -1.0 MB of 20 MB" in text
    assert "93.4%" in text and "0.1, 2.0" in text


def test_every_job_of_a_run_is_done_and_memory_is_sampled():
    samples: list = []
    with WorkerPool(1) as pool:
        assert run(pool, 40, 0.0, __file__, samples, (os.getpid(),)) > 0
    assert [number for number, _ in samples] == list(range(0, 40, 2)) and all(size > 1e6 for _, size in samples)
    assert resident(os.getpid()) > 1e6
