"""What the checks find is shown where it is, when a file is saved, and goes when it is mended; nothing of the user's code is run."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest
from editor_client import BEING_COMPUTED, Editor, until
from lsprotocol import types

from gluonize.product.cli.edge import run

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures/vector_add"
OUT = "kernel_gfx942.py"
BOOM = "\nopen('ran', 'w').close()\nraise SystemExit('this file was run')\n"


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("findings")
    for file in ("kernel.py", "launches.json"):
        shutil.copy(FIXTURE / file, folder)
    with (folder / "kernel.py").open("a") as file:
        file.write(BOOM)
    with contextlib.chdir(folder):
        assert run(["-q", "translate", "kernel.py", "-t", "gfx942", "-l", "launches.json", "--no-compile"]) == 0
    yield folder
    assert not (folder / "ran").exists()


@pytest.fixture
def project(translated, tmp_path):
    """A project of one test alone."""
    yield shutil.copytree(translated, tmp_path / "project")
    assert not (tmp_path / "project" / "ran").exists()


@pytest.fixture(scope="module")
def started(translated):
    editor = Editor(translated)
    yield editor
    editor.close()


@pytest.fixture
def editor(started):
    """One editor for all tests, each of which leaves the files as it found them."""
    yield started
    started.shut_all()


def codes(editor: Editor, name: str) -> list[tuple[str, int]]:
    """(code, line from 1)."""
    return [(d.code, d.range.start.line + 1) for d in editor.findings.get(editor.uri(name), [])]


def test_a_saved_mistake_is_shown_at_its_line_and_goes_when_mended(editor):
    text = editor.open(OUT)
    store = next(n for n, row in enumerate(text.splitlines(), 1) if "buffer_store(" in row)
    editor.save(OUT, text.replace(" = x + y\n", " = x - y\n"))
    found = until(lambda: codes(editor, OUT), lambda found: len(found) == 3)
    assert found == [("generated-edited", store - 1), *[("mismatch", store)] * 2]
    edited, wrong, _ = editor.findings[editor.uri(OUT)]
    assert edited.severity == types.DiagnosticSeverity.Information and "gluonize update" in edited.message
    assert wrong.severity == types.DiagnosticSeverity.Error and "computes something else" in wrong.message
    editor.save(OUT, text)
    until(lambda: codes(editor, OUT), lambda found: not found)


def test_a_source_that_is_saved_puts_findings_on_what_is_made_from_it(editor):
    text = editor.open("kernel.py")
    until(lambda: editor.hints("kernel.py"), bool)
    editor.save("kernel.py", text.replace(" = x + y\n", " = x * y\n"))
    number = next(n for n, row in enumerate(text.splitlines(), 1) if " = x + y" in row and row[0] == " ")
    until(lambda: codes(editor, "kernel.py"), lambda found: found == [("generated-outdated", number)])
    editor.save("kernel.py", text.replace(" = x + y\n", " = tl.no_such_thing(x, y)\n"))
    (found,) = until(
        lambda: codes(editor, "kernel.py"), lambda found: "generated-outdated" not in dict(found) and found
    )
    assert found[1] == number
    until(lambda: codes(editor, OUT), lambda found: not found)
    half = text.replace(" = x + y\n", " = x + (y\n")
    editor.save("kernel.py", half)
    until(lambda: codes(editor, "kernel.py"), lambda found: found and found[0][0] == "source-syntax")
    editor.save("kernel.py", text)
    until(lambda: codes(editor, "kernel.py") + codes(editor, OUT), lambda found: not found)


def test_a_refusal_goes_when_the_module_that_was_missing_is_there(editor):
    text = editor.open("kernel.py")
    until(lambda: editor.hints("kernel.py"), bool)
    used = text.replace(" = x + y\n", " = added(x, y)\n").replace(
        "import triton\n", "import triton\nfrom sums import added\n", 1
    )
    editor.save("kernel.py", used)
    until(lambda: codes(editor, "kernel.py"), bool)
    editor.create("sums.py", "import triton\n\n\n@triton.jit\ndef added(x, y):\n    return x + y\n")
    until(lambda: codes(editor, "kernel.py"), lambda found: all(code == "generated-outdated" for code, _ in found))
    editor.save("kernel.py", text)
    until(lambda: codes(editor, "kernel.py"), lambda found: not found)


@pytest.mark.slow
def test_what_was_known_stays_beside_a_refusal(editor):
    text = editor.open("kernel.py")
    hints = until(lambda: editor.hints("kernel.py"), bool)
    number = next(n for n, row in enumerate(text.splitlines(), 1) if " = x + y" in row and row[0] == " ")
    editor.save("kernel.py", text.replace(" = x + y\n", " = tl.no_such_thing(x, y)\n"))
    until(lambda: editor.hover("kernel.py", number - 1, 5), lambda said: "As it was; now: " in said)
    kept = {at: label for at, label in hints.items() if at[0] != number}
    assert editor.hints("kernel.py") == kept
    editor.save("kernel.py", text)
    until(lambda: codes(editor, "kernel.py"), lambda found: not found)


def test_a_file_that_was_made_by_running_host_code_is_not_explained(project):
    path = project / OUT
    path.write_text(path.read_text().replace("target=gfx942", "target=gfx942 'options=--import'"))
    editor = Editor(project)
    try:
        text = editor.open(OUT)
        said = editor.hover_over(OUT, text, "output", "    output = x + y")
        assert "nothing is shown of this file" in said
        until(lambda: editor.lenses(OUT), lambda found: all(BEING_COMPUTED not in x for _, x in found))
        assert [code for code, _ in until(lambda: codes(editor, OUT), bool)] == ["editor-import"]
    finally:
        editor.close()


@pytest.mark.slow
def test_a_source_without_translations_shows_the_layouts_of_the_asked_target(project):
    (project / OUT).unlink()
    for options, arguments in (({"target": "gfx942"}, ()), (None, ("-t", "gfx942"))):
        editor = Editor(project, *arguments, options=options)
        text = editor.open("kernel.py")
        found = until(lambda: editor.hints("kernel.py"), bool)
        number = next(n for n, row in enumerate(text.splitlines(), 1) if " = x + y" in row and row[0] == " ")
        assert found[(number, 10)] == ": bf16[1024] layout (blocked 4)"
        assert codes(editor, "kernel.py") == [] and editor.lenses("kernel.py") == []
        editor.close()
