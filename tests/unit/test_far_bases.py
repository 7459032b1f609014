"""What the source adds to a pointer with 64 bits goes into the base: tensors of more than 2 GiB are served."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from slow_rows import in_turn

from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.prove.both_sides import PROVED, prove
from gluonize.judge.prove.stated_bounds import read_contract
from gluonize.rules.targets import target as target_row
from gluonize.trace.model.parse import parse_module
from translation_of import dedent, launch, translate

POINTER = {"x_ptr": "*fp16", "table_ptr": "*i32", "out_ptr": "*fp32"}
NUMBERS = {"rows": "i32", "stride_page": "i32", "stride_row": "i32"}
TILES = {"ROWS": 32, "COLUMNS": 64, "HEADS": 4}
# Pages of rows, whose numbers are read from memory; {} is what is done with the number.
PAGES = """
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(
        x_ptr, table_ptr, out_ptr, rows, stride_page, stride_row,
        ROWS: tl.constexpr, COLUMNS: tl.constexpr, HEADS: tl.constexpr,
    ):
        pid = tl.program_id(0)
        page = tl.load(table_ptr + pid){wide}
        offs_row = tl.arange(0, ROWS)
        offs_column = tl.arange(0, COLUMNS)
        {loads}
        tl.store(out_ptr + pid * COLUMNS + offs_column, tl.sum(x.to(tl.float32), 0))
    """
ONE = "x = tl.load(x_ptr + page * stride_page + offs_row[:, None] * stride_row + offs_column[None, :])"
HEAD = ONE.replace("offs_row[:", "(pid % HEADS * ROWS + offs_row)[:")
WRAPPED = ONE.replace("offs_row[:", "(offs_row % rows)[:")
KEPT = """ptrs = x_ptr + page * stride_page + (offs_row[:, None] * stride_row + offs_column[None, :])
        x = tl.load(ptrs)"""
MOVED = """x_ptr += page * stride_page
        x = tl.load(x_ptr + (offs_row[:, None] * stride_row + offs_column[None, :]))"""
LOOP = """ptrs = x_ptr + page * stride_page + (offs_row[:, None] * stride_row + offs_column[None, :])
        x = tl.zeros((ROWS, COLUMNS), tl.float32)
        for i in range(rows):
            x += tl.load(ptrs)
            ptrs += ROWS * stride_row"""


def pages(folder: Path, loads: str, target: str, wide: str = ".to(tl.int64)", storage: str = "DS"):
    """(the translation, its launch): storage: what the launch says of the tensor."""
    spec = launch("kernel", POINTER | NUMBERS, TILES, attrs={"x_ptr": storage, "table_ptr": "DS", "out_ptr": "DS"})
    text = dedent(PAGES.format(wide=wide, loads=loads))
    return translate(folder, text, spec, target=target).text, spec


def verdict(folder: Path, text: str, spec, target: str) -> str:
    """What the prover says of the translation `text` of the source in `folder`, and what of storage that rests on."""
    out = folder / "out.py"
    out.write_text(text)
    left, right = source_stage(str(folder / "source.py"), spec, target), translated_stage(str(out), spec, target)
    contract = read_contract(text, spec.kernel, spec.constexprs)
    contract = replace(contract, copies_end=target_row(target).copies_end_with_program)
    found = prove(parse_module(left.text), parse_module(right.text), contract)
    return " if ".join([found.word, *found.assumed])


EACH = [ONE, HEAD, WRAPPED, KEPT, MOVED, LOOP]


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    "loads, target", in_turn(EACH, ["gfx942", "gfx950"]) + in_turn(EACH[::-1], ["gfx1201", "gfx1250"])
)
def test_a_page_is_part_of_the_base(tmp_path, loads, target):
    text, spec = pages(tmp_path, loads, target)
    assert "storage of out_ptr" not in text or "x_ptr" not in text.split("storage of ")[1].split("within")[0]
    assert "buffer_load(" in text and "* stride_page).to(gl.int32)" not in text
    large = replace(spec, attrs=spec.attrs | {"x_ptr": "D"})  # no address may be taken modulo 2**32
    assert verdict(tmp_path, text, large, target) == PROVED


def test_an_element_that_ends_behind_what_a_buffer_reaches_is_not_proved(tmp_path):
    """Buffers have 2**31 - 2 bytes: element 2**30 - 1 of two bytes is behind them."""
    text, spec = pages(tmp_path, HEAD, "gfx950")
    large = replace(spec, attrs=spec.attrs | {"x_ptr": "D"})
    assert "<= 2**30 - 2" in text and verdict(tmp_path, text, large, "gfx950") == PROVED
    assert verdict(tmp_path, text.replace("<= 2**30 - 2", "<= 2**30 - 1"), large, "gfx950") != PROVED


def test_a_page_number_of_32_bits_wraps_as_the_source_does(tmp_path):
    text, _ = pages(tmp_path, ONE, "gfx950", wide="")
    assert "buffer_load(x_ptr, " in text and "x_ptr" in text.split("storage of ")[1].split("within")[0]


@pytest.mark.parametrize("loads", [ONE, KEPT, MOVED])
def test_a_tensor_that_is_said_to_be_large_is_read_by_buffer_loads(tmp_path, loads):
    text, spec = pages(tmp_path, loads, "gfx950", storage="D")
    assert "buffer_load(" in text and "assumes (ROWS - 1) * stride_row + COLUMNS - 1 <= 2**30 - 2" in text
    assert verdict(tmp_path, text, spec, "gfx950") == PROVED


def test_offsets_that_lose_the_page_are_not_proved_for_large_tensors(tmp_path):
    text, spec = pages(tmp_path, ONE, "gfx950")
    right = "buffer_load(x_ptr + page * stride_page, offs_row[:, None] * stride_row + "
    assert text.count(right) == 1
    wrong = text.replace(
        right, "buffer_load(x_ptr, (page * stride_page).to(gl.int32) + offs_row[:, None] * stride_row + "
    )
    assert verdict(tmp_path, wrong, spec, "gfx950") == f"{PROVED} if storage of table_ptr, x_ptr is within 2 GiB"
    stated = wrong.replace("assumes storage of out_ptr", "assumes storage of x_ptr, out_ptr")
    assert stated != wrong and verdict(tmp_path, stated, spec, "gfx950") == PROVED
    large = replace(spec, attrs=spec.attrs | {"x_ptr": "D"})
    assert verdict(tmp_path, wrong, large, "gfx950") != PROVED
