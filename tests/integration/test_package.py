"""Wheel and source distribution install and run in an environment that has nothing else."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOFTMAX = ROOT / "fixtures" / "softmax"


def run(*command, **more):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=1200, **more)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The wheel and the source distribution, built from the files that git knows."""
    if importlib.util.find_spec("build") is None:
        pytest.skip("the module build is not installed; it is one of the dev dependencies")
    tree = tmp_path_factory.mktemp("tree")
    for name in run(
        "git",
        "-C",
        ROOT,
        "ls-files",
        "-z",
        "--",
        "translator",
        "rules",
        "setup.py",
        "pyproject.toml",
        "README.md",
        "LICENSE",
    ).split("\0"):
        if name and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    run(sys.executable, "-m", "build", "--outdir", tree / "dist", tree)
    (wheel,), (source,) = (tree / "dist").glob("*.whl"), (tree / "dist").glob("*.tar.gz")
    return wheel, source


@pytest.mark.slow
def test_both_hold_the_same_files(distributions):
    """Pages, schemas and tables too, and nothing of tests."""
    wheel, source = distributions
    tracked = {name for name in run("git", "-C", ROOT, "ls-files", "--", "translator", "rules").split()}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    installed = {name if name.startswith("rules/") else name.removeprefix("translator/") for name in tracked}
    assert packed == {f"gluonize/{name}" for name in installed}
    with tarfile.open(source) as file:
        assert tracked <= {name.partition("/")[2] for name in file.getnames()}


@pytest.mark.slow
@pytest.mark.compile
def test_they_run_where_nothing_else_is_installed(distributions, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["GLUONIZE_CACHE_DIR"] = str(tmp_path / "cache")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    binaries = tmp_path / "venv" / "bin"
    for name in ("kernel.py", "launches.json"):
        shutil.copy(SOFTMAX / name, tmp_path / name)
    for number, distribution in enumerate(distributions):
        again = ["--force-reinstall", "--no-deps"] if number else []
        run(binaries / "python", "-m", "pip", "install", "--quiet", *again, distribution, env=environment)

        def gluonize(*words):
            return run(binaries / "gluonize", *words, cwd=tmp_path, env=environment)

        where = run(
            binaries / "python", "-c", "import gluonize; print(gluonize.__file__)", cwd=tmp_path, env=environment
        )
        assert where.startswith(str(tmp_path / "venv"))
        assert "translate" in gluonize("--help")
        given = ["-t", "gfx950", "-l", "launches.json"]
        printed = gluonize("translate", "kernel.py", *given, "-k", "softmax_kernel", "--no-cache")
        assert "proved" in printed
        gluonize("report", "kernel.py", *given, "-o", "page.html", "--no-validate")
        assert "</html>" in (tmp_path / "page.html").read_text()
        gluonize("check")
