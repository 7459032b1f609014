"""Translate source text in a test, and compile what comes out."""

from __future__ import annotations

import textwrap
from pathlib import Path

from translator.diagnostics import TranslationError
from translator.lowering.jobs import lower_file
from translator.request import TranslateRequest, TranslateResult
from translator.source.launch_spec import LaunchSpec
from translator.translation import translate_kernel

TARGET = "gfx942"


def launch(
    kernel: str,
    signature: dict,
    constexprs: dict,
    id: str = "",
    attrs: dict | None = None,
    warps: int = 4,
    stages: int = 2,
) -> LaunchSpec:
    """A launch whose pointers are aligned and within 2 GiB unless `attrs` says otherwise."""
    pointers = {name: "DS" for name, kind in signature.items() if kind.startswith("*")}
    signature = signature | dict.fromkeys(constexprs, "constexpr")
    given = pointers if attrs is None else attrs
    return LaunchSpec(id or kernel, kernel, "", signature, constexprs, given, {"num_warps": warps, "num_stages": stages})


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


def compiled(folder: Path, text: str, spec: LaunchSpec, target: str = TARGET):
    """What compiling a translation for a launch gives. Raises: TranslationError."""
    path = folder / "output.py"
    path.write_text(text)
    return lower_file(str(path), spec, target)


def dedent(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")
