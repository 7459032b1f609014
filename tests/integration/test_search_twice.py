"""A search gives the same file each time: whatever the number of jobs, the seed of hashes, and what was compiled before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MATMUL = ROOT / "fixtures" / "matmul"


def gluonize(folder: Path, seed: str, *words: str) -> None:
    """The command in `folder`, which nothing was compiled for yet; fails the test unless it ends with status 0."""
    caches = {name: str(folder / f"{name}_{words[0]}") for name in ("TRITON_CACHE_DIR", "GLUONIZE_CACHE_DIR")}
    environment = os.environ | caches | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "gluonize.product.cli", "-q", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def compiled(folder: Path, command: str) -> int:
    return len(list(folder.glob(f"TRITON_CACHE_DIR_{command}/*/*.amdgcn")))


@pytest.mark.slow
@pytest.mark.compile
def test_a_search_gives_the_same_file_twice_and_is_not_made_again_by_check(tmp_path):
    launches = json.loads((MATMUL / "launches.json").read_text())
    launches["launches"] = launches["launches"][:1]
    folders = [tmp_path / name for name in ("one", "two")]
    for folder, seed, jobs in zip(folders, ("1", "2"), ("1", "2")):
        folder.mkdir()
        (folder / "kernel.py").write_bytes((MATMUL / "kernel.py").read_bytes())
        (folder / "launches.json").write_text(json.dumps(launches))
        words = ("kernel.py", "-t", "gfx950", "-l", "launches.json", "-o", "out.py", "--no-validate", "--no-parity")
        gluonize(folder, seed, "translate", *words, "--optimize", "search", "--budget", "10", "-j", jobs)
    first, second = ((folder / "out.py").read_bytes() for folder in folders)
    assert first == second and b"--found matmul_kernel:" in first
    gluonize(folders[0], "3", "check", "out.py")
    assert compiled(folders[0], "translate") >= 10 > compiled(folders[0], "check")
