"""Tiles that wait in registers for their iteration: which they are, how they are written, and planted mistakes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.decide.readback.held import read_held
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.verdict.run import validate_pair
from gluonize.loops.plan.schedule import held_schedule
from gluonize.product.report.loops.hazards import events_of, hazards
from gluonize.read.spec.launch import LaunchSpec, parse_launches
from gluonize.request import TranslateRequest
from gluonize.trace.model.parse import parse_module
from gluonize.translation import translate_kernel

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, w_ptr, b_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + i * BLOCK + j)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        y = tl.load(y_ptr + rows[:, None] * BLOCK + j, mask=rows[:, None] < N, other=0.0)
        p = tl.dot(x, tl.trans(y))
        acc = tl.dot(p.to(tl.float16), y, acc)
    tl.store(out_ptr + i * BLOCK + j, acc)
"""
BESIDE_A_RING = KERNEL.replace(
    "        p = tl.dot(x",
    "        w = tl.load(w_ptr + i * N + rows[None, :], mask=rows[None, :] < N, other=0.0)\n        p = tl.dot(w",
)
# A vector, that no dot takes: it waits in registers beside the ring of `y`.
VECTOR = KERNEL.replace(
    "        p = tl.dot(x, tl.trans(y))",
    "        b = tl.load(b_ptr + rows, mask=rows < N, other=0.0)\n        p = tl.dot(x, tl.trans(y)) * b[None, :]",
)
# A vector for the rows and the columns of a product.
BOTH_WAYS = VECTOR.replace("* b[None, :]", "* (b[:, None] - b[None, :])")
# The author's own prefetch.
AHEAD = """
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, w_ptr, b_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    y = tl.load(y_ptr + i * BLOCK + j, mask=i < N, other=0.0)
    for start in range(BLOCK, N + BLOCK, BLOCK):
        acc += y
        y = tl.load(y_ptr + (start + i) * BLOCK + j, mask=start + i < N, other=0.0)
    tl.store(out_ptr + i * BLOCK + j, acc)
"""
BLOCK = 64


def launch(n: int, stages: int = 2, buffers: int = 0) -> LaunchSpec:
    def tensor(rows: int, columns: int, dtype: str = "float16") -> dict:
        size = max(1, rows * columns)
        return {
            "tensor": {"dtype": dtype, "shape": [rows, columns], "stride": [columns, 1], "storage": size, "offset": 0}
        }

    pointers = {"x_ptr": "*fp16", "y_ptr": "*fp16", "w_ptr": "*fp16", "b_ptr": "*fp32", "out_ptr": "*fp32"}
    values = {
        "x_ptr": tensor(BLOCK, BLOCK),
        "y_ptr": tensor(n, BLOCK),
        "w_ptr": tensor(BLOCK, n),
        "b_ptr": tensor(1, n, "float32"),
        "out_ptr": tensor(BLOCK, BLOCK, "float32"),
        "N": n,
        "BLOCK": BLOCK,
    }
    constexprs = {"BLOCK": BLOCK} | ({"NUM_BUFFERS": buffers} if buffers else {})
    data = {
        "id": "kernel",
        "kernel": "kernel",
        "source": "kernel.py",
        "signature": pointers | {"N": "i32"} | dict.fromkeys(constexprs, "constexpr"),
        "constexprs": constexprs,
        "attrs": dict.fromkeys(pointers, "DS") | {"N": "D"},
        "options": {"num_warps": 4, "num_stages": stages},
        "grid": [1],
        "values": values | constexprs,
    }
    return parse_launches({"version": 1, "launches": [data]})[0]


def translation(source: str, target: str, folder: Path, stages: int = 2, choices: Choices = Choices()):
    file = folder / "kernel.py"
    file.write_text(source)
    launches = (launch(3 * BLOCK, stages),)
    result = translate_kernel(TranslateRequest(str(file), target, launches=launches, choices=choices))
    assert result.text is not None
    return file, result.text


def statuses(file: Path, text: str, target: str, buffers: int = 0) -> list[str]:
    """What validation says for 0 to 4 tiles, the last of them partial."""
    out = []
    translated = file.with_name("translated.py")
    translated.write_text(text)
    for trips in range(5):
        n = max(0, BLOCK * trips - 16)
        left = source_stage(str(file), launch(n), target)
        spec = launch(n, buffers=buffers)
        right = translated_stage(str(translated), spec, target)
        names = {"source_names": left.names, "translated_names": right.names}
        out.append(validate_pair(left.text, right.text, spec, with_variants=False, **names).status)
    return out


@pytest.mark.compile
def test_a_tile_of_two_uses_waits_in_registers(tmp_path: Path):
    target = "gfx950"
    file, text = translation(KERNEL, target, tmp_path)
    loop = text[text.index("for start in range") :]
    assert loop.index("y = y_next") < loop.index("y_next = ") and "NUM_BUFFERS" not in text
    assert statuses(file, text, target) == ["validated"] * 5


@pytest.mark.compile
def test_rdna_has_no_registers_for_it(tmp_path: Path):
    file, text = translation(VECTOR, "gfx1201", tmp_path)
    assert "b_next" not in text and "y_smem" in text
    assert statuses(file, text, "gfx1201") == ["validated"] * 5


@pytest.mark.compile
def test_the_tensor_data_mover_fetches_it_where_there_is_one(tmp_path: Path):
    file, text = translation(KERNEL, "gfx1250", tmp_path)
    assert "tdm.async_load(y_" in text and "y_next" not in text and "NUM_BUFFERS" not in text
    assert statuses(file, text, "gfx1250") == ["validated"] * 5


REFILL = """        # Every warp has read this tile: the next one takes its place.
        gl.barrier()
        tdm.async_load(y_desc, [start_ahead, 0], y_smem.index(0))
"""
FIRST_READ = "        y = y_smem.index(0).load(y_operand)\n"


@pytest.mark.compile
def test_its_slot_is_filled_again_after_the_last_read(tmp_path: Path):
    _, text = translation(KERNEL, "gfx1250", tmp_path)
    before, _, after = text.partition(REFILL)
    assert FIRST_READ in before and "y_smem" in before.partition("p = cdna5.wmma(")[2] and "y_smem" not in after
    assert "gl.assume" not in text and "[1] + y_desc.block_shape" in text


@pytest.mark.compile
def test_a_slot_that_is_read_until_the_end_is_one_of_a_ring(tmp_path: Path, monkeypatch):
    """No product is left that could hide the copy; LDS has room."""
    monkeypatch.setattr("gluonize.decide.readback.traced_launch.lds_bytes", lambda module, options: 1 << 16)
    late = KERNEL.replace("tl.dot(x, tl.trans(y))", "tl.dot(y, x)").replace(
        "tl.dot(p.to(tl.float16), y, acc)", "tl.dot(x, tl.trans(y) + p.to(tl.float16), acc)"
    )
    file, text = translation(late, "gfx1250", tmp_path)
    assert "NUM_BUFFERS" in text and "free_slot" in text
    assert statuses(file, text, "gfx1250") == ["validated"] * 5


@pytest.mark.one_of(4)
@pytest.mark.compile
@pytest.mark.parametrize("mistake", ["before the last read", "the same tile", "no wait", "the tile after the next"])
def test_mistakes_in_filling_it_again_are_found(mistake: str, tmp_path: Path):
    file, text = translation(KERNEL, "gfx1250", tmp_path)
    planted = {
        "before the last read": text.replace(REFILL, "").replace(FIRST_READ, FIRST_READ + REFILL),
        "the same tile": text.replace(REFILL, REFILL.replace("start_ahead", "start")),
        "no wait": text.replace("        tdm.async_wait(0)\n        start_ahead", "        start_ahead"),
        "the tile after the next": text.replace(REFILL, REFILL.replace("start_ahead", "start_ahead + BLOCK")),
    }[mistake]
    assert planted != text
    found = statuses(file, planted, "gfx1250")
    assert "mismatch" in found or "hazard" in found


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("source, target, buffers", [
    (BESIDE_A_RING, "gfx950", 2), (BESIDE_A_RING, "gfx950", 3), (VECTOR, "gfx942", 1), (VECTOR, "gfx942", 2),
])  # fmt: skip
def test_tiles_beside_a_ring_wait_in_order(source: str, target: str, buffers: int, tmp_path: Path):
    file, text = translation(source, target, tmp_path)
    held, ring = ("y", "w") if source is BESIDE_A_RING else ("b", "y")
    assert f"{held}_next = ()" in text and f"{held}_next = {held}_next[1:] + (" in text and f"{ring}_smem" in text
    assert statuses(file, text, target, buffers) == ["validated"] * 5


@pytest.mark.one_of(2)
@pytest.mark.compile
@pytest.mark.parametrize(
    "target, before, after",
    [("gfx942", "= b_next[0]", "= b_next[-1]"), ("gfx950", "rows_mma_2 = start_ahead + ", "rows_mma_2 = start + ")],
    ids=["beside-a-ring", "alone"],
)
def test_a_vector_waits_in_each_layout(target: str, before: str, after: str, tmp_path: Path):
    """Instead of being moved to the other one, which takes two barriers in each iteration."""
    file, text = translation(BOTH_WAYS, target, tmp_path)
    loads = re.findall(r"^ +(b_next\w*) = .*buffer_load\(b_ptr", text.partition("for start in")[2], re.M)
    assert len(set(loads)) == 2 and "convert_layout(b_next" not in text
    assert statuses(file, text, target) == ["validated"] * 5
    assert before in text and "mismatch" in statuses(
        file, text.replace(before, after), target, 3 * (target == "gfx942")
    )


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize(
    "value, waiting", [("as-fits", {"y_next"}), ("ahead", {"y_next", "b_next"}), ("own-iteration", set())]
)
def test_a_vector_that_all_lanes_repeat_is_loaded_where_it_is_used(value: str, waiting: set[str], tmp_path: Path):
    file, text = translation(VECTOR, "gfx950", tmp_path, choices=choices_of(waiting_loads=value))
    assert {name for name in ("y_next", "b_next") if name in text} == waiting
    assert statuses(file, text, "gfx950") == ["validated"] * 5
    if value == "as-fits":  # of this tile, while the other load is one of the next
        (line,) = re.findall(r"^ +b = .*buffer_load\(b_ptr, rows\w*, mask=rows\w* < N\)$", text, re.M)
        wrong = text.replace(line, line.replace("b_ptr, ", "b_ptr, BLOCK + "))
        assert {"mismatch", "hazard"} & {*statuses(file, wrong, "gfx950")}


# Its address is a pointer that moves on before the last use.
MOVING = VECTOR.replace("    for start in", "    b_ptrs = b_ptr + tl.arange(0, BLOCK)\n    for start in").replace(
    "b = tl.load(b_ptr + rows, mask=rows < N, other=0.0)",
    "b = tl.load(b_ptrs, mask=rows < N, other=0.0)\n        b_ptrs += BLOCK",
)


@pytest.mark.compile
@pytest.mark.parametrize("source, behind", [(VECTOR, True), (MOVING, False)], ids=["at-hand", "address-moves"])
def test_what_waits_is_loaded_again_behind_its_last_use(source: str, behind: bool, tmp_path: Path):
    file, text = translation(source, "gfx942", tmp_path)
    load = next(re.finditer(r"^ +b_next = b_next\[1:\] \+ .*\n", text, re.M))
    assert (text.index("p = cdna3.mfma(") < load.start() < text.index("acc = cdna3.mfma(")) == behind
    assert statuses(file, text, "gfx942") == ["validated"] * 5
    if not behind:  # the next pointer's tile is that after the next
        moved = "        b_base += BLOCK\n"
        before, _, after = text.replace(load.group(), "").rpartition(moved)
        wrong = before + moved + load.group() + after
        assert {"mismatch", "hazard"} & {*statuses(file, wrong, "gfx942")}


@pytest.mark.compile
@pytest.mark.parametrize("depth, slots", [("as-fits", 1), ("launch", 2), ("3", 3)])
def test_what_waits_is_one_tile_ahead(depth: str, slots: int, tmp_path: Path):
    """In registers it would move from one to the next in each iteration, which waits for the load."""
    _, text = translation(VECTOR, "gfx942", tmp_path, stages=3, choices=choices_of(depth=depth))
    assert f"NUM_BUFFERS: gl.constexpr = {slots}" in text and "b_next[1:]" in text


PLANTED = {
    "loads the tile after the next": (KERNEL, "start_ahead = start + BLOCK", "start_ahead = start + 2 * BLOCK"),
    "loads the same tile again": (KERNEL, "start_ahead = start + BLOCK", "start_ahead = start"),
    "takes the youngest": (BESIDE_A_RING, "y = y_next[0]", "y = y_next[-1]"),
    "drops the youngest": (BESIDE_A_RING, "y_next = y_next[1:] + (", "y_next = y_next[:-1] + ("),
}


@pytest.mark.one_of(4)
@pytest.mark.compile
@pytest.mark.parametrize("source, before, after", PLANTED.values(), ids=PLANTED)
def test_planted_mistakes_are_found(source: str, before: str, after: str, tmp_path: Path):
    file, text = translation(source, "gfx950", tmp_path)
    assert text.count(before) == 1
    found = statuses(file, text.replace(before, after), "gfx950", 0 if source is KERNEL else 3)
    assert "mismatch" in found or "hazard" in found


@pytest.mark.compile
def test_what_the_author_loads_ahead_is_left_alone(tmp_path: Path):
    file, text = translation(AHEAD, "gfx950", tmp_path)
    assert "y_next" not in text and statuses(file, text, "gfx950") == ["validated"] * 5


MODULE = """
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
  tt.func public @kernel(%p: !tt.ptr<f16>) {
    %first = amdg.buffer_load %p[%o] : !tt.ptr<f16> -> tensor<256xf16, #blocked> loc(#loc1)
    %r:2 = scf.for %i = %a to %b step %c iter_args(%acc = %z, %held = %first) -> (f32, tensor<256xf16, #blocked>) : i32 {
      %next = amdg.buffer_load %p[%o2] : !tt.ptr<f16> -> tensor<256xf16, #blocked> loc(#loc1)
      scf.yield %acc2, %next : f32, tensor<256xf16, #blocked> loc(#loc3)
    } loc(#loc3)
    tt.return loc(#loc3)
  } loc(#loc3)
#loc1 = loc("gluonize":7:0)
#loc3 = loc("gluonize":9:0)
"""


def test_held_loads_are_read_from_the_pipelined_module():
    ((path, found),) = read_held(parse_module(MODULE)).items()
    assert path == (7,) and found.copy == "held" and found.shape == (256,) and found.shared is None
    alone = MODULE.replace(
        "%first = amdg.buffer_load %p[%o] : !tt.ptr<f16> -> tensor<256xf16, #blocked> loc(#loc1)", ""
    )
    assert read_held(parse_module(alone)) == {}  # nothing was loaded before the loop: the author's own
    assert read_held(parse_module(MODULE.replace("%acc2, %next", "%acc2, %held"))) == {}


def test_the_schedule_is_right_for_all_trip_counts():
    assert not any(hazards(events_of(held_schedule(), trips), trips) for trips in range(5))


@pytest.mark.parametrize("field", ["prologue", "ahead"])
@pytest.mark.parametrize("by", [-1, 1])
def test_an_off_by_one_is_found(field: str, by: int):
    planted = replace(held_schedule(), **{field: getattr(held_schedule(), field) + by})
    assert any(hazards(events_of(planted, trips), trips) for trips in range(5))
