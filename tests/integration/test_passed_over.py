"""Configurations of an autotuned kernel that do not fit the target."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = """
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 64, "STEP": 64}, num_stages=2, num_warps=4),
        triton.Config({"BLOCK": 128, "STEP": 512}, num_stages=3, num_warps=8),
    ],
    key=["K"],
)
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr, STEP: tl.constexpr):
    m, k = tl.arange(0, BLOCK), tl.arange(0, STEP)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for i in range(0, K, STEP):
        a = tl.load(a_ptr + m[:, None] * K + i + k[None, :])
        b = tl.load(b_ptr + (i + k)[:, None] * BLOCK + m[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * BLOCK + m[None, :], acc)
"""


def translate(folder: Path, *options: str) -> tuple[int, str, list[dict]]:
    """Exit status, standard error and JSON results."""
    (folder / "tuned.py").write_text(SOURCE)
    given = [x for name in "abc" for x in ("--set", f"{name}_ptr=*{'fp32' if name == 'c' else 'fp16'}")]
    given = [] if "-l" in options else given
    command = [
        sys.executable,
        "-m",
        "gluonize.product.cli",
        "translate",
        "tuned.py",
        "-t",
        "gfx942",
        "-o",
        "out.py",
        *given,
    ]
    done = subprocess.run(
        [*command, "--json", "r.json", "--no-cache", "--no-validate", *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr, json.loads((folder / "r.json").read_text())["results"]


@pytest.mark.slow
@pytest.mark.compile
def test_a_configuration_that_fits_neither_is_passed_over(tmp_path: Path):
    status, printed, results = translate(tmp_path, "--parity")
    assert [entry["status"] for entry in results] == ["translated", "passed-over"] and status == 0, printed
    assert "autotuning passes over it" in printed and (tmp_path / "out.py").exists()


@pytest.mark.slow
@pytest.mark.compile
def test_a_configuration_that_was_asked_for_is_refused(tmp_path: Path):
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32"}
    signature |= {"BLOCK": "constexpr", "STEP": "constexpr"}
    launch = {"id": "large", "kernel": "kernel", "signature": signature, "constexprs": {"BLOCK": 128, "STEP": 512}}
    launch |= {"attrs": {"a_ptr": "DS", "b_ptr": "DS", "c_ptr": "DS", "K": "D"}}
    launch |= {"options": {"num_warps": 8, "num_stages": 3}}
    small = launch | {"id": "small", "constexprs": {"BLOCK": 64, "STEP": 64}}
    (tmp_path / "launches.json").write_text(json.dumps({"version": 1, "launches": [small, launch]}))
    status, printed, results = translate(tmp_path, "--no-parity", "-l", "launches.json")
    assert [entry["status"] for entry in results] == ["refused", "refused"] and status == 2, printed
    assert "lds-overflow" in printed and "Triton's own compile of the source fails too" in printed
    assert not (tmp_path / "out.py").exists()
