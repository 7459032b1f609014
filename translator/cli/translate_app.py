"""The command that makes translations."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from translator.cli.options import (
    AllConfigs,
    Assignments,
    Budget,
    Cache,
    Choose,
    Compile,
    Fallback,
    Force,
    Format,
    Import,
    Jobs,
    Json,
    KeepGoing,
    Kernels,
    Launches,
    NumBuffers,
    Optimize,
    Out,
    OutDir,
    Rules,
    Strategy,
    Strict,
    TargetsOrNone,
    Timeout,
    Validate,
    WriteLaunches,
    required_target,
)


def translate(
    context: typer.Context,
    target: TargetsOrNone = None,
    source: Annotated[
        Optional[list[str]],
        typer.Argument(
            help="Python files, folders, patterns or a module; may be left out when every launch names its source (batch mode), and without"
            " --target too for all that [tool.gluonize] in pyproject.toml names."
        ),
    ] = None,
    kernel: Kernels = None,
    launches: Launches = None,
    out: Out = None,
    out_dir: OutDir = None,
    json: Json = None,
    keep_going: KeepGoing = False,
    jobs: Jobs = 0,
    timeout: Timeout = 60.0,
    import_hosts: Import = False,
    assignments: Assignments = None,
    fallback: Fallback = None,
    num_buffers: NumBuffers = None,
    strategy: Strategy = None,
    choose: Choose = None,
    optimize: Optimize = "parity",
    budget: Budget = 40,
    rules: Rules = None,
    validate: Validate = True,
    parity: Annotated[
        bool,
        typer.Option("--parity/--no-parity", help="Compare with Triton's own compile of the source."),
    ] = True,
    compile: Compile = True,
    cache: Cache = True,
    strict: Strict = False,
    write_launches: WriteLaunches = None,
    all_configs: AllConfigs = False,
    force: Force = False,
    format: Format = "text",
) -> int:
    """Translate the kernels of SOURCE, or of every launch, and check the result."""
    from translator.project.translate_plan import TranslateOptions

    if target is None and not source and launches is None:
        from translator.cli.update_command import run_update

        plain = TranslateOptions(
            None, "", jobs=jobs, timeout=timeout, validate=validate, compile=compile, cache=cache, format=format
        )
        return run_update((), None, plain, context.obj, merge=False)
    from translator.project.source_files import is_several
    from translator.cli.translate_command import run_translate

    names = tuple(source or ())
    several = is_several(names)
    return run_translate(
        TranslateOptions(
            source=names[0] if names and not several else None,
            sources=names if several else (),
            target=required_target(target),
            kernels=tuple(kernel or ()),
            launches=launches,
            out=out,
            out_dir=out_dir,
            json=json,
            keep_going=keep_going,
            jobs=jobs,
            timeout=timeout,
            import_hosts=import_hosts,
            assignments=tuple(assignments or ()),
            fallback=fallback,
            num_buffers=num_buffers,
            strategy=strategy,
            choose=tuple(choose or ()),
            optimize=optimize,
            budget=budget,
            rules=tuple(rules or ()),
            validate=validate,
            parity=parity,
            compile=compile,
            cache=cache,
            strict=strict,
            write_launches=write_launches,
            all_configs=all_configs,
            force=force,
            format=format,
        ),
        context.obj,
    )
