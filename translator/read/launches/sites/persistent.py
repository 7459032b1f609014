"""Launches of a file whose kernels go from tile to tile: what stands around their `run` gives them the number of tiles.

def _run_persistent_kernel(run, programs_per_unit=1):      written by `gluonize.output.programs.runs`
    def persistent(*args, grid, **kwargs):
        tiles, *others = ...
        return run(*args, grid=(min(tiles, ...), *others), tiles=tiles, **kwargs)

def _run_stream_k_kernel(run, programs_per_unit=1, elements=16384, dtype="float32"):
    def stream_k(*args, grid, **kwargs):
        ...
        return run(*args, grid=(..., *others), tiles=tiles, sums=..., marks=..., **kwargs)
"""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass, replace

from gluonize.read.files.modules import parse_file
from gluonize.read.kernels.load import LoadedKernel
from gluonize.read.spec.launch import LaunchSpec

PREFIX, STREAM_K = "_run_persistent_", "_run_stream_k_"
PER_UNIT, ELEMENTS = "programs_per_unit", "elements"
_POINTERS = {"fp32": "*fp32", "int32": "*i32"}
_SPELLED = {"float32": "fp32", "int32": "int32"}


@dataclass(frozen=True)
class Shared:
    """Of a kernel whose programs share the steps of tiles: the parameters with the number of tiles, with what each program has summed of a
    tile for another one, and with the marks that say so. elements: of a program's sums at most; dtype: of these, `fp32` or `int32`; per_unit:
    programs for each compute unit.
    """

    count: str
    sums: str
    marks: str
    elements: int
    dtype: str
    per_unit: int = 1


@dataclass(frozen=True)
class Persistent:
    """count: the parameter of a kernel with the number of tiles; per_unit: programs that are launched for each compute unit at most; call:
    line and column of the call that does one tile, (0, 0) where a hand has written it otherwise; shared: None where a program has whole tiles.
    """

    count: str
    per_unit: int
    call: tuple[int, int]
    shared: Shared | None = None


def run_persistent_name(kernel: str, prefix: str = PREFIX) -> str:
    """The function that stands around the `run` of a kernel."""
    return f"{prefix}{kernel.rpartition('.')[2].lstrip('_')}"


def persistent_launch(loaded: LoadedKernel) -> Persistent | None:
    """How a kernel is launched that goes from tile to tile, None of any other."""
    if not loaded.fn.is_gluon() or PREFIX not in loaded.text and STREAM_K not in loaded.text:
        return None
    name = loaded.fn.__name__
    tree = parse_file(loaded.path).tree
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    kernel = functions.get(name)
    around = functions.get(run_persistent_name(name)) or functions.get(run_persistent_name(name, STREAM_K))
    if around is None or kernel is None:
        return None
    counts = [p.name for p in loaded.fn.params if p.has_default and p.default is None]
    given = [x.value for x in around.args.defaults if isinstance(x, ast.Constant)]
    if around.name.startswith(STREAM_K):
        return _stream_k(counts, given)
    loops = [n for n in kernel.body if isinstance(n, ast.For)]
    inside = [s.value for s in (loops[0].body if loops else ()) if isinstance(s, ast.Expr)]
    calls = [n for n in inside if isinstance(n, ast.Call)]
    if not counts or not given:
        return None
    call = (calls[0].lineno, calls[0].col_offset + 1) if calls else (0, 0)
    return Persistent(counts[-1], int(given[-1]), call)


def _stream_k(parameters: list[str], given: list) -> Persistent | None:
    """That of programs which share steps. parameters: those that default to None; given: what stands around `run` defaults to."""
    if len(parameters) < 3 or len(given) != 3:
        return None
    (count, sums, marks), (per_unit, elements, dtype) = parameters[-3:], given
    shared = Shared(count, sums, marks, int(elements), _SPELLED.get(dtype, "fp32"), int(per_unit))
    return Persistent(count, shared.per_unit, (0, 0), shared)


def within_tile(assembly: str, loaded: LoadedKernel, found: Persistent) -> str:
    """Assembly whose comments say where in the function of one tile a line is from, not that this is called."""
    line, column = found.call
    return assembly.replace(f" @[ {os.path.basename(loaded.path)}:{line}:{column} ]", "")


def with_tiles(spec: LaunchSpec, found: Persistent) -> LaunchSpec:
    """`spec` as what stands around `run` hands it on, with the grid of the source."""
    tiles = spec.grid[0] if spec.grid else 1
    values = {**spec.values, found.count: tiles} if spec.values else {}
    spec = replace(spec, signature={**spec.signature, found.count: "i32"}, values=values)
    return spec if found.shared is None else with_shared(spec, found.shared)


def with_shared(spec: LaunchSpec, shared: Shared) -> LaunchSpec:
    """`spec` with the types of what a kernel is given whose programs share steps: memory that is allocated for it."""
    added = {shared.count: "i32", shared.sums: _POINTERS[shared.dtype], shared.marks: "*i32"}
    flags = {shared.sums: "DS", shared.marks: "DS"}
    return replace(spec, signature={**spec.signature, **added}, attrs={**spec.attrs, **flags})
