"""What the header of an output says that its code does not show, and which imports are left."""

from dataclasses import replace
from pathlib import Path

import pytest

from gluonize.judge.lower.jobs import lower_file
from translation_of import launch, translate

SOURCE = """
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * K + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * BLOCK + rows[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=inner[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=inner[:, None] < K - k, other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * BLOCK
    tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], acc)
"""
POINTERS = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32"}


def header(text):
    return [line for line in text.splitlines() if line.startswith("#")]


@pytest.mark.parametrize("stages", [2, 4, 6])
def test_the_depth_that_was_asked_for_and_why_it_is_less(tmp_path, stages):
    spec = launch(
        "product", POINTERS, {"BLOCK": 128, "BLOCK_K": 64}, stages=stages, attrs=dict.fromkeys(POINTERS, "DS")
    )
    lines = header(translate(tmp_path, SOURCE, spec).text)
    assert any(f"product: 4 warps, num_stages={stages}," in line for line in lines)
    # 64 KiB of LDS hold two slots of 32 KiB.
    said = [line for line in lines if "LDS has no room for more" in line]
    assert said == (
        [f"#   `for k` has 2 buffers where num_stages asks for {stages - 1}: LDS has no room for more"]
        if stages > 3
        else []
    )


IMPORTS = """
import math
import os
import triton
import triton.language as tl
from triton import jit
from triton.language import math as functions
import neighbour
import neighbour as named

LENGTH = math.prod((2, 3))


@jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    y = tl.load(x_ptr + offsets, mask=offsets < n, other=1.0)
    tl.store(y_ptr + offsets, functions.exp(x) + y + neighbour.twice(x) + named.twice(y), mask=offsets < n)


def host(named: "os.PathLike") -> "named.Thing":
    return named
"""


def test_what_only_replaced_code_used_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "neighbour.py").write_text("import triton\n\n\n@triton.jit\ndef twice(x):\n    return x + x\n")
    spec = launch("double", {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}, {"BLOCK": 256})
    text = translate(tmp_path, IMPORTS, spec, search_path=(str(tmp_path),)).text
    lines = text.splitlines()
    for gone in ("from triton import jit", "from triton.language import math as functions", "import neighbour"):
        assert gone not in lines
    for kept in ("import math", "import os", "import triton", "import neighbour as named"):
        assert kept in lines
    assert sum("buffer loads need no other=0" in line for line in header(text)) == 1 and "other=1.0" in text


def test_values_of_masked_lanes_that_disappear_have_their_reason_in_the_header():
    goldens = sorted((Path(__file__).resolve().parents[2] / "fixtures").glob("*/golden/*.py"))
    goldens = [golden for golden in goldens if (golden.parents[1] / "kernel.py").exists()]
    assert goldens
    for golden in goldens:
        source, text = (golden.parents[1] / "kernel.py").read_text(), golden.read_text()
        if "other=0" in source and "other=" not in text:
            header = text[: text.index("\nfrom ")]
            assert " needs no other=0: " in header or " need no other=0: " in header, golden


FUSED = """
import triton
import triton.language as tl


@triton.jit
def fused(x_ptr, y_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.arange(0, BLOCK), x * x + x)
"""


@pytest.mark.parametrize("default, said", [(None, True), ("0", False)])
def test_fusion_of_products_and_sums_is_said_and_compiled_as_said(tmp_path, monkeypatch, default, said):
    """Triton warns where a launch leaves it open, because its default changes with 3.10; no compile of ours leaves it open."""
    monkeypatch.setattr("triton.knobs.warn_once", lambda message: pytest.fail(message), raising=False)
    monkeypatch.delenv("TRITON_DEFAULT_FP_FUSION")
    if default:
        monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", default)
    spec = launch("fused", {"x_ptr": "*fp32", "y_ptr": "*fp32"}, {"BLOCK": 256})
    own = replace(spec, id="own", constexprs={"BLOCK": 512}, options=spec.options | {"enable_fp_fusion": not said})
    made = translate(tmp_path, FUSED, spec, own).text
    lines = header(made)
    assert f"# for gfx942 (CDNA3, wave64), enable_fp_fusion={said}." in lines
    launches = [line for line in lines if "fused: " in line]
    assert [f"enable_fp_fusion={not said}" in line for line in launches] == [False, True]
    source = str(tmp_path / "source.py")
    codes = [lower_file(source, each, "gfx942", keep_stages=True).stages["amdgcn"] for each in (spec, own)]
    assert ["fma" in code for code in codes] == [said, not said]
    (tmp_path / "out.py").write_text(made)
    # Elsewhere the output is compiled as it is launched, whatever the environment says there.
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", str(int(not said)))
    code = lower_file(str(tmp_path / "out.py"), spec, "gfx942", keep_stages=True).stages["amdgcn"]
    assert ("fma" in code) == said


def test_a_launch_is_told_by_what_it_has_instead(tmp_path):
    """Other types, or one other value; of more, or of other options, everything is said."""
    sizes = {"BLOCK": 64, "BLOCK_K": 64}
    first = launch("product", POINTERS, sizes, "first")
    types = launch("product", POINTERS | {"a_ptr": "*bf16", "b_ptr": "*bf16"}, sizes, "types")
    value = launch("product", POINTERS, sizes | {"BLOCK_K": 32}, "value")
    more = launch("product", POINTERS, {"BLOCK": 32, "BLOCK_K": 32}, "more")
    warps = launch("product", POINTERS, sizes, "warps", warps=8)
    lines = header(translate(tmp_path, SOURCE, first, types, value, more, warps).text)
    assert [line for line in lines if "as well" in line] == ["#   and a_ptr, b_ptr *bf16; BLOCK_K=32 as well"]
    told = [line.partition(": ")[2][:8] for line in lines if line.startswith("# product: ")]
    assert told == ["4 warps,", "4 warps,", "8 warps,"]
