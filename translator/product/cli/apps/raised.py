"""The command that reads what Triton's compiler made."""

from __future__ import annotations

from typing import Annotated, Optional

import typer
from gluonize.product.cli.options import Kernels


def raise_(
    context: typer.Context,
    file: Annotated[
        Optional[str],
        typer.Argument(metavar="[FILE]", help="A module of TTGIR that Triton compiled, or its folder in a cache."),
    ] = None,
    out: Annotated[
        Optional[str],
        typer.Option(
            "-o", "--out", metavar="OUT", help="The file, or for several kernels the folder; else standard output."
        ),
    ] = None,
    cache: Annotated[
        Optional[str],
        typer.Option("--cache", metavar="DIR", help="List the kernels of Triton's cache; with -k or -o raise them."),
    ] = None,
    kernel: Kernels = None,
    together: Annotated[
        bool,
        typer.Option(
            "--together", help="With -k: the kernels that differ in tile sizes alone as one, with constexpr parameters."
        ),
    ] = False,
    stage: Annotated[
        str,
        typer.Option(
            "--stage", metavar="layouts|loops|last", help="How far Triton's passes went: made again of the TTIR."
        ),
    ] = "last",
    target: Annotated[
        Optional[str],
        typer.Option(
            "-t",
            "--target",
            help="Kernels of a cache for this alone; what a FILE of TTIR is for, where nothing says so.",
        ),
    ] = None,
) -> int:
    """Write what Triton compiled as Gluon: its layouts, pipelines and memory accesses as code to edit."""
    from gluonize.product.cli.raising import run_raise

    return run_raise(file, out, cache, tuple(kernel or ()), stage, target, together, context.obj)
