"""What is printed of a translation: a line per kernel first, launches that are not served last."""

import io

from rich.console import Console

from gluonize.diagnostics import Diagnostic
from gluonize.product.cli.console import Verbosity
from gluonize.product.cli.translate.result_lines import launch_lines
from gluonize.product.cli.translate.command import _Printer
from gluonize.product.project.launches.judge import HostLaunch
from gluonize.product.project.translate.plan import PlannedFile
from gluonize.product.project.translate.run import CheckedLaunch, FileReport
from gluonize.read.launches.table import Derivation, Row
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import LaunchOutcome, TranslateRequest

FILE = PlannedFile(TranslateRequest("m.py", "gfx950"), "m_gfx950.py", "m")


def launch(kernel, number, status="translated", validation="validated", **more):
    outcome = LaunchOutcome(LaunchSpec(f"m/{kernel}#{number}", kernel), status, more.pop("diagnostics", ()))
    return CheckedLaunch(outcome, status, outcome.diagnostics, validation={"status": validation, **more})


def host(kernel, line, status="served", **more):
    return HostLaunch(kernel, "m.py", line, f"line {line}", status, **more)


def printed(*reports, verbose=False, batch=False):
    printer = _Printer(Verbosity(verbose=verbose), False, batch)
    text = io.StringIO()
    printer.console = Console(file=text, width=200, soft_wrap=True, highlight=False)
    for report in reports:
        printer.file(report)
    printer.summary(list(reports))
    return text.getvalue().splitlines()


def three_kernels():
    rows = tuple(Row(f"argument_{i}", "i32", "its name", "name") for i in range(20))
    derivations = tuple(Derivation(kernel, (LaunchSpec(kernel, kernel),) * 8, rows) for kernel in "abc")
    launches = [launch(kernel, number) for kernel in "ab" for number in range(8)]
    launches += [launch("c", 1), launch("c", 2, validation="not_runnable", reason="no such op")]
    hosts = [host("a", line) for line in range(10, 20)] + [host("b", 30, "not-served", reason="x is bf16 there")]
    hosts += [host("c", 40), host("c", 41, where=("n is 1",))]
    notes = tuple(f"what is of interest, number {i}" for i in range(12))
    return FileReport(
        FILE, "translated", tuple(launches), (), notes, output="m_gfx950.py", derivations=derivations,
        host_launches=tuple(hosts),
    )  # fmt: skip


def test_the_first_screen_of_three_kernels_has_at_most_25_lines_and_says_last_what_is_not_served():
    lines = printed(three_kernels())
    assert len(lines) <= 25
    assert [line.split("  ")[0] for line in lines[:4]] == ["m.py -> m_gfx950.py (gfx950)", "✓ a", "! b", "! c"]
    assert lines[1].split("  ")[1] == "validated" and lines[1].endswith("  8 launches  20 values guessed"), lines[1]
    assert lines[2].split("  ")[1] == "validated, a launch is not served"
    assert "  c: not validated: no such op" in lines and "  8 more notes: -v" in lines
    assert lines[-1] == "b, launch at line 30: not served: x is bf16 there"
    assert lines[-4].startswith("a, launches at lines 10, 11, ") and lines[-4].endswith(" and 19: served")
    everything = printed(three_kernels(), verbose=True)
    assert "  a: guessed, 8 launches" in everything and len(everything) > 40


def test_what_all_launches_share_is_shown_once():
    def made(number, own):
        choices = ("the layout of x", own)
        return CheckedLaunch(LaunchOutcome(LaunchSpec(f"k#{number}", "k"), "translated", (), choices), "translated")

    lines = printed(FileReport(FILE, "translated", (made(1, "one"), made(2, "two"))), verbose=True)
    assert lines[2:] == [
        "  k: what its 2 launches share", "    the layout of x", "  k (k#1): translated", "    one", "  k (k#2): translated",
        "    two",
    ]  # fmt: skip


def test_a_kernel_that_is_refused_or_wrong_is_marked():
    refused = launch("r", 1, "refused", "skipped", diagnostics=(Diagnostic("c", "no"),))
    kept = launch("k", 1, "passed-over", "skipped", diagnostics=(Diagnostic("spec-not-found", "none", why="type"),))
    lines = printed(FileReport(FILE, "refused", (refused, launch("w", 1, validation="mismatch"), kept)))
    assert [line.rsplit("  ", 1)[0].rstrip() for line in lines[1:3]] == ["✗ r  refused", "✗ w  wrong"]
    assert lines[3] == "! k  stays Triton"


def test_what_is_proved_and_could_not_run_is_no_failure():
    one = launch("k", 1, validation="not_runnable", reason="its tensors are too large", proof={"status": "proved"})
    lines = printed(FileReport(FILE, "translated", (one,)))
    assert lines[1].split("  ")[:2] == ["! k", "proved, not run"] and lines[2].endswith("its tensors are too large")


def test_a_reason_without_a_launch_is_said_whole():
    none = Diagnostic("spec-not-found", "none", line=9, why="a kernel sees only " + "many words " * 12 + "the end")
    lines = printed(FileReport(FILE, "refused", (launch("k", 1, "passed-over", "skipped", diagnostics=(none,)),)))
    assert lines[3].startswith("    k  line 9: a kernel sees only") and lines[4].endswith("the end")


def test_of_many_files_what_is_served_is_counted():
    lines = [line for _, line in launch_lines([three_kernels()], True)]
    assert lines[0] == "12 launches in host code served; -v names them" and len(lines) == 2
    assert lines[-1].startswith("m.py: b, launch at line 30: not served")


def test_targets_that_differ_are_named():
    other = FileReport(PlannedFile(TranslateRequest("m.py", "gfx942"), "o.py", "m"), "translated", host_launches=(
        host("a", 1), host("a", 2, "not-served", reason="no")))  # fmt: skip
    both = FileReport(FILE, "translated", host_launches=(host("a", 1), host("a", 2)))
    assert [line for _, line in launch_lines([both, other], False)] == [
        "launch at line 1: served", "launch at line 2: served (gfx950)", "launch at line 2: not served: no (gfx942)",
    ]  # fmt: skip
