"""Names of Gluon's modules that the source means something else by, at the top level of its file or as parameters."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from slow_rows import in_turn
from translation_of import dedent, launch, tensor, translate, validated

from gluonize.judge.verdict import validate_launch

MATMUL = """
    @triton.jit
    def k(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr{more}):
        r = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for kk in range(0, K, B):
            a = tl.load(a_ptr + r[:, None] * K + (kk + r)[None, :])
            b = tl.load(b_ptr + (kk + r)[:, None] * B + r[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + r[:, None] * B + r[None, :], {result})
"""
IMPORTS = """
    import triton
    import triton.language as tl
"""
SOURCES = {
    "constants": IMPORTS
    + """
    gl = 3
    cdna4 = cdna5 = rdna4 = "text"
    hint: tl.constexpr = tl.constexpr(2)


    def here():
        return gl, cdna4
"""
    + MATMUL.format(more="", result="acc * hint"),
    "functions and modules": """
    import math as tdm
"""
    + IMPORTS
    + """

    def gluon():
        return tdm.sqrt(9), async_copy(0)[0]


    def async_copy(x):
        return "text", x


    def here():
        return gluon()


    @triton.jit
    def cdna4(x):
        return x * 2
"""
    + MATMUL.format(more="", result="cdna4(acc)"),
    "Triton's language as gl": (IMPORTS + MATMUL.format(more="", result="acc") + """

    @triton.jit
    def other(x_ptr):
        tl.store(x_ptr, 3)


    def here():
        return 3, "text" if other.fn.__globals__["tl"].__name__ == "triton.language" else "wrong"
""").replace("tl", "gl"),
    "parameters": IMPORTS
    + """

    def here():
        return 3, "text"
"""
    + MATMUL.format(more=", cdna4: tl.constexpr = 2, tdm=None, rdna4=None", result="acc * cdna4"),
}
SIGNATURE = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32"}


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "case, target",
    in_turn(SOURCES, ["gfx950", "gfx1250", "gfx1201"]) + in_turn(SOURCES, ["gfx1201", "gfx950", "gfx1250"]),
)
def test_the_import_gives_way(case: str, target: str, tmp_path: Path):
    more = {"cdna4": 2, "tdm": None, "rdna4": None} if case == "parameters" else {}
    values = {"a_ptr": tensor(32, 96), "b_ptr": tensor(96, 32), "c_ptr": tensor(32, 32), "K": 96}
    text = validated(tmp_path, dedent(SOURCES[case]), launch("k", SIGNATURE, {"B": 32} | more, values=values), target)
    assert " as gl_\n" in text or " as gluon_\n" in text or case == "parameters", text
    spec = importlib.util.spec_from_file_location("output", tmp_path / "output.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.here() == (3, "text"), text


CONSTANTS = """
    gl = tl.constexpr(3)
    cdna3: tl.constexpr = tl.constexpr(2)
    KIND = tl.constexpr(tl.float16)


    @tl.constexpr
    def gluon(x):
        return x * gl
"""


def test_constants_of_a_file_without_host_code_ask_the_import(tmp_path: Path):
    source = dedent(IMPORTS + CONSTANTS + MATMUL.format(more="", result="(acc * gl + gluon(cdna3)).to(KIND)"))
    values = {"a_ptr": tensor(32, 96), "b_ptr": tensor(96, 32), "c_ptr": tensor(32, 32), "K": 96}
    spec = launch("k", SIGNATURE, {"B": 32}, values=values)
    text = translate(tmp_path, source, spec, standalone=True).text
    assert "gl = gl_.constexpr(3)\n" in text and "cdna3 = gl_.constexpr(2)\n" in text and "gl_.float16" in text, text
    (tmp_path / "output.py").write_text(text)
    result = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "output.py"), spec, "gfx942")
    assert result["status"] == "validated", result


COPIES = """
    @triton.jit
    def k(x_ptr, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(x_ptr + i, tl.load(x_ptr + i) + 1)


    def here():
        gl = 3
        return gl
"""


def test_nothing_else_is_touched(tmp_path: Path):
    spec = launch("k", {"x_ptr": "*fp32"}, {"B": 256})
    source = dedent(IMPORTS + COPIES)
    assert "import language as gl\n" in translate(tmp_path, source, spec).text
    text = translate(tmp_path, source + "\n\ngl = 3\n", spec).text
    assert "import language as gl_\n" in text and "gl_.arange(" in text and " gl." not in text
    assert text.endswith("    gl = 3\n    return gl\n\n\ngl = 3\n"), text


FURTHER = """
    STEP = tl.constexpr(2)


    @triton.jit
    def further(x):
        return x + STEP
"""


def test_what_a_copied_helper_needs_asks_the_import_too(tmp_path: Path):
    """A constant of another module, which goes above the kernel."""
    (tmp_path / "lib.py").write_text(dedent(IMPORTS + FURTHER))
    source = dedent(IMPORTS + "    from lib import further\n" + COPIES + "\n\n    gl = 3\n")
    source = source.replace("tl.load(x_ptr + i) + 1", "further(tl.load(x_ptr + i))")
    text = translate(tmp_path, source, launch("k", {"x_ptr": "*fp32"}, {"B": 256}), search_path=(str(tmp_path),)).text
    assert "STEP = gl_.constexpr(2)\n" in text, text
