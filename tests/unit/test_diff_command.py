"""`gluonize diff` and `gluonize report` as commands."""

import json
import subprocess
import sys

import pytest

from gluonize.product.cli.edge import run
from gluonize.product.report.page.on_demand import unpacked

from test_explain import LAUNCH, SOURCE

RESULT = '''"""By hand."""
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
    # Four elements per lane.
    row: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=row)
    x = gl.load(x_ptr + offsets, mask=offsets < n)
    gl.store(y_ptr + offsets, x * 3, mask=offsets < n)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "scale.py").write_text(SOURCE)
    (tmp_path / "l.json").write_text(json.dumps([LAUNCH]))
    (tmp_path / "by_hand.py").write_text(RESULT)
    return tmp_path


def test_side_by_side(folder, capsys):
    assert run(["diff", "scale.py", "by_hand.py"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    (line,) = [x for x in out.splitlines() if "gl.arange" in x]
    assert line.split()[0] == "7" and "tl.arange" in line and " layout " in line and " 10 " in line
    assert "layout 3" in out.splitlines()[0]


def test_color_when_asked_for(folder, capsys):
    assert run(["--color", "always", "diff", "scale.py", "by_hand.py"]) == 0
    assert "\x1b[36m" in capsys.readouterr().out


def test_unified_to_a_file(folder, capsys):
    assert run(["diff", "scale.py", "by_hand.py", "--format", "unified", "-o", "p.diff"]) == 0
    text = (folder / "p.diff").read_text()
    assert text.startswith("--- scale.py\n+++ by_hand.py\n@@ -1,")
    assert "\n+    row: gl.constexpr" in text and capsys.readouterr().out == ""


def test_github_with_parity(folder, capsys):
    assert run(["diff", "scale.py", "by_hand.py", "-t", "gfx942", "-l", "l.json", "--format", "github"]) == 0
    out = capsys.readouterr().out
    assert "### `scale.py` → `by_hand.py` (gfx942)" in out
    (row,) = [line for line in out.splitlines() if line.startswith("| scale |")]
    assert " / " in row


def test_finds_the_translation_beside_the_source(folder, capsys):
    (folder / "scale_gfx942.py").write_text(RESULT.replace("By hand", "Beside"))
    assert run(["diff", "scale.py", "-t", "gfx942", "--format", "unified"]) == 0
    assert '+"""Beside."""' in capsys.readouterr().out


def test_translates_in_memory(folder, capsys):
    assert run(["diff", "scale.py", "-t", "gfx942", "-l", "l.json", "--format", "unified"]) == 0
    assert "buffer_load" in capsys.readouterr().out
    assert sorted(p.name for p in folder.iterdir() if p.is_file()) == ["by_hand.py", "l.json", "scale.py"]


def test_html_is_one_page_without_network(folder, capsys):
    assert run(["diff", "scale.py", "by_hand.py", "--format", "html"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("<!DOCTYPE html>") and "http" not in page


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["diff", "scale.py"], "give OUT or -t TARGET"),
        (["diff", "scale.py", "by_hand.py", "--format", "pdf"], "no such format"),
        (["diff", "scale.py", "missing.py"], "no such file"),
        (["diff", "scale.py", "-t", "all", "-l", "l.json"], "give one of them"),
        (["report", "scale.py", "by_hand.py", "-t", "gfx942"], "give -l FILE"),
        (["report", "scale.py", "-t", "gfx942", "-l", "l.json", "-o", "no/folder/r.html"], "there is no folder"),
    ],
)
def test_bad_command_lines_are_refused(folder, capsys, arguments, said):
    assert run(arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("launches", [[], ["-l", "l.json"]], ids=["guessed", "given"])
def test_a_report_takes_the_launches_that_a_translation_was_made_for(launches, folder, capsys):
    options = ["--no-validate", "--no-parity", "--no-compile"]
    assert run(["translate", "scale.py", "-t", "gfx942", *launches, "-o", "scale_gfx942.py", *options]) == 0
    assert run(["report", "scale.py", "-t", "gfx942", "-o", "r.html", "--no-validate"]) == 0
    assert "occupancy" in (folder / "r.html").read_text()


def test_report_shows_everything(folder, capsys):
    assert (
        run(["report", "scale.py", "by_hand.py", "-t", "gfx942", "-l", "l.json", "-o", "r.html", "--no-validate"]) == 0
    )
    page = (folder / "r.html").read_text()
    assert capsys.readouterr().out == "r.html\n"
    for said in (
        'id="layout-row"',
        "gl.BlockedLayout([4], [64], [4], [0])",
        "not validated",
        "occupancy",
        "gfx942: CDNA3",
    ):
        assert said in page
    assert (
        "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page and "<script src" not in page
    )


def test_report_is_deterministic(folder):
    command = ["report", "scale.py", "by_hand.py", "-t", "gfx942", "-l", "l.json", "--no-validate", "-q", "-o"]
    assert run([*command, "a.html"]) == run([*command, "b.html"]) == 0
    assert (folder / "a.html").read_text() == (folder / "b.html").read_text()


def test_report_of_what_does_not_compile_says_so(folder, capsys):
    (folder / "by_hand.py").write_text(RESULT.replace("[4], [64], [4], [0]", "[4], [64], [2], [0]"))
    assert (
        run(["report", "scale.py", "by_hand.py", "-t", "gfx942", "-l", "l.json", "-o", "r.html", "--no-validate"]) == 1
    )
    assert "does not compile" in (folder / "r.html").read_text()


def test_report_of_a_wrong_translation_says_so(folder, capsys):
    values = {
        "x_ptr": {"tensor": {"dtype": "float32", "shape": [2048], "stride": [1], "storage": 2048, "offset": 0}},
        "y_ptr": {"tensor": {"dtype": "float32", "shape": [2048], "stride": [1], "storage": 2048, "offset": 0}},
        "n": 2048,
        "BLOCK": 1024,
    }
    (folder / "l.json").write_text(json.dumps([{**LAUNCH, "grid": [2], "values": values}]))
    command = ["report", "scale.py", "by_hand.py", "-t", "gfx942", "-l", "l.json", "-q", "-o", "r.html"]
    assert run(command) == 0
    assert "validated bit for bit" in (folder / "r.html").read_text()
    (folder / "by_hand.py").write_text(RESULT.replace("x * 3", "x * 4"))
    assert run(command) == 1
    assert "computes something else than the source" in (folder / "r.html").read_text()


def test_report_compares_with_upstream_where_it_accepts_the_kernel(folder):
    command = [
        "report",
        "scale.py",
        "by_hand.py",
        "-t",
        "gfx942",
        "-l",
        "l.json",
        "--no-validate",
        "-q",
        "--upstream",
        "-o",
        "r.html",
    ]
    assert run(command) == 0
    assert "<th>upstream</th>" in unpacked((folder / "r.html").read_text())
    (folder / "scale.py").write_text(SOURCE + "\nraise ImportError('not to be imported')\n")
    assert run(command) == 0
    page = unpacked((folder / "r.html").read_text())
    assert "<th>upstream</th>" not in page and "Upstream&#x27;s translator" not in page
    assert "Upstream's translator: ImportError: not to be imported" in page


def test_help_stays_fast():
    """The reviewing commands import nothing when the command line is only read."""
    script = "import sys, gluonize.product.cli.app; print([m for m in sys.modules if m.startswith('gluonize.product.report') or m == 'triton'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


SECOND = """

@{jit}
def other_kernel(x_ptr, n):
    # Elsewhere.
    {load}(x_ptr + n)


def host():
    return 1
"""


@pytest.mark.parametrize("form", ["side", "unified", "html", "github"])
def test_only_the_kernel_that_is_asked_for(folder, capsys, form):
    (folder / "scale.py").write_text(SOURCE + SECOND.format(jit="triton.jit", load="tl.load"))
    (folder / "by_hand.py").write_text(RESULT + SECOND.format(jit="gluon.jit", load="gl.load"))
    words = ["diff", "scale.py", "by_hand.py", "--format", form, "--all"]
    assert run([*words, "-o", "all.txt"]) == 0 and run([*words, "-k", "other_kernel", "-o", "one.txt"]) == 0
    everything, one = (folder / "all.txt").read_text(), (folder / "one.txt").read_text()
    if form != "github":  # which shows no code
        assert "x_ptr" in one and "BLOCK" in everything and "BLOCK" not in one and "return 1" not in one
    else:
        assert "layout" in everything and "layout" not in one
    assert run([*words, "-k", "nope"]) == 2
    assert "no translation of nope" in (printed := capsys.readouterr().err) and "scale_kernel, other_kernel" in printed
    assert run([*words, "-k", "host"]) == 2
