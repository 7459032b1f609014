"""A cache that machines share, through the command line: nothing is done twice, damage costs time and nothing else."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
NAMES = ("softmax", "vector_add")


def project(folder: Path) -> Path:
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        shutil.copy(FIXTURES / name / "kernel.py", folder / name)
    return folder


def gluonize(folder: Path, machine: Path, *arguments: str) -> subprocess.CompletedProcess:
    """One command on a machine, which is a folder for what it keeps itself."""
    # Other tests of the process may have said where caches are.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("GLUONIZE_", "TRITON_CACHE", "TRITON_HOME"))}
    environment = {**inherited, "XDG_CACHE_HOME": str(machine)}
    command = [sys.executable, "-m", "gluonize.product.cli", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def translate(folder: Path, machine: Path, shared: Path) -> tuple[dict[str, bytes], list, str]:
    """Outputs, results without their seconds, and the log of a run."""
    sources = [f"{name}/kernel.py" for name in NAMES]
    options = ["-t", "gfx950", "--json", "r.json", "--force", "-j", "2", "--cache", f"file://{shared}"]
    done = gluonize(folder, machine, "-v", "translate", *sources, *options)
    assert done.returncode == 0, done.stderr
    outputs = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*_gfx950.py"))}
    results = json.loads((folder / "r.json").read_text().replace(str(folder), ""))["results"]
    return outputs, without_seconds(results), done.stderr


def without_seconds(value):
    """Results without how long things took, which no two runs agree in."""
    if isinstance(value, dict):
        return {name: without_seconds(item) for name, item in value.items() if name != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def code_objects(machine: Path) -> list[Path]:
    return sorted(machine.rglob("*.hsaco"))


@pytest.mark.slow
@pytest.mark.compile
def test_another_machine_and_checkout_do_nothing_again(tmp_path):
    shared = tmp_path / "shared"
    first = translate(project(tmp_path / "one"), tmp_path / "machine1", shared)
    assert code_objects(tmp_path / "machine1") and "damaged" not in first[2]
    second = translate(project(tmp_path / "two"), tmp_path / "machine2", shared)
    assert second[:2] == first[:2] and len(first[0]) == len(NAMES)
    assert not code_objects(tmp_path / "machine2") and "translated in" not in second[2]
    # Without the results, Triton finds its compiles: machine code comes from there, the same.
    shutil.rmtree(shared / "results")
    before = len(list((shared / "compiled").iterdir()))
    third = translate(tmp_path / "two", tmp_path / "machine3", shared)
    assert third[:2] == first[:2] and code_objects(tmp_path / "machine3")
    assert len(list((shared / "compiled").iterdir())) == before
    shown = gluonize(tmp_path / "two", tmp_path / "machine3", "cache", "show", "--cache", str(shared)).stdout
    assert f"{before:6d} entries" in shown and f"file://{shared}" in shown
    gluonize(tmp_path / "two", tmp_path / "machine3", "cache", "clear", "--cache", str(shared))
    assert not [path for path in shared.rglob("*") if path.is_file()]


@pytest.mark.slow
@pytest.mark.compile
def test_lost_truncated_and_changed_entries_cost_time_alone(tmp_path):
    folder, shared = project(tmp_path / "one"), tmp_path / "shared"
    first = translate(folder, tmp_path / "machine1", shared)
    chance, told = random.Random(27), []
    for machine in (
        "machine2",
        "machine1",
        "machine3",
        "machine1",
    ):  # names of entries change with the code, and so what is drawn
        damaged = []
        for path in sorted((*shared.rglob("*"), *(tmp_path / "machine1").rglob("*.*"))):
            raw = path.read_bytes() if path.is_file() else b""
            kind = chance.choice(("keep", "lose", "cut", "change"))
            if kind == "lose" and raw:
                path.unlink()
            elif kind == "cut" and raw:
                path.write_bytes(raw[: chance.randrange(len(raw))])
            elif kind == "change" and raw:
                place = chance.randrange(len(raw))
                path.write_bytes(raw[:place] + bytes([raw[place] ^ 255]) + raw[place + 1 :])
            damaged += [path] if kind in ("cut", "change") and raw else []
        again = translate(folder, tmp_path / machine, shared)
        assert again[:2] == first[:2]
        told.append(bool(damaged) and "damaged" in again[2])
    assert any(told)
