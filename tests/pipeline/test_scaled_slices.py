"""Products with scales whose accumulator is kept in slices: the scales are cut with the operands that they are for."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import slow_but
from translation_of import dedent, launch, tensor, validated

from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.facts.products.scaled import first_rows
from gluonize.judge.lower.jobs import lower_file
from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.layouts import Blocked, Linear

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, K, stride_a, stride_b, stride_sa, stride_sb, B: tl.constexpr, BK: tl.constexpr):
        o = tl.arange(0, B)
        depth = tl.arange(0, BK // 2)
        groups = tl.arange(0, BK // 32)
        a_ptrs = a_ptr + o[:, None] * stride_a + depth[None, :]
        b_ptrs = b_ptr + o[None, :] * stride_b + depth[:, None]
        sa_ptrs = sa_ptr + o[:, None] * stride_sa + groups[None, :]
        sb_ptrs = sb_ptr + o[:, None] * stride_sb + groups[None, :]
        acc = tl.zeros([B, B], dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
            sa = tl.load(sa_ptrs)
            sb = tl.load(sb_ptrs)
            acc = tl.dot_scaled(a, sa, "e2m1", b, sb, "e2m1", acc)
            a_ptrs += BK // 2
            b_ptrs += BK // 2
            sa_ptrs += BK // 32
            sb_ptrs += BK // 32
        tl.store(c_ptr + o[:, None] * B + o[None, :], acc)
    """)
POINTERS = {f"{name}_ptr": "*u8" for name in ("a", "b", "sa", "sb")} | {"c_ptr": "*fp32"}
NUMBERS = ("K", "stride_a", "stride_b", "stride_sa", "stride_sb")
B, BK, TILES = 128, 128, 3
STAGED = choices_of(warp_groups="alternating", slot_form="told-apart", accumulator_slices="2x1")


def spec_of(warps: int = 8, tiles: int = TILES, B: int = B, BK: int = BK) -> LaunchSpec:
    long, short = TILES * BK // 2, -(TILES * BK // -512) * 16  # strides are multiples of 16
    values = {f"{name}_ptr": tensor(B, long, range=[0, 255]) for name in ("a", "b")} | {"c_ptr": tensor(B, B)}
    around_one = [120, 134]  # exponents with a bias of 127; any others would give infinities and NaN alone
    values |= {f"{name}_ptr": tensor(B, short, range=around_one) for name in ("sa", "sb")}
    values |= {"K": tiles * BK, "stride_a": long, "stride_b": long, "stride_sa": short, "stride_sb": short}
    attrs = dict.fromkeys(POINTERS, "DS") | dict.fromkeys(NUMBERS, "D")
    signature = POINTERS | dict.fromkeys(NUMBERS, "i32")
    return launch("product", signature, {"B": B, "BK": BK}, attrs=attrs, warps=warps, values=values)


def written(folder: Path, choices: Choices, spec: LaunchSpec | None = None, text: str = SOURCE) -> str:
    return validated(folder, text, spec or spec_of(), "gfx950", chosen=(("product", choices),))


def status(folder: Path, tiles: int) -> str:
    files = str(folder / "source.py"), str(folder / "output.py")
    return validate_launch(*files, spec_of(tiles=tiles), "gfx950")["status"]


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "slices, parts",
    [
        ("2x1", ["sa_1 = sa.slice(64, 64, 0).load(sa_operand)"]),
        ("1x2", ["b.slice(64, 64, 1).load(b_operand)", "sb.slice(64, 64, 0).load(sb_operand)"]),
        ("2x2", ["sa.slice(64, 64, 0).load(sa_operand)", "sb.slice(64, 64, 0).load(sb_operand)"]),
    ],
)
def test_scales_are_read_with_the_parts_that_they_are_for(slices: str, parts: list[str], tmp_path: Path):
    text = written(tmp_path, choices_of(accumulator_slices=slices), spec_of(warps=4))
    assert all(part in text for part in parts), text
    assert text.count("cdna4.mfma_scaled(") == int(slices[0]) * int(slices[2])


def test_groups_of_warps_alternate_between_slices(tmp_path: Path):
    text = written(tmp_path, STAGED)
    stages = text.split("with gl.amd.warp_pipeline_stage(")[1:]
    assert ["mfma_scaled" in stage for stage in stages] == [
        False,
        True,
        False,
        True,
        False,
    ]  # the last one stores tiles
    assert "a_1 = " in stages[2] and "sa_1 = " in stages[2]
    assert [status(tmp_path, tiles) for tiles in (0, 1, 2)] == ["validated"] * 3


@pytest.mark.parametrize(
    "old, new",
    [("        sa = tl.load(sa_ptrs)\n", "        sa = tl.load(sa_ptrs) | 1\n"), ("= tl.dot_scaled(", "= 0.5 * tl.dot_scaled(")],
    ids=["scales that are computed", "more than a sum"],
)  # fmt: skip
def test_what_cannot_be_cut_is_left_whole(old: str, new: str, tmp_path: Path):
    assert old in SOURCE
    text = written(tmp_path, choices_of(accumulator_slices="2x1"), spec_of(warps=4), SOURCE.replace(old, new))
    assert ".slice(" not in text and text.count("cdna4.mfma_scaled(") == 1


MISTAKES = [
    ("sa.slice(64, 64, 0)", "sa.slice(0, 64, 0)"),
    ('mfma_scaled(a_1, sa_1, "e2m1"', 'mfma_scaled(a_1, sa_0, "e2m1"'),
    ("a_1 = a.slice(64, 64, 0)", "a_1 = a.slice(0, 64, 0)"),
    ("sb_smem.index(slot).store(sb_next)", "sb_smem.index(slot).store(sa_next)"),
]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("right, wrong", MISTAKES)
def test_planted_mistakes_are_found(right: str, wrong: str, tmp_path: Path):
    text = written(tmp_path, STAGED)
    assert right in text, text
    (tmp_path / "output.py").write_text(text.replace(right, wrong))
    assert status(tmp_path, TILES) == "mismatch"


ROWS = Linear(((0, 1), (32, 0), (64, 0)), ((1, 0), (2, 0), (4, 0), (8, 0), (16, 0), (0, 2)), ((0, 0),), (), (128, 4))


def test_the_layout_of_the_first_rows():
    assert first_rows(ROWS, 128) == ROWS
    assert first_rows(ROWS, 32).register == ((0, 1),) and first_rows(ROWS, 32).shape == (32, 4)
    assert first_rows(ROWS, 16) is None  # lanes have the others
    assert first_rows(Blocked((1, 1), (8, 8), (1, 1), (1, 0)), 32) is None


REFILLED = STAGED.replacing(refill="after-read")
WIDE = {"B": 256, "BK": 256}  # scales of these tiles are copied to LDS, as operands are


def wide_spec(tiles: int = TILES) -> LaunchSpec:
    return spec_of(tiles=tiles, **WIDE)


def test_by_default_groups_alternate_where_a_compute_unit_holds_one_workgroup(tmp_path: Path):
    text = written(tmp_path, Choices(), wide_spec())
    assert text.count("warp_pipeline_stage") == 4 and text.count("= cdna4.mfma_scaled(") == 2
    assert "sb_smem.index(slot), " in text.partition("warp_pipeline_stage")[2], "it is filled again once it is read"
    right = "sa.slice(128, 128, 0)"
    assert right in text, text
    (tmp_path / "output.py").write_text(text.replace(right, "sa.slice(0, 128, 0)"))
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    assert validate_launch(*files, wide_spec(), "gfx950")["status"] == "mismatch"


def test_by_default_smaller_tiles_stay_together(tmp_path: Path):
    assert "warp_pipeline_stage" not in written(tmp_path, Choices())


@pytest.mark.one_of(2)
@pytest.mark.parametrize("slices, early, other", [("2x1", ("b", "sb"), ("a", "sa")), ("1x2", ("a", "sa"), ("b", "sb"))])
def test_scales_are_copied_again_with_their_operand(slices: str, early: tuple, other: tuple, tmp_path: Path):
    text = written(tmp_path, REFILLED.replacing(accumulator_slices=slices), wide_spec())
    body = text.partition("warp_pipeline_stage")[2].partition("async_copy.wait_group")[0]
    assert all(f"{name}_smem.index(slot), " in body for name in early)
    assert all(f"{name}_smem.index(free_slot), " in body for name in other)
    assert body.count("commit_group()") == 2


EARLY_MISTAKES = {
    "the scales of another tile": ("sb_smem.index(slot), sb_ptr", "sb_smem.index(free_slot), sb_ptr"),
    "waits for one group too few": ("        async_copy.wait_group(2 * NUM_BUFFERS - 3)\n", "        async_copy.wait_group(2 * NUM_BUFFERS - 2)\n"),
}  # fmt: skip


@pytest.mark.one_of(2)
@pytest.mark.parametrize("what", EARLY_MISTAKES)
def test_planted_mistakes_in_early_copies_of_scales_are_found(what: str, tmp_path: Path):
    text, (right, wrong) = written(tmp_path, REFILLED, wide_spec()), EARLY_MISTAKES[what]
    assert right in text, text
    (tmp_path / "output.py").write_text(text.replace(right, wrong))
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    assert validate_launch(*files, wide_spec(), "gfx950")["status"] != "validated"


WORDS = choices_of(scale_reads="words")


def assembly(folder: Path, text: str) -> str:
    (folder / "output.py").write_text(text)
    return lower_file(str(folder / "output.py"), wide_spec(), "gfx950", keep_stages=True).stages["amdgcn"]


@pytest.mark.compile
@pytest.mark.parametrize("size", slow_but(["16", "32"]))
def test_a_lane_reads_its_scales_as_words(size: str, tmp_path: Path):
    text = written(tmp_path, WORDS.replacing(matrix_size=size), wide_spec())
    assert text.count("in_turn(") == 1 + 4 and "sa_by_lane: gl.constexpr" in text
    single = written(tmp_path, choices_of(matrix_size=size), wide_spec())
    assert "ds_read_u8" in assembly(tmp_path, single) and "ds_read_u8" not in assembly(tmp_path, text)


@pytest.mark.slow
def test_words_of_scales_in_stages(tmp_path: Path):
    written(tmp_path, REFILLED.over(WORDS), wide_spec())
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    assert [validate_launch(*files, wide_spec(n), "gfx950")["status"] for n in (0, 1, 2)] == ["validated"] * 3


WITHOUT_SCALES = SOURCE.replace('a, sa, "e2m1", b', 'a, None, "e2m1", b')


def test_one_side_without_scales_is_read_in_the_same_order(tmp_path: Path):
    text = written(tmp_path, WORDS, wide_spec(), WITHOUT_SCALES)
    assert text.count("in_turn(") == 1 + 3


def test_a_tile_for_one_instruction_has_no_other_order(tmp_path: Path):
    assert "in_turn" not in written(tmp_path, WORDS, spec_of(BK=64))


ORDER_MISTAKES = {
    "an operand in the other order": ("in_turn(b, 2, 8, 0, b_operand)", "gl.convert_layout(b, b_operand)"),
    "scales in the other order": ("in_turn(sa, 2, 8, 1, sa_operand)", "gl.convert_layout(sa, sa_operand)"),
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("what", ORDER_MISTAKES)
def test_planted_mistakes_in_the_order_of_groups_are_found(what: str, tmp_path: Path):
    text, (right, wrong) = written(tmp_path, WORDS, wide_spec()), ORDER_MISTAKES[what]
    assert right in text, text
    (tmp_path / "output.py").write_text(text.replace(right, wrong))
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    assert validate_launch(*files, wide_spec(), "gfx950")["status"] == "mismatch"
