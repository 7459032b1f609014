"""Gathers and scatters of tensor descriptors by the tensor data mover of gfx1250."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

SOURCE = textwrap.dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def move(x_ptr, from_ptr, to_ptr, y_ptr, R, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
        x = tl.make_tensor_descriptor(x_ptr, shape=[R, C], strides=[C, 1], block_shape=[1, BLOCK])
        y = tl.make_tensor_descriptor(y_ptr, shape=[R, C], strides=[C, 1], block_shape=[1, BLOCK])
        i = tl.arange(0, ROWS)
        column = tl.program_id(0) * BLOCK - SHIFT
        tile = x.gather(tl.load(from_ptr + i), column)
        y.scatter((tile * 2).to(tl.float16), tl.load(to_ptr + i), column)
    """)


def launch(source: str, rows: int, bits: int) -> LaunchSpec:
    r, c = 40, 72  # the second tile is partial
    kind, element = f"*i{bits}", f"int{bits}"

    def numbers(data: list[int]) -> dict:
        held = {"dtype": element, "shape": [rows], "stride": [1], "storage": rows, "offset": 0}
        return {"tensor": {**held, "range": [min(data), max(data)], "data": data}}

    matrix = {"tensor": {"dtype": "float16", "shape": [r, c], "stride": [c, 1], "storage": r * c, "offset": 0}}
    values = {
        "x_ptr": matrix, "y_ptr": matrix, "R": r, "C": c,
        "from_ptr": numbers([(7 * i) % 48 for i in range(rows)]),  # some beyond the end
        "to_ptr": numbers([(11 * i + 5) % (r + 3) for i in range(rows)]),
    }  # fmt: skip
    signature = {"x_ptr": "*fp16", "from_ptr": kind, "to_ptr": kind, "y_ptr": "*fp16", "R": "i32", "C": "i32"}
    signature |= {"ROWS": "constexpr", "BLOCK": "constexpr"}
    constexprs = {"ROWS": rows, "BLOCK": 64}
    return LaunchSpec("move", "move", source, signature, constexprs, {}, {"num_warps": 4}, (2,), values=values)


def translated(folder: Path, rows: int, bits: int, shift: int = 0, positive: bool = False):
    source = folder / "source.py"
    text = SOURCE.replace(" - SHIFT", f" - {shift}" if shift else "")
    source.write_text(text.replace("_ptr + i)", "_ptr + i) & 127") if positive else text)
    spec = launch(str(source), rows, bits)
    result = translate_kernel(TranslateRequest(str(source), "gfx1250", launches=(spec,)))
    assert result.text is not None, result
    return source, spec, result


def status(source: Path, spec: LaunchSpec, text: str):
    file = source.parent / "translated.py"
    file.write_text(text)
    answer = validate_launch(str(source), str(file), spec, "gfx1250")
    return answer["status"], {h["kind"] for h in answer["hazards"]}, answer


@pytest.mark.compile
@pytest.mark.parametrize("bits, capacity", [(32, 8), (16, 16)])
@pytest.mark.parametrize("rows", [8, 32])
def test_rows_go_through_the_data_mover(rows: int, bits: int, capacity: int, tmp_path: Path):
    source, spec, result = translated(tmp_path, rows, bits, positive=bits == 16)
    kernel = result.text[result.text.index("def move(") :]
    assert "gather_rows(" in kernel and "scatter_rows(" in kernel and "convert_layout" not in kernel
    if rows == 32:
        assert f"gl.BlockedLayout([1, {capacity}], [32, 1], [1, 4], [0, 1])" in result.text
    found, hazards, answer = status(source, spec, result.text)
    assert (found, hazards) == ("validated", set()), answer


@pytest.mark.compile
def test_row_numbers_that_the_data_mover_would_read_as_unsigned_keep_masks(tmp_path: Path):
    source, spec, result = translated(tmp_path, 32, 16)
    assert "gather_tile_2d" in result.text and "gather_rows" not in result.text
    assert status(source, spec, result.text)[0] == "validated"


def test_a_column_that_may_be_negative_keeps_masks(tmp_path: Path):
    source, spec, result = translated(tmp_path, 32, 32, shift=8)
    assert "gather_tile_2d" in result.text and "gather_rows" not in result.text
    assert status(source, spec, result.text)[0] == "validated"


PLANTED = {
    "wait-deleted": ("    tdm.async_wait(0)\n    return smem", "    return smem", {"lds-in-flight"}),
    "lower-count": ("    tdm.async_wait(0)\n    return smem", "    tdm.async_wait(1)\n    return smem", {"lds-in-flight"}),
    "scatter-not-waited-for": ("rows, smem)\n    tdm.async_wait(0)\n\n", "rows, smem)\n\n", {"lds-store-unwaited"}),
    "column-lost": ("add_offsets=[0, column]", "add_offsets=[0, 0]", set()),
    "bounds-kept": (", clamp_bounds=True), rows, smem)\n    tdm.async_wait(0)\n    return", "), rows, smem)\n    tdm.async_wait(0)\n    return", {"out-of-bounds"}),
}  # fmt: skip


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistakes_are_found(name: str, tmp_path: Path):
    old, new, kinds = PLANTED[name]
    source, spec, result = translated(tmp_path, 32, 32)
    assert old in result.text, result.text
    found, hazards, answer = status(source, spec, result.text.replace(old, new))
    assert found != "validated" and (not kinds or kinds & hazards), answer
