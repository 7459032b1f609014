"""`gluonize capture`: record launch specs while the user's own program runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from gluonize.diagnostics import Diagnostic, InternalError, TranslationError
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity
from gluonize.product.project.output.file import check_destination, write_whole
from gluonize.read.launches.capture.commands import resolve_command
from gluonize.read.spec.launch import VERSION, LaunchSpec, compiled_as, parse_launches, read_launches

_START = """
import json, sys
settings = json.loads(sys.argv[1])
sys.path[:] = settings.pop("path")
from gluonize.read.launches.capture.user_program import run_program
run_program(**settings)
"""


# Seconds in which an interrupted program may end by itself.
_GRACE = 3.0


def run_capture(
    words: tuple[str, ...], out: str, is_module: bool, kernels: tuple[str, ...], run: str, pretend: bool,
    append: bool, overwrite: bool, verbosity: Verbosity, written_for: str = "",
) -> int:  # fmt: skip
    """Run the program and write its launches; 1 when it fails, or launches no Triton kernel.

    run: `gpu` runs launches where there is a GPU, `interpret` in Triton's interpreter, `none` records only. Tests whose launches are
    not run may well fail at what they expect of them: that is said and is no failure. written_for: what Gluon kernels are written for,
    and the GPU that host code is told of; "" for what the program's file says.
    """
    if run not in ("gpu", "interpret", "none"):
        raise TranslationError(Diagnostic("usage", f"--run {run}: no such way to run", help="gpu, interpret or none"))
    if written_for:
        _check_device(written_for)
    program = resolve_command(words, is_module)
    check_destination(out)
    if os.path.exists(out) and not append and not overwrite:
        help = "give --append, --overwrite, or another file with -o"
        raise TranslationError(Diagnostic("output-unwritable", "this file is there already", out, help=help))
    before = read_launches(out) if append and os.path.exists(out) else []
    settings = {
        "kind": program.kind, "program": program.name, "arguments": list(program.arguments), "out": out,
        "kernels": list(kernels), "launch": run == "gpu", "pretend": pretend, "path": sys.path, "written_for": written_for,
    }  # fmt: skip
    found, status = _recorded(settings, run == "interpret")
    launches = merged(before, found["specs"])
    if "launches" not in found:
        _refuse_cut_off(found, status, launches, out, program.name)
    for note in found["notes"]:
        print(f"note: {note}", file=sys.stderr)
    if launches:
        _write_launches(out, launches)
    if not verbosity.quiet:
        kernels_found = sorted({spec.kernel for spec in launches})
        how = "" if found["runs"] else " (recorded, not run)"
        count, specs = found["launches"], len(launches)
        print(f"{count} launch{'es' * (count != 1)}{how}, {len(found['specs'])} different", file=sys.stderr)
        if launches:
            print(f"{out}: {specs} launch spec{'s' * (specs != 1)} of {', '.join(kernels_found)}", file=sys.stderr)
    if status != 0:
        unsurprising = not found["runs"] and found["specs"] and program.runs_tests
        why = ": its launches were not run" if unsurprising else ""
        print(f"the program left with status {status}{why}", file=sys.stderr)
        if not unsurprising:
            return exit_status.CHECK_FAILED
    if not found["specs"]:
        print("no Triton kernel was launched, so nothing was recorded", file=sys.stderr)
        return exit_status.CHECK_FAILED
    return exit_status.DONE


def _check_device(name: str) -> None:
    """Raises: TranslationError `usage` for a GPU that no program can be told of."""
    from gluonize.read.launches.capture.devices import device_of, known_devices

    if device_of(name) is None:
        message = f"--from {name}: no GPU that a program can be told of"
        raise TranslationError(Diagnostic("usage", message, help=", ".join(known_devices())))


def _refuse_cut_off(found: dict, status: int, launches: list[LaunchSpec], out: str, name: str) -> NoReturn:
    """Of a program that ended without Python's leave, by a signal or `os._exit`, or that was interrupted: the launches until then.
    Raises: TranslationError."""
    why = f"it was ended by signal {-status}" if status < 0 else f"it left at once with status {status}"
    why = "it was interrupted" if found["interrupted"] else why
    help = "" if found["specs"] else "nothing had been recorded until then"
    if found["specs"]:
        _write_launches(out, launches)
        help = f"{out} has the {len(found['specs'])} launches until then"
    raise TranslationError(Diagnostic("capture", "the program did not end by itself", name, why=why, help=help))


def _write_launches(out: str, launches: list[LaunchSpec]) -> None:
    data = {"version": VERSION, "launches": [spec.as_json() for spec in launches]}
    write_whole(out, json.dumps(data, indent=2) + "\n")


def _recorded(settings: dict, interpreted: bool) -> tuple[dict, int]:
    """What the recording process reports of the program, and the status that the program left with: `launches` and `notes`, which
    come last, are missing where it did not end by itself. Raises: InternalError.
    """
    with tempfile.TemporaryDirectory(prefix="gluonize-capture-") as folder:
        report = os.path.join(folder, "report.json")
        # Without this Triton warns about a default that does not matter to what is recorded.
        environment = {"TRITON_DEFAULT_FP_FUSION": "1", **os.environ}
        if interpreted:
            environment["TRITON_INTERPRET"] = "1"
        command = [sys.executable, "-c", _START, json.dumps({**settings, "report": report})]
        status, interrupted = _waited_for(subprocess.Popen(command, env=environment))
        try:
            lines = Path(report).read_text(encoding="utf-8").splitlines(keepends=True)
        except FileNotFoundError:
            if interrupted:
                raise KeyboardInterrupt from None
            raise InternalError(f"the recording process left with status {status}") from None
    read = [json.loads(line) for line in lines if line.endswith("\n")]  # the last one may be cut off
    found: dict = {"specs": [data["spec"] for data in read if "spec" in data]}
    for data in read:
        found |= {name: value for name, value in data.items() if name != "spec"}
    if interrupted:
        found.pop("launches", None)
    return {**found, "interrupted": interrupted}, status


def _waited_for(process: subprocess.Popen) -> tuple[int, bool]:
    """The status that a process leaves with, and whether the user interrupted the command meanwhile.

    Control-C reaches the process too, which may take it as it likes; one that it did not reach, or that goes on, is ended.
    """
    try:
        return process.wait(), False
    except KeyboardInterrupt:
        for end in (process.terminate, process.kill):
            try:
                return process.wait(_GRACE), True
            except subprocess.TimeoutExpired:
                end()
        return process.wait(), True


def merged(before: list[LaunchSpec], new: list[dict]) -> list[LaunchSpec]:
    """Earlier launches, then those of `new` that are not among them; ids are unique."""

    known = {compiled_as(spec.as_json()) for spec in before}
    items = [spec.as_json() for spec in before] + [data for data in new if compiled_as(data) not in known]
    return parse_launches({"version": VERSION, "launches": items}) if items else []
