"""Kernels loaded without running the host code around them. Every program here would fail loudly if it were executed."""

import textwrap

import pytest
import triton.language as tl
from gluonize.diagnostics import TranslationError
from gluonize.read.evaluate.dtype_limits import limits
from gluonize.read.kernels.load import check_defaults, explain_trace_error, load_for_launch, load_kernel
from gluonize.read.spec.compile_arguments import compile_arguments
from gluonize.read.spec.launch import LaunchSpec
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton.experimental.gluon._runtime import GluonJITFunction
from triton.runtime.jit import JITFunction

BOOBY_TRAP = "raise SystemExit('host code was executed')\n"
HEAD = "import triton\nimport triton.language as tl\n"
# A kernel that stores what a global or helper gives: the constant can be read off the IR.
STORE = "@triton.jit\ndef k(p):\n    tl.store(p, {})\n"


@pytest.fixture
def project(tmp_path):
    def write(files):
        for name, text in ({"m.py": files} if isinstance(files, str) else files).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return tmp_path

    return write


def load(folder, kernel="k", module="m", **kwargs):
    return load_kernel(module, kernel, search_path=[str(folder)], **kwargs)


def trace(loaded, constexprs=None, signature=None):
    """The TTIR text of a kernel, for a pointer argument and the given constexprs."""
    spec = LaunchSpec(
        "i", "k", signature={"p": "*fp32"} if signature is None else signature, constexprs=constexprs or {}
    )
    args = compile_arguments(spec, loaded.fn, loaded.load_jit)
    target = GPUTarget("hip", "gfx950", 64)
    backend = make_backend(target)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options({})
    source = ASTSource(loaded.fn, args.signature, args.constexprs, args.attrs)
    return str(
        source.make_ir(target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context)
    )


def stored(folder, *args, **kwargs):
    return trace(load(folder, *args, **kwargs))


def refused(folder, kernel="k", module="m", **kwargs):
    with pytest.raises(TranslationError) as caught:
        load(folder, kernel, module, **kwargs)
    (found,) = caught.value.diagnostics
    return found


def trace_error(loaded):
    with pytest.raises(Exception) as caught:
        trace(loaded)
    return explain_trace_error(loaded, caught.value)


# --- host code does not run


def test_host_code_is_not_executed(project):
    marker = project({}) / "ran"
    folder = project(f"""
        {HEAD.replace(chr(10), chr(10) + ' ' * 8)}
        open({str(marker)!r}, "w").write("x")
        class Meta(type):
            def __new__(m, *a):
                open({str(marker)!r}, "w")
                return super().__new__(m, *a)
        class C(metaclass=Meta):
            open({str(marker)!r}, "w")
        def deco(f):
            open({str(marker)!r}, "w")
            return f
        def default():
            open({str(marker)!r}, "w")
            return 3
        SIZE = default()
        @deco
        @triton.jit
        def k(p, B: tl.constexpr = SIZE):
            tl.store(p, B)
        raise SystemExit("executed")
        """)
    loaded = load(folder)
    assert "arith" in trace(loaded, {"B": 5}) and not marker.exists()
    with pytest.raises(TranslationError, match="open"):
        check_defaults(loaded, LaunchSpec("i", "k"))


def test_packages_above_a_module_are_not_executed(project):
    folder = project(
        {
            "pkg/__init__.py": BOOBY_TRAP,
            "pkg/sub/__init__.py": BOOBY_TRAP,
            "pkg/sub/m.py": HEAD + STORE.format("1.5") + BOOBY_TRAP,
        }
    )
    assert "1.5" in stored(folder, module="pkg.sub.m")
    assert "1.5" in trace(load_kernel(str(folder / "pkg/sub/m.py"), "k"))


def test_import_hosts_does_execute(project, monkeypatch):
    folder = project(
        {
            "imported_for_real.py": HEAD
            + "import os\nX = tl.constexpr(len(os.listdir('.')) * 0 + 6.5)\n"
            + STORE.format("X")
        }
    )
    assert trace_error(load(folder, module="imported_for_real")).diagnostics[0].code == "source-unresolved"
    loaded = load(folder, module="imported_for_real", import_hosts=True)
    assert "6.5" in trace(loaded) and any("imported" in note for note in loaded.notes)
    project({"fails_on_import.py": "1 / 0\n"})
    found = refused(folder, module="fails_on_import", import_hosts=True)
    assert found.code == "source-import" and "ZeroDivisionError" in found.why


def test_source_text_and_lines_are_the_users(project):
    folder = project(
        "# one\n\n" + HEAD + "\n@triton.jit\n\ndef k(p,  # first\n      ):\n    tl.store(p, 1.0)  # kept\n"
    )
    loaded = load(folder)
    assert loaded.line == loaded.fn.def_file_line_number == 8
    assert loaded.fn.file_name == loaded.path == str(folder / "m.py")
    assert loaded.fn.src == "def k(p,  # first\n      ):\n    tl.store(p, 1.0)  # kept\n"
    assert f'"{folder}/m.py":10' in trace(loaded) or "m.py" in loaded.fn.file_name


# --- names


NAMES = {
    "literal": ("X = tl.constexpr(2.5)", "X", "2.5"),
    "arithmetic": ("A = 5\nX = tl.constexpr(A / 2)", "X", "2.5"),
    "order": ("A = 2.5\nX = tl.constexpr(A)\nA = 9", "X", "2.5"),
    "last one wins": ("X = tl.constexpr(9)\nX = tl.constexpr(2.5)", "X", "2.5"),
    "augmented": ("A = 1\nA += 1.5\nX = tl.constexpr(A)", "X", "2.5"),
    "unpacked": ("A, (B, C) = 1, (2, 2.5)\nX = tl.constexpr(C)", "X", "2.5"),
    "annotated": ("A: float = 2.5\nX: tl.constexpr = tl.constexpr(A)", "X", "2.5"),
    "math": ("import math\nX = tl.constexpr(math.sqrt(6.25))", "X", "2.5"),
    "container": ("T = {'a': [1, (2.5, 3)]}\nX = tl.constexpr(T['a'][1][0])", "X", "2.5"),
    "comprehension": ("X = tl.constexpr(sum([0.5 for i in range(5)]))", "X", "2.5"),
    "text": ("X = tl.constexpr(float(f'{2}.' + '5'.strip()))", "X", "2.5"),
    "in the environment": (
        "import os\nX = tl.constexpr(2.5 if 'GLUONIZE_NOT_SET' not in os.environ else 1.0)", "X", "2.5",
    ),
    "environment": ("import os\nX = tl.constexpr(float(os.environ.get('GLUONIZE_NOT_SET', '2.5')))", "X", "2.5"),
    "getenv": ("import os\nX = tl.constexpr(2.5 if os.getenv('GLUONIZE_NOT_SET') is None else 1)", "X", "2.5"),
    "enum": ("from enum import Enum\nclass E(Enum):\n    A = 1\n    B = A + 1.5\nX = tl.constexpr(E.B.value)", "X", "2.5"),
    "class attribute": ("class C:\n    A = 2.5\nX = tl.constexpr(C.A)", "X", "2.5"),
    "cdiv": ("X = tl.constexpr(triton.cdiv(9, 4) - 0.5)", "X", "2.5"),
    "host function": ("def f(a, *, b=1):\n    out = []\n    for i in range(a):\n        if i == 1: continue\n        out.append(i)\n    return sum(out) + b\nX = tl.constexpr(f(3, b=0.5))", "X", "2.5"),
    "cached host function": ("import functools\n@functools.cache\ndef f():\n    try:\n        return {}['a']\n    except KeyError:\n        return 2.5\nX = tl.constexpr(f())", "X", "2.5"),
    "closed over": ("def make(a):\n    @triton.jit\n    def h(x):\n        return x * A\n    A = tl.constexpr(a)\n    return h\nh = make(2.5)", "h(1.0)", "2.5"),
    "lambda": ("f = lambda a: a / 2\nX = tl.constexpr(f(5))", "X", "2.5"),
    "constexpr function": ("@triton.constexpr_function\ndef f(a):\n    return a + 0.5", "f(2)", "2.5"),
    "constexpr of function": ("def g(a):\n    return a.value\n@tl.constexpr\ndef f(a):\n    return tl.constexpr(g(a) + 0.5)", "f(2)", "2.5"),
    "if true": ("if 1 + 1 == 2:\n    X = tl.constexpr(2.5)\nelse:\n    X = tl.constexpr(1)", "X", "2.5"),
    "elif": ("if False:\n    X = 1\nelif hasattr(tl, 'dot'):\n    X = tl.constexpr(2.5)", "X", "2.5"),
    "except": ("try:\n    from no_such_module_here import X\nexcept ImportError:\n    X = tl.constexpr(2.5)", "X", "2.5"),
    "except attribute": ("try:\n    X = tl.no_such_thing\nexcept AttributeError:\n    X = tl.constexpr(2.5)", "X", "2.5"),
    "try works": ("try:\n    from triton.language import constexpr\n    X = constexpr(2.5)\nexcept (ImportError, ModuleNotFoundError):\n    X = 1", "X", "2.5"),
    "amd": ("import torch\nif torch.version.hip:\n    X = tl.constexpr(2.5)\nelse:\n    X = tl.constexpr(1)", "X", "2.5"),
    "not cuda": ("import torch\nX = tl.constexpr(1 if torch.version.cuda is not None and torch.cuda.get_device_capability()[0] > 8 else 2.5)", "X", "2.5"),
    "active target": ("def hip():\n    return triton.runtime.driver.active.get_current_target().backend == 'hip'\nX = tl.constexpr(2.5 if hip() else 1)", "X", "2.5"),
    "limits of types": ("import torch\nX = tl.constexpr(torch.finfo(torch.half).max / 65504 + torch.iinfo(torch.int8).min + 129.5)", "X", "2.5"),
    "other vendor": ("import somewhere_else_entirely as s\nX = tl.constexpr(1 if s.vendor_name == 'nvidia' else 2.5)", "X", "2.5"),
    "version": ("from packaging import version\nX = tl.constexpr(2.5 if version.parse(triton.__version__) >= version.parse('3.4') else 1)", "X", "2.5"),
    "version of a package that is not here": ("from no_such_package.utils import Version\nif Version(triton.__version__) >= Version('3.4'):\n    X = tl.constexpr(2.5)\nelse:\n    X = tl.constexpr(1)", "X", "2.5"),
    "constexpr function of Triton's": ("try:\n    f = triton.runtime.jit.constexpr_function(tl.core.get_int_dtype)\nexcept Exception:\n    f = tl.core.get_int_dtype\nX = tl.constexpr(2.5 if type(f).__name__ == 'ConstexprFunction' else 1)", "X", "2.5"),
    "no version": ("try:\n    from no_such_package import Version\nexcept ImportError:\n    X = tl.constexpr(2.5)\nelse:\n    X = tl.constexpr(1)", "X", "2.5"),
    "libdevice": ("from triton.language.extra.libdevice import sqrt as root", "root(6.25)", "6.25"),
    "submodule": ("import triton.language.extra.libdevice as ld", "ld.sqrt(6.25)", "6.25"),
    "language alias": ("from triton import language as L", "L.exp(2.5)", "2.5"),
    "noinline": ("@triton.jit(noinline=True)\ndef h(x):\n    return x * 2.5", "h(1.0)", "2.5"),
    "recursion of names": ("@triton.jit\ndef h(x, n: tl.constexpr):\n    if n == 0:\n        return x\n    else:\n        return h(x, n - 1)", "h(2.5, 2)", "2.5"),
    "named tuple": ("from typing import NamedTuple\nclass P(NamedTuple):\n    a: float\n    b: float = 2.5", "P(1.0).b", "2.5"),
}  # fmt: skip


@pytest.mark.parametrize("setup,use,text", NAMES.values(), ids=NAMES)
def test_names_of_the_same_file(project, setup, use, text):
    folder = project(HEAD + setup + "\n" + STORE.format(use) + BOOBY_TRAP)
    assert text in stored(folder)


OTHER = (
    HEAD + "V = tl.constexpr(2.5)\n_H = tl.constexpr(1)\n@triton.jit\ndef helper(x):\n    return x * V\n"
    "@triton.autotune([], key=[])\n@triton.jit\ndef tuned(x):\n    return helper(x)\n" + BOOBY_TRAP
)
IMPORTS = {
    "absolute": ("from pkg.other import helper", "helper(1.0)"),
    "renamed": ("from pkg.other import helper as h", "h(1.0)"),
    "relative": ("from .other import helper", "helper(1.0)"),
    "relative module": ("from . import other", "other.helper(1.0)"),
    "two up": ("from ..pkg.other import V", "V"),
    "module": ("import pkg.other", "pkg.other.helper(1.0)"),
    "module alias": ("import pkg.other as o", "o.helper(1.0)"),
    "star": ("from .other import *", "helper(1.0)"),
    "re-exported": ("from pkg import exported", "exported(1.0)"),
    "re-exported star": ("from pkg.stars import helper", "helper(1.0)"),
    "without autotuning": ("from .other import tuned\ninner = tuned.fn", "inner(1.0)"),
    "constant of a module": ("from pkg import other\nX = tl.constexpr(other.V)", "X"),
}


@pytest.mark.parametrize("statement,use", IMPORTS.values(), ids=IMPORTS)
def test_names_of_other_files(project, statement, use):
    files = {
        "top/pkg/__init__.py": "from .other import helper as exported\n" + BOOBY_TRAP,
        "top/pkg/other.py": OTHER,
        "top/pkg/stars.py": "__all__ = ['helper']\nfrom .other import *\n" + BOOBY_TRAP,
        "top/__init__.py": "",
        "top/pkg/m.py": HEAD + statement + "\n" + STORE.format(use) + BOOBY_TRAP,
    }
    folder = project(files)
    module = "top.pkg.m" if "..pkg" in statement else "pkg.m"
    found = load_kernel(module, "k", search_path=[str(folder), str(folder / "top")])
    assert "2.5" in trace(found)
    for helper in found.helpers:
        line = {"helper": 6, "tuned": 10}[helper.qualname]
        assert (helper.path, helper.line) == (str(folder / "top/pkg/other.py"), line)


def test_star_import_respects_all_and_underscores(project):
    folder = project({"other.py": OTHER, "m.py": HEAD + "from other import *\n" + STORE.format("_H")})
    assert trace_error(load(folder)).diagnostics[0].line == 6
    project(
        {
            "other.py": OTHER + "\n__all__ = ['V']\n",
            "m.py": HEAD + "from other import *\n" + STORE.format("helper(1.0)"),
        }
    )
    assert "helper cannot be evaluated" in str(trace_error(load(folder)))


def test_cyclic_imports(project):
    folder = project(
        {
            "a.py": HEAD + "A = tl.constexpr(2.5)\nfrom b import B\nA = 1\n" + STORE.format("B"),
            "b.py": "from a import A\nB = A\n",
        }
    )
    assert "2.5" in stored(folder, module="a")


# --- decorators and definitions


DECORATORS = {
    "alias": ("from triton import jit\n@jit\n"),
    "renamed": ("from triton import jit as compiled\n@compiled\n"),
    "assigned": ("j = triton.jit\n@j\n"),
    "called": ("@triton.jit()\n"),
    "partial": ("import functools\n@functools.partial(triton.jit, noinline=False)\n"),
    "options that are host code": ("@triton.jit(repr=lambda s: 'x', launch_metadata=print, do_not_specialize=['p'])\n"),
    "own wrapper": ("def my(fn):\n    return triton.jit(fn)\n@my\n"),
    "autotune": (
        "from triton import autotune as at\n@at(configs=[triton.Config({})], key=[])\n@triton.heuristics({})\n@triton.jit\n"
    ),
    "runtime": ("from triton.runtime.jit import jit\n@jit\n"),
}


@pytest.mark.parametrize("text", DECORATORS.values(), ids=DECORATORS)
def test_decorators(project, text):
    folder = project(HEAD + text + "def k(p):\n    tl.store(p, 2.5)\n" + BOOBY_TRAP)
    loaded = load(folder)
    assert isinstance(loaded.fn, JITFunction) and "2.5" in trace(loaded)


def test_unknown_decorators_are_looked_through_and_reported(project):
    folder = project(
        HEAD
        + "import lib\n@lib.entry(3)\n@triton.autotune(configs=lib.configs(), key=['n'])\n@triton.jit\ndef k(p):\n    tl.store(p, 2.5)\n"
    )
    loaded = load(folder)
    assert "2.5" in trace(loaded)
    assert [(d.kind, d.name, d.line) for d in loaded.decorators] == [
        ("other", "lib.entry", 4),
        ("autotune", "triton.autotune", 5),
        ("jit", "triton.jit", 6),
    ]
    assert any("@lib.entry" in note and "looked through" in note for note in loaded.notes)
    assert not any("autotune" in note for note in loaded.notes)


def test_gluon_functions(project):
    folder = project(
        "from triton.experimental import gluon\nfrom triton.experimental.gluon import language as gl\n@gluon.jit\ndef k(p):\n    gl.store(p, 1.0)\n"
    )
    assert isinstance(load(folder).fn, GluonJITFunction)


def test_defaults_and_annotations(project):
    folder = project(
        "from __future__ import annotations\nimport torch\n" + HEAD + "from triton.language import constexpr as CE\nN = 4\n"
        "@triton.jit\ndef k(p: torch.Tensor, n: tl.int64, A: CE, B: 'tl.constexpr' = N * 2, *, C: tl.constexpr = None):\n    tl.store(p, B)\n"
    )  # fmt: skip
    params = {param.name: param for param in load(folder).fn.params}
    assert [name for name, param in params.items() if param.is_constexpr] == ["A", "B", "C"]
    assert params["B"].default == 8 and params["C"].default is None and not params["A"].has_default
    assert params["n"].annotation_type == "i64"


def test_a_module_is_not_run_for_defaults_of_host_code(project):
    """What nobody asks for costs nothing, however large the code base that it comes from."""
    heavy = "import enum\nclass Kind(enum.Enum):\n    A = 1\n"
    host = "from heavy import Kind\ndef run(x, kind=Kind.A):\n    pass\n@triton.jit\ndef k(p):\n    tl.store(p, 1.5)\n"
    loaded = load(project({"heavy.py": heavy, "m.py": HEAD + host}))
    assert "1.5" in trace(loaded) and loaded.program.import_module("heavy")._run is None


def test_a_default_of_an_attribute_that_changes_is_what_it_was(project):
    host = "class C:\n    V = 2.5\ndef f(v=C.V):\n    return v\nC.V = 3.5\nW = tl.constexpr(f())\n"
    folder = project(HEAD + host + "@triton.jit\ndef k(p):\n    tl.store(p, W)\n")
    assert "2.5" in stored(folder)


@pytest.mark.parametrize(
    "raises",
    [
        "def f(x=missing):\n        pass",
        "class C:\n        x = 1 // 0",
        "class C(missing):\n        pass",
        "@fails\n    def f():\n        pass",
        "@missing\n    def f():\n        pass",
        "del missing",
    ],
)
def test_a_definition_that_raises_ends_a_try(project, raises):
    host = f"def fails(f):\n    raise ValueError\nW = tl.constexpr(7.5)\ntry:\n    {raises}\n    W = tl.constexpr(1.5)\nexcept Exception:\n    pass\n"
    assert "7.5" in stored(project(HEAD + host + "@triton.jit\ndef k(p):\n    tl.store(p, W)\n"))


def test_definitions_that_raise_nothing_leave_a_try_as_it_is(project):
    host = "try:\n    class C:\n        x = 1\n    @staticmethod\n    def f(x=C.x):\n        pass\n    del C\n    W = tl.constexpr(7.5)\nexcept Exception:\n    W = tl.constexpr(1.5)\n"
    assert "7.5" in stored(project(HEAD + host + "@triton.jit\ndef k(p):\n    tl.store(p, W)\n"))


@pytest.mark.parametrize("change", ["C = made()\nC['a'] = 7.5\n", "def change():\n    made()['a'] = 7.5\nchange()\n"])
def test_what_a_cached_function_gives_is_one_object(project, change):
    host = "import functools\n@functools.lru_cache(maxsize=None)\ndef made():\n    return {'a': 1.5}\n"
    host += change + "W = tl.constexpr(made()['a'])\n"
    assert "7.5" in stored(project(HEAD + host + "@triton.jit\ndef k(p):\n    tl.store(p, W)\n"))


def test_nested_kernels(project):
    folder = project(
        HEAD + "class K:\n    @staticmethod\n    @triton.jit\n    def k(p):\n        tl.store(p, 2.5)\n"
        "def outer(size, n=3):\n    import triton\n    import triton.language as tl\n    V = tl.constexpr(n + 0.5)\n    W = tl.constexpr(size)\n"
        "    @triton.jit\n    def h(x):\n        return x * V\n    @triton.jit\n    def k(p):\n        tl.store(p, h(1.0))\n"
        "    @triton.jit\n    def bad(p):\n        tl.store(p, W)\n    return k\n"
    )
    assert "2.5" in stored(folder, "K.k")
    for name in ("outer.<locals>.k", "outer.k"):
        loaded = load(folder, name)
        assert "3.5" in trace(loaded) and loaded.qualname == "outer.<locals>.k"
    found = trace_error(load(folder, "outer.<locals>.bad"))
    assert "size is an argument of outer" in str(found) and found.diagnostics[0].line == 21
    given = load(folder, "outer.<locals>.bad", globals={"m:outer.<locals>.W": {"$constexpr": 7.5}})
    assert "7.5" in trace(given)


def test_a_stub_for_another_platform_is_not_the_kernel(project):
    folder = project(
        "import torch\nif torch.has_triton():\n    import triton\n    import triton.language as tl\n    @triton.jit\n    def k(p):\n        tl.store(p, 2.5)\nelse:\n    def k(p):\n        raise NotImplementedError\n"
    )
    assert "2.5" in stored(folder)


def test_aggregate(project):
    folder = project(
        HEAD
        + "from triton.language.core import _aggregate as aggregate\n@aggregate\nclass Pair:\n    a: tl.tensor\n    b: tl.constexpr\n"
        "    @triton.constexpr_function\n    def __init__(self, a, b):\n        self.a = a\n        self.b = tl.constexpr(b)\n"
        "    @triton.jit\n    def total(self):\n        return self.a + self.b\n"
        "@triton.jit\ndef k(p):\n    v = Pair(tl.load(p), 2.5)\n    tl.store(p, v.total())\n"
    )
    assert "2.5" in stored(folder)


def test_jit_functions_as_constexprs(project):
    folder = project(
        {"other.py": OTHER, "m.py": HEAD + "@triton.jit\ndef k(p, F: tl.constexpr):\n    tl.store(p, F(1.0))\n"}
    )
    spec = LaunchSpec("i", "k", "m", constexprs={"F": {"$jit": "other:helper"}})
    loaded = load_for_launch(spec, search_path=[str(folder)])
    assert "2.5" in trace(loaded, spec.constexprs)
    with pytest.raises(TranslationError, match="no kernel named nothing"):
        trace(loaded, {"F": {"$jit": "other:nothing"}})


# --- what has no static value


def test_globals_of_the_launch_win(project):
    text = (
        HEAD
        + "import lib\nX = tl.constexpr(lib.setting())\nDEEP = lib.flag\nif DEEP:\n    Y = tl.constexpr(2.5)\nelse:\n    Y = tl.constexpr(1.5)\n"
        + STORE.format("X + Y")
    )
    folder = project(text)
    found = trace_error(load(folder)).diagnostics[0]
    assert (found.code, found.line, found.column) == ("source-unresolved", 12, 17)
    assert (
        "X cannot be evaluated" in found.message
        and "no module named lib" in found.why
        and '"globals"' in found.help
        and "--import" in found.help
    )
    given = {"m:X": {"$constexpr": 4.5}}
    assert "which definition of Y applies (lines 7, 9" in str(trace_error(load(folder, globals=given)))
    ttir = trace(load(folder, globals={**given, "m:DEEP": False}))
    assert "4.5" in ttir and "1.5" in ttir or "6.0" in ttir


def test_a_name_in_dead_code_does_not_matter(project):
    folder = project(
        HEAD
        + "import lib\nX = lib.f()\n@triton.jit\ndef k(p, USE: tl.constexpr):\n    if USE:\n        tl.store(p, X)\n    else:\n        local = 2.5\n        tl.store(p, local)\n"
    )
    loaded = load(folder)
    assert "2.5" in trace(loaded, {"USE": False})
    assert [name for _, name in loaded.unresolved] == ["X"]


UNRESOLVED = {
    "host function": ("def f(x):\n    return x", "f(1.0)", "host function"),
    "changed list": (
        "import time\nT = [1]\nT.append(time.time())\nX = tl.constexpr(T[0])",
        "X",
        "time.time() is known only",
    ),
    "bound in a loop": ("import time\nfor X in range(int(time.time())):\n    pass", "X", "time.time() is known only"),
    "call of the unknown": ("import time\nX = tl.constexpr(time.time())", "X", "time.time() is known only"),
    "file": ("X = tl.constexpr(len(open('f').read()))", "X", "open() is not evaluated"),
    "endless": ("def f():\n    while True:\n        pass\nX = tl.constexpr(f())", "X", "runs for too long"),
    "recursive": ("def f():\n    return f()\nX = tl.constexpr(f())", "X", "too deeply"),
    "huge": ("X = tl.constexpr(10 ** 10 ** 10)", "X", "too large"),
    "circular": ("X = tl.constexpr(Y)\nY = X", "X", "Y"),
    "host object": ("class C:\n    pass\nX = tl.constexpr(C().a)", "X", "an object of class C is made"),
    "escape": ("X = tl.constexpr(().__class__)", "X", "attribute __class__"),
    "system": ("import os\nX = tl.constexpr(os.system('true'))", "X", "system is not evaluated"),
    "variable of an unknown name": (
        "import os, torch\nX = tl.constexpr(int(os.environ.get(torch.name, 0)))",
        "X",
        "torch.name is known only",
    ),
    "variable without a name": ("import os\nX = tl.constexpr(int(os.environ.get(1, 0)))", "X", "str expected, not int"),
    "missing": ("", "nowhere", "NameError"),
}


@pytest.mark.parametrize("setup,use,why", UNRESOLVED.values(), ids=UNRESOLVED)
def test_unresolved(project, setup, use, why):
    folder = project(HEAD + setup + "\n" + STORE.format(use))
    found = trace_error(load(folder)).diagnostics[0]
    assert found.code == "source-unresolved" and why in found.why, found
    assert (
        found.file == str(folder / "m.py")
        and found.line == len(HEAD.splitlines()) + len(setup.splitlines() or [""]) + 3
    )


def test_a_trace_error_of_another_kind_is_not_explained(project):
    loaded = load(
        project(
            HEAD
            + "import lib\nX = lib.f()\n@triton.jit\ndef k(p):\n    tl.store(p, tl.arange(0, 3))\n    tl.store(p, X)\n"
        )
    )
    with pytest.raises(Exception) as caught:
        trace(loaded)
    assert explain_trace_error(loaded, caught.value) is None


def test_a_global_that_functions_change_is_left_open(project):
    folder = project(HEAD + "X = tl.constexpr(2.5)\ndef set_x(v):\n    global X\n    X = v\n" + STORE.format("X"))
    found = trace_error(load(folder)).diagnostics[0]
    assert (found.line, found.column) == (9, 17) and "a function may bind X: line 5" in found.why
    assert "2.5" in stored(folder, globals={"m:X": {"$constexpr": 2.5}})


# --- bad input


def test_bad_sources(project):
    folder = project({
        "syntax.py": "import triton\ndef f(:\n", "nul.py": "a\0b", "ok.py": HEAD + "def f():\n    pass\nclass C:\n    pass\n" + STORE.format("1"),
        "space/inner.py": "", "old.py": HEAD + "@triton.jit\ndef k(x, **meta):\n    pass\n",
    })  # fmt: skip
    (folder / "latin.py").write_bytes(b"# \xe9\n")
    (folder / "note.txt").write_text("not really Python\n")
    found = refused(folder, module="syntax")
    assert (found.code, found.line, found.file) == ("source-syntax", 2, str(folder / "syntax.py"))
    assert refused(folder, module="nul").code == refused(folder, module="latin").code == "source-not-python"
    assert refused(folder, module=str(folder / "note.txt")).code == "source-not-python"
    assert refused(folder, module="no_such_module").code == refused(folder, module="gone.py").code == "source-missing"
    assert "without __init__" in refused(folder, module="space").why
    assert refused(folder, module=str(folder) + "/").code == "source-unreadable"
    assert refused(folder, "f", "ok").code == refused(folder, "C", "ok").code == "kernel-not-jit"
    assert "JIT functions do not support **meta" in refused(folder, module="old").message
    missing = refused(folder, "kk", "ok")
    assert missing.code == "kernel-missing" and "it has k" in missing.why
    with pytest.raises(TranslationError, match="names no source"):
        load_for_launch(LaunchSpec("i", "k"))


def test_two_loads_agree(project):
    files = {
        "other.py": OTHER,
        "m.py": HEAD + "from other import *\nimport other as o\n" + STORE.format("helper(1.0) + o.helper(V)"),
    }
    folder = project(files)
    first, second = load(folder), load(folder)
    strip = [(r.user, r.name, r.kind, r.module, r.qualname, r.path, r.line) for r in first.reached]
    assert strip == [(r.user, r.name, r.kind, r.module, r.qualname, r.path, r.line) for r in second.reached]
    assert trace(first) == trace(second) and first.fn is not second.fn
    assert [(c.name, c.module, c.line) for c in first.constants] == [("V", "other", 3), ("V", "other", 3)]
    assert tl.constexpr(2.5) == first.constants[0].value


def test_the_right_name_and_file_are_reported(project):
    other = HEAD + "import lib\nX = lib.one()\n@triton.jit\ndef helper(a):\n    return a + X\n"
    own = HEAD + "import lib\nfrom other import helper\nX = lib.two()\nXX = lib.three()\n"
    folder = project({"other.py": other, "m.py": own + STORE.format("helper(1.0) if p is not None else X")})
    found = trace_error(load(folder)).diagnostics[0]
    assert (found.file, found.line) == (str(folder / "other.py"), 7)
    project({"m.py": own + STORE.format("XX + X")})
    assert trace_error(load(folder)).diagnostics[0].message.startswith("XX ")


def test_sets_have_one_order(project):
    folder = project(
        HEAD
        + "X = tl.constexpr(''.join([c for c in {'b', 'd', 'a', 'c'}]))\n"
        + STORE.format("1.0 if X == 'abcd' else 2.0")
    )
    assert "1.0" in stored(folder)


def test_a_folder_without_init_inside_of_a_package_belongs_to_it(tmp_path):
    for folder in ("pkg", "pkg/kernels", "pkg/shared"):
        (tmp_path / folder).mkdir()
    (tmp_path / "pkg/__init__.py").write_text("")
    jit = "import triton\nimport triton.language as tl\n{}\n\n@triton.jit\ndef {}(x_ptr):\n    {}\n"
    (tmp_path / "pkg/shared/ids.py").write_text(jit.format("", "index", "return tl.program_id(0)"))
    source = tmp_path / "pkg/kernels/copy.py"
    source.write_text(jit.format("from ..shared.ids import index", "copy", "tl.store(x_ptr, index(x_ptr))"))
    loaded = load_kernel(str(source), "copy")
    assert not loaded.unresolved
    assert [r.name for r in loaded.reached if r.kind == "jit"] == ["index"]


def test_limits_of_types_are_torchs():
    """As torch 2.9 gives them."""
    assert (
        limits("finfo", "float32").max == 3.4028234663852886e38
        and limits("finfo", "float32").min == -3.4028234663852886e38
    )
    assert limits("finfo", "bfloat16").max == 3.3895313892515355e38 and limits("finfo", "bfloat16").eps == 0.0078125
    assert limits("finfo", "float64").tiny == 2.2250738585072014e-308
    assert (limits("iinfo", "uint8").min, limits("iinfo", "int64").max) == (0, 9223372036854775807)
    assert limits("iinfo", "float32") is None and limits("finfo", "int8") is None


@pytest.mark.parametrize("condition", ["lib.ready()", "torch.utils._triton.has_triton()"])
def test_functions_that_only_raise_stand_in_for_one_that_is_there(project, condition):
    helper = (
        f"import lib, torch.utils._triton\nif {condition}:\n    @triton.jit\n    def f(x):\n        return x + 1.0\n"
        "else:\n    def f(*args):\n        '''Needs Triton.'''\n        raise RuntimeError('no Triton')\n"
    )
    assert trace(load(project(HEAD + helper + STORE.format("f(1.0)"))))


def test_of_two_functions_that_both_do_something_none_is_taken(project):
    helper = "import lib\nif lib.ready():\n    @triton.jit\n    def f(x):\n        return x\nelse:\n    @triton.jit\n    def f(x):\n        return -x\n"
    found = trace_error(load(project(HEAD + helper + STORE.format("f(1.0)"))))
    assert "which definition of f applies" in str(found)
