"""Triton as code bases import it: handed on by a module, a fork under another name, and names that releases have moved."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate, validated

from gluonize.read.kernels.listing import list_kernels
from gluonize.read.kernels.load import load_kernel
from gluonize.read.names.renamed import resolved
from gluonize.rules.renamed import RENAMED

KERNEL = """

@triton.jit
def act(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, {value}, mask=i < n)


def run(x, y):
    act[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
"""
VALUES = {"x_ptr": tensor(128), "y_ptr": tensor(128), "n": 100}
SPEC = launch("act", {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}, {"BLOCK": 128}, values=VALUES)

HANDED_ON = "from vendor._triton import TensorDescriptor, libdevice, tl, triton\n"
FORK = "import acme_triton as triton\nimport acme_triton.language as tl\nfrom acme_triton.language.extra import libdevice\n"


def imports_of(text: str) -> list[str]:
    return [ast.unparse(n) for n in ast.parse(text).body if isinstance(n, (ast.Import, ast.ImportFrom))]


def test_what_is_used_like_triton_is_triton(tmp_path: Path):
    text = HANDED_ON + KERNEL.format(value="libdevice.tanh(x) + tl.sigmoid(x)")
    output = validated(tmp_path, text, SPEC)
    assert HANDED_ON.strip() in imports_of(output), output
    assert not any("triton.language" in line for line in imports_of(output)), output
    notes = load_kernel(str(tmp_path / "source.py"), "act").notes
    assert any("vendor._triton" in note and ":1:" in note for note in notes), notes


def test_a_fork_is_read_as_triton_and_stays(tmp_path: Path):
    output = validated(tmp_path, FORK + KERNEL.format(value="libdevice.tanh(x) + tl.sigmoid(x)"), SPEC)
    assert "from acme_triton.experimental import gluon" in imports_of(output), output
    assert not any(line.startswith(("import triton", "from triton")) for line in imports_of(output)), output


@pytest.mark.parametrize(
    "module",
    [
        "import acme_triton as triton\nfrom acme_triton import language as tl\n",
        "try:\n    import acme_triton as triton\n    from acme_triton import language as tl\n"
        "except ImportError:\n    triton = tl = None\n",
        "import torch\nif hasattr(torch, 'npu') and torch.npu.is_available():\n    from pkg_npu._triton import tl, triton\n"
        "else:\n    import acme_triton as triton\n    from acme_triton import language as tl\n",
        "import importlib, sys\ntriton = importlib.import_module(sys.argv[1])\ntl = triton.language\n",
    ],
    ids=["fork", "try", "platform", "computed"],
)
def test_a_module_that_hands_triton_on_is_followed(module: str, tmp_path: Path):
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_triton.py").write_text(module)
    text = "from pkg._triton import tl, triton\n" + KERNEL.format(value="x * 2")
    output = translate(package, text, SPEC).text
    assert "from pkg._triton import triton" in imports_of(output), output
    forked = "acme_triton" in module
    assert f"from {'acme_triton' if forked else 'triton'}.experimental import gluon" in imports_of(output), output


def test_an_installed_fork_is_known_by_its_files(tmp_path: Path):
    for part in ("language/core", "runtime/jit", "compiler/code_generator", "language/__init__", "__init__"):
        path = tmp_path / "graphs" / f"{part}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit('executed')\n")
    text = "import graphs as triton\nimport graphs.language as tl\n" + KERNEL.format(value="x * 2")
    (tmp_path / "source.py").write_text(text)
    loaded = load_kernel(str(tmp_path / "source.py"), "act")
    assert loaded.program.fork == "graphs"


@pytest.mark.parametrize("text", ["from numba_like import cuda\n\n\n@cuda.jit\ndef f(x):\n    cuda.sync(x)\n"])
def test_what_is_used_otherwise_is_not_triton(text: str, tmp_path: Path):
    (tmp_path / "source.py").write_text(text.replace("@cuda.jit", "@cuda.compile"))
    with pytest.raises(Exception, match="there are no Triton kernels"):
        list_kernels(str(tmp_path / "source.py"))


OLD = """
    import triton
    import triton.language as tl
    import triton.tools.experimental_descriptor
    from triton.language import libdevice
    from triton.language.extra.cuda.libdevice import fast_expf as fexp
    from triton.language.math import log1p
    from triton.ops.matmul_perf_model import early_config_prune
"""


def test_names_that_moved_are_read_and_written_as_today(tmp_path: Path):
    value = "tl.math.tanh(x) + tl.libdevice.exp(x) + libdevice.erf(x) + log1p(tl.math.max(x, 0.0)) + fexp(x) + tl.extra.cuda.libdevice.sqrt(x * x)"
    output = validated(tmp_path, dedent(OLD) + KERNEL.format(value=value), SPEC)
    for line in imports_of(output):
        node = ast.parse(line).body[0]
        names = [f"{node.module}.{a.name}" for a in node.names] if isinstance(node, ast.ImportFrom) else []
        assert all(resolved(name) is not None for name in names if name.startswith("triton")), line
    assert (
        "experimental_descriptor" not in output and "early_config_prune" not in output and "import triton\n" in output
    )
    assert "libdevice.tanh(x) + libdevice.exp(x) + libdevice.erf(x)" in " ".join(output.split()), output
    assert "tl." not in output.partition("def act")[2].partition("def run")[0], output


@pytest.mark.parametrize("row", RENAMED, ids=[row.old for row in RENAMED])
def test_new_names_are_triton_s(row):
    assert not row.new or resolved(row.new.removesuffix(".*")) is not None
    assert row.of_target or row.old.endswith("*") or resolved(row.old) is None


def test_an_import_that_cannot_hold_is_told(tmp_path: Path):
    text = dedent(OLD) + KERNEL.format(value="x * 2") + "\n\nPRUNE = early_config_prune\n"
    result = translate(tmp_path, text, SPEC)
    assert any("triton.ops.matmul_perf_model.early_config_prune" in note for note in result.notes), result.notes


def test_what_is_used_like_triton_is_triton_however_it_is_made(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        "from elsewhere.lazy import Lazy\ntriton = Lazy('triton')\ntl = Lazy('triton.language')\n"
        "@triton.jit\ndef k(x, B: tl.constexpr):\n    tl.store(x + tl.arange(0, B), tl.program_id(0))\n"
    )
    assert [info.name for info in list_kernels(str(path))] == ["k"]
