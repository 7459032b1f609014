"""Atomics as buffer operations: which types go how, and what their results are."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import in_turn
from translation_of import compiled, dedent, launch, tensor, translate, validated

from gluonize.decide.choices.chosen import choices_of
from gluonize.read.spec.launch import LaunchSpec

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def atomics(x_ptr, y_ptr, B: tl.constexpr):
        o = tl.arange(0, B)
        x = tl.load(y_ptr + o)
        OLD
        tl.store(y_ptr + o, old.to(tl.int64) - (old < 0).to(tl.int64))
""")
OPERATIONS = ("add", "max", "min", "and", "or", "xor", "xchg")


@pytest.mark.one_of(5)
@pytest.mark.parametrize("kind", ["i32", "u32", "i64", "u64"])
@pytest.mark.parametrize("operation, target", in_turn(OPERATIONS, ["gfx950", "gfx1250"]))
def test_integers(operation: str, target: str, kind: str, tmp_path: Path):
    """What was there before has the type of the source: halved and compared, the sign shows."""
    name = {"i": "int", "u": "uint"}[kind[0]] + kind[1:]
    old = f"old = tl.atomic_{operation}(x_ptr + o, x.to(tl.{name}), mask=o < B - 3) // 2"
    spec = launch(
        "atomics",
        {"x_ptr": f"*{kind}", "y_ptr": "*i64"},
        {"B": 256},
        values={"x_ptr": tensor(256), "y_ptr": tensor(256)},
    )
    text = validated(tmp_path, SOURCE.replace("OLD", old), spec, target)
    assert f".buffer_atomic_{operation}(" in text, text


@pytest.mark.parametrize("target", ["gfx950", "gfx942", "gfx1100", "gfx1201", "gfx1250"])
def test_what_is_written_compiles(target: str, tmp_path: Path):
    calls = [f"tl.atomic_{name}(x_ptr + o, x.to(tl.uint32))" for name in OPERATIONS]
    calls += [f"tl.atomic_{name}(y_ptr + o, x)" for name in OPERATIONS] + ["old = x"]
    spec = launch(
        "atomics", {"x_ptr": "*u32", "y_ptr": "*i64"}, {"B": 256}, values={"x_ptr": tensor(256), "y_ptr": tensor(256)}
    )
    text = validated(tmp_path, SOURCE.replace("OLD", "\n    ".join(calls)), spec, target)
    assert text.count(".buffer_atomic_") == 14 and "gl.atomic" not in text, text
    compiled(tmp_path, text, spec, target)


def extremes(operation: str, element: str) -> tuple[str, LaunchSpec]:
    """A source with an atomic extreme of floating-point numbers, and its launch."""
    old = f"old = tl.atomic_{operation}(x_ptr + o, x.to(tl.float{element[2:]}) / 2, mask=o < B - 3)"
    signature = {"x_ptr": f"*{element}", "y_ptr": "*i64"}
    values = {"x_ptr": tensor(256), "y_ptr": tensor(256)}
    return SOURCE.replace("OLD", old), launch("atomics", signature, {"B": 256}, values=values)


@pytest.mark.one_of(5)
@pytest.mark.parametrize("target", ["gfx950", "gfx942", "gfx1201", "gfx1250"])
@pytest.mark.parametrize("operation", ["max", "min"])
@pytest.mark.parametrize("element", ["fp32", "fp64"])
def test_extremes_of_floats_are_tritons(element: str, operation: str, target: str, tmp_path: Path):
    """The instruction takes a number before a NaN, and has no order of zeros."""
    text = validated(tmp_path, *extremes(operation, element), target)
    assert f"gl.atomic_{operation}(" in text and "buffer_atomic" not in text, text


@pytest.mark.one_of(5)
@pytest.mark.parametrize("target", ["gfx950", "gfx942", "gfx1100", "gfx1200", "gfx1201", "gfx1250"])
@pytest.mark.parametrize("operation", ["max", "min"])
def test_extremes_of_doubles_as_instructions_where_they_compile(operation: str, target: str, tmp_path: Path):
    source, spec = extremes(operation, "fp64")
    asked = choices_of(fp64_extremes="instruction")
    text = translate(tmp_path, source, spec, target=target, choices=asked).text
    has = target not in ("gfx1100", "gfx1200", "gfx1201")
    assert (f".buffer_atomic_{operation}(" in text) == has, text
    header = " ".join(text.partition("\nimport")[0].split())
    assert ("a NaN in memory gives way" in header and "-0.0 and 0.0" in header) == has, text
    compiled(tmp_path, text, spec, target)
