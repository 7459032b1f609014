"""The hooks of `.pre-commit-hooks.yaml`, run by the real pre-commit on a scratch repository."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pre_commit")
yaml = pytest.importorskip("yaml")
if shutil.which("git") is None:
    pytest.skip("needs git", allow_module_level=True)

MANIFEST = Path(__file__).resolve().parents[2] / ".pre-commit-hooks.yaml"
FIXTURE = MANIFEST.parent / "fixtures" / "vector_add"
OUT = "kernels/add_gfx942.py"


def test_manifest_is_valid():
    command = [sys.executable, "-m", "pre_commit", "validate-manifest", str(MANIFEST)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


class Repository:
    """A repository with the vector addition, its launches, a configuration, and one of our hooks installed."""

    def __init__(self, folder: Path, hook: str):
        self.folder = folder
        (folder / "bin").mkdir()
        executable = folder / "bin" / "gluonize"
        executable.write_text(f'#!/bin/sh\nexec {sys.executable} -m gluonize.product.cli "$@"\n')
        executable.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PRE_COMMIT_HOME": str(folder / "pre-commit-home"),
            "GLUONIZE_CACHE_DIR": str(folder / "cache"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.root = folder / "repository"
        (self.root / "kernels").mkdir(parents=True)
        shutil.copy(FIXTURE / "kernel.py", self.root / "kernels/add.py")
        shutil.copy(FIXTURE / "launches.json", self.root / "kernels/launches.json")
        (self.root / "pyproject.toml").write_text(
            '[tool.gluonize]\nsources = ["kernels/*.py"]\ntargets = ["gfx942"]\nlaunches = "{folder}/launches.json"\n'
        )
        # The hook as the manifest has it, but with the gluonize that is being tested instead of one from a repository.
        (chosen,) = [entry for entry in yaml.safe_load(MANIFEST.read_text()) if entry["id"] == hook]
        config = {"repos": [{"repo": "local", "hooks": [{**chosen, "language": "system"}]}]}
        (self.root / ".pre-commit-config.yaml").write_text(json.dumps(config))
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "n")
        self.git("config", "user.email", "e@example.org")
        self.run(sys.executable, "-m", "pre_commit", "install", check=True)

    def run(self, *command: str, check: bool = False) -> subprocess.CompletedProcess:
        return subprocess.run(
            command, cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=300, check=check
        )

    def git(self, *arguments: str) -> str:
        return self.run("git", *arguments, check=True).stdout

    def commit(self, message: str) -> subprocess.CompletedProcess:
        self.git("add", ".")
        return self.run("git", "commit", "-q", "-m", message)

    def replace(self, path: str, old: str, new: str) -> None:
        file = self.root / path
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))


@pytest.mark.slow
@pytest.mark.compile
def test_check_stops_a_commit_with_a_file_that_is_not_current(tmp_path):
    repository = Repository(tmp_path, "gluonize-check")
    refused = repository.commit("without the translation")
    assert refused.returncode != 0 and f"{OUT}: missing" in refused.stdout + refused.stderr
    repository.run("gluonize", "translate", check=True)
    assert repository.commit("with it").returncode == 0
    assert OUT in repository.git("ls-files")
    # The source changes, the translation does not.
    repository.replace("kernels/add.py", "output = x + y", "output = x + y + 1")
    refused = repository.commit("source only")
    printed = refused.stdout + refused.stderr
    assert refused.returncode != 0 and f"{OUT}: outdated" in printed and "+    output = x + y + 1" in printed
    # A commit that has nothing to do with kernels is not held up, nor is one with everything up to date.
    repository.run("gluonize", "update", check=True)
    done = repository.commit("both")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.compile
def test_translate_writes_what_changed_and_has_it_added(tmp_path):
    repository = Repository(tmp_path, "gluonize-translate")
    first = repository.commit("source")
    assert (repository.root / OUT).exists(), first.stdout + first.stderr
    assert repository.commit("source and translation").returncode == 0
    repository.replace("kernels/add.py", "output = x + y", "output = x + y + 1")
    refused = repository.commit("changed")  # pre-commit stops when a hook changed files, so that they are looked at
    assert refused.returncode != 0 and "files were modified by this hook" in refused.stdout + refused.stderr
    assert "output = x + y + 1" in (repository.root / OUT).read_text()
    assert repository.commit("changed").returncode == 0
    # Hand edits are not overwritten: the hook refuses, and says what to do.
    repository.replace(OUT, "# The last program has a tail to leave alone.", "# tuned")
    repository.replace("kernels/add.py", "output = x + y + 1", "output = x + y + 2")
    refused = repository.commit("edited")
    assert refused.returncode != 0 and "gluonize update" in refused.stdout + refused.stderr
    assert "# tuned" in (repository.root / OUT).read_text()
