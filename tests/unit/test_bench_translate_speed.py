"""The benchmark of translation time: its statistics, its memory watch, and one small run."""

import json
import os
import subprocess
import sys
from pathlib import Path

from bench.process_memory import MemoryUse, proportional_bytes, watched_memory
from bench.translate_speed import nearest_rank, summarize

ROOT = Path(__file__).resolve().parents[2]


def test_nearest_rank():
    assert nearest_rank([], 0.95) == 0.0
    assert nearest_rank([1.0], 0.95) == 1.0
    assert nearest_rank([float(i) for i in range(1, 21)], 0.95) == 19.0
    assert nearest_rank([float(i) for i in range(1, 22)], 0.95) == 20.0
    assert nearest_rank([1.0, 2.0, 9.0], 1.0) == 9.0


def test_only_what_was_translated_counts():
    rows = [{"seconds": 0.1}, {"seconds": None}, {"seconds": 0.3}, {"seconds": 0.2}]
    run = summarize("gluonize", 2, rows, 1.0, 0.8, MemoryUse())
    assert (run.asked, run.translated, run.median, run.longest, run.mean_cpu) == (4, 3, 0.2, 0.3, 0.2)


def test_memory_of_the_parts_of_a_run():
    use = MemoryUse([(0.0, 100 << 20), (5.0, 900 << 20), (9.0, 200 << 20)])
    assert (use.peak_mib(), use.peak_mib(0, 1 / 3), use.peak_mib(2 / 3, 1)) == (900, 100, 200)


def test_the_watch_sees_memory_below_a_process():
    program = "import time; block = bytearray(64 << 20); block[::4096] = b'x' * len(block[::4096]); print('there', flush=True); time.sleep(1)"
    process = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}])"]
    )
    with watched_memory(process.pid, with_root=False) as use:
        process.wait()
    assert 64 <= use.peak_mib() < 128
    assert proportional_bytes(os.getpid()) > 1 << 20 and proportional_bytes(process.pid) == 0


def test_a_small_run(tmp_path):
    command = [sys.executable, "bench/translate_speed.py", "--only", "vector_add/fp32", "-t", "gfx950,gfx1100"]
    done = subprocess.run(
        [*command, "--jobs", "1", "--out", str(tmp_path / "speed")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
    )
    # Status 1 is a slow machine, which is no business of this test.
    assert done.returncode in (0, 1) and done.stderr == "", done.stderr
    report = json.loads((tmp_path / "speed.json").read_text())
    gluonize, upstream = report["runs"]
    assert (
        (gluonize["asked"], gluonize["translated"]) == (2, 2) and gluonize["median"] > 0 and gluonize["peak_mib"] > 50
    )
    assert gluonize["mean_cpu"] > 0 and upstream["mean_cpu"] > 0
    assert (upstream["asked"], upstream["translated"]) == (2, 1), "upstream does not know gfx1100"
    assert "gfx1100" in next(row["why"] for row in report["rows"] if row["tool"] == "upstream" and row["why"])
    table = [line for line in (tmp_path / "speed.md").read_text().splitlines() if line.startswith("|")]
    assert table[2].startswith("| gluonize | 1 | 2 of 2 |")
    assert len({line.count("|") for line in table}) == 1, "as many headings as cells"
