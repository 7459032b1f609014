"""Every command in the documentation is executed, page by page, and prints what the page shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from console_blocks import Command, File, Skipped, missing_output, steps
from gluonize.judge.device.gpu_driver import APIS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("**/*.md"))
RUN = [page for page in PAGES if any(isinstance(step, (Command, File)) for step in steps(page))]


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    """Results of all pages: what several of them ask for is made once, and prints what it would print anew."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_commands_do_what_the_page_says(page, cache, tmp_path):
    """In a folder with a copy of the fixtures; each page starts anew, but for the cache."""
    folder = tmp_path / "work"
    shutil.copytree(ROOT / "fixtures", folder / "fixtures", ignore=shutil.ignore_patterns("golden", "__pycache__"))
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name, module in (("gluonize", "gluonize.product.cli"), ("pre-commit", "pre_commit"), ("python", "")):
        script = binaries / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {f"-m {module}" if module else ""} "$@"\n')
        script.chmod(0o755)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "GLUONIZE_CACHE_DIR": str(cache),
        "PRE_COMMIT_HOME": str(tmp_path / "pre-commit"),
        "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        # Pages show what is printed on a machine without a GPU.
        **{api[1]: str(tmp_path / "no-driver.so") for api in APIS.values()},
    }
    identity = "[user]\n\tname = n\n\temail = e@example.org\n[init]\n\tdefaultBranch = main\n"
    (tmp_path / "gitconfig").write_text(identity)
    if any("pre-commit" in step.text for step in steps(page) if isinstance(step, Command)):
        pytest.importorskip("pre_commit")
    for step in steps(page):
        place = f"{name_of(page)}:{step.line}"
        if isinstance(step, File):
            path = folder / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text() if step.edits else step.text
            for old, new in step.edits:
                assert text.count(old) == 1, f"{place}: {step.name} has this {text.count(old)} times:\n{old}"
                text = text.replace(old, new)
            path.write_text(text)
        elif isinstance(step, Command):
            done = subprocess.run(
                step.text, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
            )
            printed = done.stdout + done.stderr
            assert done.returncode == step.status, f"{place}: status {done.returncode}: {step.text}\n{printed}"
            lacking = missing_output(step.output, printed)
            assert lacking is None, f"{place}: {step.text}\nlacks the line {lacking!r}; it printed\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_are_in_blocks_that_are_executed(page):
    """A command in an indented block, or in a fence of another language, would never be tried."""
    text = page.read_text()
    outside = re.sub(r"^```+\w*[^\n]*\n.*?^```+\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^ {4,}(?:\$ )?gluonize .*$", outside, re.MULTILINE) == []
    others = re.findall(r"^```(?!console)(?:sh|bash|shell|text)?\n(?:\$ )?gluonize", text, re.MULTILINE)
    assert others == [], "commands belong into ```console blocks"


def test_blocks_that_are_not_run_say_why():
    skipped = [(name_of(page), step) for page in PAGES for step in steps(page) if isinstance(step, Skipped)]
    assert [where for where, step in skipped if len(step.reason) < 10] == []


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text()
    listed = set(re.findall(r"[\w/-]+\.md", text.partition("\nnav:")[2]))
    assert listed == {name_of(page) for page in PAGES}


def test_generated_pages_are_fresh():
    sys.path.insert(0, str(DOCS))
    try:
        import generate_reference
    finally:
        sys.path.remove(str(DOCS))
    stale = [
        name for name, page in generate_reference.PAGES.items() if (DOCS / "reference" / name).read_text() != page()
    ]
    assert stale == [], "run: python docs/generate_reference.py"


def test_every_command_has_a_place_in_the_reference():
    command = [sys.executable, "-m", "gluonize.product.cli", "--help"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    names = re.findall(r"^│ ([a-z][a-z-]+)  ", printed, re.MULTILINE)
    reference = (DOCS / "reference" / "cli.md").read_text()
    assert len(names) > 5 and [name for name in names if not re.search(rf"`{name}\b", reference)] == []


def test_the_site_builds_without_warnings(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "tutorial" / "matmul" / "index.html").exists()


class TestMissingOutput:
    PRINTED = "a\nb 1.23 s\nc\nd\n"

    def test_true_output(self):
        for expected in (("a", "b 4.56 s", "c"), ("...", "c"), ("a", "...", "d"), ("c", "..."), ()):
            assert missing_output(expected, self.PRINTED) is None, expected

    def test_false_output(self):
        for expected in (("x",), ("a", "c"), ("c", "...", "a"), ("b 2 s",)):
            assert missing_output(expected, self.PRINTED) is not None, expected
