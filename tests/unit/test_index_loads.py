"""Gathers in a loop: the rows' numbers are loaded ahead with the rows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from slow_rows import in_turn
from translation_of import dedent

from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from gluonize.write.function.expressions import Expressions

SOURCE = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, y_ptr, i_ptr, z_ptr, w_ptr, n, B: tl.constexpr):
        o = tl.arange(0, B)
        pid = tl.program_id(0)
        acc = tl.zeros((B, B), tl.float32)
        end = n * pid
        for k in range(0, end, B):
            mask = k + o < end
            row = tl.load(i_ptr + k + o, mask=mask, other=0)
            x = tl.load(x_ptr + o[:, None] * 256 + (k + o)[None, :], mask=mask[None, :], other=0.0)
            y = tl.load(y_ptr + row[:, None] * B + o[None, :], mask=mask[:, None], other=0.0)
            acc = tl.dot(x, y, acc)
        tl.store(z_ptr + pid * B * B + o[:, None] * B + o[None, :], acc)
""")
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "i_ptr": "*i32", "z_ptr": "*fp32", "w_ptr": "*i32", "n": "i32"}
PROGRAMS = 5  # with 0 to 4 iterations, the last ones ragged


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1) as found:
        yield found


def spec_of(source: Path, stages: int = 2) -> LaunchSpec:
    sizes = {"x_ptr": 32 * 256, "y_ptr": 32 * 256, "i_ptr": 256, "z_ptr": 32 * 32 * PROGRAMS, "w_ptr": 256}
    values = {
        name: {"tensor": {"dtype": "", "shape": [size], "stride": [1], "storage": size, "offset": 0, "range": [0, 255]}}
        for name, size in sizes.items()
    }
    for name in ("x_ptr", "y_ptr", "z_ptr"):
        del values[name]["tensor"]["range"]
    attrs = dict.fromkeys(sizes, "DS")
    options = {"num_warps": 4, "num_stages": stages}
    signature = SIGNATURE | {"B": "constexpr"}
    return LaunchSpec(
        "t", "kernel", str(source), signature, {"B": 32}, attrs, options, (PROGRAMS,), values=values | {"n": 29}
    )


def translated(pool, folder: Path, target: str, text: str = SOURCE, stages: int = 2) -> tuple[str, LaunchSpec]:
    source = folder / "source.py"
    source.write_text(text)
    spec = spec_of(source, stages)
    result = pool.call("gluonize.translation:translate_kernel", TranslateRequest(str(source), target, launches=(spec,)))
    assert result.text is not None, result
    return result.text, spec


def status(pool, spec: LaunchSpec, text: str, folder: Path, target: str) -> str:
    output = folder / "output.py"
    output.write_text(text)
    return pool.call("gluonize.judge.verdict:validate_launch", spec.source, str(output), spec, target)["status"]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("target", ["gfx950", "gfx1201", "gfx1250"])
def test_all_trip_counts_are_right(target: str, stages: int, pool, tmp_path: Path):
    text, spec = translated(pool, tmp_path, target, stages=stages)
    assert "NUM_BUFFERS" in text and "row_t = " in text, text
    assert status(pool, spec, text, tmp_path, target) == "validated"


def test_rows_of_another_tile_are_found(pool, tmp_path: Path):
    text, spec = translated(pool, tmp_path, "gfx1201")
    before = "i_ptr, o + k_ahead"
    assert before in text, text
    assert status(pool, spec, text.replace(before, "i_ptr, o + k"), tmp_path, "gfx1201") != "validated"


CHANGED = {
    "the loop writes memory": (
        "acc = tl.dot(x, y, acc)",
        "acc = tl.dot(x, y, acc)\n        tl.store(w_ptr + k + o, o)",
    ),
    "a helper writes memory": (
        "acc = tl.dot(x, y, acc)",
        "acc = tl.dot(x, y, acc)\n        keep(w_ptr + k + o, o)",
    ),
}
HELPERS = dedent("""
    @triton.jit
    def keep(ptrs, values):
        tl.store(ptrs, values)

    @triton.jit
    def halved(x):
        if x.dtype.is_fp8():
            tl.device_assert(False)
        return (tl.cdiv(2, 4) * x * 0.5).to(x.dtype)

    @triton.jit
    def kernel""")
# Each of them in place of the load of the rows' numbers.
UNMASKED = {
    "no mask": "row = tl.load(i_ptr + k + o)",
    "another mask": "row = tl.load(i_ptr + k + o, mask=o < n, other=0)",
    "from a table of blocks": "row = tl.load(i_ptr + k // B) % 7 * B + o",
    "a mask that is none": "row = tl.load(i_ptr + k // B, mask=None, other=None) % 7 * B + o",
    "a mask that is true": "row = tl.load(i_ptr + k // B, mask=True) % 7 * B + o",
    "from a pointer that moves": "row = tl.load(i_ptr) % 7 * B + o\n        i_ptr += 1",
}


@pytest.mark.parametrize("what", CHANGED)
def test_loads_that_may_not_run_ahead_stay(what: str, pool, tmp_path: Path):
    before, after = CHANGED[what]
    assert before in SOURCE
    source = SOURCE.replace("@triton.jit\ndef kernel", HELPERS).replace(before, after)
    text, _ = translated(pool, tmp_path, "gfx1201", source)
    assert "NUM_BUFFERS" not in text


ROW = "row = tl.load(i_ptr + k + o, mask=mask, other=0)"


@pytest.mark.one_of(3)
@pytest.mark.parametrize("what, target", in_turn(UNMASKED, ["gfx950", "gfx942", "gfx1250"]))
def test_numbers_past_the_end_are_not_read(what: str, target: str, pool, tmp_path: Path):
    """The kernel's storage ends with the last number that the source reads."""
    assert ROW in SOURCE
    source = SOURCE.replace(ROW, UNMASKED[what]).replace("i_ptr + k // B", "i_ptr + k // B + pid")
    text, spec = translated(pool, tmp_path, target, source, stages=3)
    assert "NUM_BUFFERS" in text, text
    assert status(pool, spec, text, tmp_path, target) == "validated", text


def test_helpers_that_only_read_change_nothing(pool, tmp_path: Path):
    before = "acc = tl.dot(x, y, acc)"
    source = SOURCE.replace("@triton.jit\ndef kernel", HELPERS).replace(before, "acc = tl.dot(halved(x), y, acc)")
    text, spec = translated(pool, tmp_path, "gfx950", source)
    assert "NUM_BUFFERS" in text
    assert status(pool, spec, text, tmp_path, "gfx950") == "validated"


def test_row_numbers_are_loaded_where_the_rows_are(pool, tmp_path: Path):
    """The tile of the other operand has another layout, in which Triton would load them."""
    changes = {
        "other=0)\n": "other=0).to(tl.int64)\n",
        "x_ptr + o[:, None] * 256 + (k + o)[None, :], mask=mask[None, :]": "x_ptr + (k + o)[:, None] * 256 + o[None, :], mask=mask[:, None]",
        "tl.dot(x, y": "tl.dot(tl.trans(x), y",
        "o = tl.arange(0, B)": "o = tl.arange(0, 2 * B)",
        "(B, B)": "(2 * B, 2 * B)",
        "range(0, end, B)": "range(0, end, 2 * B)",
    }
    text = SOURCE
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    text, _ = translated(pool, tmp_path, "gfx1201", text)
    assert "row = cdna3.buffer_load(i_ptr, " in text and "row_t = cdna3.buffer_load(i_ptr, " in text


def test_values_that_replace_themselves_keep_their_name_in_one_layout():
    """`row = f(row)` in several layouts, also of tiles ahead, which prologues rename: none may overwrite what is still read."""

    def state(name: str, variants: tuple[str, ...], places: tuple[int, ...]) -> SimpleNamespace:
        web = SimpleNamespace(name=name, definitions=[SimpleNamespace(name="row_ahead")])
        return SimpleNamespace(
            web=web, variants=variants, cheap=True, split=None, first_use=dict(zip(variants, places))
        )

    old, new = state("row_ahead_t", ("a", "b"), (3, 4)), state("row_ahead_t", ("b", "a"), (2, 5))
    layouts = SimpleNamespace(states={1: old, 2: new})
    rw = SimpleNamespace(redefined=frozenset({"row_ahead"}), layouts=layouts)
    assert Expressions.primary(rw, old) == Expressions.primary(rw, new) == "b"
    rw.redefined = frozenset({"row"})
    assert Expressions.primary(rw, old) == "a"
