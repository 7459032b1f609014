"""What an editor is offered to do, that it is done, and that what goes on meanwhile is shown once."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from pathlib import Path

import pytest
from editor_client import Editor, until

from gluonize.product.cli.edge import run
from gluonize.product.editor.shown.hints import in_short

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures/vector_add"
OUT = "kernel_gfx942.py"


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("actions")
    for file in ("kernel.py", "launches.json"):
        shutil.copy(FIXTURE / file, folder)
    with contextlib.chdir(folder):
        assert run(["-q", "translate", "kernel.py", "-t", "gfx942", "-l", "launches.json", "--no-compile"]) == 0
    return folder


@pytest.fixture
def project(translated, tmp_path):
    return shutil.copytree(translated, tmp_path / "project")


@pytest.fixture(scope="module")
def started(translated):
    editor = Editor(translated, "--no-validate", progress=True)
    yield editor
    editor.close()


@pytest.fixture
def editor(started):
    """One editor for all tests, each of which leaves the files as it found them."""
    until(lambda: started.told, lambda told: len(told) % 2 == 0)  # what a test before has started is over
    for of_others in (started.told, started.documents, started.messages):
        of_others.clear()
    yield started
    started.shut_all()


def line_of(text: str, words: str) -> int:
    return next(n for n, row in enumerate(text.splitlines(), 1) if words in row)


def codes(editor: Editor) -> list[str]:
    return [d.code for name in ("kernel.py", OUT) for d in editor.findings.get(editor.uri(name), [])]


def test_the_other_side_is_opened_at_the_line(editor):
    source, result = editor.open("kernel.py"), editor.open(OUT)
    here, there = line_of(source, "output = x + y"), line_of(result, "output = x + y")
    until(lambda: editor.implementation("kernel.py", here), bool)
    found = editor.actions("kernel.py", here)
    assert list(found) == [f"Translate for gfx942 now: {OUT}", f"Open {OUT}"]  # with a launch file nothing is guessed
    editor.do(found[f"Open {OUT}"])
    editor.do(editor.actions(OUT, there)["Open the source, kernel.py"])
    assert until(lambda: editor.documents, lambda shown: len(shown) == 2) == [(OUT, there), ("kernel.py", here)]


def test_a_translation_that_is_not_current_is_made_again(editor):
    source, out = editor.open("kernel.py"), editor.folder / OUT
    before = out.read_text()
    until(lambda: editor.hints("kernel.py"), bool)
    editor.save("kernel.py", source.replace(" = x + y\n", " = x * y\n"))
    until(lambda: codes(editor), lambda found: "generated-outdated" in found)
    until(lambda: editor.told, lambda told: len(told) % 2 == 0)
    action = editor.actions("kernel.py", 1)[f"Translate for gfx942 now: {OUT}"]
    editor.do(action)
    until(lambda: codes(editor), lambda found: not found)
    assert "output = x * y" in out.read_text() and len(editor.messages) == 1
    told = until(lambda: editor.told, lambda told: len(told) % 2 == 0)
    assert told == ["begin", "end"] * (len(told) // 2) and told  # never two at once
    out.write_text(before)
    editor.save("kernel.py", source)


def test_guesses_are_written_down_to_be_corrected_and_then_used(project):
    (project / OUT).unlink()
    (project / "launches.json").unlink()
    editor = Editor(project, "--no-validate", "-t", "gfx942")
    try:
        editor.open("kernel.py")
        title = "Correct what was guessed: write the launches to kernel_launches.json and open it"
        found = until(lambda: editor.actions("kernel.py", 1), lambda found: title in found)
        assert f"Open {OUT}" not in found
        editor.do(found[title])
        until(lambda: editor.documents, lambda shown: shown == [("kernel_launches.json", 1)])
        guessed = json.loads((project / "kernel_launches.json").read_text())
        assert guessed["launches"] and not (project / OUT).exists()
        editor.do(editor.actions("kernel.py", 1)[f"Translate for gfx942 now: {OUT}"])
        until(lambda: (project / OUT).exists(), bool)
        assert "launches=kernel_launches.json" in (project / OUT).read_text()
    finally:
        editor.close()


def test_a_mistake_in_the_text_is_told_within_a_second_of_saving(editor):
    source = editor.open("kernel.py")
    until(lambda: editor.hints("kernel.py"), bool)
    editor.save("kernel.py", source.replace(" = x + y\n", " = x + (y\n"))
    saved = time.monotonic()
    until(lambda: codes(editor), lambda found: found == ["source-syntax"])
    assert time.monotonic() - saved < 2.0  # generous: other tests run beside
    editor.save("kernel.py", source)
    until(lambda: codes(editor), lambda found: not found)


@pytest.mark.parametrize(
    "constructor, words",
    [
        ("gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])", "blocked 1x8"),
        ("gl.amd.AMDMFMALayout(version=4, instr_shape=[32, 32, 16], transposed=True)", "mfma 32x32x16"),
        ("gl.SliceLayout(1, mma)", "slice 1 of mma"),
        ("gl.DotOperandLayout(0, gl.amd.AMDMFMALayout(4, instr_shape=[16, 16, 32]), 8)", "operand 0 of mfma 16x16x32"),
        ("gl.DistributedLinearLayout([[1]], [], [], [], [2])", "distributed linear"),
        ("layout", "layout"),
    ],
)
def test_a_layout_in_short(constructor, words):
    assert in_short(constructor) == words
