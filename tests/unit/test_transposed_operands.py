"""A tile that one product takes as it is and another one transposed: read from LDS twice, or converted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.verdict.run import validate_pair
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

SOURCE = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, T, B: tl.constexpr):
    rows, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    z = tl.load(z_ptr + rows * B + columns)
    total = tl.zeros((B, B), dtype=tl.float32)
    for t in range(T):
        x = tl.load(x_ptr + t * B * B + rows * B + columns)
        s = tl.dot(z, tl.trans(x))
        total += tl.dot(s.to(x.dtype), x)
    tl.store(y_ptr + rows * B + columns, total)
"""


def launch() -> LaunchSpec:
    def tensor(dtype: str, size: int) -> dict:
        return {"tensor": {"dtype": dtype, "shape": [size], "stride": [1], "storage": size, "offset": 0}}

    signature = {"x_ptr": "*fp16", "y_ptr": "*fp32", "z_ptr": "*fp16", "T": "i32", "B": "constexpr"}
    values = {"x_ptr": tensor("float16", 3 * 4096), "y_ptr": tensor("float32", 4096), "z_ptr": tensor("float16", 4096)}
    options = {"num_warps": 1, "num_stages": 1}
    return LaunchSpec(
        "kernel", "kernel", signature=signature, constexprs={"B": 64}, options=options, values={**values, "T": 3, "B": 64},
        attrs={name: "DS" for name in values}, grid=(1,),
    )  # fmt: skip


def translated(folder: Path, choices: Choices, target: str = "gfx942", source: str = SOURCE) -> str:
    (folder / "kernel.py").write_text(source)
    request = TranslateRequest(str(folder / "kernel.py"), target, launches=(launch(),), chosen=(("kernel", choices),))
    return translate_kernel(request).text


def status(folder: Path, text: str) -> str:
    (folder / "out.py").write_text(text)
    left = source_stage(str(folder / "kernel.py"), launch(), "gfx942")
    right = translated_stage(str(folder / "out.py"), launch(), "gfx942")
    return validate_pair(left.text, right.text, launch(), source_names=left.names, translated_names=right.names).status


CONVERTED = choices_of(transposed_operands="converted")


@pytest.mark.compile
def test_the_second_product_converts_its_operand(tmp_path: Path):
    default, text = translated(tmp_path, Choices()), translated(tmp_path, CONVERTED)
    assert ".permute([1, 0]).load(" in default and ".permute([1, 0]).load(" not in text
    assert text.count("allocate_shared_memory") <= default.count("allocate_shared_memory")
    assert status(tmp_path, default) == status(tmp_path, text) == "validated"


@pytest.mark.compile
def test_an_operand_that_is_not_transposed_is_found(tmp_path: Path):
    text = translated(tmp_path, CONVERTED)
    planted, count = re.subn(r"gl\.permute\((x_\w+), \[1, 0\]\)", r"\1", text)
    assert count == 1 and status(tmp_path, planted) != "validated"


@pytest.mark.parametrize("value, behind", [("{load}", True), ("{load} * 2", False)])
def test_a_tile_is_moved_for_its_transpose_behind_its_load(value: str, behind: bool, tmp_path: Path):
    load = "tl.load(x_ptr + t * B * B + rows * B + columns)"
    source = SOURCE.replace(f"x = {load}", f"x = {value.format(load=load)}")
    lines = translated(tmp_path, CONVERTED, source=source).splitlines()
    loaded = next(i for i, line in enumerate(lines) if line.strip().startswith("x = "))
    assert (re.fullmatch(r" +(x_\w+) = gl\.convert_layout\(x, \w+\)", lines[loaded + 1]) is not None) == behind
