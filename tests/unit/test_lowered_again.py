"""Launches that differ in values alone are lowered once, and whatever else changes is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from translation_of import dedent, launch

from gluonize.judge.machine.stages import source_stage
from gluonize.trace.front.offline import FrontEnd

SOURCE = dedent("""
    import triton
    import triton.language as tl

    STEP = tl.constexpr(2)
    COUNT = 3


    @triton.jit
    def moved(x):
        return x + STEP


    @triton.jit
    def kernel(x_ptr, n, B: tl.constexpr):
        r = tl.arange(0, B)
        tl.store(x_ptr + r, moved(tl.load(x_ptr + r)) * COUNT + n)
    """)
SPEC = launch("kernel", {"x_ptr": "*i32", "n": "i32"}, {"B": 32}, values={"n": 5})


@pytest.fixture
def asked(monkeypatch) -> list:
    """What the front end was asked for."""
    monkeypatch.setenv("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "1")
    sources, module = [], FrontEnd.module
    monkeypatch.setattr(FrontEnd, "module", lambda self, source: (sources.append(source), module(self, source))[1])
    return sources


def test_other_values_have_the_same_module(asked, tmp_path):
    path = tmp_path / "source.py"
    path.write_text(SOURCE)
    texts = {source_stage(str(path), replace(SPEC, values={"n": n}), "gfx950").text for n in (5, 6, 7)}
    assert len(texts) == len(asked) == 1


@pytest.mark.parametrize(
    "before, after",
    [
        ("STEP = tl.constexpr(2)", "STEP = tl.constexpr(4)"),
        ("COUNT = 3", "COUNT = 4"),
        ("return x + STEP", "return x - STEP"),
        ("* COUNT + n", "* COUNT - n"),
        ("STEP =", "\n\nSTEP ="),
    ],
    ids=["constexpr", "number", "helper", "kernel", "lines"],
)
def test_a_change_of_the_file_is_seen(before: str, after: str, asked, tmp_path):
    path = tmp_path / "source.py"
    path.write_text(SOURCE)
    first = source_stage(str(path), SPEC, "gfx950").text
    path.write_text(SOURCE.replace(before, after))
    assert source_stage(str(path), SPEC, "gfx950").text != first and len(asked) == 2


@pytest.mark.parametrize(
    "spec, target",
    [
        (replace(SPEC, constexprs={"B": 64}), "gfx950"),
        (replace(SPEC, signature=SPEC.signature | {"n": "i64"}), "gfx950"),
        (replace(SPEC, attrs={}), "gfx950"),
    ],
    ids=["size", "type", "attributes"],
)
def test_another_launch_is_another_module(spec, target: str, asked, tmp_path):
    path = tmp_path / "source.py"
    path.write_text(SOURCE)
    first = source_stage(str(path), SPEC, "gfx950").text
    assert source_stage(str(path), spec, target).text != first and len(asked) == 2


def test_another_file_has_locations_of_its_own(asked, tmp_path):
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(SOURCE)
        assert name in source_stage(str(tmp_path / name), SPEC, "gfx950").text
    assert len(asked) == 2
