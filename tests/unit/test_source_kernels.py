"""Listing the kernels of a file."""

import pytest
from gluonize.diagnostics import TranslationError
from gluonize.read.kernels.listing import list_kernels, nothing_to_launch

FILE = """
import triton as t
from triton import jit as compiled
import triton.language as tl
raise SystemExit("host code was executed")
@compiled
def helper(x):
    return x + 1
@t.autotune(configs=make(), key=["n"])
@t.jit
def first(p, n: tl.int32, B: tl.constexpr, C: "tl.constexpr" = 4, *, D: tl.constexpr = None):
    tl.store(p, helper(1.0))
def host(p):
    first[(1,)](p)
if True:
    @t.jit
    def guarded(p):
        tl.store(p, 1)
class K:
    @t.jit
    def method(p):
        return
def outer():
    @t.jit
    def inner(p):
        return None
"""


def test_listing(tmp_path):
    (tmp_path / "m.py").write_text(FILE)
    found = {k.name: k for k in list_kernels(str(tmp_path / "m.py"))}
    assert list(found) == ["helper", "first", "guarded", "K.method", "outer.<locals>.inner"]
    assert [k.name for k in found.values() if k.is_kernel] == ["first", "guarded", "K.method", "outer.<locals>.inner"]
    first = found["first"]
    assert (first.line, first.args, first.constexprs) == (11, ("p", "n", "B", "C", "D"), ("B", "C", "D"))
    assert first.defaults == {"C": "4", "D": "None"} and first.annotations["n"] == "tl.int32"
    assert [(d.kind, d.line) for d in first.decorators] == [("autotune", 9), ("jit", 10)]


@pytest.mark.parametrize(
    "text,code,line",
    [
        ("x = 1\n", "source-no-kernels", 0),
        ("", "source-no-kernels", 0),
        ("def f(:\n", "source-syntax", 1),
        ("\0", "source-not-python", 0),
    ],
    ids=["no kernels", "empty", "syntax error", "binary"],
)
def test_refused(tmp_path, text, code, line):
    (tmp_path / "m.py").write_text(text)
    with pytest.raises(TranslationError) as caught:
        list_kernels(str(tmp_path / "m.py"))
    (found,) = caught.value.diagnostics
    assert (found.code, found.line, found.file) == (code, line, str(tmp_path / "m.py"))


def test_missing_file(tmp_path):
    with pytest.raises(TranslationError) as caught:
        list_kernels(str(tmp_path / "gone.py"))
    assert caught.value.diagnostics[0].code == "source-missing"


def test_triton_behind_a_condition_that_is_not_known(tmp_path):
    """As packages do that also load where there is no Triton."""
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text(
        "import platforms\nHAS_TRITON = platforms.drivers() == 1\n"
        "if HAS_TRITON:\n    import triton\n    import triton.language as tl\n    from triton.language.extra import libdevice\n"
        "else:\n    triton, tl, libdevice = platforms.Nothing(), platforms.Nothing(), platforms.Nothing()\n"
    )
    text = "from pkg import tl, triton, libdevice\n@triton.jit\ndef k(p):\n    tl.store(p, libdevice.exp(1.0))\n"
    (tmp_path / "m.py").write_text(text)
    assert [kernel.name for kernel in list_kernels("m", [str(tmp_path)])] == ["k"]


def test_why_nothing_can_be_launched(tmp_path):
    source = tmp_path / "helpers.py"
    head = "import triton\nimport triton.language as tl\n\n\n"
    source.write_text(head + "@triton.jit\ndef alone(x):\n    return x + 1\n")
    infos = list_kernels(str(source))
    assert "alone (line 6) returns a value" in str(nothing_to_launch(infos, str(source)))
    source.write_text(head + "@triton.jit\ndef a(x):\n    b(x)\n\n\n@triton.jit\ndef b(x):\n    a(x)\n")
    why = str(nothing_to_launch(list_kernels(str(source)), str(source)))
    assert "a (line 6) is used by another; b (line 11) is used by another" in why
    source.write_text(head + "class A:\n    @triton.jit\n    def put(self, x):\n        tl.store(x, 1)\n")
    assert "A.put (line 7) is a method" in str(nothing_to_launch(list_kernels(str(source)), str(source)))
