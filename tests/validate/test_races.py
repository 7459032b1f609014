"""Races of a source are said, with the lines of both accesses; what has an order, or does no harm, is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate

from gluonize.judge.verdict import validate_launch
from gluonize.judge.verdict.result import RACE

HEAD = """
    import triton
    import triton.language as tl


    @triton.jit
    def k(x_ptr, y_ptr, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        x = tl.load(x_ptr + i, mask=i < n, other=0.0)
"""
BODIES = {
    "sum": (
        "tl.store(y_ptr, tl.load(y_ptr) + tl.sum(x))",
        ["program 0 stores y_ptr[0] in line 9, and program 1 loads it in line 9"],
    ),
    "last comes first": (
        "tl.store(y_ptr, tl.sum(x))",
        ["program 0 stores y_ptr[0] in line 9, and program 1 stores it in line 9"],
    ),
    "of neighbours": (
        "tl.store(x_ptr + i - 1, x * 2, mask=(i > 0) & (i < n))",
        ["program 0 loads x_ptr[63] in line 8, and program 1 stores it in line 9"],
    ),
    "of threads": (
        "tl.store(y_ptr + tl.where(i == 1, 0, i), x, mask=i < n)",
        ["threads of program 0 store different values to y_ptr[0] in line 9"],
    ),
    "in place": ("tl.store(x_ptr + i, x * 2, mask=i < n)", []),
    "the same value": ("tl.store(y_ptr, n * 1.0)", []),
    "atomic": ("tl.atomic_add(y_ptr, tl.sum(x))", []),
}


@pytest.mark.parametrize("case", BODIES)
def test_races_are_notes(case: str, tmp_path: Path):
    body, said = BODIES[case]
    values = {"x_ptr": tensor(200), "y_ptr": tensor(200), "n": 200}
    spec = launch("k", {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}, {"B": 64}, values=values)
    spec = type(spec)(**(vars(spec) | {"grid": (4,)}))
    (tmp_path / "output.py").write_text(translate(tmp_path, dedent(HEAD) + f"    {body}\n", spec).text)
    answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "output.py"), spec, "gfx942")
    races = [note.removeprefix(RACE) for note in answer["notes"] if note.startswith(RACE)]
    assert answer["status"] == "validated" and races == said, answer
