"""The command that says what works with the installed Triton."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from gluonize.product.cli.options import Json


def doctor(
    context: typer.Context,
    target: Annotated[
        Optional[list[str]],
        typer.Option(
            "-t", "--target", metavar="TARGET", help="Architectures to try; one of each family when left out."
        ),
    ] = None,
    json: Json = None,
) -> int:
    """Say what works with the installed Triton: names that moved, and a kernel for each target."""
    from gluonize.product.cli.doctor import run_doctor
    from gluonize.rules.targets import DEFAULT_TARGETS, parse_targets

    named = tuple(row.name for row in parse_targets(",".join(target))) if target else DEFAULT_TARGETS
    return run_doctor(named, json, context.obj)
