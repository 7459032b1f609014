"""Triton's own passes: up to the point where every layout is decided and no loop is pipelined, and on from there.

The pass lists follow `HIPBackend.make_ttir` and the two halves of `HIPBackend.make_ttgir` of Triton 3.9.0
(`triton/backends/amd/compiler.py`); a new Triton version is compared with them here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gluonize.trace.passes.cluster_rows import (
    module_of,
    of_whole_tiles,
    splits_columns_alone,
    with_rows_split,
    with_vectors_whole,
    without_columns,
)
from gluonize.trace.passes.cluster_tiles import with_tiles_as_used
from gluonize.triton_api.backend import amd_compiler, knobs
from gluonize.triton_api.differences import base_arch
from gluonize.triton_api.libtriton import amd, ir, nvidia, passes

# How many times workgroups are doubled to see how they share rows: a row of 64 << 4 columns is split into parts of 64 before that.
_MORE_BITS = 4


def run_ttir_passes(module: Any, options: Any) -> None:
    """Inline, canonicalize and simplify, as Triton does before layouts exist."""
    pm = ir.pass_manager(module.context)
    passes.common.add_inliner(pm)
    # The tensor data mover does not reduce: Triton has no code for such a store there, this pass has.
    if not amd.supports_tdm(options.arch) or _has(module, "tt.descriptor_reduce"):
        passes.ttir.add_rewrite_tensor_descriptor_to_pointer(pm)
    passes.common.add_canonicalizer(pm)
    passes.ttir.add_combine(pm)
    passes.ttir.add_reorder_broadcast(pm)
    passes.common.add_cse(pm)
    passes.ttir.add_triton_licm(pm)
    passes.common.add_symbol_dce(pm)
    passes.ttir.add_loop_unroll(pm)
    pm.run(module, "make_ttir")


def _has(module: Any, name: str) -> bool:
    """Whether the module has an operation of this name."""
    found = []
    module.walk(lambda op: found.append(True) if op.get_name() == name else None)
    return bool(found)


def run_layout_passes(module: Any, options: Any, split_rows: bool = False, whole_vectors: bool = False) -> Any:
    """From TTIR to TTGIR with Triton's layouts: coalescing, matrix instructions, conversions removed and placed.

    split_rows: workgroups of a cluster share the rows of products alone. whole_vectors: each has all of every vector. -> the module,
    another one then.
    """
    module = _with_rows_split(module, options) if split_rows else _share_out(module, options)
    module = with_vectors_whole(module) if whole_vectors else module
    pm = ir.pass_manager(module.context)
    if options.num_ctas > 1:
        passes.ttgpuir.add_remove_layout_conversions(pm)
        nvidia.passes.ttnvgpuir.add_optimize_cta_locality(pm)
    passes.ttgpuir.add_remove_layout_conversions(pm)
    passes.ttgpuir.add_optimize_thread_locality(pm)
    amd.passes.ttgpuir.add_accelerate_matmul(pm, options.arch, options.matrix_instr_nonkdim, options.kpack)
    passes.ttgpuir.add_remove_layout_conversions(pm)
    amd.passes.ttgpuir.add_optimize_epilogue(pm)
    amd.passes.ttgpuir.add_optimize_dot_operands(pm, options.arch)
    amd.passes.ttgpuir.add_hoist_layout_conversions(pm)
    amd.passes.ttgpuir.add_sink_layout_conversions(pm)
    passes.common.add_canonicalizer(pm)
    pm.run(module, "make_ttgir")
    if options.num_ctas > 1 and (changed := with_tiles_as_used(module)) is not module:
        module = changed
        pm = ir.pass_manager(module.context)
        passes.ttgpuir.add_remove_layout_conversions(pm)
        passes.common.add_canonicalizer(pm)
        pm.run(module, "make_ttgir_tiles")
    return module


def _share_out(module: Any, options: Any) -> Any:
    """The module with the layouts that accesses to memory have, of workgroups too; itself."""
    pm = ir.pass_manager(module.context)
    passes.ttir.add_convert_to_ttgpuir(
        pm, f"hip:{options.arch}", options.num_warps, options.warp_size, options.num_ctas
    )
    pm.run(module, "make_ttgir_early")
    pm = ir.pass_manager(module.context)
    passes.ttgpuir.add_coalesce(pm)
    passes.ttgpuir.add_f32_dot_tc(pm, False)
    if options.num_ctas > 1:
        # Each tensor gets its share of CTAs by what it is multiplied with. Triton's backend for AMD leaves it split along its first
        # dimension, and has no code for what then moves between CTAs; these passes of another backend know nothing of a target.
        nvidia.passes.ttnvgpuir.add_assign_cga_layouts(pm)
    pm.run(module, "make_ttgir_shared_out")
    return module


def _with_rows_split(module: Any, options: Any) -> Any:
    """`_share_out` where workgroups share rows of products alone."""
    text = module.str()
    shared = _share_out(module, options)
    if not splits_columns_alone(shared):
        return with_rows_split(shared)
    for more in range(1, _MORE_BITS + 1):
        of_more = replace(options, num_ctas=options.num_ctas << more)
        found = without_columns(_share_out(module_of(text, module.context), of_more), options.num_ctas)
        if found is not None:
            return found
    return shared


def run_whole_passes(module: Any, options: Any) -> Any:
    """`run_layout_passes` for a cluster of which each workgroup has all of every tensor. Raises: RuntimeError where Triton has no such layout."""
    return of_whole_tiles(run_layout_passes(module, replace(options, num_ctas=1)), options.num_ctas)


def run_pipeline_passes(module: Any, options: Any, loops_alone: bool = False) -> None:
    """From `run_layout_passes` on: loops scheduled and pipelined, copies to LDS coalesced, buffer operations. loops_alone: without the last."""
    pm = ir.pass_manager(module.context)
    passes.ttgpuir.add_fuse_nested_loops(pm)
    passes.common.add_canonicalizer(pm)
    passes.ttir.add_triton_licm(pm)
    passes.common.add_canonicalizer(pm)
    async_copy = amd_compiler.is_async_copy_enabled(base_arch(options))
    ping_pong = amd_compiler.is_pingpong_schedule_enabled(options.arch, async_copy)
    amd.passes.ttgpuir.add_optimize_descriptor_encoding(pm)
    amd.passes.ttgpuir.add_schedule_loops(pm, options.num_stages)
    amd.passes.ttgpuir.add_pipeline(pm, async_copy, ping_pong)
    if async_copy:
        amd.passes.ttgpuir.add_coalesce_async_copy(pm, options.arch)
    amd.passes.ttgpuir.add_convert_to_tensor_ops(pm)
    passes.common.add_canonicalizer(pm)
    passes.ttgpuir.add_remove_layout_conversions(pm)
    passes.ttgpuir.add_reduce_data_duplication(pm)
    if loops_alone:
        pm.run(module, "make_ttgir_loops")
        return
    if amd_compiler.is_in_thread_transpose_enabled(options.arch):
        amd.passes.ttgpuir.add_in_thread_transpose(pm)
        passes.ttgpuir.add_remove_layout_conversions(pm)
    if knobs.amd.use_buffer_ops:
        amd.passes.ttgpuir.add_canonicalize_pointers(pm)
        passes.common.add_canonicalizer(pm)
        amd.passes.ttgpuir.add_convert_to_buffer_ops(
            pm, options.arch, knobs.amd.use_buffer_atomics, knobs.amd.buffer_ops_analyze_small_tensor_range
        )
    passes.common.add_canonicalizer(pm)
    pm.run(module, "make_ttgir_pipelined")


def lds_bytes(module: Any, options: Any) -> int:
    """The LDS of a workgroup as Triton allocates it, after `run_pipeline_passes`; the module is not to be used any more."""
    pm = ir.pass_manager(module.context)
    passes.convert.add_scf_to_cf(pm)
    amd.passes.ttgpuir.add_allocate_shared_memory(pm, options.arch)
    pm.run(module, "make_llir_lds")
    return module.get_int_attr("ttg.shared") or 0


def run_last_passes(module: Any) -> None:
    """What `run_pipeline_passes` leaves out, as far as it matters to LDS: equal allocations become one."""
    pm = ir.pass_manager(module.context)
    passes.common.add_cse(pm)
    pm.run(module, "make_ttgir_last")
