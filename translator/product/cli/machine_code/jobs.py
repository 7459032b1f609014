"""What `gluonize compile` and `gluonize parity` share: every launch on every target is compiled in a child process."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from gluonize.diagnostics import Diagnostic
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics
from gluonize.product.cli.results import write_json
from gluonize.product.project.cache.kept_jobs import Pool
from gluonize.product.project.output.overwrite import check_json
from gluonize.product.project.output.swapped import check_not_swapped
from gluonize.read.files.source_names import check_source, source_folders
from gluonize.read.spec.launch import LaunchSpec
from gluonize.read.spec.selected import select_launches
from gluonize.rules.targets import Target, parse_targets

LOWER = "gluonize.judge.lower.jobs:lower_file"
LOWER_AND_WALK = "gluonize.judge.cycles.job:lower_and_walk"


@dataclass(frozen=True)
class CompileOptions:
    """The options that both commands have, as given."""

    target: str
    launches: str
    kernels: tuple[str, ...] = ()
    json: str | None = None
    jobs: int = 0
    timeout: float = 60.0
    import_hosts: bool = False
    cache: bool = True
    cluster: str | None = None


@dataclass(frozen=True)
class Inputs:
    """files: the source first, then its translation where there is one. Launches and targets as chosen."""

    files: tuple[str, ...]
    launches: tuple[LaunchSpec, ...]
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class CompileJob:
    """One launch on one target; `lowered` has a future with a `Lowered` per file of the inputs."""

    spec: LaunchSpec
    target: str
    lowered: tuple[Future, ...]

    def entry(self, status: str) -> dict:
        """The head of the result in the JSON, for a job without problems."""
        return {
            "id": self.spec.id,
            "kernel": self.spec.kernel,
            "target": self.target,
            "status": status,
            "diagnostics": [],
        }


def read_inputs(options: CompileOptions, *files: str) -> Inputs:
    """The targets and launches of a command. Raises: TranslationError for what cannot be read; nothing has started then."""
    targets = parse_targets(options.target)
    check_json(options.json)
    for file in files:
        check_source(file)
    if len(files) > 1:
        check_not_swapped(*files, "gluonize parity")
    return Inputs(files, select_launches(options.launches, files[0], options.kernels), targets)


def start_jobs(
    pool: Pool, inputs: Inputs, options: CompileOptions, keep_stages: bool = False, job: str = LOWER
) -> list[CompileJob]:
    """Submit every launch on every target, in that order; job: LOWER, or LOWER_AND_WALK for cycles too."""
    folders = source_folders(inputs.files[0])

    def lower(file: str, spec: LaunchSpec, target: str) -> Future:
        what = f"{spec.kernel} of {file} on {target}"
        return pool.submit(job, file, spec, target, folders, options.import_hosts, keep_stages, what=what)

    return [
        CompileJob(spec, row.name, tuple(lower(file, spec, row.name) for file in inputs.files))
        for spec in inputs.launches
        for row in inputs.targets
    ]


def fail(entry: dict, problems: tuple[Diagnostic, ...]) -> None:
    """Print problems and put them into the result of their job."""
    entry["status"] = "failed"
    entry["diagnostics"] = [found.as_json() for found in problems]
    print_diagnostics(problems)


MORE = "each in full: -v, or one kernel with -k"  # below tables of several launches


def is_shown(options: CompileOptions, verbosity: Verbosity) -> bool:
    """Whether results are printed for people."""
    return not verbosity.quiet and options.json != "-"


def in_full(verbosity: Verbosity, launches: Sequence[LaunchSpec], targets: Sequence[Any]) -> bool:
    """Whether each launch is printed in full, and not as a line of a table."""
    return verbosity.verbose or len(launches) * len(targets) == 1


def finish(options: CompileOptions, results: list[dict], failed: bool) -> int:
    """Write the JSON that was asked for; returns the exit status."""
    if options.json:
        write_json(options.json, results)
    codes = [found["code"] for entry in results for found in entry["diagnostics"]]
    if any(code.startswith(("spec-", "source-")) for code in codes):
        return exit_status.REFUSED
    return exit_status.CHECK_FAILED if failed else exit_status.DONE
