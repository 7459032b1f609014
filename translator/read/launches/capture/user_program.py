"""Runs the user's program with a recorder installed; the child process of `gluonize capture`."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any, TextIO

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.launches.capture.commands import notebook_text
from gluonize.read.launches.capture.pretended_device import pretended_device
from gluonize.read.spec.launch import LaunchSpec

_PYTEST = ("pytest", "_pytest")


def run_program(
    kind: str,
    program: str,
    arguments: list[str],
    out: str,
    *,
    kernels: tuple[str, ...],
    launch: bool,
    pretend: bool,
    report: str,
    written_for: str = "",
) -> None:
    """Run a program as Python would, and write what it launched.

    kind: `script`, `module`, `notebook` or `entry`. launch: run kernels where there is a GPU. pretend: where there is none, let
    torch programs believe that there is; then the assertions of tests are no statements (`python -O`), for what they check was not
    computed. written_for: what Gluon kernels are written for, and so the GPU that host code is told of where there is none; "": what the
    program's own file says. report: a file that gets each launch as it is found, then the counts and notes, as lines of
    JSON: it has the launches until then however the program ends. What it raises is raised.
    """
    from gluonize.read.launches.capture.devices import USUAL, device_of, target_of_files
    from gluonize.read.launches.capture.recorder import Recorder, active_target, has_device, installed

    main = program.rpartition(".")[2] if kind == "module" else Path(program).stem
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    runs = launch and not interpreted and has_device()
    unchecked = pretend and not runs and not interpreted and program.partition(":")[0].partition(".")[0] in _PYTEST
    if unchecked and not sys.flags.optimize:
        os.execv(sys.executable, [sys.executable, "-O", *sys.orig_argv[1:]])
    if unchecked:
        quiet = ["-W", "ignore::pytest.PytestConfigWarning"]  # that assertions are not executed
        arguments = ["--assert=plain", "-p", "gluonize.read.launches.capture.unchecked_results", *quiet, *arguments]
    if not written_for:
        written_for = active_target() if runs else target_of_files([program, *arguments])
    told = device_of(written_for) or USUAL
    lines = open(report, "w", encoding="utf-8", buffering=1)  # whole lines, each at once
    _write(lines, {"runs": runs or interpreted})
    recorder = Recorder(
        os.path.dirname(os.path.realpath(out)),
        kernels,
        main,
        runs,
        lambda spec: _write(lines, {"spec": _without_id(spec)}),
        told,
        written_for,
    )
    if pretend and told is not USUAL and not runs:
        recorder.note(
            f"host code is told of a GPU {told.word}, which Gluon kernels are written for here (--from names another)"
        )
    sys.argv = [program, *arguments]
    at_home = kind in ("module", "entry")
    sys.path.insert(0, os.getcwd() if at_home else os.path.dirname(os.path.realpath(program)))
    device = _device(told, recorder) if pretend and not runs and not interpreted else contextlib.nullcontext()
    try:
        with installed(recorder), device:
            _start(kind, program)
    except ModuleNotFoundError as error:
        recorder.note(
            f"{error.name} is not installed for {sys.executable}: install it there, or gluonize where the program runs"
        )
        raise
    finally:
        _write(lines, {"launches": recorder.launches, "notes": recorder.notes})
        lines.close()


def _write(lines: TextIO, data: dict[str, Any]) -> None:
    lines.write(json.dumps(data) + "\n")


def _device(told: Any, recorder: Any) -> contextlib.AbstractContextManager[None]:
    """A GPU that is not there, `told`; host code that goes on with numbers which no launch has written is noted."""

    def unwritten(place: str) -> None:
        what = f"{place} goes on with numbers that a kernel would have written"
        recorder.note(f"{what}: launches after it may be missing (--run interpret runs them)")

    return pretended_device(told, recorder.was_given, unwritten)


def _start(kind: str, program: str) -> None:
    if kind == "module":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    elif kind == "entry":
        module, _, function = program.partition(":")
        sys.argv[0] = module
        sys.exit(getattr(importlib.import_module(module), function.partition("[")[0].strip())())
    elif kind == "notebook":
        _run_notebook(program)
    else:
        runpy.run_path(program, run_name="__main__")


def _run_notebook(path: str) -> None:
    """The cells of a notebook, one after another, as a script beside it: jit functions need a file that their text is in."""
    script = Path(path).with_suffix(".py")
    if not script.exists():
        script.write_text(notebook_text(path), encoding="utf-8")
    elif script.read_text(encoding="utf-8") != notebook_text(path):
        help = "kernels of a notebook need a file: rename that one"
        raise TranslationError(
            Diagnostic("output-unwritable", "this file is not the notebook's text", str(script), help=help)
        )
    runpy.run_path(str(script), run_name="__main__")


def _without_id(spec: LaunchSpec) -> dict[str, Any]:
    return {name: value for name, value in spec.as_json().items() if name != "id"}
