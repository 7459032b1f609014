"""The work of `gluonize validate --emulator` on one launch and target, in a worker process."""

from __future__ import annotations

from gluonize.diagnostics import TranslationError
from gluonize.judge.device.bundles.jobs import compile_native
from gluonize.judge.emulator.observer import EmulatedLaunch
from gluonize.judge.emulator.session import Session
from gluonize.judge.emulator.sides import Side
from gluonize.judge.emulator.verdict import Verdict
from gluonize.judge.verdict.run import validate_job
from gluonize.read.spec.launch import LaunchSpec

_sessions: dict[str, Session] = {}  # by checkout: what it has compiled of its own serves the next launch too


def emulated_job(
    source: str,
    output: str,
    spec: LaunchSpec,
    target: str,
    search_path: tuple[str, ...],
    import_hosts: bool,
    checkout: str,
    seconds: float,
    inputs: str | None = None,
    variants: bool = True,
) -> dict:
    """What `validate_launch` answers, with the emulator's verdict as `emulator`. seconds: for all runs in the emulator."""
    job = {"source": source, "output": output, "launch": spec, "target": target, "inputs": inputs, "variants": variants}
    job |= {"search_path": search_path, "import_hosts": import_hosts}
    try:
        sides = [
            Side.of(compile_native(file, spec, target, search_path, import_hosts, False), target)
            for file in (source, output)
        ]
    except TranslationError as error:
        reason = error.diagnostics[0].message if error.diagnostics else str(error)
        return validate_job(job) | {"emulator": Verdict("not_runnable", f"no code object: {reason}").as_json()}
    if checkout not in _sessions:
        _sessions[checkout] = Session(checkout)
    launch = EmulatedLaunch(_sessions[checkout], *sides, seconds)
    return validate_job(job, launch.observe) | {"emulator": launch.verdict().as_json()}
