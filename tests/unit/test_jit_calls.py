"""Kernels that a call makes, `kernel = triton.jit(f)`: found, launched, translated in place; what else makes one is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.product.cli.edge import run
from gluonize.read.kernels.listing import list_kernels
from gluonize.read.kernels.load import load_kernel
from gluonize.read.launches.derivation import launchable_kernels
from gluonize.read.spec.launch import parse_launches
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

HEAD = "import functools\nimport triton\nimport triton.language as tl\nfrom triton import jit\nJ = triton.jit\n\n\n"
BODY = """{indent}def {name}(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
{indent}    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
{indent}    m = i < n
{indent}    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=m) + 1, mask=m)
"""
TUNED = 'triton.autotune(configs=[triton.Config({"BLOCK": 256})], key=["n"])'
LAUNCH = {
    "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
    "constexprs": {"BLOCK": 256},
    "attrs": {"x_ptr": "DS", "y_ptr": "DS", "n": "D"},
}
# Name of the definition, what follows it, name to launch it by, what becomes of the statement.
FORMS = {
    "same name": ("add", "add = triton.jit(add)", "add", "add = _checked_add(gluon.jit(add))"),
    "another name": ("_add", "add = triton.jit(_add)", "add", "add = _checked_add(gluon.jit(_add))"),
    "options": (
        *("_add", 'add = triton.jit(do_not_specialize=["n"])(_add)', "add"),
        'add = _checked_add(gluon.jit(do_not_specialize=["n"])(_add))',
    ),
    "keyword": ("_add", "add = triton.jit(fn=_add)", "add", "add = _checked_add(gluon.jit(fn=_add))"),
    "imported": ("add", "add = jit(add)", "add", "add = _checked_add(gluon.jit(add))"),
    "renamed": ("add", "add = J(add)", "add", "add = _checked_add(gluon.jit(add))"),
    "annotated": ("_add", "add: object = triton.jit(_add)", "add", "add: object = _checked_add(gluon.jit(_add))"),
    "partial": (
        *("_add", "add = functools.partial(triton.jit, noinline=False)(_add)", "add"),
        "add = _checked_add(functools.partial(gluon.jit, noinline=False)(_add))",
    ),
    "autotuned": (
        *("_add", f"add = {TUNED}(triton.jit(_add))", "add"),
        f"add = {TUNED}(_checked_add(gluon.jit(_add)))",
    ),
    "in a table": ("add", 'K = {"add": triton.jit(add)}', "add", 'K = {"add": _checked_add(gluon.jit(add))}'),
    "under a condition": (
        *("add", "if triton is not None:\n    add = triton.jit(add)", "add"),
        "if triton is not None:\n    add = _checked_add(gluon.jit(add))",
    ),
    "twice": (
        *("_add", "add = triton.jit(_add)\nslow = triton.jit(noinline=True)(_add)", "slow"),
        "add = _checked_add(gluon.jit(_add))\nslow = _checked_add(gluon.jit(noinline=True)(_add))",
    ),
}


def translate(path: Path, kernel: str, target: str = "gfx942", **options):
    spec = parse_launches(LAUNCH | {"kernel": kernel, "source": str(path)})[0]
    return translate_kernel(TranslateRequest(str(path), target, launches=(spec,), **options))


def write(folder: Path, text: str, head: str = HEAD) -> Path:
    (folder / "k.py").write_text(head + text)
    return folder / "k.py"


@pytest.mark.one_of(3)
@pytest.mark.parametrize("form", FORMS)
def test_a_call_makes_a_kernel(tmp_path, form):
    definition, statement, name, becomes = FORMS[form]
    path = write(tmp_path, BODY.format(indent="", name=definition) + f"\n\n{statement}\n")
    (info,) = list_kernels(str(path))
    assert info.name == definition and info.is_kernel and "jit" in [d.kind for d in info.decorators]
    assert name == definition or name in info.aliases
    assert ("autotune" in [d.kind for d in info.decorators]) == (form == "autotuned")
    for asked in {definition, name}:
        assert load_kernel(str(path), asked).fn.__name__ == definition
        result = translate(path, asked)
        assert result.text is not None, result.outcomes
        hooked = becomes.replace("_checked_add", f"_checked{'' if definition.startswith('_') else '_'}{definition}")
        assert f"\n{hooked}\n" in result.text and f"\ndef {definition}(" in result.text
        # The translation says what it is in its turn, and alone it has the name that it is launched by.
        out = tmp_path / "out.py"
        out.write_text(result.text)
        assert load_kernel(str(out), asked).fn.is_gluon()
        alone = translate(path, asked, standalone=True)
        assert alone.text is not None
        out.write_text(alone.text)
        assert load_kernel(str(out), asked).fn.is_gluon()


@pytest.mark.parametrize(
    "text, name",
    [
        ("class K:\n" + BODY.format(indent="    ", name="add") + "    run = triton.jit(add)\n", "K.add"),
        ("class K:\n" + BODY.format(indent="    ", name="add") + "    run = triton.jit(add)\n", "K.run"),
        (
            "def make():\n" + BODY.format(indent="    ", name="add") + "    return triton.jit(add)\n",
            "make.<locals>.add",
        ),
    ],
)
def test_calls_in_classes_and_functions(tmp_path, text, name):
    path = write(tmp_path, text)
    result = translate(path, name)
    assert result.text is not None and "_checked_add(gluon.jit(add))" in result.text


def test_the_launches_of_all_names_are_found(tmp_path, monkeypatch):
    """Types and values come from host code that launches the kernel by the name that the call gives it."""
    host = "\n\ndef go(x):\n    y = torch.empty(7, dtype=torch.float16)\n    {name}[(1,)](x, y, 7, BLOCK=128)\n"
    monkeypatch.chdir(tmp_path)
    for name, statement in (("add", "add = triton.jit(_add)"), ("also", "add = triton.jit(_add)\nalso = add")):
        text = BODY.format(indent="", name="_add") + f"\n\n{statement}\n" + host.format(name=name)
        path = write(tmp_path, text, "import torch\n" + HEAD)
        assert launchable_kernels(str(path)) == ["_add"]
        for asked in ([], ["-k", name]) if name == "also" else ([], ["-k", "_add"]):
            assert run(["translate", "k.py", "-t", "gfx942", "-o", "out.py", "--no-compile", "--force", *asked]) == 0
            header = Path("out.py").read_text()
            assert "y_ptr *fp16" in header and "BLOCK=128" in header


def test_a_helper_made_by_a_call(tmp_path, monkeypatch):
    helper = "def _twice(x):\n    return x * 2\n\n\ntwice = triton.jit(_twice)\n\n\n"
    text = helper + BODY.format(indent="", name="_add").replace(
        "tl.load(x_ptr + i, mask=m) + 1", "twice(tl.load(x_ptr + i))"
    )
    path = write(tmp_path, text + "\n\nadd = triton.jit(_add)\n")
    assert [info.name for info in list_kernels(str(path)) if info.is_kernel] == ["_add"]
    monkeypatch.chdir(tmp_path)
    Path("l.json").write_text(json.dumps(LAUNCH | {"kernel": "add"}))
    assert run(["translate", "k.py", "-t", "gfx942", "-l", "l.json", "-o", "out.py", "-q"]) == 0
    assert "# Proved: " in Path("out.py").read_text()


WRAPPED = f"def my_jit(fn):\n    return {TUNED}(triton.jit(fn))\n\n\n"


@pytest.mark.parametrize(
    "text, line",
    [
        (WRAPPED + "@my_jit\n" + BODY.format(indent="", name="add"), 12),
        (WRAPPED + BODY.format(indent="", name="_add") + "\n\nadd = my_jit(_add)\n", 18),
    ],
)
def test_what_makes_a_kernel_beside_other_things_is_named(tmp_path, text, line):
    path = write(tmp_path, text)
    (info,) = list_kernels(str(path))
    (found,) = translate(path, "add").diagnostics
    assert found.code == "kernel-form" and found.line == info.line
    assert f"`my_jit` (line {line}) gives a jit function" in found.why
    assert translate(path, "add", standalone=True).text is not None


def test_what_is_no_function_of_the_file_is_named(tmp_path):
    (tmp_path / "other.py").write_text(HEAD + BODY.format(indent="", name="_add"))
    path = write(tmp_path, "from other import _add\nadd = triton.jit(_add)\n")
    with pytest.raises(TranslationError) as caught:
        list_kernels(str(path))
    (found,) = caught.value.diagnostics
    assert (found.code, found.line) == ("source-no-kernels", 9) and "triton.jit(_add)" in found.why


def test_gluon_is_said_to_be_gluon(tmp_path):
    text = BODY.format(indent="", name="_add").replace("tl.", "gl.") + "\n\nadd = gluon.jit(_add)\n"
    head = "from triton.experimental import gluon\nfrom triton.experimental.gluon import language as gl\n\n\n"
    (outcome,) = translate(write(tmp_path, text, head), "add").outcomes
    assert outcome.diagnostics[0].code == "source-gluon"
