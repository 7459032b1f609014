"""Listing the kernels of a file, and finding which arguments are pointers."""

import ast

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.read.kernels.listing import list_kernels, nothing_to_launch
from gluonize.read.launches.sites.pointers import integer_pointers, pointer_arguments

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


HELPER = ast.parse("def put(value, where, mask):\n    tl.store(where, value, mask=mask)").body[0]
OFFSET = ast.parse("def at(p, i):\n    return tl.load(p + i * 2)").body[0]
USES = {
    "load": ("tl.load(a + b)", {"a"}),
    "store": ("tl.store(a + b * c, b)", {"a"}),
    "through a name": ("q = a + b\n    q2 = q + 1\n    tl.load(q2)", {"a"}),
    "moved in a loop": ("for i in range(c):\n        tl.load(a)\n        a += b", {"a"}),
    "cast": ("q = a.to(tl.pointer_type(tl.int8))\n    tl.load(q + b)", {"a"}),
    "block pointer": ("q = tl.make_block_ptr(base=a, shape=(b,), strides=(c,))\n    tl.load(q)", {"a"}),
    "block pointer with offset": ("q = tl.make_block_ptr(a + b, (c,), (1,))\n    tl.load(q)", {"a"}),
    "descriptor": ("d = tl.make_tensor_descriptor(a, [b], [c], [1])\n    d.load([b])", {"a"}),
    "atomic": ("tl.atomic_add(a + b, c)", {"a"}),
    "element type": ("x = tl.zeros((1,), dtype=a.dtype.element_ty)", {"a"}),
    "either": ("q = a if c else b\n    tl.load(q)", {"a", "b"}),
    "helper": ("put(c, a + b, mask=None)", {"a"}),
    "helper by keyword": ("put(c, where=a, mask=b)", {"a"}),
    "not a pointer": ("x = a + b * c", set()),
    "only an offset": ("tl.load(a + (b + c))", {"a"}),
}


@pytest.mark.parametrize("body,expected", USES.values(), ids=USES)
def test_pointer_arguments(body, expected):
    node = ast.parse(f"def k(a, b, c):\n    {body}\n").body[0]
    assert pointer_arguments(node, lambda name: HELPER if name == "put" else None) == expected


@pytest.mark.parametrize(
    "body,expected",
    [
        ("i = tl.load(b)\n    tl.load(a + i)", {"b"}),
        ("i = tl.load(b + c)\n    q = a + i * c\n    tl.load(q)", {"b"}),
        ("q = b + c\n    n = tl.load(q).to(tl.int64)\n    for i in range(n):\n        tl.load(a)", {"b"}),
        ("i = tl.load(b)\n    a += i\n    tl.load(a)", {"b"}),
        ("x = tl.load(b)\n    tl.store(a + c, x)", set()),
        ("i = tl.load(b)\n    j = tl.where(i > 0, i * 2, 0)\n    tl.load(a + j)", {"b"}),
        ("tl.load(a + tl.load(b + c).to(tl.int32))", {"b"}),
        ("i = tl.load(b)\n    page = i // 16\n    tl.store(a + page, 1.0)", {"b"}),
        ("w = tl.load(b)\n    x = (w >> 4) & 15\n    tl.store(a, x)", {"b"}),
        ("n = tl.load(b + 1) - tl.load(b)\n    for i in range(tl.cdiv(n, 4)):\n        tl.load(a)", {"b"}),
        ("i = tl.load(b)\n    put(1.0, a + i, c)", {"b"}),
        ("i = tl.load(b)\n    at(a, i)", {"b"}),
        ("x = tl.load(b)\n    i = (x * 0.5).to(tl.int32)\n    tl.load(a + i)", set()),
        ("x = tl.load(b)\n    i = tl.where(x > 0, 1, 0)\n    tl.load(a + i)", set()),
    ],
    ids=[
        "offset", "through a name", "loop bound", "moved pointer", "value", "chosen", "within an address", "divided",
        "shifted", "length", "helper's address", "helper's offset", "converted", "compared",
    ],  # fmt: skip
)
def test_integer_pointers(body, expected):
    node = ast.parse(f"def k(a, b, c):\n    {body}\n").body[0]
    helper = {"put": HELPER, "at": OFFSET}.get
    assert integer_pointers(node, pointer_arguments(node, helper), helper) == expected


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
