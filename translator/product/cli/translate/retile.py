"""`--retile FILE`: other tiles for the launches of a launch file, written as one, which what follows is made for."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.table import Table

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.cli.console import Verbosity, rich_console
from gluonize.product.project.output.file import write_whole
from gluonize.read.spec.launch import VERSION, LaunchSpec, RefusedLaunch
from gluonize.read.spec.tiles import Tile
from gluonize.request import TranslateRequest
from gluonize.search.retile import Retiled, retile_kernel

if TYPE_CHECKING:
    from gluonize.judge.lower.children.worker import WorkerPool


def retile(
    request: TranslateRequest, path: str, pool: "WorkerPool", verbosity: Verbosity, to_stderr: bool = False
) -> tuple[LaunchSpec, ...]:
    """Write the launches of a request, with the tiles found for them, to the launch file `path`; -> them.

    Raises: TranslationError where there are no launches to begin with, something is wrong with one, or the file cannot be written.
    """
    if not request.launches:
        message, help = "--retile needs launches with a grid and values", "give launch specs with -l FILE"
        raise TranslationError(Diagnostic("usage", message, request.source, help=help))
    if wrong := [x for spec in request.launches if isinstance(spec, RefusedLaunch) for x in spec.problems]:
        raise TranslationError(*wrong)
    kernels = dict.fromkeys(spec.kernel for spec in request.launches)
    found = [
        retile_kernel(request, tuple(spec for spec in request.launches if spec.kernel == kernel), pool)
        for kernel in kernels
    ]
    made = {spec.id: spec for one in found for spec in one.launches}
    launches = tuple(made[spec.id] for spec in request.launches)
    folder = os.path.dirname(os.path.abspath(path))
    written = [replace(spec, source=_from(folder, request.source)).as_json() for spec in launches]
    write_whole(path, json.dumps({"version": VERSION, "launches": written}, indent=2) + "\n")
    if not verbosity.quiet:
        console = rich_console(verbosity, sys.stderr if to_stderr else sys.stdout)
        for one in found:
            for part in _told(one, request.launches, path):
                console.print(part, markup=False)
    return launches


def _from(folder: str, source: str) -> str:
    """A source as a launch file in `folder` names it."""
    return os.path.relpath(source, folder) if source.endswith(".py") else source


def _told(found: Retiled, launches: Sequence[LaunchSpec], path: str) -> list[Table | str]:
    """What was tried for a kernel, and what its host code has to say."""
    if not found.tried:
        return [f"{found.kernel} keeps its tile: {found.why}"]
    table = Table(box=None, pad_edge=False)
    for name in ("tile", "cost", "matrix cores", "choices"):
        table.add_column(name, justify="left" if name in ("tile", "choices") else "right")
    for one in sorted(found.tried, key=lambda t: t.cost):
        own = " (as it is)" if one.tile == found.own else ""
        table.add_row(_text(one.tile) + own, f"{one.cost:.3f}", f"{one.efficiency:.1%}", one.choices.name)
    parts: list[Table | str] = [table]
    if found.fixed:
        parts.append(f"the sizes of {found.kernel} stay: {found.fixed}")
    if found.why:
        return [*parts, f"{found.kernel} keeps its tile: {found.why}"]
    grids = ", ".join(dict.fromkeys(map(str, found.formulas)))
    host = f"launch {found.kernel} with {_text(found.tile)} on a grid of {grids}"
    rest = "its calls, or the configurations of its autotuner, have to say so"
    return [*parts, f"{host}: {rest}. {path} has these launches."]


def _text(tile: Tile) -> str:
    return ", ".join(f"{name}={value}" for name, value in tile)


__all__ = ["retile"]
