"""An internal error of the validation is an internal error of the command."""

from __future__ import annotations

from gluonize.product.cli import exit_status
from gluonize.product.cli.project import update
from gluonize.product.cli.translate.command import _status
from gluonize.product.project.edits.update import Updated
from gluonize.product.project.translate.run import CheckedLaunch, FileReport
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import LaunchOutcome


def report(validation: dict) -> FileReport:
    return FileReport(
        None,
        "translated",
        (CheckedLaunch(LaunchOutcome(LaunchSpec("k", "k"), "translated"), "translated", validation=validation),),
    )


def test_a_validation_that_fails_inside_is_not_passed_over():
    broken = report({"status": "not_runnable", "bug": "Traceback: in the reference machine"})
    assert broken.bugs == ["Traceback: in the reference machine"]
    assert _status([broken]) == exit_status.BUG
    assert update._status([Updated(None, "written", broken)]) == exit_status.BUG


def test_one_that_has_nothing_to_run_on_is():
    unrun = report({"status": "not_runnable", "reason": "no values"})
    assert _status([unrun]) == exit_status.DONE
    assert update._status([Updated(None, "written", unrun)]) == exit_status.DONE
