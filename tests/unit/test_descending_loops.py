"""Loops whose index goes down are pipelined; every number of iterations is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent

from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest

SOURCE = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, y_ptr, z_ptr, n, B: tl.constexpr):
        o = tl.arange(0, B)
        pid = tl.program_id(0)
        acc = tl.zeros((B, B), tl.float32)
        for k in range((pid - 1) * B, -B, -B):
            x = tl.load(x_ptr + (k + o)[:, None] * B + o[None, :], mask=(k + o)[:, None] < n, other=0.0)
            y = tl.load(y_ptr + (k + o)[:, None] * B + o[None, :])
            acc = tl.dot(x, y, acc)
        tl.store(z_ptr + pid * B * B + o[:, None] * B + o[None, :], acc)
""")
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "n": "i32", "B": "constexpr"}
PROGRAMS = 6  # with 0 to 5 iterations


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1) as found:
        yield found


def answer(pool, folder: Path, target: str, stages: int, before: str = "", after: str = "") -> dict:
    """What the reference machine says of the translation in which `after` stands for `before`."""
    source, output = folder / "source.py", folder / "output.py"
    source.write_text(SOURCE)
    elements = 32 * 32 * PROGRAMS
    tensor = {"tensor": {"dtype": "", "shape": [elements], "stride": [1], "storage": elements, "offset": 0}}
    values = {name: tensor for name, kind in SIGNATURE.items() if kind[0] == "*"} | {"n": 144}
    attrs = dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), "DS") | {"n": "D"}
    options = {"num_warps": 4, "num_stages": stages}
    spec = LaunchSpec(
        "t", "kernel", str(source), SIGNATURE, {"B": 32}, attrs, options, (PROGRAMS,), values=values
    )  # fmt: skip
    result = pool.call("gluonize.translation:translate_kernel", TranslateRequest(str(source), target, launches=(spec,)))
    assert result.text is not None and "NUM_BUFFERS" in result.text, result
    assert before in result.text, result.text
    output.write_text(result.text.replace(before, after) if before else result.text)
    return pool.call("gluonize.judge.verdict:validate_launch", str(source), str(output), spec, target)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("target", ["gfx950", "gfx1201", "gfx1250"])
def test_all_trip_counts_are_right(target: str, stages: int, pool, tmp_path: Path):
    assert answer(pool, tmp_path, target, stages)["status"] == "validated"


def test_the_tensor_data_mover_fetches_tiles_downwards(pool, tmp_path: Path):
    """A bound in the wrong place, and a tile below the first one that nothing keeps from being fetched, are found."""
    assert answer(pool, tmp_path, "gfx1250", 3, "tdm.async_load(x_", "tdm.async_load(x_")["status"] == "validated"
    assert answer(pool, tmp_path, "gfx1250", 3, "k_ahead > (-B)", "k_ahead > (-B * 9)")["status"] != "validated"


def test_a_tile_past_the_end_is_not_fetched(pool, tmp_path: Path):
    """Without the condition, the tile before the tensor's start is read."""
    assert answer(pool, tmp_path, "gfx1201", 2, "k_ahead > (-B)", "k_ahead > (-B * 9)")["status"] != "validated"
