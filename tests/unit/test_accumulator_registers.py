"""Which registers the accumulators of matrix instructions are in (`--choose accumulator-registers=agprs`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

from gluonize.decide.choices.chosen import choices_of
from gluonize.judge.lower.jobs import lower_file

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr, SCALED: tl.constexpr):
        o = tl.arange(0, B)
        a_ptrs = a_ptr + o[:, None] * K + o[None, :]
        b_ptrs = b_ptr + o[None, :] * K + o[:, None]
        acc = tl.zeros([B, B], dtype=tl.float32)
        for k in range(0, K, B):
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
            if SCALED:
                acc = tl.dot_scaled(a, None, "e4m3", b, None, "e4m3", acc)
            else:
                acc = tl.dot(a, b, acc)
            a_ptrs += B
            b_ptrs += B
        tl.store(c_ptr + o[:, None] * B + o[None, :], acc)
    """)
B, TILES = 64, 2
ACCUMULATED = re.compile(r"\tv_mfma_\S+ ([av])\[")


def written(folder: Path, target: str, value: str, dtype: str = "fp16", scaled: bool = False) -> tuple[str, set[str]]:
    """The translation, and the kinds of registers that its products are in."""
    signature = {"a_ptr": f"*{dtype}", "b_ptr": f"*{dtype}", "c_ptr": "*fp32", "K": "i32"}
    values = {"a_ptr": tensor(B, TILES * B), "b_ptr": tensor(B, TILES * B), "c_ptr": tensor(B, B), "K": TILES * B}
    attrs = {name: "DS" for name in ("a_ptr", "b_ptr", "c_ptr")} | {"K": "D"}
    spec = launch("product", signature, {"B": B, "SCALED": scaled}, attrs=attrs, values=values)
    choices = choices_of(accumulator_registers=value)
    text = validated(folder, SOURCE, spec, target, chosen=(("product", choices),))
    lowered = lower_file(str(folder / "output.py"), spec, target, keep_stages=True)
    return text, set(ACCUMULATED.findall(lowered.stages["amdgcn"]))


@pytest.mark.one_of(2)
@pytest.mark.compile
@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
@pytest.mark.parametrize("value", ["agprs", "vgprs"])
def test_products_are_in_the_registers_that_were_chosen(target: str, value: str, tmp_path: Path):
    text, kinds = written(tmp_path, target, value)
    assert f'acc, cd_regclass="{value[0]}")' in text and kinds == {value[0]}


@pytest.mark.compile
def test_products_of_operands_with_formats_too(tmp_path: Path):
    text, kinds = written(tmp_path, "gfx950", "agprs", "fp8e4nv", scaled=True)
    assert 'cd_regclass="a")' in text and kinds == {"a"}


@pytest.mark.compile
@pytest.mark.parametrize("target", ["gfx1250", "gfx1100", "gfx1201"])
def test_other_matrix_instructions_have_one_kind(target: str, tmp_path: Path):
    text, _ = written(tmp_path, target, "agprs")
    assert "cd_regclass" not in text
