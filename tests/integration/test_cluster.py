"""Jobs on a cluster give the bytes of `-j 1`, whatever happens to workers, scheduler and cache."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from cluster_processes import Cluster, Trouble, damage  # noqa: E402
from test_shared_cache import without_seconds  # noqa: E402

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
NAMES = ("softmax", "layer_norm", "matmul")
TARGETS = "gfx950,gfx1201"
ALL = (*(f"{name}.py" for name in NAMES), "ops/scale.py")
FEW = ("softmax.py", "ops/scale.py")  # enough to be stopped in the middle of

# A package in which nothing is in one file: a helper, a constant from a variable of the environment, launches elsewhere.
PACKAGE = {
    "ops/__init__.py": "from .settings import MODE\n",
    "ops/settings.py": 'import os\n\nMODE = os.environ.get("FLEET_MODE", "none")\nSCALE = 3 if MODE == "three" else 2\n',
    "ops/inner/__init__.py": "",
    "ops/inner/helpers.py": (
        "import triton\nimport triton.language as tl\nfrom ..settings import SCALE\n\nFACTOR = tl.constexpr(SCALE)\n\n\n"
        "@triton.jit\ndef scaled(x):\n    return x * FACTOR\n"
    ),
    "ops/scale.py": (
        "import triton\nimport triton.language as tl\nfrom ops.inner.helpers import scaled\n\n\n"
        "@triton.jit\ndef scale_kernel(x_ptr, n, BLOCK: tl.constexpr):\n"
        "    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    x = tl.load(x_ptr + offsets, mask=offsets < n)\n"
        "    tl.store(x_ptr + offsets, scaled(x), mask=offsets < n)\n"
    ),
    "ops/host.py": (
        "import torch\nfrom ops.scale import scale_kernel\n\n\n"
        "def scale(x: torch.Tensor):\n    scale_kernel[(4,)](x, x.numel(), BLOCK=512)\n"
    ),
}


@pytest.fixture
def project(tmp_path):
    return _project(tmp_path / "project")


def _project(folder: Path) -> Path:
    for name in NAMES:
        folder.mkdir(exist_ok=True)
        shutil.copy(FIXTURES / name / "kernel.py", folder / f"{name}.py")
    for name, text in PACKAGE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


class Run:
    """One `gluonize translate` of the project's files `names`."""

    def __init__(
        self, project: Path, label: str, *options: str, shared: Path | None = None, names: tuple[str, ...] = ALL
    ):
        self.folder = project.parent
        self.out, self.results = self.folder / label, self.folder / f"{label}.json"
        environment = {**os.environ, "XDG_CACHE_HOME": str(project.parent / f"home-{label}"), "FLEET_MODE": "three"}
        environment.pop("GLUONIZE_CACHE_DIR", None)
        environment["GLUONIZE_CLUSTER_PATIENCE"] = "30"
        command = [sys.executable, "-m", "gluonize.product.cli", "-v", "translate", *names, "-t", TARGETS]
        command += ["--out-dir", str(self.out), "--json", str(self.results), "--keep-going", *options]
        command += ["--cache", f"file://{shared}"] if shared else []
        self.process = subprocess.Popen(
            command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        self.log = ""

    def ended(self) -> int:
        self.log += self.process.communicate(timeout=600)[0]
        return self.process.returncode

    def made(self) -> tuple[dict[str, bytes], list]:
        outputs = {str(p.relative_to(self.out)): p.read_bytes() for p in sorted(self.out.rglob("*.py"))}
        text = self.results.read_text().replace(str(self.out), "OUT").replace(str(self.folder), "FOLDER")
        return outputs, without_seconds(json.loads(text)["results"])


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process here makes."""
    project = _project(tmp_path_factory.mktemp("alone") / "project")
    run = Run(project, "alone", "-j", "1", shared=project.parent / "shared-alone")
    assert run.ended() == 0, run.log
    outputs, results = run.made()
    assert len(outputs) == 2 * (len(NAMES) + 1)
    assert any("scale_kernel" in r["kernel"] and "FLEET_MODE = 'three'" in str(r["notes"]) for r in results)
    return outputs, results


def of_few(made: tuple[dict[str, bytes], list]) -> tuple[dict[str, bytes], list]:
    """What of all that is made is made from FEW."""
    stems = tuple(Path(name).stem for name in FEW)
    outputs, results = made
    return {name: text for name, text in outputs.items() if Path(name).name.startswith(stems)}, [
        result for result in results if Path(result["source"]).stem in stems
    ]


@pytest.mark.slow
@pytest.mark.compile
def test_the_same_bytes_whatever_is_killed_lost_or_damaged(project, alone):
    chance, shared = random.Random(27), project.parent / "shared"
    with Cluster(project.parent / "elsewhere") as cluster:
        run = Run(project, "far", "--cluster", cluster.address, shared=shared)
        with Trouble(cluster, shared, chance, every=6.0) as trouble:
            assert run.ended() == 0, run.log
        assert run.made() == alone
        assert trouble.count("worker") and "sent again" in run.log
        # Once more, after the damage: what is found is used, what is damaged is told and made anew.
        assert damage(shared, chance)
        again = Run(project, "again", "--cluster", cluster.address, shared=shared)
        assert again.ended() == 0, again.log
        assert again.made() == alone and "damaged" in again.log and "found in the cache" in again.log


@pytest.mark.slow
@pytest.mark.compile
def test_a_scheduler_that_is_gone_ends_the_run_and_the_same_command_goes_on(project, alone):
    shared = project.parent / "shared"
    with Cluster(project.parent / "elsewhere") as cluster:
        run = Run(project, "far", "--cluster", cluster.address, shared=shared, names=FEW)
        while run.process.poll() is None and not list((shared / "results").glob("*")):
            time.sleep(0.1)
        os.killpg(cluster.scheduler.pid, signal.SIGKILL)
        assert run.ended() == 1 and "cluster-lost" in run.log and "give the same command" in run.log
        assert not run.results.exists()
        cluster.restart_scheduler()
        again = Run(project, "far", "--cluster", cluster.address, shared=shared, names=FEW)
        assert again.ended() == 0, again.log
        assert again.made() == of_few(alone) and "found in the cache" in again.log


@pytest.mark.slow
@pytest.mark.compile
def test_ctrl_c_leaves_a_state_to_go_on_from(project, alone):
    shared = project.parent / "shared"
    run = Run(project, "far", "--cluster", "local:2", shared=shared)
    while run.process.poll() is None and not list((shared / "results").glob("*")):
        time.sleep(0.1)
    os.kill(run.process.pid, signal.SIGINT)
    status = run.ended()
    if status == 0:
        pytest.skip("it was done before it could be interrupted")
    assert status == 130, run.log
    assert not run.results.exists()
    again = Run(project, "far", "--cluster", "local:2", shared=shared)
    assert again.ended() == 0, again.log
    assert again.made() == alone and "found in the cache" in again.log
