"""Real compiles, in this process where the code is known to be sound, in a child where it aborts."""

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from translation_of import compiled, dedent, launch, translate

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.judge.lower.jobs import lower_file
from gluonize.read.spec.launch import parse_launches

pytestmark = pytest.mark.compile

TRITON = """
import unavailable_host_package
import triton
import triton.language as tl

SCALE = tl.constexpr(3)


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, TWICE: tl.constexpr = False):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    if TWICE:
        x = x + missing
    tl.store(y_ptr + offsets, x * SCALE, mask=offsets < n)


def run(x):
    raise RuntimeError("host code ran")
"""
GLUON = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna3


@gluon.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr, TWICE: gl.constexpr = False, FACTOR: gl.constexpr = 3):
    row: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, row)
    x = cdna3.buffer_load(x_ptr, offsets, mask=offsets < n)
    if TWICE:
        x = x + gl.arange(0, 2 * BLOCK, row)
    cdna3.buffer_store(x * FACTOR, y_ptr, offsets, mask=offsets < n)
"""
ABORTS = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import rdna4


@gluon.jit
def abort_kernel(out_ptr):
    acc: gl.constexpr = gl.amd.AMDWMMALayout(2, True, [[0, 1], [1, 0]])
    row: gl.constexpr = gl.SliceLayout(1, acc)
    col: gl.constexpr = gl.SliceLayout(0, acc)
    a = gl.full([64, 64], 1.0, gl.float16, gl.DotOperandLayout(0, acc, 8))
    b = gl.full([64, 64], 1.0, gl.float16, gl.DotOperandLayout(1, acc, 8))
    c = rdna4.wmma(a, b, gl.full([64, 64], 0.0, gl.float32, acc))
    gl.store(out_ptr + gl.arange(0, 64, row)[:, None] * 64 + gl.arange(0, 64, col)[None, :], c)
"""


def spec(kernel="scale_kernel", **changes):
    base = {
        "kernel": kernel,
        "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 1024},
        "attrs": {"x_ptr": "DS", "y_ptr": "DS", "n": "D"},
        "options": {"num_warps": 4},
    }
    return parse_launches({**base, **changes})[0]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    for name, text in (("source.py", TRITON), ("out.py", GLUON), ("aborts.py", ABORTS)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_both_languages_compile_without_running_host_code(files):
    triton = lower_file(str(files / "source.py"), spec(), "gfx942", keep_stages=True)
    gluon = lower_file(str(files / "out.py"), spec(), "gfx942", keep_stages=True)
    assert (triton.language, gluon.language) == ("triton", "gluon")
    for lowered in (triton, gluon):
        assert {"ttgir", "llir", "amdgcn", "hsaco"} <= set(lowered.stages)
        assert lowered.stages["hsaco"][:4] == b"\x7fELF"
        assert lowered.metrics.mix.widths == {"load": {"128": 1}, "store": {"128": 1}}
        assert lowered.metrics.vgpr > 0 and lowered.metrics.occupancy == 8 and lowered.name == "scale_kernel"


def test_stages_stay_behind_unless_asked_for(files):
    assert lower_file(str(files / "out.py"), spec(), "gfx942").stages == {}


def test_a_frontend_error_is_located_in_the_file(files):
    with pytest.raises(TranslationError) as caught:
        changed = {"BLOCK": 1024, "TWICE": True}
        lower_file(
            str(files / "out.py"),
            spec(constexprs=changed, signature={**spec().signature, "TWICE": "constexpr"}),
            "gfx942",
        )
    (found,) = caught.value.diagnostics
    line = next(i for i, text in enumerate(GLUON.splitlines(), 1) if "2 * BLOCK" in text)
    assert (found.code, found.line, found.file) == ("compiler-error", line, str(files / "out.py"))
    assert "1024" in found.why and "2048" in found.why


def test_a_name_without_a_value_is_named(files):
    with pytest.raises(TranslationError, match="missing"):
        changed = {"BLOCK": 1024, "TWICE": True}
        lower_file(
            str(files / "source.py"),
            spec(constexprs=changed, signature={**spec().signature, "TWICE": "constexpr"}),
            "gfx942",
        )


def test_a_pass_failure_carries_what_mlir_printed(files):
    text = GLUON.replace("[64], [4], [0]", "[32], [4], [0]")  # a layout of 32 lanes on a 64-lane target
    (files / "out.py").write_text(text)
    with pytest.raises(TranslationError) as caught:
        lower_file(str(files / "out.py"), spec(), "gfx942")
    (found,) = caught.value.diagnostics
    assert "error:" in found.why and "PassManager" not in found.why
    assert "arange" in text.splitlines()[found.line - 1]


def test_a_missing_value_is_asked_for(files):
    with pytest.raises(TranslationError) as caught:
        lower_file(str(files / "out.py"), spec(constexprs={}), "gfx942")
    assert caught.value.diagnostics[0].code == "spec-missing" and "BLOCK" in caught.value.diagnostics[0].message


def test_an_abort_of_the_compiler_is_survived(files):
    launch = spec("abort_kernel", signature={"out_ptr": "*fp32"}, constexprs={}, attrs={})
    with WorkerPool(1) as pool:
        with pytest.raises(TranslationError) as caught:
            pool.call(
                "gluonize.judge.lower.jobs:lower_file", str(files / "aborts.py"), launch, "gfx1100", what="abort_kernel"
            )
        (found,) = caught.value.diagnostics
        assert found.code == "compiler-abort" and "LLVM ERROR: Cannot select" in found.why
        assert pool.call("gluonize.judge.lower.jobs:lower_file", str(files / "out.py"), spec(), "gfx950").lds_bytes == 0


def test_lds_beyond_the_target_is_reported(files):
    (files / "lds.py").write_text(textwrap.dedent("""
            from triton.experimental import gluon
            from triton.experimental.gluon import language as gl


            @gluon.jit
            def lds_kernel(x_ptr, N: gl.constexpr):
                row: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
                plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
                x = gl.load(x_ptr + gl.arange(0, N, row))
                kept = gl.allocate_shared_memory(gl.float32, [N], plain, x)
                gl.store(x_ptr + gl.arange(0, N, row), kept.load(row) + 1)
            """))
    launch = spec(
        "lds_kernel", signature={"x_ptr": "*fp32"}, constexprs={"N": 32768}, attrs={}, options={"num_warps": 4}
    )
    too_much = lower_file(str(files / "lds.py"), launch, "gfx942")
    assert too_much.lds_bytes == 131072 and too_much.metrics.occupancy == 0
    assert too_much.lds_overflow().code == "lds-overflow"
    assert lower_file(str(files / "lds.py"), launch, "gfx950").lds_overflow() is None


ROWS = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def rows(x, y, stride, n, B: tl.constexpr):
        at = tl.program_id(0) * stride + tl.arange(0, B)
        tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0), mask=at < n)
""")


@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
def test_numbers_of_64_bits_are_named_where_offsets_have_32(target: str, tmp_path: Path):
    spec = launch("rows", {"x": "*fp32", "y": "*fp32", "stride": "i32", "n": "i32"}, {"B": 256})
    text = translate(tmp_path, ROWS, spec, target=target).text
    compiled(tmp_path, text, spec, target)
    with pytest.raises(TranslationError) as found:
        compiled(tmp_path, text, replace(spec, signature=spec.signature | {"stride": "i64"}), target)
    (said,) = found.value.diagnostics
    assert said.why == "rows is translated for offsets of 32 bits, and this launch has numbers of 64 bits: stride"
    assert said.line and said.help == "translate it for this launch, too"
