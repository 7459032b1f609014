"""The commands and their options. Bodies import what they need when they run, so that `--help` stays fast."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from translator import __version__
from translator.cli.console import Verbosity
from translator.cli.device_app import add_device_commands
from translator.cli.options import (
    AllConfigs,
    Assignments,
    Budget,
    Cache,
    Choose,
    Compile,
    Fallback,
    Force,
    GeneratedFiles,
    GivenLaunches,
    Import,
    Jobs,
    Json,
    KeepGoing,
    Kernels,
    Launches,
    NumBuffers,
    OneTarget,
    OneTargetOrNone,
    Optimize,
    Out,
    OutDir,
    ReviewedFile,
    Rules,
    Source,
    Strategy,
    Strict,
    Targets,
    TargetsOrNone,
    Timeout,
    Validate,
    WriteLaunches,
    required_target,
    complete_word,
)

app = typer.Typer(
    help="Translate Triton kernels into explicit Gluon for one AMD architecture, compile them and compare them.",
    epilog="Exit status: 0 done, 1 a check failed, 2 refused or bad input, 3 a bug in gluonize, 130 interrupted.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from translator.versions import triton_version

        print(f"gluonize {__version__} (Triton {triton_version()})")
        raise typer.Exit()


@app.callback()
def global_options(
    context: typer.Context,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Print every choice and full tables.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print diagnostics only.")] = False,
    color: Annotated[
        str,
        typer.Option(
            "--color",
            metavar="WHEN",
            help="auto, always or never.",
            autocompletion=complete_word("auto", "always", "never"),
        ),
    ] = "auto",
    version: Annotated[
        bool, typer.Option("--version", help="Print version numbers and leave.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    if color not in ("auto", "always", "never"):
        raise typer.BadParameter("auto, always or never", param_hint="--color")
    context.obj = Verbosity(verbose, quiet, color)
    if verbose:
        from translator.cli.logs import log_to_stderr

        log_to_stderr()


@app.command()
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
) -> int:
    """Translate the kernels of SOURCE, or of every launch, and check the result."""
    from translator.cli.translate_plan import TranslateOptions

    if target is None and not source and launches is None:
        from translator.cli.update_command import run_update

        plain = TranslateOptions(None, "", jobs=jobs, timeout=timeout, validate=validate, compile=compile, cache=cache)
        return run_update((), None, plain, context.obj, merge=False)
    from translator.cli.source_files import is_several
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
        ),
        context.obj,
    )


@app.command("compile")
def compile_(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="Python file (or module) with a Gluon or Triton kernel.")],
    target: Targets,
    launches: GivenLaunches,
    kernel: Kernels = None,
    emit: Annotated[
        Optional[str], typer.Option("--emit", metavar="DIR", help="Write ttgir, llir, amdgcn and hsaco there.")
    ] = None,
    json: Json = None,
    jobs: Jobs = 0,
    timeout: Timeout = 60.0,
    import_hosts: Import = False,
) -> int:
    """Compile a kernel with no GPU and print what the machine code costs."""
    from translator.cli.compile_command import run_compile
    from translator.cli.compile_jobs import CompileOptions

    options = CompileOptions(target, launches, tuple(kernel or ()), json, jobs, timeout, import_hosts)
    return run_compile(file, emit, options, context.obj)


@app.command()
def parity(
    context: typer.Context,
    source: Source,
    out: Annotated[str, typer.Argument(help="Its translation.")],
    target: Targets,
    launches: GivenLaunches,
    kernel: Kernels = None,
    json: Json = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with status 1 when the translation is worse than Triton's compile.")
    ] = False,
    jobs: Jobs = 0,
    timeout: Timeout = 60.0,
    import_hosts: Import = False,
) -> int:
    """Compare the machine code of a translation with Triton's own compile of its source."""
    from translator.cli.compile_jobs import CompileOptions
    from translator.cli.parity_command import run_parity

    options = CompileOptions(target, launches, tuple(kernel or ()), json, jobs, timeout, import_hosts)
    return run_parity(source, out, check, options, context.obj)


@app.command()
def cycles(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(help="A generated file or another Gluon or Triton file, or assembly (.amdgcn, .s).")
    ],
    target: Targets,
    launches: Annotated[
        Optional[str], typer.Option("-l", "--launches", metavar="FILE", help="Launch specs (JSON); not for assembly.")
    ] = None,
    kernel: Kernels = None,
    source: Annotated[
        Optional[str],
        typer.Option("--source", metavar="FILE", help="Put Triton's compile of this file beside; default: FILE's own."),
    ] = None,
    num_warps: Annotated[
        int, typer.Option("--num-warps", min=0, metavar="N", help="Of a workgroup, for assembly; 0: from its metadata.")
    ] = 0,
    lds: Annotated[int, typer.Option("--lds", min=0, metavar="BYTES", help="Of a workgroup, for assembly.")] = 0,
    json: Json = None,
    jobs: Jobs = 0,
    timeout: Timeout = 60.0,
    import_hosts: Import = False,
) -> int:
    """Predict the cycles of a kernel's loops from its assembly, and what they are lost to."""
    from translator.cli.compile_jobs import CompileOptions
    from translator.cli.cycles_command import AssemblyOptions, run_cycles

    options = CompileOptions(target, launches or "", tuple(kernel or ()), json, jobs, timeout, import_hosts)
    return run_cycles(file, source, AssemblyOptions(num_warps, lds), options, context.obj)


@app.command()
def diff(
    context: typer.Context,
    source: Source,
    out: ReviewedFile = None,
    target: OneTargetOrNone = None,
    launches: Launches = None,
    kernel: Kernels = None,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="side (terminal), unified, html or github (comment).",
            autocompletion=complete_word("side", "unified", "html", "github"),
        ),
    ] = "side",
    output: Annotated[Optional[str], typer.Option("-o", "--output", metavar="FILE", help="Write there.")] = None,
    context_lines: Annotated[
        int, typer.Option("--context", "-U", min=0, metavar="N", help="Unchanged lines around a change.")
    ] = 3,
    full: Annotated[bool, typer.Option("--all", help="Fold nothing.")] = False,
    parity: Annotated[
        bool, typer.Option("--parity/--no-parity", help="In a github summary, compare with Triton's own compile.")
    ] = True,
    import_hosts: Import = False,
    assignments: Assignments = None,
    timeout: Timeout = 60.0,
) -> int:
    """Review a translation beside its source: what changed, and why."""
    from translator.cli.diff_command import DiffOptions, run_diff
    from translator.cli.review_inputs import ReviewOptions

    names, pairs = tuple(kernel or ()), tuple(assignments or ())
    review = ReviewOptions(source, out, target, launches, names, pairs, import_hosts, timeout)
    return run_diff(review, DiffOptions(format, output, -1 if full else context_lines, parity), context.obj)


@app.command()
def report(
    context: typer.Context,
    source: Source,
    target: OneTarget,
    out: ReviewedFile = None,
    launches: Launches = None,
    kernel: Kernels = None,
    output: Annotated[
        Optional[str], typer.Option("-o", "--output", metavar="FILE", help="The page; NAME_TARGET.html when left out.")
    ] = None,
    validate: Validate = True,
    upstream: Annotated[
        bool, typer.Option("--upstream", help="Compare with upstream's translator too; it imports the source for real.")
    ] = False,
    import_hosts: Import = False,
    assignments: Assignments = None,
    jobs: Jobs = 0,
    timeout: Timeout = 60.0,
) -> int:
    """Write one HTML page to review a translation: code in step, layouts, LDS, pipeline, parity."""
    from translator.cli.report_command import ReportOptions, run_report
    from translator.cli.review_inputs import ReviewOptions

    names, pairs = tuple(kernel or ()), tuple(assignments or ())
    review = ReviewOptions(source, out, target, launches, names, pairs, import_hosts, timeout)
    return run_report(review, ReportOptions(output, validate, upstream, jobs), context.obj)


@app.command()
def explain(
    context: typer.Context,
    source: Source,
    target: OneTarget,
    launches: Launches = None,
    kernel: Kernels = None,
    line: Annotated[
        Optional[int], typer.Option("--line", min=1, metavar="N", help="Only this line of the source.")
    ] = None,
    after: Annotated[
        str,
        typer.Option(
            "--after",
            metavar="STAGE",
            help="State after trace, layout, staging, pipeline or rewrite.",
            autocompletion=complete_word("trace", "layout", "staging", "pipeline", "rewrite"),
        ),
    ] = "rewrite",
    json: Json = None,
    import_hosts: Import = False,
    assignments: Assignments = None,
    timeout: Timeout = 60.0,
) -> int:
    """Say for every line what was chosen, where the choice came from, and what it costs."""
    from translator.cli.explain_command import run_explain
    from translator.cli.review_inputs import ReviewOptions

    names, pairs = tuple(kernel or ()), tuple(assignments or ())
    review = ReviewOptions(source, None, target, launches, names, pairs, import_hosts, timeout)
    return run_explain(review, line, after, json, context.obj)


@app.command()
def targets(context: typer.Context, json: Json = None) -> int:
    """Print what is supported on each target and how it is mapped."""
    from translator.cli.targets_command import run_targets

    return run_targets(json, context.obj)


ConfigFile = Annotated[
    Optional[str],
    typer.Option("--config", metavar="FILE", help="gluonize.toml or pyproject.toml; the nearest one if left out."),
]


@app.command()
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


@app.command()
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


@app.command()
def tune(
    context: typer.Context,
    source: Source,
    target: Targets,
    launches: Launches = None,
    kernel: Kernels = None,
    out_dir: Annotated[
        Optional[str], typer.Option("-o", "--out-dir", metavar="DIR", help="Write each candidate there, to be timed.")
    ] = None,
    json: Json = None,
    num_buffers: Annotated[
        Optional[int], typer.Option("--num-buffers", min=1, metavar="N", help="LDS buffers of every candidate.")
    ] = None,
    validate: Validate = True,
    import_hosts: Import = False,
    assignments: Assignments = None,
    jobs: Jobs = 0,
    timeout: Timeout = 120.0,
) -> int:
    """Try the ways to write a kernel's loops and print what each costs; -o writes them for a machine with the GPU."""
    from translator.cli.tune_command import TuneOptions, run_tune

    return run_tune(
        TuneOptions(
            source,
            target,
            launches,
            tuple(kernel or ()),
            out_dir,
            json,
            num_buffers,
            validate,
            import_hosts,
            tuple(assignments or ()),
            jobs,
            timeout,
        ),
        context.obj,
    )


add_device_commands(app)
