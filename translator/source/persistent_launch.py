"""Launches of a file whose kernels go from tile to tile: what stands around their `run` gives them the number of tiles.

def _run_persistent_kernel(run, programs_per_unit=1):      written by `translator.rewrite.persistent`
    def persistent(*args, grid, **kwargs):
        tiles, *others = ...
        return run(*args, grid=(min(tiles, ...), *others), tiles=tiles, **kwargs)
"""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass, replace

from translator.source.launch_spec import LaunchSpec
from translator.source.load import LoadedKernel
from translator.source.module_file import parse_file

PREFIX = "_run_persistent_"
PER_UNIT = "programs_per_unit"


@dataclass(frozen=True)
class Persistent:
    """count: the parameter of a kernel with the number of tiles; per_unit: programs that are launched for each compute unit at most; call:
    line and column of the call that does one tile, (0, 0) where a hand has written it otherwise."""

    count: str
    per_unit: int
    call: tuple[int, int]


def run_persistent_name(kernel: str) -> str:
    """The function that stands around the `run` of a kernel."""
    return f"{PREFIX}{kernel.rpartition('.')[2].lstrip('_')}"


def persistent_launch(loaded: LoadedKernel) -> Persistent | None:
    """How a kernel is launched that goes from tile to tile, None of any other."""
    if not loaded.fn.is_gluon() or PREFIX not in loaded.text:
        return None
    name = loaded.fn.__name__
    tree = parse_file(loaded.path).tree
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    around, kernel = functions.get(run_persistent_name(name)), functions.get(name)
    if around is None or kernel is None:
        return None
    counts = [p.name for p in loaded.fn.params if p.has_default and p.default is None]
    per_unit = [x.value for x in around.args.defaults if isinstance(x, ast.Constant)]
    loops = [n for n in kernel.body if isinstance(n, ast.For)]
    inside = [s.value for s in (loops[0].body if loops else ()) if isinstance(s, ast.Expr)]
    calls = [n for n in inside if isinstance(n, ast.Call)]
    if not counts or not per_unit:
        return None
    call = (calls[0].lineno, calls[0].col_offset + 1) if calls else (0, 0)
    return Persistent(counts[-1], int(per_unit[-1]), call)


def within_tile(assembly: str, loaded: LoadedKernel, found: Persistent) -> str:
    """Assembly whose comments say where in the function of one tile a line is from, not that this is called."""
    line, column = found.call
    return assembly.replace(f" @[ {os.path.basename(loaded.path)}:{line}:{column} ]", "")


def with_tiles(spec: LaunchSpec, found: Persistent) -> LaunchSpec:
    """`spec` as what stands around `run` hands it on, with the grid of the source."""
    tiles = spec.grid[0] if spec.grid else 1
    values = {**spec.values, found.count: tiles} if spec.values else {}
    return replace(spec, signature={**spec.signature, found.count: "i32"}, values=values)
