"""Generated pipelines on the reference machine: right for every trip count, and planted mistakes are found there."""

from __future__ import annotations

import dataclasses
import functools
import sys
from pathlib import Path

import pytest

VALIDATE = Path(__file__).resolve().parent.parent / "validate"
sys.path.insert(0, str(VALIDATE))

from gluonize.judge.machine.stages import source_stage, translated_stage  # noqa: E402
from gluonize.judge.verdict.run import validate_pair  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec  # noqa: E402
from gluonize.request import TranslateRequest  # noqa: E402
from gluonize.translation import translate_kernel  # noqa: E402
from planted import KERNELS, matmul_launch, source  # noqa: E402

CONFIGURATIONS = [("gfx950", 2), ("gfx950", 3), ("gfx942", 1), ("gfx942", 2), ("gfx1250", 2), ("gfx1201", 1)]
CONFIGURATIONS += [("tensor", 2), ("tensor", 3), ("mixed", 2), ("mixed", 3), ("wrapped", 2), ("wrapped", 3)]
BLOCK_K = 64


@functools.lru_cache(maxsize=None)
def translation(target: str) -> str:
    """The matmul for `target`; `tensor` is the one whose tiles the tensor data mover of gfx1250 fetches, `mixed` the one with
    only those of B, `wrapped` the one whose rows wrap around in the source."""
    result = translate_kernel(TranslateRequest(str(kernel(target)), arch(target), launches=(matmul_launch(),)))
    assert result.text is not None
    return result.text


def kernel(target: str) -> Path:
    kernels = {"tensor": "matmul_masked.py", "mixed": "matmul_mixed.py", "gfx1250": "matmul_pointers.py"}
    return KERNELS / kernels.get(target, "matmul.py")


def arch(target: str) -> str:
    return "gfx1250" if target in ("tensor", "mixed", "wrapped") else target


def run(text: str, target: str, buffers: int, folder: Path) -> dict[int, str]:
    """Status by trip count, for 0 to twice the number of buffers; the last tile is partial."""
    file = folder / "translated.py"
    file.write_text(text)
    compiled = translated_stage(str(file), matmul_launch(buffers=buffers), arch(target))
    out = {}
    for trips in range(2 * buffers + 1):
        size = (32, 16, max(0, BLOCK_K * trips - 16))
        spec = matmul_launch(*size, buffers)
        left = source(kernel(target), arch(target), *size)
        result = validate_pair(
            left.text,
            compiled.text,
            spec,
            source_names=left.names,
            translated_names=compiled.names,
            with_variants=False,
        )
        counted = {n for counts in result.trips.values() for n in counts}
        expected = {min(trips, 4)}  # the machine counts "4 or more" as 4
        assert result.status != "validated" or counted - {0} == expected - {0}
        out[trips] = result.status
    return out


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("target, buffers", CONFIGURATIONS)
def test_all_trip_counts_are_right(target: str, buffers: int, tmp_path: Path):
    found = run(translation(target), target, buffers, tmp_path)
    assert found == dict.fromkeys(range(2 * buffers + 1), "validated")


def constant_launch(tiles: int, buffers: int | None = None) -> LaunchSpec:
    """The launch with K known at compile time."""
    spec = matmul_launch(32, 16, BLOCK_K * tiles, buffers)
    kept = {name: {k: v for k, v in getattr(spec, name).items() if k != "K"} for name in ("attrs", "values")}
    signature, constexprs = {**spec.signature, "K": "constexpr"}, {**spec.constexprs, "K": BLOCK_K * tiles}
    return dataclasses.replace(spec, signature=signature, constexprs=constexprs, **kept)


def run_written_out(
    target: str,
    tiles: int,
    buffers: int,
    folder: Path,
    before: str = "",
    after: str = "",
    kernel: Path = KERNELS / "matmul.py",
) -> str:
    """Status of a translation for so few tiles that the loop is written out, with `before` changed to `after`."""
    request = TranslateRequest(str(kernel), target, launches=(constant_launch(tiles),))
    text = translate_kernel(request).text
    assert text is not None and "in gl.static_range(gl.cdiv(K, BLOCK_K))" in text and text.count(before)
    file = folder / "translated.py"
    file.write_text(text.replace(before, after) if before else text)
    spec = constant_launch(tiles, buffers)
    left = source_stage(str(kernel), constant_launch(tiles), target)
    right = translated_stage(str(file), spec, target)
    result = validate_pair(
        left.text, right.text, spec, source_names=left.names, translated_names=right.names, with_variants=False
    )
    return result.status


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("target, tiles, buffers", [
    ("gfx950", 2, 2), ("gfx950", 2, 3), ("gfx942", 2, 1), ("gfx942", 2, 2), ("gfx1250", 2, 2), ("gfx1250", 2, 3),
])  # fmt: skip
def test_written_out_loops_are_right(target: str, tiles: int, buffers: int, tmp_path: Path):
    assert run_written_out(target, tiles, buffers, tmp_path) == "validated"


@pytest.mark.compile
@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
def test_loops_to_a_variable_that_was_given_a_constant_are_written_out(target: str, tmp_path: Path):
    loop = "    for k in range(0, tl.cdiv(K, BLOCK_K)):\n"
    text = (KERNELS / "matmul.py").read_text()
    assert loop in text
    kernel = tmp_path / "matmul.py"
    kernel.write_text(text.replace(loop, "    tiles = tl.cdiv(K, BLOCK_K)\n    for k in range(0, tiles):\n"))
    assert run_written_out(target, 2, 2, tmp_path, kernel=kernel) == "validated"


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("target, buffers, before, after", [
    ("gfx950", 3, "wait_group(min(NUM_BUFFERS - 2, ", "wait_group(max(NUM_BUFFERS - 2, "),
    ("gfx950", 2, "if t + NUM_BUFFERS - 1 < gl", "if t + NUM_BUFFERS < gl"),
    ("gfx942", 1, "if t + NUM_BUFFERS < gl", "if t + NUM_BUFFERS + 1 < gl"),
    ("gfx1250", 3, "async_wait((min(NUM_BUFFERS - 2, ", "async_wait((max(NUM_BUFFERS - 2, "),
], ids=["waits for too little", "tile not copied", "tile not loaded", "waits for too few tensor copies"])  # fmt: skip
def test_mistakes_in_written_out_loops_are_found(target: str, buffers: int, before: str, after: str, tmp_path: Path):
    assert run_written_out(target, 2, buffers, tmp_path, before, after) != "validated"


COPIES = {
    "waits for one group too few": ("wait_group(NUM_BUFFERS - 2)", "wait_group(NUM_BUFFERS - 1)"),
    "reads the next slot": ("slot = k % NUM_BUFFERS", "slot = (k + 1) % NUM_BUFFERS"),
    "copies into the slot being read": ("gl.minimum((slot - 1).to(gl.uint32), NUM_BUFFERS - 1).to(gl.int32)", "slot"),
    "copies the wrong tile": ("k_ahead = k + NUM_BUFFERS - 1", "k_ahead = k + NUM_BUFFERS"),
    "prologue one tile short": ("gl.static_range(NUM_BUFFERS - 1)", "gl.static_range(NUM_BUFFERS - 2)"),
}
REGISTERS = {
    "reads the next slot": ("a_smem.index(slot).load(", "a_smem.index((slot + 1) % NUM_BUFFERS).load("),
    "stores to the next slot": ("b_smem.index(slot).store(", "b_smem.index((slot + 1) % NUM_BUFFERS).store("),
    "loads the wrong tile": ("k_ahead = k + NUM_BUFFERS", "k_ahead = k + NUM_BUFFERS + 1"),
    "prologue one tile short": ("gl.static_range(NUM_BUFFERS)", "gl.static_range(NUM_BUFFERS - 1)"),
}
TENSOR = {
    "waits for one tile too few": ("async_wait((NUM_BUFFERS - 2) * 2)", "async_wait((NUM_BUFFERS - 1) * 2)"),
    "waits for one operation too few": ("async_wait((NUM_BUFFERS - 2) * 2)", "async_wait((NUM_BUFFERS - 2) * 2 + 1)"),
    "does not wait": ("tdm.async_wait((NUM_BUFFERS - 2) * 2)", "pass"),
    "reads the next slot": ("slot = k % NUM_BUFFERS", "slot = (k + 1) % NUM_BUFFERS"),
    "copies into the slot being read": ("gl.minimum((slot - 1).to(gl.uint32), NUM_BUFFERS - 1).to(gl.int32)", "slot"),
    "copies the wrong tile": ("k_ahead = k + NUM_BUFFERS - 1", "k_ahead = k + NUM_BUFFERS"),
    "prologue one tile short": ("gl.static_range(NUM_BUFFERS - 1)", "gl.static_range(NUM_BUFFERS - 2)"),
    "rows start elsewhere": ("add_offsets=[pid_m * BLOCK_M, 0]", "add_offsets=[pid_m * BLOCK_M + 1, 0]"),
    "clips columns elsewhere": ("shape=[M, K]", "shape=[M, K + 1]"),
}
PLANTED = [("gfx950", n, what, *COPIES[what]) for what in COPIES for n in (2, 3)]
PLANTED += [("tensor", n, what, *TENSOR[what]) for what in TENSOR for n in (2, 3)]
MIXED = {
    "waits for one tile of B too few": ("tdm.async_wait(NUM_BUFFERS - 2)", "tdm.async_wait(NUM_BUFFERS - 1)"),
    "waits for one tile of A too few": ("wait_group(NUM_BUFFERS - 2)", "wait_group(NUM_BUFFERS - 1)"),
}
PLANTED += [("mixed", 2, what, *MIXED[what]) for what in MIXED]
WRAPPED = {
    "does not wait": TENSOR["does not wait"],
    "waits for one operation too few": TENSOR["waits for one operation too few"],
    "clips rows elsewhere": ("shape=[M, K]", "shape=[M + 128, K]"),
    "clips columns elsewhere": ("shape=[K, N]", "shape=[K, N + 128]"),
}
PLANTED += [("wrapped", 2, what, *WRAPPED[what]) for what in WRAPPED]
PLANTED += [("gfx942", 2, what, *REGISTERS[what]) for what in REGISTERS]


@pytest.mark.one_of(4)
@pytest.mark.compile
@pytest.mark.parametrize("target, buffers, what, before, after", PLANTED)
def test_planted_mistakes_are_found(target, buffers, what, before, after, tmp_path: Path):
    text = translation(target)
    assert text.count(before) == 1, f"{before!r} occurs {text.count(before)} times"
    found = run(text.replace(before, after), target, buffers, tmp_path)
    assert set(found.values()) & {"hazard", "mismatch"}, f"{what}: {found}"
