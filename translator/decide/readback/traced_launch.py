"""One launch of a Triton kernel, traced and run through Triton's layout passes: everything later stages look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gluonize.decide.readback.held import read_held
from gluonize.decide.readback.late_loads import with_late_layouts
from gluonize.decide.readback.late_reductions import with_late_reductions
from gluonize.decide.readback.loop_lds import read_loop_lds
from gluonize.decide.readback.operands import OperandInLds, read_early, read_operands
from gluonize.decide.readback.staging import (
    Rows,
    Staged,
    read_descriptor_layouts,
    read_rows,
    read_staging,
    with_row_numbers,
)
from gluonize.facts.integers.given_launches import GivenNumbers
from gluonize.read.launches.sites.persistent import Shared
from gluonize.read.spec.compile_arguments import compile_arguments
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.targets import Target
from gluonize.rules.targets import target as target_row
from gluonize.trace.front.offline import offline_target
from gluonize.trace.front.trace import Trace, trace_source
from gluonize.trace.model.cta_parts import shares_tensors
from gluonize.trace.model.layouts import SharedLayout
from gluonize.trace.model.parse import parse_module
from gluonize.trace.passes.anchors import Anchors, Path, path_of, read_anchors
from gluonize.trace.passes.cluster_moves import (
    Obstacle,
    cluster_obstacles,
    memory_in_two_ways,
    refusal,
    tiles_in_two_ways,
)
from gluonize.trace.passes.cluster_rows import module_of
from gluonize.trace.passes.triton_passes import (
    lds_bytes,
    run_last_passes,
    run_layout_passes,
    run_pipeline_passes,
    run_ttir_passes,
    run_whole_passes,
)
from gluonize.triton_api.backend import make_backend
from gluonize.triton_api.differences import with_numerics
from gluonize.triton_api.front_end import ASTSource

_LOOPS, _PRODUCTS = ("scf.for", "scf.while"), ("tt.dot", "tt.dot_scaled")


@dataclass(frozen=True)
class TracedLaunch:
    spec: LaunchSpec
    target: Target
    trace: Trace
    anchors: Anchors
    num_warps: int
    num_ctas: int
    options: dict[str, Any]
    staging: dict[tuple[int, ...], Staged] = field(default_factory=dict)
    buffer_atomics: frozenset[tuple[int, ...]] = frozenset()  # paths of atomics that Triton makes buffer operations
    operands_in_lds: dict[tuple[int, ...], tuple[OperandInLds, ...]] = field(default_factory=dict)
    descriptor_layouts: dict[tuple[int | str, ...], SharedLayout] = field(default_factory=dict)
    rows: dict[tuple[int, ...], Rows] = field(default_factory=dict)  # gathers and scatters of the tensor data mover
    loops: bool = True  # whether Triton's final module has one
    multiplies: bool = False  # whether matrices are multiplied in one
    # LDS of Triton's kernel, where the data mover could fetch what it keeps in registers, loops are mixed or tiles padded.
    lds_bytes: int = 0
    loop_lds: dict[tuple[int, ...], int] = field(default_factory=dict)  # beside rings, where the data mover could
    given: tuple[GivenNumbers, ...] = ()  # of the launches that share its text
    loose: bool = False  # whether its text is to be that of other sizes too
    loads_once: bool = False  # whether what is loaded is moved, however little it is
    shared: Shared | None = None  # None where programs have whole tiles
    narrow: TracedLaunch | None = None  # with operands as the launch has them, where this has wider ones


def trace_launch(fn: Any, spec: LaunchSpec, target: str, load_jit=None, padded: bool = True) -> TracedLaunch:
    """Trace `fn` for `spec` on `target` and read Triton's layouts back; padded: where there are few registers, rotating layouts in LDS
    may become padded ones, which no rule gives for other sizes.

    Runs MLIR passes: call it in a child process. Raises what Triton's front end raises, and TranslationError `clusters` for what
    the workgroups of a program cannot do together.
    """
    row = target_row(target)
    source, options = _source(fn, spec, load_jit), dict(spec.options)
    with offline_target(target) as gpu:
        trace = trace_source(source, gpu, options)
        parsed = make_backend(gpu).parse_options(with_numerics(options))
        run_ttir_passes(trace.module, parsed)
        if parsed.num_ctas > 1:
            _lay_out_cluster(trace, parsed)
        else:
            run_layout_passes(trace.module, parsed)
        anchors = read_anchors(parse_module(trace.module.str()))
        run_pipeline_passes(trace.module, parsed)
        final = parse_module(trace.module.str())
        banks = row.lds_banks if row.has_few_registers and padded else None
        staging = {**read_held(final), **read_staging(final, banks)}
        descriptor_layouts = read_descriptor_layouts(final)
        rows = read_rows(final)
        anchors = with_late_layouts(with_row_numbers(anchors, rows), final, staging)
        anchors = with_late_reductions(anchors, final)
        buffer_atomics = frozenset(path_of(op) for op in final.walk() if op.name == "amdg.buffer_atomic_rmw") - {()}
        loops = final.has(*_LOOPS)
        multiplies = any(
            inner.name in _PRODUCTS
            for op in final.walk()
            if op.name in _LOOPS
            for r in op.regions
            for inner in r.walk()
        )
        early: frozenset[Path] = frozenset()
        if not loops:
            run_last_passes(trace.module)
            early = read_early(parse_module(trace.module.str()), lambda size: row.roomiest_lds(size, parsed.num_warps))
        ways = {staged.copy for staged in staging.values()}
        held = row.supports_tdm and "held" in ways
        mixed = "registers" in ways and not ways.isdisjoint(("buffer", "global"))
        pads = any(staged.exchanged is not None for staged in staging.values())
        allocated = lds_bytes(trace.module, parsed) if held or mixed or pads else 0
    trace.module = trace.context = None
    return TracedLaunch(
        spec,
        row,
        trace,
        anchors,
        parsed.num_warps,
        parsed.num_ctas,
        options,
        staging,
        buffer_atomics,
        read_operands(final, early, banks),
        descriptor_layouts,
        rows,
        loops,
        multiplies,
        allocated,
        read_loop_lds(final) if held else {},
    )


def read_trace(fn: Any, spec: LaunchSpec, target: str, load_jit=None) -> Trace:
    """What Triton's front end makes of `fn`, and no pass. Raises what it raises."""
    with offline_target(target) as gpu:
        trace = trace_source(_source(fn, spec, load_jit), gpu, dict(spec.options))
    trace.module = trace.context = None
    return trace


def _source(fn: Any, spec: LaunchSpec, load_jit: Any) -> ASTSource:
    given = compile_arguments(spec, fn, load_jit)
    return ASTSource(fn=fn, signature=given.signature, constexprs=given.constexprs, attrs=given.attrs)


def _lay_out_cluster(trace: Trace, options: Any) -> None:
    """Layouts of a program of several workgroups, the first of these that asks no workgroup for what another one has:

    - as Triton's passes share out products, or by rows of them alone;
    - so, with all of each vector in every workgroup;
    - all of everything in every workgroup, which is laid out for one.

    Raises: TranslationError `clusters` where none does, of what the first asks for.
    """
    text, context = trace.module.str(), trace.module.context
    asked: tuple[Obstacle, ...] = ()
    found = None
    for lay_out in _CLUSTERS:
        try:
            module = lay_out(module_of(text, context), options)
            parsed = parse_module(module.str())
            obstacles = cluster_obstacles(parsed) + tiles_in_two_ways(parsed)
            obstacles += memory_in_two_ways(parsed) if lay_out is not run_whole_passes else ()
        except RuntimeError:  # Triton's passes have no layouts of that kind
            continue
        if not obstacles:
            found = module
            if shares_tensors(parsed):
                break
        asked = asked or obstacles
    if found is None and asked:
        raise refusal(trace, options.num_ctas, asked)
    trace.module = run_layout_passes(trace.module, options) if found is None else found


_CLUSTERS = (
    run_layout_passes,
    partial(run_layout_passes, split_rows=True),
    partial(run_layout_passes, whole_vectors=True),
    partial(run_layout_passes, split_rows=True, whole_vectors=True),
    run_whole_passes,
)
