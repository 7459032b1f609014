"""Loops on gfx950 in which some tiles are copied straight to LDS and others, too narrow for that, go through registers."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import compiled, dedent, launch, tensor, validated

from gluonize.decide.readback.staging import Staged
from gluonize.judge.lower.jobs import lower_file
from gluonize.judge.verdict import validate_launch
from gluonize.loops.planner.fetched import one_way

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, y_ptr, z_ptr, K, stride_yk, stride_yn, B: tl.constexpr):
        o = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            depth = k + o
            x = tl.load(x_ptr + o[:, None] * K + depth[None, :], mask=(depth < K)[None, :], other=0.0)
            y = tl.load(y_ptr + depth[:, None] * stride_yk + o[None, :] * stride_yn, mask=(depth < K)[:, None], other=0.0)
            acc = tl.dot(x, y, acc)
        tl.store(z_ptr + o[:, None] * B + o[None, :], acc)
    """)
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "K": "i32", "stride_yk": "i32", "stride_yn": "i32"}
B, MOST = 32, 7


def spec_of(tiles: int, stages: int = 2, warps: int = 4):
    values = {"x_ptr": tensor(B, MOST * B), "y_ptr": tensor(MOST * B, 2 * B), "z_ptr": tensor(B, B)}
    numbers = {"K": tiles * B, "stride_yk": 2 * B, "stride_yn": 2}
    attrs = {"x_ptr": "DS", "y_ptr": "DS", "z_ptr": "DS", "K": "D"}
    return launch("product", SIGNATURE, {"B": B}, attrs=attrs, warps=warps, stages=stages, values=values | numbers)


def written(folder: Path, stages: int) -> str:
    text = validated(folder, SOURCE, spec_of(MOST, stages), "gfx950")
    assert "x_smem.index(free_slot), x_ptr" in text, text
    assert "y_smem.index(free_slot).store(y_next)" in text, text
    return text


def status(folder: Path, tiles: int, stages: int) -> str:
    files = str(folder / "source.py"), str(folder / "output.py")
    return validate_launch(*files, spec_of(tiles, stages), "gfx950")["status"]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("stages", [2, 3])
def test_any_number_of_tiles(stages: int, tmp_path: Path):
    text = written(tmp_path, stages)
    assert f"NUM_BUFFERS: gl.constexpr = {stages}" in text
    assert [status(tmp_path, tiles, stages) for tiles in range(MOST)] == ["validated"] * MOST


MISTAKES = [
    ("async_copy.wait_group(NUM_BUFFERS - 2)", "async_copy.wait_group(NUM_BUFFERS - 1)", 2),
    ("+ NUM_BUFFERS - 1) % NUM_BUFFERS", "+ NUM_BUFFERS - 2) % NUM_BUFFERS", 3),
    ("y_smem.index(t).store(y_next)", "y_smem.index(0).store(y_next)", 3),
    ("y_smem.index(free_slot).store(y_next)", "y_smem.index(slot).store(y_next)", 2),
]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("right, wrong, stages", MISTAKES)
def test_a_planted_mistake_is_found(right: str, wrong: str, stages: int, tmp_path: Path):
    text = written(tmp_path, stages)
    assert right in text, text
    (tmp_path / "output.py").write_text(text.replace(right, wrong))
    assert any(status(tmp_path, tiles, stages) == "mismatch" for tiles in range(MOST - 1, 0, -1))


def test_it_is_no_worse_than_triton_s(tmp_path: Path):
    text, spec = written(tmp_path, 2), spec_of(MOST)
    ours, theirs = compiled(tmp_path, text, spec, "gfx950"), lower_file(str(tmp_path / "source.py"), spec, "gfx950")
    ours, theirs = ours.metrics, theirs.metrics
    assert ours.lds_bytes <= theirs.lds_bytes and ours.loop.barrier < theirs.loop.barrier
    assert ours.loop.lds_dma == theirs.loop.lds_dma and ours.loop.insns <= theirs.loop.insns


def test_one_warp_waits_for_no_other(tmp_path: Path):
    text = validated(tmp_path, SOURCE, spec_of(3, warps=1), "gfx950")
    assert "free_slot = gl.where(slot == 0, NUM_BUFFERS - 1, slot - 1)" in text, text


@pytest.mark.parametrize("mixes", [True, False])
def test_one_mechanism_where_the_loop_must_not_mix(mixes: bool):
    """Stages, literal slots and operands read ahead are written for tiles that all go the same way."""
    copied, stored = Staged((B, B), None, 3, None, None, "buffer"), Staged((B, B), None, 3, None, None, "registers")
    ways, copies, buffers = one_way([copied, stored], [False, False], mixes)
    assert ([way.copy for way in ways], copies, buffers) == (
        (["buffer", "registers"], True, 3) if mixes else (["registers", "registers"], False, 2)
    )
