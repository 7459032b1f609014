"""The commands for a reader of translations: differences, a page, reasons, what targets have."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from gluonize.product.cli.options import (
    Assignments,
    Import,
    Jobs,
    Json,
    Kernels,
    Launches,
    OneTarget,
    OneTargetOrNone,
    ReviewedFile,
    Source,
    Timeout,
    Validate,
    complete_one_target,
    complete_word,
)


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
    from gluonize.product.cli.review.diff import DiffOptions, run_diff
    from gluonize.product.cli.review.inputs import ReviewOptions

    names, pairs = tuple(kernel or ()), tuple(assignments or ())
    review = ReviewOptions(source, out, target, launches, names, pairs, import_hosts, timeout)
    return run_diff(review, DiffOptions(format, output, -1 if full else context_lines, parity), context.obj)


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
    from gluonize.product.cli.review.report import ReportOptions, run_report
    from gluonize.product.cli.review.inputs import ReviewOptions

    names, pairs = tuple(kernel or ()), tuple(assignments or ())
    review = ReviewOptions(source, out, target, launches, names, pairs, import_hosts, timeout)
    return run_report(review, ReportOptions(output, validate, upstream, jobs), context.obj)


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
    from gluonize.product.cli.review.explain import run_explain
    from gluonize.product.cli.review.inputs import ReviewOptions

    names, pairs = tuple(kernel or ()), tuple(assignments or ())
    review = ReviewOptions(source, None, target, launches, names, pairs, import_hosts, timeout)
    return run_explain(review, line, after, json, context.obj)


def layout(
    context: typer.Context,
    expression: Annotated[
        str,
        typer.Argument(help="A layout as Gluon spells it, such as 'gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])'."),
    ],
    shape: Annotated[str, typer.Option("--shape", metavar="M,N", help="The tile, in elements.")],
    target: Annotated[
        str,
        typer.Option(
            "-t", "--target", metavar="TARGET", help="Whose banks of LDS to count.", autocompletion=complete_one_target
        ),
    ] = "gfx950",
    bits: Annotated[
        int, typer.Option("--bits", min=1, max=64, metavar="N", help="Of an element, for layouts of LDS.")
    ] = 16,
    access: Annotated[
        Optional[str],
        typer.Option(
            "--access", metavar="LAYOUT", help="Registers that a tile in LDS moves to or from: its bank conflicts."
        ),
    ] = None,
    view: Annotated[
        str,
        typer.Option(
            "--view",
            metavar="VIEW",
            help="drawing, or Gluon's own tensor or hardware view.",
            autocompletion=complete_word("drawing", "tensor", "hardware"),
        ),
    ] = "drawing",
    output: Annotated[
        Optional[str], typer.Option("-o", "--output", metavar="FILE.svg", help="Draw an SVG too.")
    ] = None,
    timeout: Timeout = 60.0,
) -> int:
    """Draw a layout: which lane and register has each element, or where in LDS it is and which banks conflict."""
    from gluonize.product.cli.review.layout import LayoutOptions, run_layout

    return run_layout(LayoutOptions(expression, shape, target, bits, access, view, output, timeout), context.obj)


def targets(context: typer.Context, json: Json = None) -> int:
    """Print what is supported on each target and how it is mapped."""
    from gluonize.product.cli.review.targets import run_targets

    return run_targets(json, context.obj)
