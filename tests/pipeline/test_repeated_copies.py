"""Copies past the end of a loop that fetch its last tile once more (`--choose copies-past-end=repeated`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import LaunchSpec

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(a_ptr, b_ptr, c_ptr, last_ptr, K, stride, B: tl.constexpr):
        o = tl.arange(0, B)
        a_ptrs = a_ptr + o[:, None] * stride + o[None, :]
        b_ptrs = b_ptr + o[None, :] * stride + o[:, None]
        acc = tl.zeros([B, B], dtype=tl.float32)
        for k in range(0, K, B):
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
            acc = tl.dot(a, b, acc)
            a_ptrs += B
            b_ptrs += B
        tl.store(c_ptr + o[:, None] * B + o[None, :], acc)
        tl.store(last_ptr + o[:, None] * B + o[None, :], tl.load(a_ptrs))
    """)
ONCE = SOURCE.replace("    tl.store(last_ptr + o[:, None] * B + o[None, :], tl.load(a_ptrs))\n", "")
B, MOST = 64, 4
REPEATED = choices_of(copies_past_end="repeated")


def spec_of(tiles: int, more: int = 1, warps: int = 4) -> LaunchSpec:
    """more: tiles of memory behind those of the loop."""
    columns = max(1, tiles + more) * B
    names = ("a_ptr", "b_ptr")
    values = dict.fromkeys(names, tensor(B, columns)) | dict.fromkeys(("c_ptr", "last_ptr"), tensor(B, B))
    values |= {"K": tiles * B, "stride": columns}
    signature = dict.fromkeys(names, "*fp16") | {"c_ptr": "*fp32", "last_ptr": "*fp16", "K": "i32", "stride": "i32"}
    attrs = dict.fromkeys((*names, "c_ptr", "last_ptr"), "DS") | dict.fromkeys(("K", "stride"), "D")
    return launch("product", signature, {"B": B}, attrs=attrs, values=values, warps=warps)


def written(folder: Path, choices: Choices, text: str = SOURCE, more: int = 1, warps: int = 4) -> str:
    chosen = (("product", choices),)
    return validated(folder, text, spec_of(MOST, more, warps), "gfx950", chosen=chosen)


def statuses(folder: Path, more: int = 1, warps: int = 4) -> list[str]:
    files = str(folder / "source.py"), str(folder / "output.py")
    return [validate_launch(*files, spec_of(n, more, warps), "gfx950")["status"] for n in range(MOST)]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("depth", ["2", "3"])
def test_no_copy_in_the_loop_asks_whether_its_tile_exists(depth: str, tmp_path: Path):
    text = written(tmp_path, REPEATED.replacing(depth=depth))
    prologue, body = text.split("for k in range(0, K, B):")
    assert prologue.count("mask=") == 2 and "mask=" not in body
    assert body.count("if k_ahead < K - B:") == 2
    assert statuses(tmp_path) == ["validated"] * MOST


def test_the_last_tile_is_the_last_of_its_memory(tmp_path: Path):
    written(tmp_path, REPEATED.replacing(depth="3"), ONCE, more=0)
    assert statuses(tmp_path, more=0) == ["validated"] * MOST


def test_groups_of_warps_that_alternate(tmp_path: Path):
    choices = REPEATED.replacing(warp_groups="alternating", slot_form="told-apart", accumulator_slices="2x1")
    text = written(tmp_path, choices, ONCE, more=0, warps=8)
    assert "warp_pipeline_stage" in text and "if k_ahead < K - B:" in text
    assert statuses(tmp_path, more=0, warps=8) == ["validated"] * MOST


@pytest.mark.parametrize(
    "old, new",
    [("tl.load(a_ptrs)\n", "tl.load(a_ptrs, mask=o[None, :] < K - k, other=0.0)\n"), ("range(0, K, B)", "range(B, K, B)")],
    ids=["a mask that asks for the index", "a loop that starts elsewhere"],
)  # fmt: skip
def test_what_pointers_do_not_decide_stays_masked(old: str, new: str, tmp_path: Path):
    text = written(tmp_path, REPEATED, ONCE.replace(old, new, 1))
    assert "if k_ahead" not in text


MISTAKES = {
    "moves on behind the last tile": (
        "        if k_ahead < K - B:\n            a_base += B\n",
        "        a_base += B\n",
    ),
    "moves on before the loop": ("        if (t * B) + B < K:\n            a_base += B\n", "        a_base += B\n"),
    "stays a tile behind": ("if k_ahead < K - B:\n            b_base", "if k_ahead < K - 2 * B:\n            b_base"),
}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("what", MISTAKES)
def test_planted_mistakes_are_found(what: str, tmp_path: Path):
    text, (right, wrong) = written(tmp_path, REPEATED.replacing(depth="3"), ONCE, more=0), MISTAKES[what]
    assert right in text, text
    (tmp_path / "output.py").write_text(text.replace(right, wrong))
    assert statuses(tmp_path, more=0) != ["validated"] * MOST


def test_a_pointer_that_is_not_moved_behind_the_loop_is_found(tmp_path: Path):
    text, right = written(tmp_path, REPEATED), "    if K > 0:\n        a_base += B\n"
    assert right in text, text
    (tmp_path / "output.py").write_text(text.replace(right, ""))
    assert "mismatch" in statuses(tmp_path)
