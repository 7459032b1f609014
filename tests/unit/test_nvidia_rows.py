"""The rows of `rules/nvidia.py`: every operation has one, and what it says is what the lifter does."""

from __future__ import annotations

from functools import cache

import pytest

from nvidia_examples import EXAMPLES, HEAD
from gluonize.lift.kernel import lift_kernel
from gluonize.read.kernels.load import load_kernel
from gluonize.read.spec.launch import parse_launches
from gluonize.rules.nvidia import NVIDIA, NvidiaRow
from gluonize.trace.front.gluon_source import gluon_module

# The operations of the dialect TritonNvidiaGPU that are for kernels, as its reference lists them.
DIALECT = """
    arrive_barrier async_copy_mbarrier_arrive async_tma_copy_global_to_local async_tma_copy_local_to_global async_tma_gather
    async_tma_reduce async_tma_scatter async_tma_store_wait barrier_expect cluster_arrive cluster_wait fence_async_shared init_barrier
    inval_barrier reinterpret_tensor_descriptor tc_gen5_commit tc_gen5_mma tc_gen5_mma_scaled tensormap_create
    tensormap_fenceproxy_acquire tmem_alloc tmem_copy tmem_load tmem_store tmem_subslice wait_barrier warp_group_dot warp_group_dot_wait
""".split()


@pytest.fixture(scope="module")
def lifted(tmp_path_factory):
    """The operations of an example, and its lifted kernel."""

    @cache
    def of(name: str) -> tuple[set[str], str]:
        source, target, arguments, grid = EXAMPLES[name]
        path = tmp_path_factory.mktemp("examples") / "source.py"
        path.write_text(HEAD + source)
        launch = {"kernel": "kernel", "source": str(path), "target": target, "grid": grid, "options": {"num_warps": 4}}
        launch |= {"signature": {n: kind for n, (kind, _) in arguments.items()}}
        launch |= {"values": {n: value for n, (_, value) in arguments.items()}}
        (spec,) = parse_launches(launch)
        loaded = load_kernel(str(path), "kernel")
        module = gluon_module(loaded.fn, spec, target, loaded.load_jit)
        return {op.name.removeprefix("ttng.") for op in module.walk()}, lift_kernel(loaded, spec).text

    return of


def test_every_operation_has_one_row():
    assert sorted(row.op for row in NVIDIA) == sorted(DIALECT)


@pytest.mark.parametrize("row", [row for row in NVIDIA if row.example], ids=lambda row: row.op)
def test_a_row_says_what_the_lifter_does(row: NvidiaRow, lifted):
    operations, text = lifted(row.example)
    assert row.op in operations, f"the example does not use {row.op}"
    body = text[text.index("@triton.jit") :]
    assert row.gives in body
    assert not any(word in body for word in ("mbarrier", "smem", "tmem", "layout", "fence"))
    assert bool(row.lifted) == bool(row.gives) or row.lifted == "the value"


@pytest.mark.parametrize("row", [row for row in NVIDIA if not row.example], ids=lambda row: row.op)
def test_what_has_no_example_is_in_no_kernel(row: NvidiaRow, lifted):
    """No function of Gluon makes these operations: its lowering does."""
    assert not any(row.op in lifted(name)[0] for name in EXAMPLES)
    from triton._C.libtriton.gluon_ir import GluonOpBuilder

    made = [name for name in dir(GluonOpBuilder) if row.op in name and "amd" not in name]
    assert not made, made
