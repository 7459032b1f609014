"""The commands that keep generated files in step with what they were made from."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from gluonize.product.cli.apps.cache import CacheUrl, NoCache, use_cache
from gluonize.product.cli.options import Cluster, Compile, Format, GeneratedFiles, Jobs, Json, Timeout, Validate

ConfigFile = Annotated[
    Optional[str],
    typer.Option("--config", metavar="FILE", help="gluonize.toml or pyproject.toml; the nearest one if left out."),
]
SearchPath = Annotated[
    Optional[list[str]],
    typer.Option(
        "--path", metavar="FOLDER", help="Where to look first for sources outside of an output's folder; repeatable."
    ),
]


def check(
    context: typer.Context,
    files: GeneratedFiles = None,
    config: ConfigFile = None,
    path: SearchPath = None,
    allow_edits: Annotated[
        bool, typer.Option("--allow-edits", help="Hand edits are fine as long as source and launches are unchanged.")
    ] = False,
    validated: Annotated[
        str,
        typer.Option(
            "--validated",
            metavar="LEVEL",
            help="Fail for files that were validated less than this: none, partly, fully, or proved.",
        ),
    ] = "none",
    gate: Annotated[
        float,
        typer.Option(
            "--gate",
            metavar="RATIO",
            min=0.0,
            help="Fail for files whose hottest loop is predicted to take more than RATIO times the clocks of Triton's, by their headers; 0: any number.",
        ),
    ] = 1.05,
    validate: Annotated[
        bool,
        typer.Option("--validate", help="Run the files as they are, hand edits too, and compare with their sources."),
    ] = False,
    changed_since: Annotated[
        Optional[str],
        typer.Option(
            "--changed-since", metavar="REVISION", help="Only files that changes since there have to do with."
        ),
    ] = None,
    comment: Annotated[
        Optional[str],
        typer.Option("--comment", metavar="FILE", help="Write a Markdown summary with parity, for a pull request."),
    ] = None,
    format: Format = "text",
    json: Json = None,
    jobs: Jobs = 0,
    timeout: Timeout = 60.0,
    cache: CacheUrl = None,
    no_cache: NoCache = False,
    cluster: Cluster = None,
) -> int:
    """Check that generated files are what their sources and launches give; show the difference where not."""
    from gluonize.product.cli.project.check import CheckOptions, run_check

    options = CheckOptions(
        paths=tuple(files or ()),
        config=config,
        allow_edits=allow_edits,
        validated=validated,
        gate=gate,
        validate=validate,
        changed_since=changed_since,
        comment=comment,
        format=format,
        json=json,
        jobs=jobs,
        timeout=timeout,
        cache=use_cache(cache, no_cache),
        cluster=cluster,
        search=tuple(path or ()),
    )
    return run_check(options, context.obj)


def update(
    context: typer.Context,
    files: GeneratedFiles = None,
    config: ConfigFile = None,
    path: SearchPath = None,
    jobs: Jobs = 0,
    timeout: Timeout = 60.0,
    validate: Validate = True,
    compile: Compile = True,
    cache: CacheUrl = None,
    no_cache: NoCache = False,
) -> int:
    """Bring generated files up to date; what was edited by hand is merged with the new translation."""
    from gluonize.product.project.translate.plan import TranslateOptions
    from gluonize.product.cli.project.update import run_update

    options = TranslateOptions(
        None,
        "",
        jobs=jobs,
        timeout=timeout,
        validate=validate,
        compile=compile,
        cache=use_cache(cache, no_cache),
        search=tuple(path or ()),
    )
    return run_update(tuple(files or ()), config, options, context.obj)


def watch(
    context: typer.Context,
    files: GeneratedFiles = None,
    config: ConfigFile = None,
    path: SearchPath = None,
    jobs: Jobs = 0,
    timeout: Timeout = 60.0,
    validate: Validate = True,
    compile: Compile = True,
    cache: CacheUrl = None,
    no_cache: NoCache = False,
    every: Annotated[
        float, typer.Option("--every", min=0.05, metavar="SECONDS", help="How often to look for changes.")
    ] = 0.5,
    once: Annotated[bool, typer.Option("--once", help="Leave after the first change was dealt with.")] = False,
) -> int:
    """Bring generated files up to date whenever a source, its launches or what it imports is saved; Ctrl-C ends it."""
    from gluonize.product.project.translate.plan import TranslateOptions
    from gluonize.product.cli.project.watch import run_watch

    options = TranslateOptions(
        None,
        "",
        jobs=jobs,
        timeout=timeout,
        validate=validate,
        compile=compile,
        cache=use_cache(cache, no_cache),
        search=tuple(path or ()),
    )
    return run_watch(tuple(files or ()), config, options, every, once, context.obj)
