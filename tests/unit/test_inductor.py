"""Kernels that Inductor wrote: in strings of `output_code.py`, with decorators that state their launch and helpers of torch."""

from __future__ import annotations

import ast
import importlib.util
import sys
import types
from pathlib import Path

import pytest
import triton
import triton.language as tl
from gluonize.judge.verdict import validate_launch
from gluonize.read.files.modules import parse_file
from gluonize.read.files.unpacked import unpacked
from gluonize.read.inductor.launches import stated_launch
from gluonize.read.kernels.listing import list_kernels
from gluonize.read.launches.bound.completed import bound_launches
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel
from translation_of import dedent
from triton.backends.compiler import GPUTarget
from triton.language.extra import libdevice

DEVICE = "DeviceProperties(type='cuda', index=0, multi_processor_count=132, cc=90, major=9, regs_per_multiprocessor=65536, warp_size=32)"
HEAD = """
    import triton
    import triton.language as tl

    from torch._inductor.runtime import triton_helpers, triton_heuristics
    from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
    from torch._inductor.runtime.hints import AutotuneHint, ReductionHint, TileHint, DeviceProperties
    triton_helpers.set_driver_to_gpu()
"""
POINTWISE = (HEAD + """
    @triton_heuristics.pointwise(
        size_hints={'x': 1048576},
        filename=__file__,
        triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*bf16', 'xnumel': 'i32', 'XBLOCK': 'constexpr'}, 'device': DEVICE, 'constants': {}, 'configs': [{(0,): [['tt.divisibility', 16]], (1,): [['tt.divisibility', 16]]}]},
        inductor_meta={'grid_type': 'Grid1D', 'autotune_hints': set(), 'kernel_name': 'triton_poi_fused_0', 'mutated_arg_names': []},
        min_elem_per_thread=0
    )
    @triton.jit
    def triton_poi_fused_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
        xnumel = 777000
        xoffset = tl.program_id(0) * XBLOCK
        xindex = xoffset + tl.arange(0, XBLOCK)[:]
        xmask = xindex < xnumel
        x0 = xindex
        tmp0 = tl.load(in_ptr0 + (x0), xmask)
        tmp1 = tl.full([1], 0, tl.int32)
        tmp2 = triton_helpers.maximum(tmp1, tmp0)
        tmp3 = libdevice.rsqrt(tmp2) + tl_math.exp(tmp0)
        tl.store(out_ptr0 + (x0), _triton_helper_fn_0(tmp3), xmask)

    @triton.jit
    def _triton_helper_fn_0(arg0):
        return arg0 * 2
""").replace("DEVICE", DEVICE)
SCAN = (HEAD + """
    @triton.jit
    def _triton_helper_fn_0(arg0_0, arg1_0):
        tmp0 = arg0_0 + arg1_0
        return tmp0

    @triton_heuristics.persistent_reduction(
        size_hints={'x': 64, 'r0_': 512},
        reduction_hint=ReductionHint.INNER,
        filename=__file__,
        triton_meta={'signature': {'in_out_ptr0': '*fp32', 'out_ptr1': '*i64', 'out_ptr2': '*fp32', 'xnumel': 'i32', 'r0_numel': 'i32', 'XBLOCK': 'constexpr'}, 'device': DEVICE, 'constants': {}, 'configs': [{(0,): [['tt.divisibility', 16]]}]},
        inductor_meta={'grid_type': 'Grid1D', 'kernel_name': 'triton_per_fused_1', 'mutated_arg_names': ['in_out_ptr0']}
    )
    @triton.jit
    def triton_per_fused_1(in_out_ptr0, out_ptr1, out_ptr2, xnumel, r0_numel, XBLOCK : tl.constexpr):
        xnumel = 64
        r0_numel = 500
        R0_BLOCK: tl.constexpr = 512
        rnumel = r0_numel
        RBLOCK: tl.constexpr = R0_BLOCK
        xoffset = tl.program_id(0) * XBLOCK
        xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
        xmask = xindex < xnumel
        r0_index = tl.arange(0, R0_BLOCK)[None, :]
        r0_mask = r0_index < r0_numel
        rindex = r0_index
        tmp0 = tl.load(in_out_ptr0 + (r0_index + 500*xindex), r0_mask & xmask, eviction_policy='evict_last', other=0.0)
        tmp1 = tl.broadcast_to(tmp0, [XBLOCK, R0_BLOCK])
        tmp2, = tl.associative_scan((tmp1,), 1, _triton_helper_fn_0)
        tmp3 = tl.where(r0_mask & xmask, tmp1, float("-inf"))
        tmp4, tmp5 = triton_helpers.max_with_index(tmp3, tl.broadcast_to(rindex, tmp3.shape), 1)
        tmp6 = triton_helpers.max2(tmp3, 1)[:, None]
        tl.device_assert(((0 <= tmp5) & (tmp5 < 500)), "index out of bounds: 0 <= tmp5 < 500")
        tl.store(out_ptr1 + (xindex), tmp5[:, None].to(tl.int64), xmask)
        tl.store(out_ptr2 + (xindex), tmp6 + tmp4[:, None], xmask)
        tl.store(in_out_ptr0 + (r0_index + 500*xindex), tmp2, r0_mask & xmask)
""").replace("DEVICE", DEVICE)
HOST = """
# AOT ID: ['0_inference']
import torch
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()


triton_poi_fused_0 = async_compile.triton('triton_poi_fused_0', \'\'\'{}\'\'\', device_str='cuda')


triton_per_fused_1 = async_compile.triton('triton_per_fused_1', \'\'\'{}\'\'\', device_str='cuda')


async_compile.wait(globals())
del async_compile


def call(args):
    arg0_1, buf0, buf1, buf2 = args
    stream0 = 0
    triton_poi_fused_0.run(arg0_1, buf0, 777000, stream=stream0)
    triton_per_fused_1.run(arg0_1, buf1, buf2, 64, 500, stream=stream0)
"""
OUTPUT_CODE = HOST.format("\n" + dedent(POINTWISE), "\n" + dedent(SCAN))


def write(folder: Path, text: str) -> str:
    path = folder / "output_code.py"
    path.write_text(text)
    return str(path)


def translated(folder: Path, text: str, target: str) -> tuple[str, tuple]:
    """The translation of a file as it is, each kernel checked; -> its text and its launches."""
    source = write(folder, text)
    result = translate_kernel(TranslateRequest(source, target, search_path=(str(folder),)))
    assert result.text is not None, [d.render(text) for d in result.diagnostics]
    output = folder / "output.py"
    output.write_text(result.text)
    launches = tuple(outcome.spec for outcome in result.outcomes)
    for spec in launches:
        assert validate_launch(source, str(output), spec, target)["status"] == "validated", result.text
    return result.text, launches


@pytest.mark.parametrize("target", ["gfx942", "gfx1250"])
def test_every_kernel_is_translated_for_the_launch_that_is_stated(target: str, tmp_path: Path):
    output, (pointwise, scan) = translated(tmp_path, OUTPUT_CODE, target)
    assert pointwise.signature == {"in_ptr0": "*fp32", "out_ptr0": "*bf16", "xnumel": "i32", "XBLOCK": "constexpr"}
    assert (pointwise.constexprs, pointwise.attrs) == ({"XBLOCK": 1024}, {"in_ptr0": "D", "out_ptr0": "D"})
    assert (scan.constexprs, scan.attrs) == ({"XBLOCK": 2}, {"in_out_ptr0": "D"})
    assert "async_compile.triton(" not in output and output.count("@gluon.jit") >= 3, output
    assert f"cc='{target}'" in output and "type='cuda'" not in output, output
    warps = 4 if target == "gfx942" else 8
    assert (
        f"configs=[{{'num_warps': {warps}, 'num_stages': 1, 'XBLOCK': 1024}}]" in output and "size_hints" not in output
    ), output
    assert output.count("@triton_heuristics.user_autotune(") == 2, output
    ast.parse(output)


def test_nothing_is_guessed(tmp_path: Path):
    source = write(tmp_path, OUTPUT_CODE)
    for kernel in ("triton_poi_fused_0", "triton_per_fused_1"):
        assert stated_launch(source, kernel, 64, 304, settings={}).guesses == ()
    own = stated_launch(source, "triton_poi_fused_0", 64, 304, settings={"XBLOCK": 512}).launches[0]
    assert own.constexprs == {"XBLOCK": 512}


def test_calls_of_the_file_are_its_launches(tmp_path: Path):
    text = OUTPUT_CODE.replace("'xnumel': 'i32', 'XBLOCK'", "'xnumel': 'constexpr', 'XBLOCK'", 1)
    text = text.replace("'constants': {}", "'constants': {'xnumel': 777000}", 1)
    source = write(
        tmp_path,
        text.replace(
            "    triton_per", "    triton_poi_fused_0.run(buf0, buf1, 777, stream=stream0)\n    triton_per", 1
        ),
    )
    found = stated_launch(source, "triton_poi_fused_0", 64, 304, settings={})
    differ = [way.differs for way in bound_launches(found.bindings, found.launches)]
    assert differ == [(), (("xnumel", "xnumel is 777 there"),)]


def test_lines_keep_their_numbers_and_strings_their_own_helpers(tmp_path: Path):
    tree = parse_file(write(tmp_path, OUTPUT_CODE)).tree
    lines = OUTPUT_CODE.splitlines()
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    assert [lines[n.lineno - 1].startswith(f"def {n.name.removesuffix('_2')}(") for n in found] == [True] * 5
    assert [n.name for n in found].count("_triton_helper_fn_0") == 1
    assert [k.name for k in list_kernels(str(tmp_path / "output_code.py")) if k.is_kernel] == [
        "triton_poi_fused_0",
        "triton_per_fused_1",
    ]


def test_a_kernel_under_another_name_keeps_it():
    text = unpacked(OUTPUT_CODE.replace("triton_poi_fused_0 = async", "first = async"), "")
    assert "\nfirst = triton_poi_fused_0\n" in text and text.count("\n") == OUTPUT_CODE.count("\n")


def test_strings_that_are_no_kernels_stay():
    text = "kernels = pool.triton('a', 'not Python, though it says jit')\n"
    assert unpacked(text, "") == text


OLDER = {
    "numbers": "triton_meta={'signature': {0: '*fp32', 1: '*bf16', 2: 'i32'}, 'constants': {}, 'configs': [instance_descriptor(divisible_by_16=(0, 1), equal_to_1=())]}",
    "properties": "triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*bf16', 'xnumel': 'i32'}, 'constants': {}, 'configs': [AttrsDescriptor.from_dict({'arg_properties': {'tt.divisibility': (0, 1), 'tt.equal_to': ()}, 'cls': 'AttrsDescriptor'})]}",
}


@pytest.mark.parametrize("form", OLDER)
def test_older_releases_state_the_same(form: str, tmp_path: Path):
    text = dedent(POINTWISE).replace("size_hints={'x': 1048576}", "size_hints=[1048576]")
    first, last = text.index("triton_meta="), text.index("inductor_meta=")
    source = write(tmp_path, text[:first] + OLDER[form] + ",\n    " + text[last:])
    spec = stated_launch(source, "triton_poi_fused_0", 64, 304, settings={}).launches[0]
    now = stated_launch(write(tmp_path, dedent(POINTWISE)), "triton_poi_fused_0", 64, 304, settings={}).launches[0]
    assert (spec.signature, spec.constexprs, spec.attrs) == (now.signature, now.constexprs, now.attrs)


@pytest.mark.parametrize("said", [True, False])
def test_whether_inductor_fuses_products_with_sums_is_read(said: bool, tmp_path: Path):
    """It states that of each kernel, so translations leave it as stated."""
    text = dedent(POINTWISE).replace("triton_meta={", f"triton_meta={{'enable_fp_fusion': {said}, ")
    source = write(tmp_path, text)
    (spec,) = stated_launch(source, "triton_poi_fused_0", 64, 304, settings={}).launches
    assert spec.options["enable_fp_fusion"] is said
    made = translate_kernel(TranslateRequest(source, "gfx942", search_path=(str(tmp_path),))).text
    assert made.count("enable_fp_fusion") == 3 and f"'enable_fp_fusion': {said}" in made, made


class Autotuner:
    """What stands for Inductor's: it makes a source of the kernel by the name that its module has for that, and compiles it."""

    def __init__(self, module: types.ModuleType, fn, configs, triton_meta):
        self.module, self.fn, self.configs, self.meta = module, fn, configs, triton_meta

    def compiled(self, target: str):
        config = dict(self.configs[0])
        options = {name: config.pop(name) for name in ("num_warps", "num_stages")}
        source = self.module.ASTSource(
            self.fn, self.meta["signature"], self.meta["constants"] | config, self.meta["configs"][0]
        )
        device = self.meta["device"]
        assert (device["type"], device["cc"], device["warp_size"]) == ("hip", target, 64)
        return triton.compile(
            source, target=GPUTarget(device["type"], device["cc"], device["warp_size"]), options=options
        )


def stand_in(monkeypatch) -> None:
    """Modules in place of torch, with what the file asks of it."""
    names = "torch torch._inductor torch._inductor.runtime torch._inductor.async_compile torch._inductor.runtime.hints"
    modules = {name: types.ModuleType(name) for name in names.split()}
    helpers, heuristics = types.ModuleType("triton_helpers"), types.ModuleType("triton_heuristics")
    helpers.set_driver_to_gpu = lambda: None

    def user_autotune(configs, triton_meta, filename=None, inductor_meta=None):
        return lambda fn: Autotuner(heuristics, fn, configs, triton_meta)

    heuristics.user_autotune = user_autotune
    modules["torch._inductor.runtime"].triton_helpers = helpers
    modules["torch._inductor.runtime"].triton_heuristics = heuristics
    modules["torch._inductor.runtime.hints"].DeviceProperties = lambda **fields: fields
    modules["torch._inductor.async_compile"].AsyncCompile = type("AsyncCompile", (), {"wait": lambda self, scope: None})
    for name in ("AutotuneHint", "ReductionHint", "TileHint"):
        setattr(modules["torch._inductor.runtime.hints"], name, None)
    modules["torch._inductor.runtime.triton_helpers"] = helpers
    helpers.libdevice, helpers.math = libdevice, tl.math
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


def test_inductor_compiles_the_translation_as_gluon(tmp_path: Path, monkeypatch):
    source = write(tmp_path, OUTPUT_CODE)
    text = translate_kernel(TranslateRequest(source, "gfx942", search_path=(str(tmp_path),))).text
    stand_in(monkeypatch)
    (tmp_path / "output.py").write_text(text)
    spec = importlib.util.spec_from_file_location("output", tmp_path / "output.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for kernel in (module.triton_poi_fused_0, module.triton_per_fused_1):
        assert kernel.fn.is_gluon() and "amdgcn" in kernel.compiled("gfx942").asm
    # What stays Triton is compiled as before.
    plain = sys.modules["torch._inductor.runtime"].triton_heuristics.ASTSource
    assert type(plain(triton.jit(module.call), {})) is triton.compiler.ASTSource


PRODUCT = (HEAD + """
    @triton_heuristics.template(
        num_stages=2,
        num_warps=4,
        triton_meta={'signature': {'arg_A': '*fp16', 'arg_B': '*fp16', 'out_ptr0': '*fp32', 'ks0': 'i32'}, 'device': DEVICE, 'constants': {}, 'configs': [{(0,): [['tt.divisibility', 16]], (1,): [['tt.divisibility', 16]], (2,): [['tt.divisibility', 16]]}]},
        inductor_meta={'grid_type': 'FixedGrid', 'fixed_grid': ['_grid_0', '_grid_1', '_grid_2'], 'extra_launcher_args': ['_grid_0', '_grid_1', '_grid_2'], 'kernel_name': 'triton_tem_fused_2'}
    )
    @triton.jit
    def triton_tem_fused_2(arg_A, arg_B, out_ptr0, ks0):
        rows = tl.arange(0, 32)
        acc = tl.zeros((32, 32), tl.float32)
        for start in range(0, tl.cdiv(ks0, 32)):
            at = start * 32 + rows
            a = tl.load(arg_A + (rows[:, None] * ks0 + at[None, :]), mask=at[None, :] < ks0, other=0.0)
            b = tl.load(arg_B + (at[:, None] * 32 + rows[None, :]), mask=at[:, None] < ks0, other=0.0)
            acc += tl.dot(a, b)
        tl.store(out_ptr0 + (rows[:, None] * 32 + rows[None, :]), acc)
""").replace("DEVICE", DEVICE)
LAUNCHED = """
# AOT ID: ['0_inference']
import torch
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()


triton_tem_fused_2 = async_compile.triton('triton_tem_fused_2', \'\'\'{}\'\'\', device_str='cuda')


async_compile.wait(globals())
del async_compile


def call(args):
    arg0_1, arg1_1, buf0, s0 = args
    triton_tem_fused_2.run(arg0_1, arg1_1, buf0, s0, 1, 1, 1, stream=0)
"""


def test_what_a_translation_assumes_is_checked_where_inductor_launches_it(tmp_path: Path, monkeypatch):
    """Its autotuner calls no hooks of a kernel."""
    source = write(tmp_path, LAUNCHED.format("\n" + dedent(PRODUCT)))
    result = translate_kernel(TranslateRequest(source, "gfx942", search_path=(str(tmp_path),)))
    assert not any("Inductor launches it without" in note for note in result.notes)
    stand_in(monkeypatch)
    ran = []
    heuristics = sys.modules["torch._inductor.runtime"].triton_heuristics
    launched = types.SimpleNamespace(run=lambda *args, **kwargs: ran.append((args, kwargs)))
    heuristics.template = lambda **_: lambda fn: vars(launched).update(fn=fn) or launched
    (tmp_path / "output.py").write_text(result.text)
    spec = importlib.util.spec_from_file_location("output", tmp_path / "output.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.call((None, None, None, 100))
    assert ran == [((None, None, None, 100, 1, 1, 1), {"stream": 0})]
    with pytest.raises(ValueError, match="triton_tem_fused_2: .*(is false for|out of range)"):
        module.call((None, None, None, 2**31 - 2))
    assert len(ran) == 1


HELPERS = """
import importlib.util
import sys

import numpy as np
import triton
import triton.language as tl

sys.path.insert(0, sys.argv[2])
from interpreted_fixture import HostTensor

spec = importlib.util.spec_from_file_location("helpers", sys.argv[1])
helpers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(helpers)


@triton.jit
def integers(a, b, quotient, remainder, B: tl.constexpr):
    i = tl.arange(0, B)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(quotient + i, helpers.div_floor_integer(x, y))
    tl.store(remainder + i, helpers.remainder_integer(x, y))


@triton.jit
def rows(x_ptr, values, places, means, squares, top, R: tl.constexpr, N: tl.constexpr, real: tl.constexpr):
    i, j = tl.arange(0, R)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + i * N + j)
    sorted_x, index = helpers.sort_with_index(x, tl.broadcast_to(j, [R, N]), real, 1, stable=True, descending=False)
    tl.store(values + i * N + j, sorted_x)
    tl.store(places + i * N + j, index)
    mean, m2, weight = helpers.welford(x, tl.zeros_like(x), tl.full([R, N], 1.0, tl.float32), 1)
    tl.store(means + tl.arange(0, R), mean)
    tl.store(squares + tl.arange(0, R), m2)
    _, place = helpers.max_with_index(x, tl.broadcast_to(j, [R, N]), 1)
    tl.store(top + tl.arange(0, R), place)


def tensor(values):
    shape = list(values.shape)
    strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
    return HostTensor({"dtype": str(values.dtype), "storage": values.size, "stride": strides, "offset": 0, "shape": shape}, values)


a, b = np.array([7, -7, 7, -7, 6, -6, 0, 1], np.int32), np.array([2, 2, -2, -2, 3, 3, 5, -9], np.int32)
given = [tensor(v) for v in (a, b, np.zeros_like(a), np.zeros_like(a))]
integers[(1,)](*given, B=8)
assert (given[2].view == a // b).all() and (given[3].view == a % b).all(), (given[2].view, given[3].view)

x = np.random.default_rng(0).integers(-4, 5, (4, 16)).astype(np.float32)
x[1, 5] = np.nan
given = [tensor(v) for v in (x, x * 0, np.zeros((4, 16), np.int32), x[:, 0] * 0, x[:, 0] * 0, np.zeros(4, np.int32))]
rows[(1,)](*given, R=4, N=16, real=13)
order = np.argsort(x[:, :13], axis=1, kind="stable")
assert (given[2].view[:, :13] == order).all(), (given[2].view, order)
assert np.array_equal(given[1].view[:, :13], np.take_along_axis(x[:, :13], order, 1), equal_nan=True)
clean = [0, 2, 3]
assert np.allclose(given[3].view[clean], x[clean].mean(1), atol=1e-6)
assert np.allclose(given[4].view[clean], x[clean].var(1) * 16, rtol=1e-5)
assert (given[5].view == np.argmax(x, 1)).all(), (given[5].view, np.argmax(x, 1))
print("as numpy has it")
"""


def test_helpers_compute_what_numpy_does(tmp_path: Path):
    """In Triton's interpreter: floors and signs of integers, stable order with NaN last and padding left out, Welford's sums, first maxima."""
    import os
    import subprocess

    from gluonize.read.files import torch_runtime

    shipped = torch_runtime.runtime_module(torch_runtime.HELPERS, (str(tmp_path),)).path
    (tmp_path / "check.py").write_text(HELPERS)
    command = [sys.executable, str(tmp_path / "check.py"), shipped, str(Path(__file__).parents[1])]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "TRITON_INTERPRET": "1"}, check=False
    )
    assert done.stdout == "as numpy has it\n", done.stderr[-2000:]
