"""Scaled dots on targets without the instruction: operands are upcast where they are multiplied."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from slow_rows import in_turn, slow_but, slow_but_crossed
from translation_of import dedent

from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.judge.lower.jobs import lower_file
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest

SOURCE = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(a_ptr, b_ptr, s_ptr, t_ptr, c_ptr, K, A: tl.constexpr, B: tl.constexpr, A_PACK: tl.constexpr,
               B_PACK: tl.constexpr, ONE_SIDE: tl.constexpr):
        om = tl.arange(0, 64)
        on = tl.arange(0, 64)
        oa = tl.arange(0, 64 // A_PACK)
        ob = tl.arange(0, 64 // B_PACK)
        og = tl.arange(0, 2)
        a_ptrs = a_ptr + om[:, None] * (K // A_PACK) + oa[None, :]
        b_ptrs = b_ptr + on[None, :] * (K // B_PACK) + ob[:, None]
        acc = tl.zeros((64, 64), tl.float32)
        for k in range(0, K // 64):
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
            t = tl.load(t_ptr + on[:, None] * (K // 32) + k * 2 + og[None, :])
            if ONE_SIDE:
                acc = tl.dot_scaled(a, None, A, b, t, B, acc)
            else:
                s = tl.load(s_ptr + om[:, None] * (K // 32) + k * 2 + og[None, :])
                acc = tl.dot_scaled(a, s, A, b, t, B, acc)
            a_ptrs += 64 // A_PACK
            b_ptrs += 64 // B_PACK
        tl.store(c_ptr + om[:, None] * 64 + on[None, :], acc)
""")
FORMATS = {
    "e2m1 e2m1": ("*u8", "*u8", False),
    "e4m3 e2m1": ("*fp8e4nv", "*u8", False),
    "e4m3 e4m3": ("*fp8e4nv", "*fp8e4nv", False),
    "fp16 e2m1": ("*fp16", "*u8", True),
    "bf16 e4m3": ("*bf16", "*fp8e4nv", True),
}
TARGETS = ("gfx942", "gfx1100", "gfx1201")


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1) as found:
        yield found


def tensor(low=None, high=None, data=None) -> dict:
    given = {"dtype": "", "shape": [8192], "stride": [1], "storage": 8192, "offset": 0}
    given |= {"range": [low, high]} if high else {}
    return {"tensor": given | ({"data": data} if data else {})}


def spec_of(formats: str, folder: Path, scales: list[int] | None = None) -> LaunchSpec:
    a, b, one_side = FORMATS[formats]
    left, right = formats.split()
    path = folder / "source.py"
    path.write_text(SOURCE)
    pointers = {"a_ptr": a, "b_ptr": b, "s_ptr": "*u8", "t_ptr": "*u8", "c_ptr": "*fp32"}
    constants = {
        "A": left, "B": right, "A_PACK": 1 + (left == "e2m1"), "B_PACK": 1 + (right == "e2m1"), "ONE_SIDE": one_side,
    }  # fmt: skip
    signature = {**pointers, "K": "i32", **dict.fromkeys(constants, "constexpr")}
    attrs = dict.fromkeys(pointers, "DS") | {"K": "D"}
    values = {name: tensor(0, 255) if kind == "*u8" else tensor() for name, kind in pointers.items()}
    values["s_ptr"], values["t_ptr"] = tensor(120, 134), tensor(120, 134, scales)
    options = {"num_warps": 4, "num_stages": 2}
    return LaunchSpec("t", "kernel", str(path), signature, constants, attrs, options, (1,), values=values | {"K": 128})


def translated(pool, spec: LaunchSpec, target: str) -> str:
    result = pool.call("gluonize.translation:translate_kernel", TranslateRequest(spec.source, target, launches=(spec,)))
    assert result.text is not None, result
    return result.text


@pytest.mark.parametrize("formats, target", slow_but_crossed(FORMATS, TARGETS, 7))
def test_values_are_those_of_the_source(formats: str, target: str, pool, tmp_path: Path):
    """Scales of 0 are 2 ** -127, those of 255 NaN."""
    spec = spec_of(formats, tmp_path, [(0, 255, 127, 128, 1, 254)[i % 6] for i in range(8192)])
    output = tmp_path / "output.py"
    output.write_text(translated(pool, spec, target))
    answer = pool.call("gluonize.judge.verdict:validate_launch", spec.source, str(output), spec, target)
    assert answer["status"] == "validated", answer


@pytest.mark.one_of(3)
@pytest.mark.parametrize("formats, target", in_turn(FORMATS, TARGETS))
def test_nothing_is_moved_but_scales(formats: str, target: str, pool, tmp_path: Path):
    spec = spec_of(formats, tmp_path)
    text = translated(pool, spec, target)
    kernel = text[text.index("def kernel(") :]
    loop = kernel[kernel.index("    for k in") :]
    assert "convert_layout" not in loop, loop
    assert re.search(r"\b[ab](_smem\.index\(slot\))?\.load\(\w*operand\w*\)", loop), loop


@pytest.mark.parametrize("target", slow_but(TARGETS))
@pytest.mark.parametrize("formats", slow_but(["e2m1 e2m1", "fp16 e2m1"]))
def test_the_loop_is_as_short_as_that_of_the_compiler(formats: str, target: str, pool, tmp_path: Path):
    spec = spec_of(formats, tmp_path)
    output = tmp_path / "output.py"
    output.write_text(translated(pool, spec, target))
    ours, theirs = (lower_file(path, spec, target).metrics.loop for path in (str(output), spec.source))
    assert ours.insns <= 1.1 * theirs.insns, (ours, theirs)


@pytest.mark.parametrize("target", slow_but(["gfx1100", "gfx1201"]))
@pytest.mark.parametrize("formats", slow_but(["fp16 e2m1", "bf16 e4m3"]))
def test_rdna_reads_tiles_behind_the_barriers_of_the_scales(formats: str, target: str, pool, tmp_path: Path):
    spec = spec_of(formats, tmp_path)
    text = translated(pool, spec, target)
    assert re.search(r"\(\s*a\.load\(a_operand\),\s*b=upcast_rhs_from_lds\(b, t, ", text), text
    output = tmp_path / "output.py"
    output.write_text(text)
    ours, theirs = (lower_file(path, spec, target).metrics for path in (str(output), spec.source))
    assert ours.loop.barrier <= min(2, theirs.loop.barrier), (ours, theirs)


@pytest.mark.parametrize("formats, target", [("e4m3 e2m1", "gfx1100"), ("fp16 e2m1", "gfx942")])
def test_tiles_are_read_first_where_both_scales_move_or_registers_are_many(formats, target, pool, tmp_path: Path):
    text = translated(pool, spec_of(formats, tmp_path), target)
    assert "a = a_smem.index(slot).load(a_operand)" in text and "_from_lds" not in text, text
