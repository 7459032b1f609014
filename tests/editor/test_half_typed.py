"""Every prefix that someone may have typed: the server answers each request, quickly, and goes on as before."""

from __future__ import annotations

import pytest
from slow_rows import slow_but
from editor_client import BEING_COMPUTED, QUICK_S, Editor, until

STEP = 97  # characters
ODD = [
    "",
    "\x00",
    "x = (" * 500,
    "def f(:\n",
    "\ufeff# b\n",
    "a: gl.constexpr = gl.SliceLayout(0, a)\n",
    "'''",
    "😀" * 50,
]


LONG = pytest.param("flash_attention", marks=pytest.mark.slow)  # some 290 prefixes


@pytest.fixture(scope="module", params=["matmul", LONG])
def editor(request, translated):
    editor = Editor(translated(request.param)[0], "--no-validate")
    yield editor
    editor.close()


def ask_everything(editor: Editor, name: str, line: int, column: int) -> None:
    """Raises what the server answers with an error."""
    editor.hover(name, line, column)
    editor.definition(name, line)
    editor.implementation(name, line)
    editor.hints(name)
    editor.lenses(name)


@pytest.mark.parametrize("name", slow_but(["kernel_gfx950.py", "kernel.py"]))
def test_half_of_a_file_is_no_end(editor, name):
    text = editor.open(name)
    kernel = next(n for n, row in enumerate(text.splitlines(), 1) if row.startswith("    ") and ".arange(" in row)
    before = until(lambda: editor.hover(name, kernel, 4), lambda said: BEING_COMPUTED not in said)
    del editor.seconds[:]
    for end in range(0, len(text), STEP):
        editor.change(name, text[:end])
        ask_everything(editor, name, text.count("\n", 0, end) + 1, end - text.rfind("\n", 0, end) - 1)
    assert max(editor.seconds) < QUICK_S
    for odd in ODD:
        editor.change(name, odd)
        ask_everything(editor, name, 1, 3)
        ask_everything(editor, name, 100000, 100000)
        editor.change(name, text + odd)
        ask_everything(editor, name, len(text.splitlines()), 3)
    editor.change(name, text)
    assert until(lambda: editor.hover(name, kernel, 4), lambda said: BEING_COMPUTED not in said) == before
    editor.shut(name)


def test_what_is_known_of_a_line_moves_with_it(editor):
    """Also while the text is no Python; hints of a source stay at their variables."""
    result, source = editor.open("kernel_gfx950.py"), editor.open("kernel.py")
    row = next(row for row in source.splitlines() if row.startswith("    ") and "tl.arange(" in row)
    known = until(lambda: editor.hints("kernel.py"), bool)
    editor.change("kernel.py", f"def (\n\n{source}")
    assert editor.hints("kernel.py") == {(line + 2, column): label for (line, column), label in known.items()}
    numbers = [n for n, other in enumerate(result.splitlines(), 1) if other.split(" = ")[0] == row.split(" = ")[0]]
    said = until(lambda: editor.hover("kernel_gfx950.py", numbers[0], 5), lambda said: BEING_COMPUTED not in said)
    editor.change("kernel_gfx950.py", f"if (\n{result}")
    assert editor.hover("kernel_gfx950.py", numbers[0] + 1, 5) == said and "cost: " in said
    editor.change("kernel.py", source)
    here = source.splitlines().index(row) + 1
    assert editor.definition("kernel_gfx950.py", numbers[0] + 1) == [("kernel.py", here)]
    assert ("kernel_gfx950.py", numbers[0] + 1) in editor.implementation("kernel.py", here)


def test_files_that_are_none_of_its_business_are_left_alone(editor):
    for name, text in (("other.py", "x = 1\n"), ("launches.json", "{}"), ("gone_gfx950.py", "import triton\n")):
        editor.open(name, text)
        ask_everything(editor, name, 1, 0)
        assert until(lambda: editor.hover(name, 1, 0), lambda said: BEING_COMPUTED not in said) == ""
        editor.shut(name)
