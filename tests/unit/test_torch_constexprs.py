"""Constexprs that are torch's element types: `{"$torch": "bfloat16"}` in a launch, with no torch installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate, validated

from gluonize.diagnostics import TranslationError
from gluonize.read.evaluate.spec_values import decode_value, encode_value
from gluonize.read.launches.derivation import derive_kernel
from gluonize.trace.acceptance import FrontEndJudge

SOURCE = dedent("""
    import torch
    import triton
    import triton.language as tl


    @triton.constexpr_function
    def to_triton(dtype):
        return {torch.half: tl.float16, torch.bfloat16: tl.bfloat16}.get(dtype, tl.float32)


    @triton.jit
    def kernel(x_ptr, y_ptr, OUT: tl.constexpr, B: tl.constexpr):
        o = tl.arange(0, B)
        x = tl.load(x_ptr + o)
        if OUT == torch.bfloat16:
            x = x * 2.0
        elif OUT != torch.float16:
            x = x + 1.0
        tl.store(y_ptr + o, x.to(to_triton(OUT)))


    def run(x):
        y = torch.empty_like(x, dtype=torch.bfloat16)
        kernel[(1,)](x, y, OUT=y.dtype, B=64)
""")
SPELLINGS = [("bfloat16", "bf16"), ("half", "fp16"), ("float16", "fp16"), ("float32", "fp32")]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name, element", SPELLINGS)
@pytest.mark.parametrize("standalone", [False, True])
def test_the_branch_of_the_type_is_taken(name: str, element: str, standalone: bool, tmp_path: Path):
    assert "torch" not in sys.modules
    signature = {"x_ptr": "*fp32", "y_ptr": f"*{element}"}
    values = {"x_ptr": tensor(64), "y_ptr": tensor(64)}
    spec = launch("kernel", signature, {"OUT": {"$torch": name}, "B": 64}, values=values)
    if standalone:
        text = translate(tmp_path, SOURCE, spec, standalone=True).text
        assert "import torch\n" in text, text
    else:
        text = validated(tmp_path, SOURCE, spec)
    taken = {"bf16": "if OUT == torch.bfloat16:\n        x = x * 2.0", "fp32": "torch.float16:\n        x = x + 1.0"}
    assert taken.get(element, "elif OUT != torch.float16:\n        gl.static_assert(False") in text, text


def test_values_there_and_back():
    for name, _ in SPELLINGS:
        value = decode_value({"$torch": name})
        assert encode_value(value) == {"$torch": name.replace("half", "float16")}
        assert (value == decode_value({"$torch": "half"})) == (name in ("half", "float16"))
    assert encode_value(decode_value({"$tuple": [{"$torch": "int"}, 1]})) == {"$tuple": [{"$torch": "int32"}, 1]}


@pytest.mark.parametrize("payload", ["bf16", "Tensor", 3])
def test_what_is_no_type_of_torch(payload):
    with pytest.raises(TranslationError, match="torch"):
        decode_value({"$torch": payload})


def test_types_that_capture_meets_are_written_so():
    dtype = type("dtype", (), {"__module__": "torch", "__str__": lambda self: "torch.float8_e4m3fn"})
    assert encode_value(dtype()) == {"$torch": "float8_e4m3fn"}


def test_a_type_that_the_launch_passes_is_derived(tmp_path: Path):
    path = tmp_path / "source.py"
    path.write_text(SOURCE)
    found = derive_kernel(str(path), "kernel", lambda loaded: FrontEndJudge(loaded, "gfx950")).launches[0]
    assert (found.constexprs["OUT"], found.signature["y_ptr"]) == ({"$torch": "bfloat16"}, "*bf16")
