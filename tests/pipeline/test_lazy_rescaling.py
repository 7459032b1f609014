"""Sums that are multiplied only where one of the factors is not 1 (`--choose rescaling=lazy`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import slow_but
from translation_of import dedent, launch, tensor, translate, validated

from gluonize.decide.choices.chosen import choices_of
from gluonize.judge.lower.jobs import lower_file
from gluonize.judge.verdict import validate_launch

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def sums(x_ptr, f_ptr, y_ptr, n, M: tl.constexpr, N: tl.constexpr):
        rows, columns = tl.arange(0, M), tl.arange(0, N)
        f = tl.load(f_ptr + rows)
        acc = tl.zeros([M, N], tl.float32)
        for i in range(n):
            x = tl.load(x_ptr + rows[:, None] * N + columns[None, :] + i * M * N)
            alpha = tl.where(rows < (i % 2) * 20, f, 1.0)
            acc = acc * alpha[:, None]
            acc = tl.dot(x, x, acc)
        tl.store(y_ptr + rows[:, None] * N + columns[None, :], acc)
    """)
STATEMENT = "acc = acc * alpha[:, None]"
LAZY = choices_of(rescaling="lazy")
SIGNATURE = {"x_ptr": "*fp16", "f_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
VALUES = {"x_ptr": tensor(4, 32, 32), "f_ptr": tensor(32), "y_ptr": tensor(32, 32), "n": 4}
SPEC = launch("sums", SIGNATURE, {"M": 32, "N": 32}, values=VALUES)


def written(folder: Path, text: str = SOURCE, choices=LAZY, target: str = "gfx950") -> str:
    made = validated(folder, text, SPEC, target, chosen=(("sums", choices),))
    lower_file(str(folder / "output.py"), SPEC, target)
    return made


@pytest.mark.compile
@pytest.mark.parametrize("target", slow_but(["gfx950", "gfx942", "gfx1250", "gfx1201"]))
def test_a_branch_on_all_factors(target: str, tmp_path: Path):
    lines = [line.strip() for line in written(tmp_path, target=target).splitlines()]
    assert lines[lines.index("if rescales(alpha):") + 1] == STATEMENT


@pytest.mark.compile
@pytest.mark.parametrize(
    "statement",
    ["acc *= alpha[:, None]", "acc = alpha[:, None] * acc", "acc *= alpha[None, :]"],
    ids=["in place", "the factor first", "a factor for each column"],
)
def test_other_spellings(statement: str, tmp_path: Path):
    assert "if rescales(alpha" in written(tmp_path, SOURCE.replace(STATEMENT, statement))


@pytest.mark.parametrize(
    "statement",
    [
        "acc = acc / alpha[:, None]",
        "acc = acc * (alpha + 0.5)[:, None]",
        "acc = acc * i",
        "acc = (acc + 1.0) * alpha[:, None]",
    ],
    ids=["a quotient", "no variable", "one number", "another sum"],
)
def test_other_statements_stay(statement: str, tmp_path: Path):
    made = translate(tmp_path, SOURCE.replace(STATEMENT, statement), SPEC, chosen=(("sums", LAZY),))
    assert "rescales" not in made.text


def test_warps_that_take_turns_do_not_meet(tmp_path: Path):
    taking_turns = choices_of(rescaling="lazy", warp_groups="alternating")
    assert "rescales" not in translate(tmp_path, SOURCE, SPEC, chosen=(("sums", taking_turns),)).text


def test_outside_of_loops_nothing_is_saved(tmp_path: Path):
    text = SOURCE.replace("    tl.store(", "    acc = acc * f[:, None]\n    tl.store(")
    assert written(tmp_path, text).count("if rescales(") == 1


@pytest.mark.compile
@pytest.mark.parametrize(
    "mistake",
    [("factor != 1.0", "factor > 9.0"), ("gl.int32), 0) != 0", "gl.int32), 0) == 0"), ("rescales(alpha)", "i < 1")],
    ids=["another relation", "the other way", "another condition"],
)
def test_mistakes_are_found(mistake: tuple[str, str], tmp_path: Path):
    text = written(tmp_path)
    assert mistake[0] in text
    (tmp_path / "changed.py").write_text(text.replace(*mistake))
    answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "changed.py"), SPEC, "gfx950")
    assert answer["status"] == "mismatch"


@pytest.mark.compile
def test_a_factor_that_is_no_number_is_multiplied_by(tmp_path: Path):
    text = written(tmp_path, SOURCE.replace(", f, 1.0)", ', float("inf") - float("inf"), 1.0)'))
    (tmp_path / "changed.py").write_text(text.replace("factor != 1.0", "(factor < 1.0) | (factor > 1.0)"))
    answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "changed.py"), SPEC, "gfx950")
    assert answer["status"] == "mismatch"
