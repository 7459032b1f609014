"""Names as the static reading takes them, beside what Python has once it has imported the module in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from names_of_modules import EXACT, OPEN

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gluonize.product.cli.edge import run  # noqa: E402
from bench.second_reader import AGREES, DIFFERS, NOT_TAKEN, Row, Taken, compare, taken_by  # noqa: E402

CASES = EXACT | OPEN
QUICK = (
    "filled in a loop",
    "registry",
    "default bound early",
    "submodule",
    "function reads early",
    "kernel that is launched elsewhere",
    "another name of its own module",
)


def write(folder: Path, case: str) -> str:
    for name, text in CASES[case].items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return str(folder)


def read(tmp_path: Path, case: str) -> list[Row]:
    folder = write(tmp_path, case)
    return compare("kernel", taken_by("kernel", [folder]), [folder])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_read_otherwise_than_python_runs_it(tmp_path, case):
    rows = read(tmp_path, case)
    assert not [row for row in rows if row.verdict == DIFFERS]
    if case in EXACT:
        assert [row for row in rows if row.verdict == AGREES] and not [r for r in rows if r.verdict == NOT_TAKEN]


@pytest.mark.parametrize("case", QUICK)
def test_what_is_understood_is_read(tmp_path, case):
    taken = taken_by("kernel", [write(tmp_path, case)])
    assert taken and all(name.value for name in taken)


@pytest.mark.parametrize("case", [case for case in OPEN if case != "parameter of a factory"])
def test_what_may_change_is_left_open(tmp_path, case):
    """Where the value is one that a constant has by chance, it would be 11."""
    assert not [name for name in taken_by("kernel", [write(tmp_path, case)]) if "float 11.0" in name.value]


def test_a_wrong_reading_is_found(tmp_path):
    folder = write(tmp_path, "rebound late")
    wrong = Taken("helpers:act", "GAIN", False, "constexpr(float 11.0)")
    (row,) = compare("kernel", [wrong], [folder])
    assert (row.verdict, row.python) == (DIFFERS, "constexpr(float 12.0)")


def test_a_default_keeps_the_value_that_its_name_had(tmp_path, monkeypatch):
    """The helper stands in the file that is written, where its name has what the name holds at the end."""
    write(tmp_path, "default bound early")
    monkeypatch.chdir(tmp_path)
    run(["translate", "kernel.py", "-t", "gfx942", "-o", "out.py", "-q", "--set", "k.p=*fp32"])
    assert "def act(x, c: gl.constexpr = 2.0):" in Path("out.py").read_text()
