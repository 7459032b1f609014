"""The steps of `action.yml`, run one after another as a runner of GitHub does, on a scratch repository; `pip` and `gh` only record."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
OUT = "kernels/add_gfx942.py"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


@dataclass
class Runner:
    """What the steps see and leave. outcomes: step id or name -> success, failure or skipped."""

    folder: Path
    known: dict[str, str]  # values of contexts, by name
    outcomes: dict[str, str] = field(default_factory=dict)
    log: dict[str, str] = field(default_factory=dict)

    def value(self, expression: str) -> str:
        """An expression of the action: names, `||`, and the outputs of steps."""
        for name in expression.split("||"):
            if found := self.known[name.strip()]:
                return found
        return ""

    def wanted(self, step: dict) -> bool:
        """Whether a step runs: without a condition unless one failed; `&&` of the terms that the action uses."""
        if "if" not in step:
            return "failure" not in self.outcomes.values()
        (condition,) = EXPRESSION.fullmatch(step["if"]).groups()
        for term in condition.split("&&"):
            term = term.strip()
            if term == "!cancelled()":
                continue
            name, compare, word = re.fullmatch(r"(\S+) (==|!=) '(.*)'", term).groups()
            found = self.outcomes.get(name.split(".")[1]) if name.startswith("steps.") else self.known[name]
            if (found == word) != (compare == "=="):
                return False
        return True

    def run(self) -> None:
        for step in ACTION["runs"]["steps"]:
            name = step.get("id", step["name"])
            if not self.wanted(step):
                self.outcomes[name] = "skipped"
            elif "uses" in step:
                self.outcomes[name] = "success"
            else:
                self.outcomes[name] = "success" if self._script(name, step) else "failure"

    def _script(self, name: str, step: dict) -> bool:
        assert not EXPRESSION.search(step["run"]), "an expression in a script is a way in for whoever names a branch"
        environment = {
            key: EXPRESSION.sub(lambda m: self.value(m[1]), text) for key, text in step.get("env", {}).items()
        }
        script = self.folder / "step.sh"
        script.write_text(step["run"])
        outputs = self.folder / "outputs.txt"
        where = EXPRESSION.sub(lambda m: self.value(m[1]), step.get("working-directory", "."))
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.folder / "repository" / where,
            env={**os.environ, **environment, **self.files(), "GITHUB_OUTPUT": str(outputs)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.log[name] = done.stdout + done.stderr
        for line in outputs.read_text().splitlines() if outputs.exists() else ():
            key, _, text = line.partition("=")
            self.known[f"steps.{name}.outputs.{key}"] = text
        return done.returncode == 0

    def files(self) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.folder / "temp"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GLUONIZE_CACHE_DIR": str(self.folder / "cache"),
            "RECORD": str(self.folder / "recorded.txt"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }


@pytest.fixture(scope="module")
def pull_request(tmp_path_factory):
    """A function: (name, changes on a branch) -> the runner after all steps. The base has a kernel and its good translation."""
    base = tmp_path_factory.mktemp("action")
    for folder in ("bin", "temp", "repository/kernels"):
        (base / folder).mkdir(parents=True)
    record = 'for word in "$@"; do printf "%s " "$word"; done >> "$RECORD"; echo >> "$RECORD"\n'
    scripts = {
        "gluonize": f'exec {sys.executable} -m gluonize.product.cli "$@"\n',
        "python": f'printf "python " >> "$RECORD"\n{record}',
        "gh": f'printf "gh " >> "$RECORD"\n{record}',
    }
    for name, text in scripts.items():
        (base / "bin" / name).write_text(f"#!/bin/sh\n{text}")
        (base / "bin" / name).chmod(0o755)
    kernels = base / "repository" / "kernels"
    shutil.copy(ROOT / "fixtures" / "vector_add" / "kernel.py", kernels / "add.py")
    shutil.copy(ROOT / "fixtures" / "vector_add" / "launches.json", kernels / "launches.json")
    (base / "repository" / "pyproject.toml").write_text(
        '[tool.gluonize]\nsources = ["kernels/*.py"]\ntargets = ["gfx942"]\nlaunches = "{folder}/launches.json"\nedits = "allow"\n'
    )
    git = ["git", "-C", str(base / "repository"), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    environment = {**os.environ, **Runner(base, {}).files()}
    for command in (
        [*git, "init", "-q", "-b", "main"],
        ["gluonize", "-q", "translate"],
        [*git, "add", "-A"],
        [*git, "commit", "-qm", "base"],
    ):
        subprocess.run(command, cwd=base / "repository", env=environment, check=True)

    def opened(name: str, change) -> Runner:
        folder = base.with_name(f"{base.name}-{name}")
        shutil.copytree(base, folder)
        repository = folder / "repository"
        head = subprocess.run([*git[:1], "-C", str(repository), "rev-parse", "HEAD"], capture_output=True, text=True)
        change(repository)
        commit = [*git[:1], "-C", str(repository), *git[3:], "commit", "-qam", name]
        subprocess.run(commit, env=environment, check=True)
        known = {f"inputs.{key}": field["default"] for key, field in ACTION["inputs"].items()}
        known |= {
            "github.action_path": "/the/action",
            "github.event_name": "pull_request",
            "github.event.pull_request.base.sha": head.stdout.strip(),
            "github.event.pull_request.number": "7",
            "github.token": "a-token",
            "github.repository": "owner/name",
            "github.server_url": "https://github.example.org",
            "github.action_repository": "owner/gluonize",
            "github.action_ref": "v1",
        }
        runner = Runner(folder, known)
        runner.run()
        return runner

    return opened


def recorded(runner: Runner) -> str:
    return (runner.folder / "recorded.txt").read_text()


@pytest.mark.compile
def test_a_wrong_kernel_fails_with_an_annotation_on_its_line(pull_request):
    def change(repository: Path):
        text = (repository / OUT).read_text()
        assert "    output = x + y\n" in text
        (repository / OUT).write_text(text.replace("    output = x + y\n", "    output = x - y\n"))

    runner = pull_request("wrong", change)
    assert runner.outcomes == {
        "Set up Python": "success",
        "Install": "success",
        "check": "success",  # hand edits are allowed there
        "validate": "failure",
        "Comment": "success",
        "Upload to code scanning": "skipped",
    }
    lines = (runner.folder / "repository" / OUT).read_text().splitlines()
    line = max(n for n, text in enumerate(lines, 1) if "buffer_store(" in text)
    told = [text for text in runner.log["validate"].splitlines() if text.startswith("::")]
    assert told and all(
        text.startswith(f"::error file={OUT},line={line},title=gluonize%3A mismatch::") for text in told
    )
    assert "**mismatch**" in (runner.folder / "summary.md").read_text()
    assert "ruleId" in Path(runner.known["steps.validate.outputs.sarif"]).read_text()
    first, second = recorded(runner).splitlines()
    assert first.split() == "python -m pip install --disable-pip-version-check --quiet /the/action".split()
    assert second.startswith("gh pr comment 7 --edit-last") and "gluonize-comment.md" in second


@pytest.mark.slow
@pytest.mark.compile
def test_a_good_change_passes_and_its_parity_is_told(pull_request):
    def change(repository: Path):
        text = (repository / OUT).read_text()
        (repository / OUT).write_text(text.replace("    output = x + y\n", "    output = y + x\n"))

    runner = pull_request("good", change)
    assert set(runner.outcomes.values()) == {"success", "skipped"}, runner.log
    assert "::error" not in runner.log["check"] + runner.log["validate"]
    assert "| file | launch | instructions |" in (runner.folder / "temp" / "gluonize-comment.md").read_text()


@pytest.mark.slow
def test_a_source_that_left_its_translation_behind_fails_the_check(pull_request):
    def change(repository: Path):
        text = (repository / "kernels/add.py").read_text()
        (repository / "kernels/add.py").write_text(text.replace("    output = x + y\n", "    output = x * y\n"))

    runner = pull_request("outdated", change)
    assert runner.outcomes["check"] == "failure" and "title=gluonize%3A generated-outdated" in runner.log["check"]
    # It is told once, although the next step looks again.
    assert "generated-outdated" not in runner.log["validate"]
