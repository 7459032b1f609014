"""Loops in a helper over tiles of descriptors that it is given, made by another helper: attention as tutorials write it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from translation_of import launch, tensor, translate
from gluonize.judge.verdict import validate_launch

HEAD, ROWS, COLUMNS, LENGTH = 32, 32, 16, 96
SOURCE = """
import triton
import triton.language as tl


@triton.jit
def described(given, shape, strides, block_shape):
    if isinstance(given, tl.tensor_descriptor):
        return given
    else:
        return tl.make_tensor_descriptor(given, shape, strides, block_shape)


@triton.jit
def attend(acc, l_i, m_i, q, desc_k, desc_v, start_m, scale, offset,
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGE: tl.constexpr, offs_m, offs_n, N_CTX):
    if STAGE == 1:
        lo, hi = 0, start_m * BLOCK_M
    elif STAGE == 2:
        lo, hi = start_m * BLOCK_M, (start_m + 1) * BLOCK_M
        lo = tl.multiple_of(lo, BLOCK_M)
    else:
        lo, hi = 0, N_CTX
    row = offset + lo
    for start_n in tl.range(lo, hi, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        k = desc_k.load([row, 0]).T
        qk = tl.dot(q, k) * scale
        if STAGE == 2:
            qk = tl.where(offs_m[:, None] >= start_n + offs_n[None, :], qk, -1.0e6)
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = desc_v.load([row, 0])
        acc = tl.dot(p.to(tl.float16), v, acc)
        m_i = m_ij
        row += BLOCK_N
    return acc, l_i, m_i


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, scale, H, N_CTX,
              HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGE: tl.constexpr):
    start_m = tl.program_id(0)
    head = tl.program_id(1)
    rows = H * N_CTX
    desc_q = described(q_ptr, shape=[rows, HEAD], strides=[HEAD, 1], block_shape=[BLOCK_M, HEAD])
    desc_k = described(k_ptr, shape=[rows, HEAD], strides=[HEAD, 1], block_shape=[BLOCK_N, HEAD])
    desc_v = described(v_ptr, shape=[rows, HEAD], strides=[HEAD, 1], block_shape=[BLOCK_N, HEAD])
    desc_o = described(out_ptr, shape=[rows, HEAD], strides=[HEAD, 1], block_shape=[BLOCK_M, HEAD])
    offset = head * N_CTX
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD], dtype=tl.float32)
    q = desc_q.load([offset + start_m * BLOCK_M, 0])
    if STAGE & 1:
        acc, l_i, m_i = attend(acc, l_i, m_i, q, desc_k, desc_v, start_m, scale, offset,
                               BLOCK_M, BLOCK_N, 4 - STAGE, offs_m, offs_n, N_CTX)
    if STAGE & 2:
        acc, l_i, m_i = attend(acc, l_i, m_i, q, desc_k, desc_v, start_m, scale, offset,
                               BLOCK_M, BLOCK_N, 2, offs_m, offs_n, N_CTX)
    desc_o.store([offset + start_m * BLOCK_M, 0], (acc / l_i[:, None]).to(tl.float16))
"""

NAN = SOURCE.replace(
    "(given, shape, strides, block_shape)\n\n", '(given, shape, strides, block_shape, "nan")\n\n'
).replace("row = offset + lo", "row = offset + lo + 8")


def spec(stage: int):
    heads = 2
    data = tensor(heads * LENGTH, HEAD)
    signature = {f"{name}_ptr": "*fp16" for name in ("q", "k", "v", "out")}
    signature |= {"scale": "fp32", "H": "i32", "N_CTX": "i32"}
    constexprs = {"HEAD": HEAD, "BLOCK_M": ROWS, "BLOCK_N": COLUMNS, "STAGE": stage}
    attrs = {name: "DS" for name in signature if name.endswith("_ptr")} | {"N_CTX": "D"}
    values = {name: data for name in signature if name.endswith("_ptr")} | {"scale": 0.5, "H": heads, "N_CTX": LENGTH}
    made = launch("attention", signature, constexprs, attrs=attrs, stages=2, values=values)
    return replace(made, grid=(LENGTH // ROWS, heads))


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("target, stage", [("gfx950", 3), ("gfx942", 3), ("gfx1250", 1)])
def test_tiles_of_descriptors_that_a_helper_is_given_run_ahead(target, stage, tmp_path):
    result = translate(tmp_path, SOURCE, spec(stage), target=target)
    assert any("`k`, `v` by" in choice for choice in result.outcomes[0].choices), result.outcomes[0].choices
    assert _status(tmp_path, result.text, target, stage) == ("validated", set())


@pytest.mark.one_of(2)
@pytest.mark.compile
@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
def test_descriptors_of_the_host_that_a_helper_tells_from_pointers(target, tmp_path):
    plain = spec(1)
    tiles = {"q": ROWS, "k": COLUMNS, "v": COLUMNS, "out": ROWS}
    kinds = {f"{name}_ptr": f"tensordesc<fp16[{rows}, {HEAD}]>" for name, rows in tiles.items()}
    values = {
        f"{name}_ptr": {
            "descriptor": {
                "base": plain.values["q_ptr"],
                "shape": [2 * LENGTH, HEAD],
                "strides": [HEAD, 1],
                "block_shape": [rows, HEAD],
            }
        }
        for name, rows in tiles.items()
    }
    described = replace(plain, signature=plain.signature | kinds, attrs={}, values=plain.values | values)
    text = translate(tmp_path, SOURCE, described, target=target).text
    (tmp_path / "output.py").write_text(text)
    answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "output.py"), described, target)
    assert answer["status"] == "validated", answer["reason"]


@pytest.mark.one_of(4)
@pytest.mark.compile
@pytest.mark.parametrize(
    "old, new, kind",
    [
        ("async_copy.wait_group(NUM_BUFFERS - 2)", "pass", "lds-in-flight"),
        ("async_copy.wait_group(NUM_BUFFERS - 2)", "async_copy.wait_group(NUM_BUFFERS - 1)", "lds-in-flight"),
        ("k_smem.index(slot)", "k_smem.index(free_slot)", "lds-in-flight"),
        ("row += BLOCK_N\n", "row += 0\n", ""),
    ],
)
def test_mistakes_in_them_are_found(old, new, kind, tmp_path):
    text = translate(tmp_path, SOURCE, spec(3), target="gfx950").text
    assert old in text, text
    found, hazards = _status(tmp_path, text.replace(old, new), "gfx950", 3)
    assert found == "mismatch" and (not kind or kind in hazards), hazards


@pytest.mark.compile
def test_what_a_helper_pads_with_is_known(tmp_path):
    """Tiles that reach past the end of a tensor are filled with NaN, which no copy does."""
    assert NAN.count('"nan"') == 1
    result = translate(tmp_path, NAN, spec(1), target="gfx950")
    assert any("not a plain tile" in kept.reason for kept in result.outcomes[0].kept_loops), result.outcomes
    assert _status(tmp_path, result.text, "gfx950", 1) == ("validated", set())


def _status(folder, text: str, target: str, stage: int) -> tuple[str, set[str]]:
    output = folder / "output.py"
    output.write_text(text)
    answer = validate_launch(str(folder / "source.py"), str(output), spec(stage), target)
    return answer["status"], {h["kind"] for h in answer["hazards"]}
