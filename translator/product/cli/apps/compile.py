"""The commands that read machine code: what it costs, beside Triton's own, in cycles, by candidate."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from gluonize.product.cli.apps.cache import CacheUrl, NoCache, use_cache
from gluonize.product.cli.options import (
    Assignments,
    Cluster,
    GivenLaunches,
    Import,
    Jobs,
    Json,
    Kernels,
    Launches,
    Retile,
    Source,
    Targets,
    Timeout,
    Validate,
    given_targets,
)


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
    cache: CacheUrl = None,
) -> int:
    """Compile a kernel with no GPU and print what the machine code costs."""
    from gluonize.product.cli.machine_code.compile import run_compile
    from gluonize.product.cli.machine_code.jobs import CompileOptions

    use_cache(cache)
    options = CompileOptions(given_targets(target), launches, tuple(kernel or ()), json, jobs, timeout, import_hosts)
    return run_compile(file, emit, options, context.obj)


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
    gate: Annotated[
        Optional[float],
        typer.Option(
            "--gate",
            metavar="RATIO",
            min=0.0,
            help="Exit with status 1 when the hottest loop is predicted to take more than RATIO times the clocks of Triton's.",
        ),
    ] = None,
    jobs: Jobs = 0,
    timeout: Timeout = 60.0,
    import_hosts: Import = False,
    cache: CacheUrl = None,
    no_cache: NoCache = False,
    cluster: Cluster = None,
) -> int:
    """Compare the machine code of a translation with Triton's own compile of its source."""
    from gluonize.product.cli.machine_code.jobs import CompileOptions
    from gluonize.product.cli.machine_code.parity import run_parity

    cached = use_cache(cache, no_cache)
    options = CompileOptions(
        given_targets(target), launches, tuple(kernel or ()), json, jobs, timeout, import_hosts, cached, cluster
    )
    return run_parity(source, out, check, options, context.obj, gate)


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
    cache: CacheUrl = None,
) -> int:
    """Predict the cycles of a kernel's loops from its assembly, and what they are lost to."""
    from gluonize.product.cli.machine_code.jobs import CompileOptions
    from gluonize.product.cli.machine_code.cycles import AssemblyOptions, run_cycles

    use_cache(cache)
    options = CompileOptions(
        given_targets(target), launches or "", tuple(kernel or ()), json, jobs, timeout, import_hosts
    )
    return run_cycles(file, source, AssemblyOptions(num_warps, lds), options, context.obj)


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
    retile: Retile = None,
    validate: Validate = True,
    import_hosts: Import = False,
    assignments: Assignments = None,
    jobs: Jobs = 0,
    timeout: Timeout = 120.0,
    cache: CacheUrl = None,
    no_cache: NoCache = False,
    cluster: Cluster = None,
) -> int:
    """Try the ways to write a kernel's loops and print what each costs; -o writes them for a machine with the GPU."""
    from gluonize.product.cli.machine_code.tune import TuneOptions, run_tune

    cached = use_cache(cache, no_cache)
    return run_tune(
        TuneOptions(
            source,
            given_targets(target),
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
            cached,
            cluster,
            retile,
        ),
        context.obj,
    )
