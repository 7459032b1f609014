"""Re-targeted modules: the same results on the reference machine, compilable for sm_90, refusals by name."""

import sys
from pathlib import Path

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.judge.device.bundles.expected import expected_tensors
from gluonize.judge.device.bundles.planted import planted_bugs
from gluonize.judge.device.refusal import Refused
from gluonize.judge.device.retarget import tdm_copies
from gluonize.judge.device.retarget.retarget import _State, _copies_arrive, retarget
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.verdict.run import validate_pair
from gluonize.read.spec.launch import LaunchSpec, read_launches
from gluonize.trace.model.parse import parse_module, parse_op

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "validate"))
from planted import KERNELS, matmul_launch, source  # noqa: E402

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CUDA = "gluonize.judge.device.bundles.jobs:compile_cuda"
SIZE = (272, 208, 208)
HAND = {
    "matmul_gfx942": "gfx942",
    "matmul_gfx950": "gfx950",
    "matmul_gfx1250": "gfx1250",
    "matmul_gfx1250_specialized": "gfx1250",
}


@pytest.fixture(scope="module")
def stages():
    """Name of a hand-written kernel -> its AMD TTGIR."""
    return {
        name: translated_stage(str(KERNELS / f"{name}.py"), matmul_launch(*SIZE), target)
        for name, target in HAND.items()
    }


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1, timeout=120) as pool:
        yield pool


def on_machine(stage, text, target, **options):
    """Validate `text` in place of the kernel of `stage` against the source of the hand-written matmuls."""
    left = source(KERNELS / "matmul.py", target, *SIZE)
    spec = matmul_launch(*SIZE)
    return validate_pair(left.text, text, spec, source_names=left.names, translated_names=stage.names, **options)


@pytest.mark.parametrize("name", [name for name in HAND if "specialized" not in name])
def test_same_results_on_the_reference_machine(name, stages):
    result = on_machine(stages[name], retarget(stages[name].text), HAND[name])
    assert result.status == "validated", result.reason


@pytest.mark.parametrize("name", ["matmul_gfx950", "matmul_gfx1250"])
def test_planted_bugs_survive_the_retargeting(name, stages):
    bugs = planted_bugs(stages[name].text)
    assert {bug.split(" ")[0] for bug in bugs} == {"wait", "read", "copy"}
    for bug, text in bugs.items():
        assert on_machine(stages[name], retarget(text), HAND[name], with_variants=False).status == "hazard", bug


def placed_for_cuda(text: str, folder: Path) -> str:
    """The module with the place of each piece of shared memory on a CUDA device."""
    from triton._C.libtriton import ir, nvidia

    file = folder / "module.ttgir"
    file.write_text(text)
    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    module = ir.parse_mlir_module(str(file), context)
    manager = ir.pass_manager(context)
    nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(manager, 90, 83)
    manager.run(module, "allocate_shared_memory")
    return module.str()


@pytest.mark.parametrize("wait", [True, False], ids=["waits", "does-not-wait"])
def test_scratch_on_cuda_lies_where_the_last_copy_of_a_ring_lands(wait, tmp_path):
    """What the compiler's sanitizer found on a device: on gfx950 the conversion behind the loop needs no scratch."""
    good = (KERNELS / "matmul_gfx950.py").read_text()
    file = tmp_path / "kernel.py"
    file.write_text(good if wait else good.replace("    async_copy.wait_group(0)\n", "    pass\n"))
    stage = translated_stage(str(file), matmul_launch(*SIZE), "gfx950")
    assert on_machine(stage, stage.text, "gfx950").status == "validated"
    result = on_machine(stage, placed_for_cuda(retarget(stage.text), tmp_path), "gfx950")
    found = result.hazards[0].kind if result.hazards else result.status
    assert found == ("validated" if wait else "lds-reuse-in-flight"), result.reason


def test_planted_bugs_of_a_pipelined_fixture():
    """Each wait, and each slot that the loop reads or fills: the reference machine finds every one, re-targeted or not."""
    folder = FIXTURES / "matmul"
    spec = next(spec for spec in read_launches(str(folder / "launches.json")) if spec.id == "matmul/fp16")
    left = source_stage(str(folder / "kernel.py"), spec, "gfx950")
    right = translated_stage(str(folder / "golden" / "gfx950.py"), spec, "gfx950")
    bugs = planted_bugs(right.text)
    assert list(bugs) == [
        "wait 0 removed",
        "wait 0 weakened from 0 to 1",
        "copy 0 goes into the wrong slot",
        "copy 1 goes into the wrong slot",
        "read 0 takes the wrong slot",
        "read 1 takes the wrong slot",
    ]
    for bug, text in bugs.items():
        for module in (text, retarget(text)):
            names = {"source_names": left.names, "translated_names": right.names}
            assert validate_pair(left.text, module, spec, **names, with_variants=False).status == "hazard", bug


def test_operations_of_matrix_products_are_counted():
    stage = source(KERNELS / "matmul.py", "gfx950", *SIZE)
    *_, flops = expected_tensors(stage.text, matmul_launch(*SIZE), stage.names)
    assert flops == 2 * (3 * 128) * (2 * 128) * (4 * 64), "whole tiles"


def test_planted_mbarrier_bugs(stages):
    bugs = planted_bugs(stages["matmul_gfx1250_specialized"].text)
    assert [b for b in bugs if "mbarrier" in b] == [
        "mbarrier wait 0 removed",
        "mbarrier wait 1 removed",
        "mbarrier arrival 0 removed",
        "mbarrier count 8 halved",
        "mbarrier count 8 doubled",
        "mbarrier count 128 halved",
        "mbarrier count 128 doubled",
    ]
    assert len({*bugs.values(), stages["matmul_gfx1250_specialized"].text}) == len(bugs) + 1


@pytest.mark.parametrize("name", HAND)
def test_ptxas_takes_them_plain_and_sanitized(name, stages, pool):
    text = retarget(stages[name].text)
    assert not [line for line in text.splitlines() if "amdg." in line or "#ttg.amd" in line or "hip:" in line]
    plain = pool.call(CUDA, text, False)
    assert plain["code"][:4] == b"\x7fELF" and plain["symbol"] == "matmul_kernel"
    assert plain["block"] == 256 if name != "matmul_gfx1250" else 128
    assert plain["shared"] >= 65536 and plain["profile_scratch"] == 0
    sanitized = pool.call(CUDA, text, True)
    assert sanitized["profile_scratch"] > 0, "the sanitizer's state"


def test_copies_and_waits_are_those_of_the_kernel(stages):
    """One cp.async op per copy, one commit per group (per copy for TDM), the same wait counts."""
    before, after = stages["matmul_gfx950"].text, retarget(stages["matmul_gfx950"].text)
    assert after.count("ttg.async_copy_global_to_local") == before.count("amdg.buffer_load_to_local") == 4
    assert after.count("ttg.async_commit_group") == before.count("ttg.async_commit_group") == 2
    before, after = stages["matmul_gfx1250"].text, retarget(stages["matmul_gfx1250"].text)
    copies = before.count("amdg.async_tdm_copy_global_to_local")
    assert after.count("ttg.async_copy_global_to_local") == after.count("ttg.async_commit_group") == copies == 4
    assert "ttg.async_wait {num = 2 : i32}" in after and "ttg.async_wait {num = 0 : i32}" in after


def test_mbarrier_arrivals_carry_the_sum_of_the_lanes(stages):
    after = retarget(stages["matmul_gfx1250_specialized"].text)
    arrivals = [line.split(", ")[1].split(" ")[0] for line in after.splitlines() if "ttng.arrive_barrier" in line]
    assert sorted(arrivals) == [
        "128",
        "4",
        "4",
    ], "4 warps x 32 lanes by the multiplier, one per warp and copy by the copier"
    inits = [line.split(", ")[1].split(" ")[0] for line in after.splitlines() if "ttng.init_barrier" in line]
    assert inits == ["8", "128", "8", "128"]


def test_arrivals_that_follow_copies_wait_for_them():
    state = _State(parse_module(MODULE.format(ctas=1, warps=4, op="")), [4])
    assert _copies_arrive(
        parse_op("amdg.async_copy_mbarrier_arrive %b : !ttg.memdesc<1xi64, #s, #m, mutable>"), state
    ) == [
        "%cuda_group_1 = ttg.async_commit_group",
        "%cuda_landed_2 = ttg.async_wait %cuda_group_1 {num = 0 : i32}",
        "ttng.arrive_barrier %b, 128 : !ttg.memdesc<1xi64, #s, #m, mutable>",
    ]


HEAD = """from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna3, cdna5
from triton.experimental.gluon.language.amd.cdna5 import tdm


@gluon.jit
"""
MOVING = HEAD + """def kernel(x_ptr, y_ptr, rows, columns, stride):
    shared: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[32, 8]], [16, 32], [1, 0])
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    desc = tdm.make_tensor_descriptor(x_ptr, [rows, columns], [stride, 1], [16, 32], shared)
    lds = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [16, 32], shared)
    total = gl.zeros([16, 32], gl.float32, layout)
    for k in range(0, gl.cdiv(columns, 32)):
        tdm.async_load(desc, dest=lds)
        tdm.async_wait(0)
        total += lds.load(layout).to(gl.float32)
        desc = tdm.update_tensor_descriptor(desc, add_offsets=[0, 32], clamp_bounds=True)
    offs_m = gl.arange(0, 16, gl.SliceLayout(1, layout))
    offs_n = gl.arange(0, 32, gl.SliceLayout(0, layout))
    gl.store(y_ptr + offs_m[:, None] * 32 + offs_n[None, :], total)
"""
SCANNED = HEAD + """def kernel(x_ptr, y_ptr, rows, columns, stride):
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [8, 8], [2, 2], [1, 0])
    offs_m = gl.arange(0, 16, gl.SliceLayout(1, layout))
    offs_n = gl.arange(0, 32, gl.SliceLayout(0, layout))
    mask = (offs_m[:, None] < rows) & (offs_n[None, :] < columns)
    x = cdna3.buffer_load(x_ptr, offs_m[:, None] * stride + offs_n[None, :], mask=mask)
    y = gl.associative_scan(x.to(gl.float32), 1, add)
    gl.store(y_ptr + offs_m[:, None] * 32 + offs_n[None, :], y)


@gluon.jit
def add(a, b):
    return a + b
"""

# A product, transposed and reshaped: the layouts of both results follow from that of the matrix instruction.
TURNED = HEAD + """def kernel(x_ptr, y_ptr, rows, columns, stride):
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [8, 8], [2, 2], [1, 0])
    mma: gl.constexpr = gl.amd.AMDMFMALayout(version=3, instr_shape=[16, 16, 16], transposed=True, warps_per_cta=[2, 2])
    offs_m = gl.arange(0, 16, gl.SliceLayout(1, layout))
    offs_n = gl.arange(0, 32, gl.SliceLayout(0, layout))
    mask = (offs_m[:, None] < rows) & (offs_n[None, :] < columns)
    x = cdna3.buffer_load(x_ptr, offs_m[:, None] * stride + offs_n[None, :], mask=mask)
    a = gl.convert_layout(x, gl.DotOperandLayout(0, mma, 4))
    b = gl.convert_layout(gl.permute(x, (1, 0)), gl.DotOperandLayout(1, mma, 4))
    product = cdna3.mfma(a, b, gl.zeros([16, 16], gl.float32, mma))
    product += gl.arange(0, 16, gl.SliceLayout(0, mma))[None, :].to(gl.float32)
    turned = gl.permute(product, (1, 0))
    flat = gl.reshape(gl.reshape(product, [4, 64]), [16, 16])
    out: gl.constexpr = gl.BlockedLayout([1, 1], [4, 16], [4, 1], [1, 0])
    rows_out, columns_out = gl.arange(0, 16, gl.SliceLayout(1, out)), gl.arange(0, 16, gl.SliceLayout(0, out))
    y_ptrs = y_ptr + rows_out[:, None] * 32 + columns_out[None, :]
    gl.store(y_ptrs, gl.convert_layout(turned, out))
    gl.store(y_ptrs + 16, gl.convert_layout(flat, out))
"""


def small_launch():
    tensor = {"x_ptr": ((16, 80), "float16"), "y_ptr": ((16, 32), "float32")}
    values = {
        name: {
            "tensor": {
                "dtype": kind,
                "shape": list(shape),
                "stride": [shape[1], 1],
                "storage": shape[0] * shape[1],
                "offset": 0,
            }
        }
        for name, (shape, kind) in tensor.items()
    }
    signature = {"x_ptr": "*fp16", "y_ptr": "*fp32", "rows": "i32", "columns": "i32", "stride": "i32"}
    attrs = {"x_ptr": "DS", "y_ptr": "DS", "columns": "D", "stride": "D"}
    values |= {"rows": 13, "columns": 80, "stride": 80}
    return LaunchSpec("small", "kernel", "", signature, {}, attrs, {"num_warps": 4}, (1,), {}, values)


def small(text, target, folder):
    file = folder / "small.py"
    file.write_text(text)
    return translated_stage(str(file), small_launch(), target)


@pytest.mark.parametrize(
    "text, target",
    [(MOVING, "gfx1250"), (SCANNED, "gfx942"), (TURNED, "gfx942")],
    ids=["descriptor in a loop", "scan", "transposed and reshaped"],
)
def test_small_kernels_keep_their_results(text, target, tmp_path, pool):
    before = small(text, target, tmp_path)
    after = retarget(before.text)
    assert "tensordesc" not in after and "amdg." not in after
    result = validate_pair(before.text, after, small_launch(), source_names=before.names, translated_names=before.names)
    assert result.status == "validated" and result.bitwise, result.reason
    assert pool.call(CUDA, after, False)["block"] == (256 if target == "gfx942" else 128)
    if text is SCANNED:
        assert "#ttg.linear" in after and "%blocked_" in after
    if text is TURNED:
        assert " = tt.trans %from_" in after and " = tt.reshape %from_" in after


MODULE = """module attributes {{"ttg.num-ctas" = {ctas} : i32, "ttg.num-warps" = {warps} : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32}} {{
  tt.func public @k(%p: !tt.ptr<f16>) {{
    {op}
    tt.return
  }}
}}
"""


def test_a_dimension_without_a_bound_is_cut_at_whole_vectors():
    line = "%d = tt.make_tensor_descriptor %p, [%n, %c2147483647_i32_4], [%s, %one] : <f16>, <64x64xf16, #shared>"
    lines, _, found = tdm_copies.make(parse_op(line), lambda stem: f"%{stem}")
    assert found.bounds == ("%n", "%unbounded") and f"%unbounded = arith.constant {1 << 30} : i32" in lines


@pytest.mark.parametrize("element, expected", [("si8", "i8"), ("ui32", "i32"), ("f16", "f16")])
def test_tiles_of_a_descriptor_have_the_types_of_tensors(element: str, expected: str):
    line = f"%d = tt.make_tensor_descriptor %p, [%m, %n], [%s, %one] : <{expected}>, <128x64x{element}, #shared>"
    _, name, found = tdm_copies.make(parse_op(line), lambda stem: f"%{stem}")
    assert (name, found.block, found.element) == ("%d", (128, 64), expected)


@pytest.mark.parametrize(
    "op, named",
    [
        ('%0 = tt.elementwise_inline_asm "v_mov" {} %1 : i32 -> i32', "tt.elementwise_inline_asm"),
        ("amdg.cond_barrier %0", "amdg.cond_barrier"),
        ('%0 = tt.extern_elementwise %1 {symbol = "__ocml_tanh_f32"} : (f32) -> f32', "tt.extern_elementwise"),
        ("%0 = arith.constant 0.0 : f8E4M3FNUZ", "f8E4M3FNUZ"),
        ("%0 = amdg.async_tdm_gather %d, %i : i32", "amdg.async_tdm_gather"),
        ("%0 = some.new_op %1 : i32", "some.new_op"),
        ("%0 = ttg.memdesc_reinterpret %1 : !ttg.memdesc<8xi8> -> !ttg.memdesc<4xi16>", "ttg.memdesc_reinterpret"),
        (
            "%0 = amdg.update_tensor_descriptor %d add_offsets = [%a] : !tt.tensordesc<8xf16>",
            "amdg.update_tensor_descriptor",
        ),
        (
            "%0 = ttg.async_copy_global_to_local %q, %m mask %c other %x : tensor<8x!tt.ptr<f16>, #b> -> <8xf16, #s, #smem>",
            "ttg.async_copy_global_to_local",
        ),
        ("%0 = amdg.async_tdm_wait  {num = 0 : i32}\n    %1 = ttg.async_wait {num = 0 : i32}", "ttg.async_wait"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(op, named):
    with pytest.raises(Refused) as caught:
        retarget(MODULE.format(ctas=1, warps=4, op=op))
    assert caught.value.what == named and caught.value.why


def test_limits_are_refused_by_name():
    for changes, named in (({"ctas": 2, "warps": 4}, "num_ctas"), ({"ctas": 1, "warps": 32}, "num_warps")):
        with pytest.raises(Refused) as caught:
            retarget(MODULE.format(op="", **changes))
        assert caught.value.what == named


def test_ir_that_the_compiler_refuses_is_refused(stages, pool):
    broken = retarget(stages["matmul_gfx942"].text).replace('"ttg.num-warps" = 8', '"ttg.num-warps" = 4')
    with pytest.raises(TranslationError) as caught:
        pool.call(CUDA, broken, False)
    found = caught.value.diagnostics[0]
    assert found.message == "re-targeted TTGIR" and "invalid layout" in found.why
