"""Tiles that travel through registers and are stored where both groups of warps have read what they replace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_stages import MATMUL, SLICED_PING_PONG, in_short_stages, wide_launch, wide_statuses

from gluonize.decide.choices.chosen import Choices
from gluonize.gluon.code import assignment, line
from gluonize.gluon.nodes import (
    Assign,
    Authored,
    Load,
    Named,
    Node,
    Number,
    Part,
    Product,
    Read,
    Slot,
    Store,
)
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.verdict.run import validate_pair
from gluonize.loops.passes.early_stores import with_stores
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

STORED_EARLY = SLICED_PING_PONG.replacing(depth="1", refill="after-read")
IN_FOUR = STORED_EARLY.replacing(accumulator_slices="4x1")

KERNEL = MATMUL / "kernel.py"


def with_b_transposed(spec: LaunchSpec) -> LaunchSpec:
    """The launch with B's columns contiguous: its tiles can then be cut in LDS too."""
    b, k = spec.values["b_ptr"]["tensor"], spec.values["K"]
    values = {**spec.values, "b_ptr": {"tensor": {**b, "stride": [1, k]}}, "stride_bk": 1, "stride_bn": k}
    constexprs = {name: value for name, value in spec.constexprs.items() if name != "stride_bn"} | {"stride_bk": 1}
    signature = {**spec.signature, "stride_bk": "constexpr", "stride_bn": "i32"}
    attrs = {name: value for name, value in spec.attrs.items() if name != "stride_bk"} | {"stride_bn": "D"}
    return replace(spec, values=values, constexprs=constexprs, signature=signature, attrs=attrs)


NAMED, READ_B = assignment("a", (Slot("a_smem", "slot"),)), assignment("b", (Read(Slot("b_smem", "slot"), "l"),))
LOADS = [Load((f"{name}_next = load({name}_base)",), f"{name}_next", Number("1")) for name in "ab"]
STORES = tuple(Store((Slot(f"{name}_smem", "slot"), ".store()"), f"{name}_next") for name in "ab")
MOVE = Authored(("a_base += step",), frozenset({"a_base"}), frozenset({"a_base"}))


def part(i: int) -> tuple[Node, ...]:
    return (assignment(f"a_{i}", (Read(Part(Named("a"), 64 * i, 64, 0), "l"),)),)


def product(*which: int) -> tuple[Node, ...]:
    name = "acc_" + "_".join(map(str, which))
    return (Assign(name, (f"{name} = ", Product((f"mfma({name})",))), name),)


def test_the_last_part_is_read_a_stage_earlier_and_loads_have_stages_of_their_own():
    first, rest = [(NAMED, LOADS[0]), (READ_B, LOADS[1]), part(0)], (MOVE,)
    contents = [first, [product(0)], [part(1)], [product(1)], [part(2)], [product(2), rest]]
    assert with_stores(contents, STORES) == [
        [(NAMED, LOADS[0], READ_B, *part(0))],
        [product(0)],
        [part(1), part(2), (LOADS[1],)],
        [product(1)],
        [STORES],
        [product(2), rest],
    ]


def test_a_last_product_that_reads_nothing_of_its_own_is_a_stage_behind_the_stores():
    contents = [[(NAMED, *LOADS)], [product(0, 0)], [part(1)], [product(1, 0), product(1, 1)]]
    assert with_stores(contents, STORES)[3:] == [[product(1, 0)], [STORES], [product(1, 1)]]


NEAR_MISSES = {
    "an address that moves behind the loads": (NAMED, *LOADS, MOVE),
    "a statement that is not looked into": (NAMED, *LOADS, line("gl.device_assert(ok)")),
    "a value that the second load may need": (NAMED, LOADS[0], assignment("b_base", ("b_base + step",)), LOADS[1]),
}


@pytest.mark.parametrize("what", NEAR_MISSES)
def test_loads_stay_in_front_of_what_may_move_their_addresses(what: str):
    first = [NEAR_MISSES[what]]
    contents = [first, [product(0)], [part(1)], [product(1)], [part(2)], [product(2)]]
    assert with_stores(contents, STORES)[0] == first


WRITTEN = [
    (STORED_EARLY.replacing(accumulator_slices="2x1"), 4),
    (STORED_EARLY.replacing(accumulator_slices="2x1", depth="2"), 4),
    (IN_FOUR, 8),
    (IN_FOUR.replacing(operand_width="two"), 8),
]


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("choices, stages", WRITTEN, ids=[x.name for x, _ in WRITTEN])
def test_one_slot_is_enough_for_two_groups_of_warps(choices, stages: int, tmp_path: Path):
    text = in_short_stages("gfx942", choices)
    assert text.count("warp_pipeline_stage") == stages and "gl.amd.slice" in text
    assert f"NUM_BUFFERS: gl.constexpr = {choices.number('depth')}" in text
    assert ("DotOperandLayout(0, mma, 8)" in text) == choices.asks("operand-width", "two")
    assert wide_statuses(text, "gfx942", tmp_path, (0, 16, 64, 80, 144)) == {"validated"}


@pytest.mark.compile
def test_both_operands_in_slices(tmp_path: Path):
    """Four products, the last of which needs nothing that the others have not read."""
    spec = with_b_transposed(wide_launch())
    request = TranslateRequest(str(KERNEL), "gfx942", launches=(spec,), chosen=((spec.kernel, STORED_EARLY),))
    text = translate_kernel(request).text
    assert text.count("warp_pipeline_stage") == 8 and "acc_1_1 = cdna3.mfma(a_1, b_1, acc_1_1)" in text
    body = text.partition("for k in")[2]
    assert body.index("acc_1_0 = cdna3") < body.index("b_smem.index(slot).store") < body.index("acc_1_1 = cdna3")
    file = tmp_path / "translated.py"
    file.write_text(text)
    left, right = source_stage(str(KERNEL), spec, "gfx942"), translated_stage(str(file), spec, "gfx942")
    found = validate_pair(left.text, right.text, spec, source_names=left.names, translated_names=right.names)
    assert found.status == "validated"


def test_without_slices_one_slot_is_not_enough():
    whole = Choices(tuple(pair for pair in STORED_EARLY.overrides if pair[0] != "accumulator-slices"))
    assert "gl.amd.slice" not in in_short_stages("gfx942", whole)
    assert "warp_pipeline_stage" not in in_short_stages("gfx942", whole)


STORE, LATE = (
    '        with gl.amd.warp_pipeline_stage("memory", priority=1):\n            a_smem',
    "            a_3 = a.slice(96, 32, 0)",
)
PLANTED = {
    "stores where the other group multiplies what it has just read": (STORE, "            a_smem"),
    "reads the last part twice": ("a.slice(96, 32, 0)", "a.slice(64, 32, 0)"),
    "multiplies another part": ("cdna3.mfma(a_3, b, ", "cdna3.mfma(a_2, b, "),
    "loads the rows behind those of the tile": (
        "            b_next = cdna3.buffer_load(b_base,", "            b_next = cdna3.buffer_load(b_base + stride_bk,"),
    "loads the tile that is there": ("K - k_ahead * BLOCK_K)\n        with", "K - k * BLOCK_K)\n        with"),
}  # fmt: skip


@pytest.mark.one_of(4)
@pytest.mark.compile
@pytest.mark.parametrize("what", PLANTED)
def test_planted_mistakes_are_found(what: str, tmp_path: Path):
    text, (old, new) = in_short_stages("gfx942", IN_FOUR), PLANTED[what]
    assert text.count(old) == 1
    assert "validated" not in wide_statuses(text.replace(old, new), "gfx942", tmp_path, (144, 272))


@pytest.mark.compile
def test_a_part_that_is_read_behind_the_stores_is_found(tmp_path: Path):
    text = in_short_stages("gfx942", IN_FOUR)
    start = text.index(LATE)
    end = text.index("\n", start) + 1
    moved, rest = text[start:end], text[:start] + text[end:]
    at = rest.index("\n", rest.index("            b_smem.index(slot).store")) + 1
    assert "validated" not in wide_statuses(rest[:at] + moved + rest[at:], "gfx942", tmp_path, (144,))
