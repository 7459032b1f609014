"""Every command of docs/how-to/review.md runs, and what the page says about output files is true."""

import re
import shlex
import shutil
from pathlib import Path

from translator.cli.edge import run
from translator.report.reasons import REASONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/how-to/review.md").read_text()


def test_every_command_runs(tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "fixtures/matmul", tmp_path / "fixtures/matmul", ignore=shutil.ignore_patterns("golden"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    commands = [line.removeprefix("$ gluonize ") for block in blocks for line in block.splitlines()]
    assert len(commands) >= 8
    printed = {}
    for command in commands:
        words = shlex.split(command)
        if words[0] == "report":
            words.append("--no-validate")  # the reference machine has tests of its own
        assert run(words) == 0, command
        printed[command] = capsys.readouterr().out
    for name in ("matmul.diff", "matmul-diff.html", "comment.md", "matmul.html", "matmul.json"):
        assert (tmp_path / name).stat().st_size > 1000, name
    (side,) = [out for command, out in printed.items() if command.startswith("diff") and "--format" not in command]
    assert "staging ‹33" in side
    (line,) = [out for command, out in printed.items() if "--line 26" in command]
    assert "offs_k_b [64 int32]" in line


def test_the_page_explains_every_reason():
    explained = set(re.findall(r"^\| (\w+) \|", PAGE, re.MULTILINE))
    assert explained >= set(REASONS) - {"same", "spelling", "host"}
