"""A target that is added by copying a row: nothing that the row says is lost, and every command knows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fixture_set import ROOT
from test_machine_async import ends_early, outcome

from gluonize.judge.cycles.analysis import analyze
from gluonize.read.kernels.gluon_kernels import target_of_text
from gluonize.read.launches.capture.devices import device_of, known_devices
from gluonize.rules.targets import TARGETS
from gluonize.rules.timing import TIMINGS

# LLVM and Triton know the name, and no row has it.
COPY, ORIGINAL = "gfx1251", "gfx1250"
LOOP = "kernel:\n.LBB0_1:\n\tv_add_f32 v0, v1, v2\n\ts_cbranch_scc1 .LBB0_1\n\ts_endpgm\n"
SITE = """
import sys
sys.path.insert(0, {root!r})
from dataclasses import replace
from gluonize.rules.targets import TARGETS
TARGETS[{copy!r}] = replace(TARGETS[{original!r}], name={copy!r})
"""


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch):
    row = replace(TARGETS[ORIGINAL], name=COPY)
    monkeypatch.setitem(TARGETS, COPY, row)
    return row


@pytest.mark.parametrize("tensor", [True, False], ids=["tensor", "pointers"])
def test_a_copy_that_is_not_waited_for_is_found_there_too(copied, tensor: bool):
    assert isinstance(outcome(ends_early, COPY, WAIT=True, TENSOR=tensor), dict)
    assert outcome(ends_early, COPY, WAIT=False, TENSOR=tensor) == "lds-load-unwaited"


def test_its_cycles_are_those_of_the_original(copied):
    def clk(target: str) -> list[float]:
        return [loop.cycles for loop in analyze(LOOP, target, 4).loops]

    assert clk(COPY) == clk(ORIGINAL) != []


def test_host_code_can_be_told_of_it(copied):
    assert COPY in known_devices()
    device = device_of(COPY)
    assert (device.capability, device.shared, device.target.arch) == ((12, 5), copied.lds_bytes, COPY)


def test_every_target_has_its_own_timing_and_capability():
    assert {name: row.timing for name, row in TARGETS.items()} == TIMINGS
    assert [row.capability for row in TARGETS.values()] == [(9, 4), (9, 5), (12, 5), (11, 0), (12, 0), (12, 0)]


def test_a_file_is_for_the_target_of_the_newest_module_that_it_imports():
    start = "from triton.experimental.gluon.language.amd import "
    said = {name: target_of_text(start + name) for name in ("cdna3", "cdna4", "cdna5", "gfx1250", "rdna3", "rdna4")}
    assert [*said.values()] == ["hip:gfx942", "hip:gfx950", "hip:gfx1250", "hip:gfx1250", "hip:gfx1100", "hip:gfx1200"]
    assert target_of_text(start + "cdna3, cdna5") == "hip:gfx1250"


COMMANDS = {
    "translate": "{kernel} -l {launches} -o {out}",
    "compile": "{out} -l {launches}",
    "parity": "{kernel} {out} -l {launches}",
    "cycles": "{out} -l {launches}",
    "explain": "{kernel} -l {launches}",
    "report": "{kernel} {out} -l {launches} -o {folder}/page.html",
    "validate": "{kernel} {out} -l {launches}",
    "bundle": "{out} -l {launches} --id matmul/fp16 --device hip -o {folder}/bundle.zip",
    "layout": "gl.BlockedLayout([1,8],[8,4],[4,1],[1,0]) --shape 64,64",
    "tune": "{kernel} -l {launches} --no-validate",
    "check": "{out} --path {fixture}",
    "update": "{out} --path {fixture}",
}
ALL_COMMANDS = """
import ast, sys
from warm_children import WarmChildren
from gluonize.judge.lower.children import worker
from gluonize.product.cli.edge import run
if sys.platform.startswith("linux"):
    worker.start_child = WarmChildren().start_child
print({line[0]: run(line) for line in ast.literal_eval(sys.argv[1])})
"""
WITHOUT_TARGET = ("layout", "check", "update")


@pytest.mark.slow
def test_every_command_knows_it(tmp_path: Path):
    """In one process, which starts with the row, as the children that it has forked do."""
    (tmp_path / "sitecustomize.py").write_text(SITE.format(root=str(ROOT.parent), copy=COPY, original=ORIGINAL))
    fixture = ROOT / "matmul"
    launches = json.loads((fixture / "launches.json").read_text())
    launches["launches"] = [one for one in launches["launches"] if one["id"] == "matmul/fp16"]
    (tmp_path / "launches.json").write_text(json.dumps(launches))
    shutil.copy(fixture / "kernel.py", tmp_path)
    places = dict(kernel=tmp_path / "kernel.py", launches=tmp_path / "launches.json", out=tmp_path / "out.py")
    places |= dict(folder=tmp_path, fixture=tmp_path)
    lines = [
        [command, *words.format(**places).split(), *([] if command in WITHOUT_TARGET else ["-t", COPY])]
        for command, words in COMMANDS.items()
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])}
    done = subprocess.run(
        [sys.executable, "-c", ALL_COMMANDS, repr(lines)], capture_output=True, text=True, env=environment, timeout=600
    )
    said = dict.fromkeys(COMMANDS, 0)
    assert done.returncode == 0 and eval(done.stdout.splitlines()[-1]) == said, done.stdout + done.stderr
