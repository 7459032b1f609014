"""Tiles that Triton keeps in registers, and as much LDS as they may have: padding, slots and registers; planted mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gluonize.decide.readback.traced_launch as traced
from test_held import BLOCK, KERNEL, launch, statuses
from gluonize.loops.planner import lds_room
from gluonize.loops.planner.lds_room import REASON
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

TILE = BLOCK * BLOCK * 2
PADDING = 2 * 8 * (BLOCK * BLOCK // 128 - 1)
# Triton keeps `y` in registers; its last product is late.
LATE = KERNEL.replace("tl.dot(x, tl.trans(y))", "tl.dot(y, x)").replace(
    "tl.dot(p.to(tl.float16), y, acc)", "tl.dot(x, tl.trans(y) + p.to(tl.float16), acc)"
)
# Two such tiles beside a ring, one of them an operand of the last product.
CROWDED = KERNEL.replace(
    "        p = tl.dot(x, tl.trans(y))",
    """        w = tl.load(w_ptr + i * N + rows[None, :], mask=rows[None, :] < N, other=0.0)
        z = tl.load(x_ptr + rows[:, None] * 0 + i * BLOCK + j, mask=rows[:, None] < N, other=0.0)
        p = tl.dot(w, tl.trans(y))
        p = tl.dot(p.to(tl.float16), z)""",
).replace("y, acc)", "y, acc)\n        acc += tl.dot(x, tl.trans(w))")


def translated(source: str, folder: Path, lds: int | None, monkeypatch) -> tuple[Path, str, str]:
    """The file, its translation for gfx1250, and what was chosen, where a workgroup may have `lds` bytes and rows of padding."""
    monkeypatch.setattr(lds_room, "most_lds", lambda facts: facts.kernel.lds_bytes * 21 // 20)
    if lds is not None:
        monkeypatch.setattr(traced, "lds_bytes", lambda module, options: lds)
        monkeypatch.setattr(traced, "read_loop_lds", lambda text: {})
    file = folder / "kernel.py"
    file.write_text(source)
    result = translate_kernel(TranslateRequest(str(file), "gfx1250", launches=(launch(3 * BLOCK),)))
    assert result.text is not None
    return file, result.text, " ".join(result.outcomes[0].choices)


def rings(text: str) -> dict[str, str]:
    """The slots of each tile in LDS."""
    return dict(re.findall(r"^ *(\w+)_smem = gl\.allocate_shared_memory\([^,]*, \[(\w+)", text, re.M))


@pytest.mark.one_of(4)
@pytest.mark.compile
@pytest.mark.parametrize(
    "source, lds, slots, padded",
    [
        (KERNEL, TILE + PADDING, {"y": "1"}, "[[128, 8]]"),
        (KERNEL, TILE, {"y": "1"}, "[[256, 8]]"),
        (KERNEL, TILE // 2, {}, ""),
        (LATE, 2 * (TILE + PADDING), {"y": "NUM_BUFFERS"}, "[[128, 8]]"),
        (LATE, TILE + PADDING, {}, ""),
        (CROWDED, 8 * TILE, {"y": "NUM_BUFFERS", "w": "NUM_BUFFERS", "z": "NUM_BUFFERS"}, "[[128, 8]]"),
        (CROWDED, 4 * TILE + 6 * PADDING, {"w": "NUM_BUFFERS", "z": "NUM_BUFFERS"}, "[[128, 8]]"),
        (CROWDED, 3 * (TILE + PADDING), {"y": "1", "w": "1", "z": "1"}, "[[128, 8]]"),
        (CROWDED, 2 * TILE, {"z": "NUM_BUFFERS"}, "[[128, 16]]"),
    ],
    ids=[
        "one slot", "less padding", "registers", "a ring", "too late for one slot", "rings", "one waits in registers",
        "one slot for all", "all wait in registers",
    ],
)  # fmt: skip
def test_tiles_have_the_lds_that_triton_has(source, lds, slots, padded, tmp_path: Path, monkeypatch):
    file, text, choices = translated(source, tmp_path, lds, monkeypatch)
    assert rings(text) == slots and padded in text
    inside = {name for name in ("y", "w") if re.search(rf"^ *{name}_next = ", text, re.M)}
    assert inside == ({"y", "w"} if source is CROWDED else {"y"}) - slots.keys()
    assert (REASON in choices) == bool(inside)
    assert statuses(file, text, "gfx1250") == ["validated"] * 5


@pytest.mark.compile
def test_what_triton_s_loop_uses_beside_its_rings_is_not_there_for_tiles(tmp_path: Path, monkeypatch):
    lds = TILE + PADDING
    monkeypatch.setattr(traced, "lds_bytes", lambda module, options: lds)
    monkeypatch.setattr(traced, "read_loop_lds", lambda text: Everywhere(lds // 4))
    assert rings(translated(KERNEL, tmp_path, None, monkeypatch)[1]) == {}
    monkeypatch.setattr(traced, "read_loop_lds", lambda text: Everywhere(lds // 30))
    assert rings(translated(KERNEL, tmp_path, None, monkeypatch)[1]) == {"y": "1"}


class Everywhere(dict):
    """The same number of bytes in every loop."""

    def __init__(self, size: int):
        self.size = size

    def get(self, path, default=0):
        return self.size


@pytest.mark.compile
def test_other_targets_and_depths_that_are_asked_for_stay(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(lds_room, "most_lds", lambda facts: TILE)
    file = tmp_path / "kernel.py"
    file.write_text(CROWDED)
    asked = translate_kernel(TranslateRequest(str(file), "gfx1250", launches=(launch(3 * BLOCK),), num_buffers=3))
    assert set(rings(asked.text).values()) == {"NUM_BUFFERS"} and REASON not in str(asked.outcomes[0].choices)


REFILL = "        # Every warp has read this tile: the next one takes its place.\n        gl.barrier()\n"
EARLY = "        w_early = w_smem.index(0).permute([1, 0]).load("


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("mistake", ["read late", "no wait for copies", "no wait", "the same tile"])
def test_mistakes_are_found_where_all_tiles_have_one_slot(mistake: str, tmp_path: Path, monkeypatch):
    file, text, _ = translated(CROWDED, tmp_path, 3 * (TILE + PADDING), monkeypatch)
    assert EARLY in text.partition(REFILL)[0]
    (early,) = re.findall(r"^ *w_early = (.*)\n", text, re.M)
    planted = {
        "read late": text.replace(f"        w_early = {early}\n", "").replace("w_early", early),
        "no wait for copies": text.replace("        async_copy.wait_group(0)\n", "", 1),
        "no wait": text.replace("        tdm.async_wait(0)\n        start_ahead", "        start_ahead"),
        "the same tile": text.replace("tdm.async_load(w_desc, [0, start_ahead]", "tdm.async_load(w_desc, [0, start]"),
    }[mistake]
    assert planted != text
    found = statuses(file, planted, "gfx1250")
    assert "mismatch" in found or "hazard" in found
