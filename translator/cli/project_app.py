"""The commands that keep generated files in step with what they were made from."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from translator.cli.options import (
    Cache,
    Compile,
    GeneratedFiles,
    Jobs,
    Json,
    Timeout,
    Validate,
)

ConfigFile = Annotated[
    Optional[str],
    typer.Option("--config", metavar="FILE", help="gluonize.toml or pyproject.toml; the nearest one if left out."),
]


def check(
    context: typer.Context,
    files: GeneratedFiles = None,
    config: ConfigFile = None,
    allow_edits: Annotated[
        bool, typer.Option("--allow-edits", help="Hand edits are fine as long as source and launches are unchanged.")
    ] = False,
    validated: Annotated[
        str,
        typer.Option(
            "--validated",
            metavar="LEVEL",
            help="Fail for files that were validated less than this: none, partly or fully.",
        ),
    ] = "none",
    json: Json = None,
    jobs: Jobs = 0,
    timeout: Timeout = 60.0,
    cache: Cache = True,
) -> int:
    """Check that generated files are what their sources and launches give; show the difference where not."""
    from translator.cli.check_command import run_check

    return run_check(tuple(files or ()), config, allow_edits, validated, json, jobs, timeout, cache, context.obj)


def update(
    context: typer.Context,
    files: GeneratedFiles = None,
    config: ConfigFile = None,
    jobs: Jobs = 0,
    timeout: Timeout = 60.0,
    validate: Validate = True,
    compile: Compile = True,
    cache: Cache = True,
) -> int:
    """Bring generated files up to date; what was edited by hand is merged with the new translation."""
    from translator.cli.translate_plan import TranslateOptions
    from translator.cli.update_command import run_update

    options = TranslateOptions(None, "", jobs=jobs, timeout=timeout, validate=validate, compile=compile, cache=cache)
    return run_update(tuple(files or ()), config, options, context.obj)
