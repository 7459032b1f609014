"""Translate source text in a test, and compile or validate what comes out."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.jobs import lower_file
from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest, TranslateResult
from gluonize.translation import translate_kernel

TARGET = "gfx942"
# Two functions that a kernel may be given.
TWICE_AND_THRICE = """@triton.jit
def twice(x):
    return x * 2


@triton.jit
def thrice(x):
    return x * 3


"""


def launch(
    kernel: str,
    signature: dict,
    constexprs: dict,
    id: str = "",
    attrs: dict | None = None,
    warps: int = 4,
    stages: int = 2,
    values: dict | None = None,
) -> LaunchSpec:
    """A launch of one program whose pointers are aligned and within 2 GiB unless `attrs` says otherwise."""
    pointers = {name: "DS" for name, kind in signature.items() if kind.startswith("*")}
    signature = signature | dict.fromkeys(constexprs, "constexpr")
    given = pointers if attrs is None else attrs
    options = {"num_warps": warps, "num_stages": stages}
    return LaunchSpec(id or kernel, kernel, "", signature, constexprs, given, options, (1,), values=values or {})


def tensor(*shape: int, **more) -> dict:
    """The value of a tensor argument whose rows follow one another; its type is that of the signature."""
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    described = {"dtype": "", "shape": list(shape), "stride": strides, "storage": math.prod(shape), "offset": 0}
    return {"tensor": described | more}


def translate(folder: Path, text: str, *launches: LaunchSpec, target: str = TARGET, **options) -> TranslateResult:
    """The translation of a file with this text; fails the test if it is refused."""
    path = folder / "source.py"
    path.write_bytes(text.encode())
    try:
        result = translate_kernel(TranslateRequest(str(path), target, launches=launches, **options))
    except TranslationError as error:
        raise AssertionError(str(error)) from error
    found = [d.render(text) for d in (*result.diagnostics, *(d for o in result.outcomes for d in o.diagnostics))]
    assert result.text is not None, "\n".join(found)
    return result


def validated(folder: Path, text: str, spec: LaunchSpec, target: str = TARGET, **options) -> str:
    """The translation of a file with this text; fails the test unless it computes what the source does."""
    output = folder / "output.py"
    output.write_text(translate(folder, text, spec, target=target, **options).text)
    answer = validate_launch(str(folder / "source.py"), str(output), spec, target)
    assert answer["status"] == "validated", (answer, output.read_text())
    return output.read_text()


def compiled(folder: Path, text: str, spec: LaunchSpec, target: str = TARGET):
    """What compiling a translation for a launch gives. Raises: TranslationError."""
    path = folder / "output.py"
    path.write_text(text)
    return lower_file(str(path), spec, target)


def dedent(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")
