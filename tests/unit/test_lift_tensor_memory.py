"""Tensor memory that is seen as several types: what is written to some of its columns leaves the others as they are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from lift_harness import lifted, tensor
from nvidia_examples import EXAMPLES, HEAD, SCALED, descriptor

from gluonize.diagnostics import TranslationError
from gluonize.judge.verdict import validate_launch
from gluonize.lift.kernel import lift_kernel
from gluonize.lift.machine.machine import NotLifted
from gluonize.lift.machine.memory_ops import tensor_memory
from gluonize.lift.text.scaled import check_scales
from gluonize.lift.values.slots import Blocks, Columns
from gluonize.lift.values.tensors import Alloc, View
from gluonize.read.kernels.load import load_kernel
from gluonize.read.spec.launch import parse_launches
from gluonize.request import TranslateRequest
from gluonize.rules.targets import target
from gluonize.trace.model.attributes import parse_attribute
from gluonize.trace.model.types import Type
from gluonize.translation import translate_kernel

ARGUMENTS = {"x_ptr": ("*fp32", tensor("float32", 128, 128)), "y_ptr": ("*fp32", tensor("float32", 128, 128))}
SHARED = """
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, TensorMemoryScalesLayout, allocate_tensor_memory

@gluon.jit
def kernel(x_ptr, y_ptr):
    layout: gl.constexpr = gl.BlockedLayout([1, 128], [32, 1], [4, 1], [0, 1])
    place = gl.arange(0, 128, gl.SliceLayout(1, layout))[:, None] * 128 + gl.arange(0, 128, gl.SliceLayout(0, layout))[None, :]
    x = gl.load(x_ptr + place)
    wide: gl.constexpr = TensorMemoryLayout([128, 128], col_stride=1)
    s = allocate_tensor_memory(gl.float32, [128, 128], wide)
    s.store(gl.convert_layout(x, s.get_reg_layout()))
    {write}
    {read}
    gl.store(y_ptr + place, gl.convert_layout(out.to(gl.float32), layout))
"""
HALVES = """p = s.reinterpret(gl.float16, [128, 128], wide)
    p.store(gl.convert_layout((x * 2).to(gl.float16), p.get_reg_layout()))"""
SCALES = """scales = s.slice({at}, 4).reinterpret(gl.uint8, [128, 4], TensorMemoryScalesLayout())
    ones = gl.full([128, 4], 127, gl.uint8, gl.BlockedLayout([1, 4], [32, 1], [4, 1], [0, 1]))
    scales.store(gl.convert_layout(ones, scales.get_reg_layout()))"""
RIGHT = "out = s.slice(64, 64).load(); out = gl.join(out, out).permute(0, 2, 1).reshape([128, 128])"


def text_of(tmp_path, write: str, read: str) -> str:
    return lifted(tmp_path, SHARED.format(write=write, read=read), "cuda:100", ARGUMENTS, {}, [1])


def test_halves_of_numbers_lie_in_half_of_the_columns(tmp_path):
    """128 numbers of 16 bits are 64 columns: the other 64 still hold what was written before."""
    assert "* 2" not in text_of(tmp_path, HALVES, RIGHT)
    assert "* 2" in text_of(tmp_path, HALVES, "out = p.load()")


def test_columns_that_were_written_as_another_type_are_not_read(tmp_path):
    with pytest.raises(TranslationError, match="something of another type"):
        text_of(tmp_path, HALVES, RIGHT.replace("64, 64", "32, 64"))


def test_scales_take_the_columns_from_which_they_were_made(tmp_path):
    """Scales of 128 rows and 4 blocks are 4 columns."""
    assert "127" not in text_of(tmp_path, SCALES.format(at=60), RIGHT)
    with pytest.raises(TranslationError, match="something of another type"):
        text_of(tmp_path, SCALES.format(at=64), RIGHT)
    with pytest.raises(TranslationError, match="something of another type"):
        text_of(tmp_path, SCALES.format(at=124), RIGHT)


def test_an_accumulator_and_scales_in_one_allocation(tmp_path):
    alone = SCALED[SCALED.index("    ta = ") : SCALED.index("    wide")]
    pool = """\
    pool = allocate_tensor_memory(gl.float32, [128, 256], TensorMemoryLayout([128, 128], col_stride=1))
    ta = pool.slice(128, 4).reinterpret(gl.uint8, [128, 4], scales)
    tb = pool.slice(132, 4).reinterpret(gl.uint8, [128, 4], scales)
"""
    apart = "acc = allocate_tensor_memory(gl.float32, [128, 128], TensorMemoryLayout([128, 128], col_stride=1))"
    assert SCALED.count(apart) == 1
    shared = SCALED.replace(alone, pool).replace(apart, "acc = pool.slice(0, 128)")
    _, target, arguments, grid = EXAMPLES["scaled"]
    for source, one, two in ((SCALED, "ta", "tb"), (shared, "pool", "pool_1")):
        text = lifted(tmp_path, HEAD + source, target, arguments, {}, grid)
        assert f'tl.dot_scaled(sa, {one}, "e4m3", tl.trans(sb), {two}, "e4m3")' in text
        assert f"{one} = tl.load(a_scale + " in text and f"{two} = tl.load(b_scale + " in text


HALVES_IN_TURNS = """
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, allocate_tensor_memory
from triton.experimental.gluon.language.nvidia.hopper import tma

@gluon.jit
def kernel(x_ptr, y, n, at):
    layout: gl.constexpr = gl.BlockedLayout([1, 128], [32, 1], [4, 1], [0, 1])
    place = gl.arange(0, 128, gl.SliceLayout(1, layout))[:, None] * 128 + gl.arange(0, 128, gl.SliceLayout(0, layout))[None, :]
    held = allocate_tensor_memory(gl.float32, [128, 128], TensorMemoryLayout([128, 128], col_stride=1))
    out = gl.allocate_shared_memory(gl.float16, [128, 64], y.layout)
    for i in range(n):
        held.store(gl.convert_layout(gl.load(x_ptr + i * 16384 + place), held.get_reg_layout()))
        for s in gl.static_range(2):
            if i % 2 == 0:
                part = held.slice(64 * (1 - s), 64)
                column = at + 64 * (1 - s)
            else:
                part = held.slice(64 * s, 64)
                column = at + {odd}
            out.store(part.load().to(gl.float16))
            tma.async_store(y, [i * 128, column], out)
            tma.store_wait(pendings=0)
"""
TURNS = {
    "x_ptr": ("*fp32", tensor("float32", 1024, 128)),
    "y": descriptor("fp16", [1024, 128], [128, 64]),
    "n": ("i32", 8),
    "at": ("i32", 32),
}


def test_parts_that_are_stored_in_turns_from_either_side_are_one_store(tmp_path):
    text = lifted(tmp_path, HALVES_IN_TURNS.format(odd="64 * s"), "cuda:100", TURNS, {}, [1])
    assert text.count(".store(") == 1 and "split" not in text and "if " not in text


def test_parts_that_change_sides_in_turns_are_not_one_store(tmp_path):
    """Odd tiles have their right half on the left."""
    with pytest.raises(TranslationError, match="not one expression|iterations, programs or sizes"):
        lifted(tmp_path, HALVES_IN_TURNS.format(odd="64 * (1 - s)"), "cuda:100", TURNS, {}, [1])


@pytest.mark.parametrize("bases, bytes_of_a_row", [("[[1, 0]]", 16), ("[[0, 0]]", 32), ("[]", 32)])
def test_a_cta_of_a_cluster_has_the_scales_of_its_own_rows(bases: str, bytes_of_a_row: int):
    """Four chunks of 32 rows, or eight where each CTA has all rows, with 4 scales each."""
    run = SimpleNamespace(module=SimpleNamespace(attribute=lambda kind: parse_attribute(kind.layout), clusters=2))
    pool = Alloc(1, "tmem", Type("memdesc", "f32", (256, 128)))
    view = View(pool, (), ((0, 256), (8, 12)), (256, 4), "f32", tag=Columns("f32", 4))
    layout = f"#ttng.tensor_memory_scales_encoding<CGALayout = {bases}>"
    seen = tensor_memory(run, view, Type("memdesc", "i8", (256, 4), layout))
    assert seen is not None and seen.tag == Blocks("i8", (256, 4), 32, bytes_of_a_row)


def nvfp4(tmp_path):
    """A product of 4-bit numbers with scales of e4m3 for groups of 16, as a launch: only one target has a product for them."""
    source, _, arguments, grid = EXAMPLES["scaled"]
    source = (
        source.replace("128, 4]", "128, 8]")
        .replace("gl.uint8", "gl.float8e4nv")
        .replace("* 4 + gl.arange(0, 4", "* 8 + gl.arange(0, 8")
    )
    source = source.replace('"e4m3", "e4m3"', '"e2m1", "e2m1"')
    arguments = arguments | {
        "a": descriptor("u8", [128, 64], [128, 64], 64),
        "b": descriptor("u8", [128, 64], [128, 64], 64),
    }
    scales = {"tensor": tensor("float8_e4m3fn", 128, 8)["tensor"]}
    arguments |= {"a_scale": ("*fp8e4nv", scales), "b_scale": ("*fp8e4nv", scales)}
    path = tmp_path / "source.py"
    path.write_text(HEAD + source)
    launch = {"kernel": "kernel", "source": str(path), "target": "cuda:100", "grid": grid, "options": {"num_warps": 4}}
    launch |= {"signature": {n: kind for n, (kind, _) in arguments.items()}}
    launch |= {"values": {n: value for n, (_, value) in arguments.items()}}
    return parse_launches(launch)[0]


@pytest.mark.parametrize("wanted, has", [("gfx950", False), ("gfx1250", True), (None, True)])
def test_numbers_whose_scales_a_target_does_not_multiply_are_widened(tmp_path, wanted: str | None, has: bool):
    spec = nvfp4(tmp_path)
    text = lift_kernel(load_kernel(spec.source, "kernel"), spec, None, target(wanted) if wanted else None).text
    assert ("tl.dot_scaled(" in text) == has and ("def kernel_widened(x, scales):" in text) == (not has)


@pytest.mark.parametrize("wanted", ["gfx950", "gfx942"])
def test_widened_numbers_have_the_same_product(tmp_path, wanted: str):
    spec = nvfp4(tmp_path)
    result = translate_kernel(TranslateRequest(spec.source, wanted, launches=(spec,)))
    assert result.text is not None, result
    (tmp_path / "out.py").write_text(result.text)
    answer = validate_launch(spec.source, str(tmp_path / "out.py"), spec, wanted)
    assert answer["status"] == "validated", answer["reason"]
    (tmp_path / "out.py").write_text(result.text.replace("(2 + mantissa)", "(3 + mantissa)"))
    assert validate_launch(spec.source, str(tmp_path / "out.py"), spec, wanted)["status"] == "mismatch"


def test_other_numbers_with_such_scales_are_refused_at_the_product():
    place = SimpleNamespace(file="k.py", line=3)
    kinds = [Type("float", "f8E4M3FN", (128, 8))] * 5
    formats = {"lhs": "e4m3", "rhs": "e2m1"}
    op = SimpleNamespace(name="ttng.tc_gen5_mma_scaled", operand_types=kinds, attribute=formats.get, place=place)
    module = SimpleNamespace(walk=lambda: [op])
    with pytest.raises(NotLifted, match="scales of f8E4M3FN: gfx950 multiplies scales that are powers of two"):
        check_scales(module, target("gfx950"))
    check_scales(module, target("gfx1250"))


def test_a_kernel_for_another_machine_is_refused(tmp_path):
    """Tensor memory, for a GPU that has none: Gluon's verifier stops."""
    with pytest.raises(TranslationError) as caught:
        lifted(tmp_path, SHARED.format(write=HALVES, read=RIGHT), "cuda:90", ARGUMENTS, {}, [1])
    assert caught.value.diagnostics[0].code == "triton-refuses"
