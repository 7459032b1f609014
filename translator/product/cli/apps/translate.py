"""The command that makes translations."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from gluonize.product.cli.apps.cache import CacheUrl, NoCache, use_cache
from gluonize.product.cli.options import (
    AllConfigs,
    Assignments,
    Budget,
    Choose,
    Cluster,
    CompareWithTriton,
    Compile,
    EmitStage,
    Fallback,
    Force,
    Format,
    General,
    Grid,
    Import,
    Jobs,
    Json,
    KeepGoing,
    KeepStructure,
    Kernels,
    Launches,
    NumBuffers,
    NumCtas,
    Optimize,
    Out,
    OutDir,
    Retile,
    Rules,
    Strategy,
    Strict,
    TargetsOrNone,
    Timeout,
    Validate,
    WriteLaunches,
    WrittenFor,
    given_targets,
)

if TYPE_CHECKING:
    from gluonize.product.project.translate.plan import TranslateOptions


SourcesOrNone = Annotated[
    Optional[list[str]],
    typer.Argument(
        help="Python files, folders, patterns or a module; may be left out when every launch names its source (batch mode), and without"
        " --target too for all that \\[tool.gluonize] in pyproject.toml names."
    ),
]
_OF_UPDATES = ("jobs", "timeout", "validate", "compile", "cache", "format", "cluster")


def translate(
    context: typer.Context,
    target: TargetsOrNone = None,
    source: SourcesOrNone = None,
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
    num_ctas: NumCtas = None,
    optimize: Optimize = "parity",
    budget: Budget = 40,
    grid: Grid = 0,
    retile: Retile = None,
    rules: Rules = None,
    validate: Validate = True,
    parity: CompareWithTriton = True,
    compile: Compile = True,
    cache: CacheUrl = None,
    no_cache: NoCache = False,
    cluster: Cluster = None,
    strict: Strict = False,
    write_launches: WriteLaunches = None,
    all_configs: AllConfigs = False,
    general: General = False,
    force: Force = False,
    written_for: WrittenFor = None,
    emit: EmitStage = None,
    keep_structure: KeepStructure = False,
    format: Format = "text",
) -> int:
    """Translate the kernels of SOURCE, or of every launch, and check the result."""
    given = dict(locals())
    if target is None and not source and launches is None:
        from gluonize.product.cli.project.update import run_update

        given["cache"] = use_cache(cache, no_cache)
        return run_update((), None, _options(given, _OF_UPDATES), context.obj, merge=False)
    from gluonize.product.project.files.sources import is_several, refuse_without_kernels

    given |= {"target": given_targets(target)}
    if source and not is_several(tuple(source)) and not (launches or kernel or json or format != "text"):
        refuse_without_kernels(source[0])  # before the translator is loaded, which takes longer
    options = _options(given | {"cache": use_cache(cache, no_cache)})
    from gluonize.product.cli.translate.command import run_translate

    return run_translate(options, context.obj)


def _options(given: dict[str, Any], only: tuple[str, ...] = ()) -> TranslateOptions:
    """The options of a command line by their names. only: those that count, all when empty."""
    from gluonize.product.project.files.sources import is_several
    from gluonize.product.project.translate.plan import TranslateOptions

    names, choose, ctas = tuple(given["source"] or ()), given["choose"] or (), given["num_ctas"]
    several = is_several(names)
    made = {f.name: given[f.name] for f in fields(TranslateOptions) if f.name in given and (not only or f.name in only)}
    if only:
        return TranslateOptions(**{"source": None, "target": "", **made})
    made |= {name: tuple(given[name] or ()) for name in ("assignments", "rules")}
    made["kernels"] = tuple(given["kernel"] or ())
    made["choose"] = (*choose, *([f"num-ctas={ctas}"] if ctas is not None else []))
    made["source"] = names[0] if names and not several else None
    made["sources"] = names if several else ()
    return TranslateOptions(**made)
