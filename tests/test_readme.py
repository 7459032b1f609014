"""What the README and the tutorial show is true: code, links, commands and their options."""

from __future__ import annotations

import functools
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
# `validate` is checked as soon as the command line has it.
COMMANDS = ["translate", "compile", "parity", "targets", "diff", "report", "explain", "bundle", "run-bundle"]
COMMANDS += ["validate"] if importlib.util.find_spec("gluonize.product.cli.running.validate") else []
ANYWHERE = {"-q", "--quiet", "-v", "--verbose", "--color"}
COMMAND = re.compile(rf"gluonize ((?:{'|'.join(COMMANDS)})\b[^`|\n]*)")
SHOWN = sorted({c for page in (*PAGES, *ROOT.glob("docs/**/*.sh")) for c in COMMAND.findall(page.read_text())})


@functools.lru_cache(maxsize=None)
def help_text(command: str) -> str:
    """What `gluonize COMMAND --help` prints; fails for an unknown command."""
    run = [sys.executable, "-m", "gluonize.product.cli", command, "--help"]
    return subprocess.run(run, capture_output=True, text=True, check=True, timeout=60).stdout


def test_example_is_the_fixture():
    before, after, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert before in (ROOT / "fixtures/vector_add/kernel.py").read_text()
    assert after in (ROOT / "fixtures/vector_add/golden/gfx950.py").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)  # kernel[grid](x) is no link
    text = re.sub(r"`[^`\n]*`", "", text)
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("shown", SHOWN)
def test_commands_have_the_options_shown(shown: str):
    command, *words = shown.split()
    options = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)}
    known = set(re.findall(r"(?<!\w)--?[a-z][a-z-]*", help_text(command)))
    assert options - known - ANYWHERE == set()


def test_the_picture_is_what_is_drawn():
    """`python docs/generate_before_after.py` draws it again."""
    spec = importlib.util.spec_from_file_location("before_after", ROOT / "docs" / "generate_before_after.py")
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    assert drawing.PICTURE.read_text() == drawing.picture()
