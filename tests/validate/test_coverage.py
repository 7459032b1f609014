"""What of the source ran: its lines, both sides of its conditions, trip counts of its loops; and who is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.judge.machine.coverage import CLASSES, Coverage, trip_class, united
from gluonize.judge.machine.stages import source_stage
from gluonize.judge.verdict.run import validate_pair
from gluonize.product.cli.project import check as check_command
from gluonize.product.cli.translate.result_lines import validation_line
from gluonize.product.project.output.provenance import parse_provenance, without_line
from gluonize.product.project.output.verdict import level_of, verdict_lines, with_verdict
from gluonize.read.spec.launch import LaunchSpec

HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
KERNEL = HEAD + """def kernel(x_ptr, flags_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    if tl.load(flags_ptr) == 2:
        x = x * 2.0
        x = x + tl.load(x_ptr + B - 1 - i)
    elif tl.load(flags_ptr + 1) > 0:
        x = x - 1.0
    for k in range(0, n, B):
        x += tl.load(x_ptr + i + k)
    tl.store(x_ptr + i, x)
"""
B = 16


def launch(n: int, flags: list[int]) -> LaunchSpec:
    tensor = {"dtype": "float32", "shape": [1024], "stride": [1], "storage": 1024, "offset": 0}
    held = {"dtype": "int32", "shape": [len(flags)], "stride": [1], "storage": len(flags), "offset": 0, "data": flags}
    signature = {"x_ptr": "*fp32", "flags_ptr": "*i32", "n": "i32", "B": "constexpr"}
    values = {"x_ptr": {"tensor": tensor}, "flags_ptr": {"tensor": held}, "n": n}
    return LaunchSpec("covered", "kernel", "", signature, {"B": B}, {}, {"num_warps": 1}, (1,), {}, values)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(n, flags) -> the coverage of one launch alone, the source being its own translation."""
    file = tmp_path_factory.mktemp("source") / "source.py"
    file.write_text(KERNEL)
    text = source_stage(str(file), launch(5, [0, 0]), "gfx950").text

    def run(n: int, flags: list[int]) -> Coverage:
        result = validate_pair(text, text, launch(n, flags), with_variants=False)
        assert result.status == "validated", result.reason
        return result.coverage

    return run


def line(text: str) -> int:
    return next(number for number, one in enumerate(KERNEL.splitlines(), 1) if text in one)


def told(coverage: Coverage) -> list[str]:
    return [str(gap) for gap in coverage.gaps()]


def test_lines_and_sides_that_did_not_run_are_named_with_their_condition(run):
    first, last, other = line("x = x * 2.0"), line("B - 1 - i"), line("x - 1.0")
    loop = f"line {line('for k')} (no launch has a loop of no trip, one trip only, few trips)"
    assert told(run(5 * B, [0, 0])) == [
        f"lines {first}-{last} (tl.load(flags_ptr) == 2 is not in any launch)",
        f"line {other} (tl.load(flags_ptr + 1) > 0 is not in any launch)",
        loop,
    ]
    assert told(run(5 * B, [0, 3])) == [
        f"lines {first}-{last} (tl.load(flags_ptr) == 2 is not in any launch)",
        f"line {line('elif')} (tl.load(flags_ptr + 1) > 0 in every launch)",
        loop,
    ]
    # A condition that was never asked is told by the line that never ran.
    assert told(run(5 * B, [2, 0]))[0].startswith(
        f"lines {line('elif')}-{other} (tl.load(flags_ptr) == 2 in every launch"
    )


def test_launches_of_a_file_are_united(run):
    several = [run(n, flags) for n, flags in [(0, [2, 0]), (B, [0, 3]), (2 * B, [0, 0])]]
    loop = f"line {line('for k')} (no launch has a loop of many trips)"
    assert told(united(several)) == [loop]
    assert united(several).verdict() == f"validated except {loop}"
    whole = united([*several, run(3 * B, [0, 0])])
    assert whole.verdict() == "validated" and whole.as_json()["complete"]
    assert Coverage.of_json(whole.as_json()) == whole
    found = validation(several[2])
    assert "many trips" in validation_line(found) and "flags_ptr" in validation_line(found)
    assert validation_line(found, united(several)) == f"validated except {loop}"
    assert validation_line(found, whole) == "validated"


def test_trip_classes_end_where_a_pipeline_is_full():
    assert [trip_class(n, 3) for n in range(5)] == ["none", "one", "few", "few", "many"]
    assert {trip_class(n, 2) for n in range(4)} == set(CLASSES)


ORIGIN = (
    "# Generated\n# for gfx950\n# gluonize: source=a.py:0 launches=l.json:0 target=gfx950 triton=3 output=0\nx = 1\n"
)


def validation(coverage: Coverage) -> dict:
    return {"status": "validated", "coverage": coverage.as_json()}


def test_the_header_says_how_far_and_is_no_part_of_the_text(run):
    part, whole = run(5 * B, [0, 0]), Coverage({("a.py", 1): True})
    for coverage, level in ((part, "partly"), (whole, "fully")):
        text = with_verdict(ORIGIN, [validation(coverage)])
        assert level_of(text) == level and without_line(text) == without_line(ORIGIN)
        assert parse_provenance(text) == parse_provenance(ORIGIN) is not None
        assert all(len(line) <= 120 for line in text.splitlines())
    assert "not in any launch" in " ".join(verdict_lines([validation(part)]))
    failed = [validation(whole), {"status": "not_runnable", "reason": "no such op"}]
    assert (
        verdict_lines(failed) == ["# Not validated: no such op."] and level_of(with_verdict(ORIGIN, failed)) == "none"
    )
    placed = {"status": "not_runnable", "reason": "at fault: /home/me/ops/a.py:21:9: it leaves x"}
    assert verdict_lines([placed]) == ["# Not validated: at fault: a.py: it leaves x."]  # the same on each machine
    assert with_verdict(ORIGIN, [{"status": "skipped"}]) == ORIGIN and level_of(ORIGIN) == "none"


def test_check_can_demand_a_level(run, tmp_path: Path, monkeypatch, capsys):
    from gluonize.product.cli.console import Verbosity
    from gluonize.product.project.checks.check import FileState
    from gluonize.product.project.files.planned import ProjectFile

    output = tmp_path / "a_gfx950.py"
    output.write_text(with_verdict(ORIGIN, [validation(run(5 * B, [0, 0]))]))
    file = ProjectFile(source="a.py", target="gfx950", output=str(output), launches=None)
    monkeypatch.setattr(check_command, "project_files", lambda *_: (file,))
    monkeypatch.setattr(check_command, "states_of", lambda *_: [FileState(file, "current")])

    def check(level: str) -> int:
        options = check_command.CheckOptions(validated=level, jobs=1, timeout=1.0, cache=False)
        return check_command.run_check(options, Verbosity())

    assert [check(level) for level in ("none", "partly", "fully")] == [0, 0, 1]
    assert "it was validated less than fully" in capsys.readouterr().err
    with pytest.raises(TranslationError, match="--validated takes none, partly, fully"):
        check("wholly")


def test_a_line_of_another_file_has_its_name():
    own = {("kernel.py", line): True for line in range(1, 9)}
    assert Coverage({**own, ("kernel.py", 9): False}).verdict().startswith("validated except line 9 (")
    assert Coverage({**own, ("lib/scans.py", 9): False}).verdict().startswith("validated except scans.py line 9 (")
