"""Which loads of wrapped rows (`offs % M`) are tiles with M as their bound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_plan import HEAD

from gluonize.decide.readback.traced_launch import read_trace, trace_launch
from gluonize.facts.reading import read_function
from gluonize.loops.forms.pipelined import PipelinedFunction
from gluonize.loops.kernel import kernel_facts
from gluonize.loops.plan.plan import PipelinePlan
from gluonize.loops.source.inline import inline_tile_loads
from gluonize.read.kernels.load import load_for_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.write.state.unit import Unit

HELPERS = '''
@triton.jit
def halved(x):
    """Elementwise."""
    y = x * 0.5
    return tl.where(y > 0, y, 0.0)


@triton.jit
def centred(x):
    """Rows meet."""
    return x - tl.sum(x, 0)[None, :]
'''
BODY = """
    row0 = tl.program_id(0) * BLOCK
    rows = (row0 + tl.arange(0, BLOCK)) % M
    p = a_ptr + rows[:, None] * K + offs_k[None, :]
    for k in range(0, tl.cdiv(K, BLOCK)):
        a = tl.load(p, mask=offs_k[None, :] < K - k * BLOCK, other=0.0)
        b = tl.load(q, mask=offs_k[:, None] < K - k * BLOCK, other=0.0)
        acc = tl.dot(a, b, acc)
        p += BLOCK
        q += BLOCK * N
    out = row0 + tl.arange(0, BLOCK)
    tl.store(c_ptr + out[:, None] * N + offs_n[None, :], acc.to(tl.float16), mask=out[:, None] < M)
"""
PERSISTENT = """
    for t in range(0, M, BLOCK):
        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        rows = (t + tl.arange(0, BLOCK)) % M
        for k in range(0, tl.cdiv(K, BLOCK)):
            a = tl.load(a_ptr + rows[:, None] * K + (k * BLOCK + offs_k)[None, :], mask=(k * BLOCK + offs_k)[None, :] < K)
            b = tl.load(b_ptr + (k * BLOCK + offs_k)[:, None] * N + offs_n[None, :])
            acc += tl.dot(a, b)
        out = t + tl.arange(0, BLOCK)
        tl.store(c_ptr + out[:, None] * N + offs_n[None, :], acc.to(tl.float16), mask=(out < M)[:, None])
"""
STORE = "acc.to(tl.float16), mask=out[:, None] < M)"
TILES = {
    "plain": BODY,
    "row0 written out": BODY.replace("out = row0 +", "out = tl.program_id(0) * BLOCK +", 1).replace(
        "row0 = tl.program_id(0) * BLOCK", "pid = tl.program_id(0)\n    row0 = pid * BLOCK"
    ).replace("out = tl.program_id(0) * BLOCK", "out = pid * BLOCK"),
    "hints": BODY.replace("% M\n", "% M\n    rows = tl.max_contiguous(tl.multiple_of(rows, BLOCK), BLOCK)\n"),
    "an elementwise helper": BODY.replace(STORE, "halved(acc).to(tl.float16), mask=out[:, None] < M)"),
    "added to": BODY.replace("acc = tl.dot(a, b, acc)", "acc += tl.dot(a.to(tl.float16), b)"),
    "mask in two steps": BODY.replace(STORE, "acc.to(tl.float16), mask=(out < M)[:, None] & (offs_n < N)[None, :])"),
    "persistent": PERSISTENT,
}  # fmt: skip
NOT_TILES = {
    "stored without a mask": (BODY.replace(STORE, "acc.to(tl.float16))"), "may reach"),
    "another mask": (BODY.replace("out[:, None] < M", "out[:, None] < N"), "stored in line"),
    "another dimension's mask": (BODY.replace("out[:, None] < M", "out[None, :] < M"), "stored in line"),
    "another start": (BODY.replace("out[:, None] < M", "(out - 1)[:, None] < M"), "stored in line"),
    "mask of wrapped rows": (BODY.replace("out[:, None] < M", "rows[:, None] < M"), "stored in line"),
    "transposed": (BODY.replace(STORE, "acc.T.to(tl.float16), mask=out[:, None] < M)"), "stored in line"),
    "rows meet": (BODY.replace(STORE, "(acc - tl.max(acc, 0)[None, :]).to(tl.float16), mask=out[:, None] < M)"), "may reach"),
    "rows meet in a helper": (BODY.replace(STORE, "centred(acc).to(tl.float16), mask=out[:, None] < M)"), "may reach"),
    "stored twice": (BODY + "    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc)\n", "may reach"),
    "the bound changes": (BODY.replace("    out = row0", "    M += 1\n    out = row0"), "stored in line"),
    "summed over": (
        BODY.replace("tl.dot(a, b, acc)", "tl.dot(a.T, b, acc)").replace("% M\n", "% M\n    tl.static_assert(BLOCK == 64)\n"),
        "may reach",
    ),
    "kept from tile to tile": (
        PERSISTENT.replace("        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)\n", ""), "keeps wrapped rows",
    ),
    "sometimes kept": (
        PERSISTENT.replace("        acc = tl.zeros", "        if t % 3 == 0:\n            acc = tl.zeros"), "keeps wrapped rows",
    ),
}  # fmt: skip


def loads(body: str, folder: Path, promised: str = "DS"):
    """name -> load, and name -> why it is no tile, of the innermost loop. promised: of each pointer."""
    path = folder / "kernel.py"
    head = HEAD.replace("@triton.jit\ndef kernel", HELPERS + "\n\n@triton.jit\ndef kernel")
    path.write_text(head + body)
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "i_ptr": "*i32"}
    sizes = dict.fromkeys(("M", "N", "K"), "i32")
    attrs = dict.fromkeys(pointers, promised) | dict.fromkeys(sizes, "D")
    signature = {**pointers, **sizes, "BLOCK": "constexpr"}
    options = {"num_warps": 4, "num_stages": 2}
    spec = LaunchSpec("t", "kernel", str(path), signature, {"BLOCK": 64}, attrs, options)
    traced = trace_launch(load_for_launch(spec).fn, spec, "gfx1250")
    launch = inline_tile_loads(
        traced, lambda fn: trace_launch(fn, spec, "gfx1250"), lambda fn: read_trace(fn, spec, "gfx1250")
    )
    kernel = kernel_facts(launch)
    rewriter = PipelinedFunction(Unit(kernel), read_function(kernel, launch.trace.frames[0]))
    rewriter.rewrite()
    (plan,) = [p for p in rewriter.layouts.of_loops.plans if isinstance(p, PipelinePlan)]
    return {load.name: load for load in plan.loads}, [why for _, why in plan.not_tiles]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", TILES)
def test_rows_that_reach_masked_stores_only(name: str, tmp_path: Path):
    found, reasons = loads(TILES[name], tmp_path)
    assert found["a"].tile is not None, reasons
    assert found["a"].tile.axes[0].limit, "M bounds the rows"


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", NOT_TILES)
def test_rows_that_reach_something_else(name: str, tmp_path: Path):
    body, reason = NOT_TILES[name]
    found, reasons = loads(body, tmp_path)
    assert found["a"].tile is None
    assert any(reason in why for why in reasons), reasons


FROM_AN_ARGUMENT = BODY.replace("row0 = tl.program_id(0) * BLOCK", "row0 = N")
FROM_MEMORY = BODY.replace("row0 = tl.program_id(0) * BLOCK", "row0 = tl.load(i_ptr)")


@pytest.mark.parametrize(
    "body, promised, rests",
    [
        (BODY, "D", []),
        (FROM_AN_ARGUMENT, "DS", []),
        (FROM_MEMORY, "DS", []),
        (
            FROM_AN_ARGUMENT,
            "D",
            [
                "row0 + tl.arange(0, BLOCK) >= 0: checked at launch (N)",
                "row0 + tl.arange(0, BLOCK) does not overflow: checked at launch (N + BLOCK - 1 <= 2**31 - 1)",
            ],
        ),
    ],
    ids=["programs", "an argument", "memory", "an argument, nothing promised"],
)
def test_rows_before_the_tensor_are_none(body: str, promised: str, rests: list[str], tmp_path: Path):
    found, reasons = loads(body, tmp_path, promised)
    assert found["a"].tile is not None, reasons
    said = sorted(str(o).partition("; for")[0] for o in found["a"].tile.assumed if o.kind != "rows")
    assert [one for one in said if not one.endswith("proven")] == sorted(rests), said


def test_rows_that_may_lie_before_a_tensor_are_not_wrapped_by_its_end(tmp_path: Path):
    found, reasons = loads(FROM_MEMORY, tmp_path, "D")
    assert found["a"].tile is None and any("may begin before the tensor" in why for why in reasons), reasons


def differing(bits: int, block: int, taken) -> int:
    """How many rows that are stored the data mover would not fetch as the source reads them, for all starts and sizes of so many bits.

    taken(rows of the source, positions of the tile): whether the launch is one that the translation is for.
    """
    numbers = np.arange(-(1 << (bits - 1)), 1 << (bits - 1))
    start, size = (x.reshape(-1, 1) for x in np.meshgrid(numbers, numbers[numbers > 1]))
    lanes = np.arange(block)
    at = (start + lanes + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    rows = np.fmod(at, size)
    stored = (at < size) & taken(rows, at)
    return int((stored & (rows != start + lanes)).sum())


def test_stored_rows_are_those_of_the_tile():
    """Either where no row is negative, as is proved or checked, or where none is that the source reads, as is promised; then the rows
    of a tile have to be in order too.
    """
    ordered = lambda at: at[:, :1] <= at[:, -1:]  # noqa: E731
    assert differing(8, 16, lambda rows, at: (at >= 0).all(axis=1, keepdims=True)) == 0
    assert differing(8, 16, lambda rows, at: (rows >= 0).all(axis=1, keepdims=True) & ordered(at)) == 0
    assert differing(8, 16, lambda rows, at: np.ones_like(at, bool)) > 0
