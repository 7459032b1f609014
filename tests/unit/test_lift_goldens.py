"""Our own translations are Gluon kernels for AMD GPUs: as sources they are lifted, or refused for what their authors wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fixture_set import Fixture, fixtures
from lift_harness import lifted, tensor

from gluonize.diagnostics import TranslationError
from gluonize.lift.kernel import lift_kernel
from gluonize.read.kernels.load import load_kernel
from gluonize.read.spec.launch import read_launches

SOURCES = ("gfx950", "gfx942", "gfx1250", "gfx1250_warp_specialized")
NAMES = [fixture.name for fixture in fixtures()]
# By launch: why what it does is not known without its data.
REFUSED = {
    "cross_entropy/forward": "a number that is read from memory",
    "cross_entropy/backward": "a number that is read from memory",
    "root_finding/clamped": "a number that is read from memory",
    "root_finding/damped": "a number that is read from memory",
    "scan/linear_recurrence": "what a loop carries is stored in it",
    "chunked_scan/fp16": "iterations, programs or sizes do not do the same",
}


def fast(fixture: Fixture, source: str) -> bool:
    """One source of some fixtures, and every source of one."""
    return source == "gfx950" and fixture.name in NAMES[::3] or fixture.name == "matmul"


CASES = [
    pytest.param(
        fixture, source, id=f"{fixture.name}-{source}", marks=() if fast(fixture, source) else pytest.mark.slow
    )
    for fixture in fixtures()
    for source in SOURCES
    if fixture.golden_file(source).exists()
]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("fixture, source", CASES)
def test_a_golden_is_lifted(fixture: Fixture, source: str):
    golden = str(fixture.golden_file(source))
    target = "hip:" + source.partition("_")[0]
    for launch in read_launches(str(fixture.launches_file)):
        spec = replace(launch, source=golden, target=target)
        loaded = load_kernel(golden, launch.kernel)
        if launch.id not in REFUSED:
            text = lift_kernel(loaded, spec).text
            assert "gl." not in text and f"def {launch.kernel}(" in text
            continue
        with pytest.raises(TranslationError, match=REFUSED[launch.id]) as refused:
            lift_kernel(loaded, spec)
        assert refused.value.diagnostics[0].line > 1


def test_what_an_atomic_operation_reads_is_not_used(tmp_path):
    source = """
    @gluon.jit
    def kernel(x_ptr, y_ptr):
        at = gl.arange(0, 256, gl.BlockedLayout([1], [64], [4], [0]))
        before = gl.atomic_add(x_ptr + at, 2.0, mask=at < 200, sem="relaxed")
        gl.store(y_ptr + at, {value})
    """
    arguments = {name: ("*fp32", tensor("float32", 256)) for name in ("x_ptr", "y_ptr")}
    text = lifted(tmp_path, source.format(value=1.0), "hip:gfx950", arguments, {}, [1])
    assert text.count("tl.atomic_add(") == 1 and 'mask=before_1, sem="relaxed", scope="gpu")' in text
    with pytest.raises(TranslationError, match="what an atomic operation reads is used"):
        lifted(tmp_path, source.format(value="before"), "hip:gfx950", arguments, {}, [1])
    swapped = source.format(value=1).replace(
        "gl.atomic_add(x_ptr + at, 2.0, mask=at < 200", "gl.atomic_cas(x_ptr + at, at, at"
    )
    integers = {name: ("*i32", tensor("int32", 256)) for name in ("x_ptr", "y_ptr")}
    with pytest.raises(TranslationError, match="what an atomic operation reads is used"):
        lifted(tmp_path, swapped, "hip:gfx950", integers, {}, [1])


@pytest.mark.parametrize("extent, moves", [("2**31 - 1", True), ("n", False)])
def test_a_descriptor_whose_bounds_move_with_its_tile(tmp_path, extent, moves):
    """Without bounds it is a tile at an offset."""
    source = f"""
    from triton.experimental.gluon.language.amd.cdna5 import tdm

    @gluon.jit
    def kernel(x_ptr, y_ptr, n):
        layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
        shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
        slot = gl.allocate_shared_memory(gl.float32, [256], shared)
        x = tdm.make_tensor_descriptor(x_ptr, [{extent}], [1], [256], shared)
        tdm.async_load(tdm.update_tensor_descriptor(x, add_offsets=[gl.program_id(0) * 256]), dest=slot)
        tdm.async_wait(0)
        gl.store(y_ptr + gl.program_id(0) * 256 + gl.arange(0, 256, layout), slot.load(layout))
    """
    arguments = {name: ("*fp32", tensor("float32", 1024)) for name in ("x_ptr", "y_ptr")} | {"n": ("i32", 1024)}
    if moves:
        text = lifted(tmp_path, source, "hip:gfx1250", arguments, {}, [4])
        assert "tl.load(x_ptr + " in text and "mask" not in text and "make_tensor_descriptor" not in text
        return
    with pytest.raises(TranslationError, match="bounds move with its tile"):
        lifted(tmp_path, source, "hip:gfx1250", arguments, {}, [4])


@pytest.mark.parametrize("row, masks", [("gl.program_id(0) * 16", 1), ("gl.program_id(0) * 16 - 8", 2)])
def test_a_tile_that_is_bounded_along_one_axis_is_masked_along_it(tmp_path, row, masks):
    """Below zero only where it may begin there."""
    source = f"""
    from triton.experimental.gluon.language.amd.cdna5 import tdm

    @gluon.jit
    def kernel(x_ptr, y_ptr, n):
        layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
        shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
        slot = gl.allocate_shared_memory(gl.float32, [16, 32], shared)
        x = tdm.make_tensor_descriptor(x_ptr, [n, 2**31 - 1], [32, 1], [16, 32], shared)
        tdm.async_load(x, [{row}, 0], slot)
        tdm.async_wait(0)
        place = gl.arange(0, 16, gl.SliceLayout(1, layout))[:, None] * 32 + gl.arange(0, 32, gl.SliceLayout(0, layout))[None, :]
        gl.store(y_ptr + gl.program_id(0) * 512 + place, slot.load(layout))
    """
    arguments = {name: ("*fp32", tensor("float32", 64, 32)) for name in ("x_ptr", "y_ptr")} | {"n": ("i32", 50)}
    text = lifted(tmp_path, source, "hip:gfx1250", arguments, {}, [4])
    assert text.count(" < n") == 1 and text.count(" >= 0") == masks - 1 and "other=0.0" in text
