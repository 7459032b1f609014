"""Processor time to validate a 256 x 256 x 256 matmul (the fixture's translation), variants included.

    python bench/validate_speed.py [-t gfx950 ...] [--runs 5]

The shortest of several runs is shown: processor seconds, which other work on the machine hardly changes, and seconds on the clock.
`both sides` is Triton's front end and the passes that give TTIR and TTGIR.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in the workers of `gluonize`

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import fixture_set  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec, read_launches  # noqa: E402
from gluonize.judge.verdict.run import validate_pair  # noqa: E402
from gluonize.judge.machine.stages import source_stage, translated_stage  # noqa: E402

SIZE = 256
FIXTURE = fixture_set.Fixture(fixture_set.ROOT / "matmul")


def launch() -> LaunchSpec:
    """The fixture's fp16 launch with every extent and row stride SIZE."""
    spec = read_launches(str(FIXTURE.launches_file))[0]
    tensor = {
        "tensor": {"dtype": "float16", "shape": [SIZE, SIZE], "stride": [SIZE, 1], "storage": SIZE**2, "offset": 0}
    }
    sizes = ("M", "N", "K", "stride_am", "stride_bk", "stride_cm")
    values = spec.values | {name: tensor for name in ("a_ptr", "b_ptr", "c_ptr")} | {name: SIZE for name in sizes}
    tiles = (SIZE // spec.constexprs["BLOCK_M"]) * (SIZE // spec.constexprs["BLOCK_N"])
    return replace(spec, values=values, grid=(tiles,))


def measure(target: str) -> tuple[float, float, float, float, int]:
    """-> processor and clock seconds of both sides' stages, of the validation, and how many variants were run."""
    spec = launch()
    marks = [(time.process_time(), time.perf_counter())]
    left = source_stage(str(FIXTURE.kernel_file), spec, target)
    right = translated_stage(str(FIXTURE.golden_file(target)), spec, target)
    marks.append((time.process_time(), time.perf_counter()))
    result = validate_pair(left.text, right.text, spec, source_names=left.names, translated_names=right.names)
    marks.append((time.process_time(), time.perf_counter()))
    assert result.status == "validated" and result.programs == result.grid, result.reason
    stages, run = ([b - a for a, b in zip(*pair)] for pair in zip(marks, marks[1:]))
    return (*stages, *run, len(result.variants))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-t", "--targets", nargs="+", default=list(fixture_set.TARGETS), choices=fixture_set.TARGETS)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print(
        "| target | both sides, cpu s | clock s | validate, cpu s | clock s | variants |\n| --- | --- | --- | --- | --- | --- |"
    )
    for target in options.targets:
        best = [min(column) for column in zip(*(measure(target) for _ in range(options.runs)))]
        print(f"| {target} | " + " | ".join(f"{seconds:.2f}" for seconds in best[:4]) + f" | {best[4]} |", flush=True)


if __name__ == "__main__":
    main()
