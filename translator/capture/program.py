"""Runs the user's program with a recorder installed; the child process of `gluonize capture`."""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any


def run_program(
    program: str,
    arguments: list[str],
    out: str,
    *,
    is_module: bool,
    kernels: tuple[str, ...],
    launch: bool,
    report: str,
) -> None:
    """Run a script (or module) as `python program arguments...` would, and write what it launched.

    launch: run kernels where there is a GPU. report: a file that gets the counts and notes, as JSON. The launches are
    written however the program ends; what it raises is raised.
    """
    from translator.capture.recorder import Recorder, has_device, installed

    main = program.rpartition(".")[2] if is_module else Path(program).stem
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    runs = launch and not interpreted and has_device()
    recorder = Recorder(os.path.dirname(os.path.realpath(out)), kernels, main, runs)
    sys.argv = [program, *arguments]
    sys.path.insert(0, os.getcwd() if is_module else os.path.dirname(os.path.realpath(program)))
    try:
        with installed(recorder):
            if is_module:
                runpy.run_module(program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program, run_name="__main__")
    finally:
        found = {"launches": recorder.launches, "notes": recorder.notes, "runs": runs or interpreted}
        found["specs"] = [_without_id(spec.as_json()) for spec in recorder.specs]
        Path(report).write_text(json.dumps(found))


def _without_id(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != "id"}
