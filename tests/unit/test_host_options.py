"""Launches of kernels that a choice makes clusters: in the launch spec, in host code, and against what the source is compared."""

from __future__ import annotations

import ast
import json
from dataclasses import asdict
from pathlib import Path

import pytest
from translation_of import compiled, dedent, launch, translate

from gluonize.decide.choices.chosen import choices_of
from gluonize.diagnostics import TranslationError
from gluonize.output.file.author import AuthorFile, FileEdits
from gluonize.output.file.host_options import launches
from gluonize.product.cli.edge import run
from gluonize.read.files.modules import ParsedFile
from gluonize.read.names.file_names import FileNames
from gluonize.request import TranslateRequest, as_launched, with_options
from gluonize.translation import translate_kernel

TWO = choices_of(num_ctas="2")
KERNEL = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(x_ptr, y_ptr, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y_ptr + o, tl.load(x_ptr + o))
""")
HOST = KERNEL + dedent("""


    def copy(x, y):
        k[(4,)](
            x, y,
            B=1024, num_warps=4,
        )
        other[(4,)](x, y, B=1024)
        return y
""")


def edited(text: str, count: int = 2) -> tuple[str, list[str]]:
    source = ParsedFile("k.py", text, ast.parse(text))
    file = AuthorFile(source, FileNames(source.tree))
    edits = FileEdits(header="# made")
    notes = launches(file.statements, [("k", "num_ctas", count)], edits)
    return file.edited(edits).code.replace("# made\n", "", 1), notes


def spec_of(**options):
    spec = launch("k", {"x_ptr": "*fp32", "y_ptr": "*fp32"}, {"B": 1024})
    spec.options.update(options)
    return spec


def test_a_launch_gets_its_workgroups_and_gives_them_back():
    spec = spec_of()
    made = with_options(spec, TWO)
    assert made.options["num_ctas"] == 2 and as_launched(made, TWO) == spec
    assert with_options(spec, choices_of()) == as_launched(spec, choices_of()) == spec


def test_the_compiler_is_told_what_was_chosen():
    chosen = choices_of(scheduler="max-ilp", waves_per_eu="2")
    made = with_options(spec_of(), chosen)
    assert made.options["llvm_fn_attrs"] == "amdgpu-sched-strategy=max-ilp" and made.options["waves_per_eu"] == 2
    assert as_launched(made, chosen) == spec_of()
    own = spec_of(llvm_fn_attrs="noinline", waves_per_eu=1)
    assert with_options(own, chosen) == own == as_launched(own, chosen)
    assert as_launched(with_options(spec_of(waves_per_eu=1), chosen), chosen) == spec_of(waves_per_eu=1)


def test_options_that_configurations_have_no_argument_for_stand_among_their_values():
    def of(configs: str) -> str:
        text = KERNEL.replace("@triton.jit", f"@triton.autotune([{configs}], key=[])\n@triton.jit")
        file = AuthorFile(ParsedFile("k.py", text, ast.parse(text)), FileNames(ast.parse(text)))
        edits = FileEdits(header="# made")
        options = [("k", "waves_per_eu", 2), ("k", "llvm_fn_attrs", "a=b"), ("k", "num_ctas", 2)]
        assert not launches(file.statements, options, edits)
        return file.edited(edits).code

    said = '"waves_per_eu": 2, "llvm_fn_attrs": "a=b"}'
    assert 'Config({"B": 64, %s, num_warps=8, num_ctas=2)' % said in of('triton.Config({"B": 64}, num_warps=8)')
    assert "Config({%s, num_ctas=2)" % said in of("triton.Config({})")
    assert 'Config({"B": 64, %s, num_ctas=2)' % said in of('triton.Config({"B": 64, "waves_per_eu": 1,})')
    assert "num_warps=8, kwargs={**" in of("triton.Config(num_warps=8, kwargs=SMALL)")


def test_a_launch_that_says_how_many_keeps_them():
    spec = spec_of(num_ctas=4)
    assert with_options(spec, TWO) == spec == as_launched(spec, TWO)


def test_launches_in_host_code_say_how_many():
    text, notes = edited(HOST)
    assert "        B=1024, num_warps=4, num_ctas=2,\n    )" in text and not notes
    assert "other[(4,)](x, y, B=1024)" in text
    assert "num_ctas=4,\n" in edited(text, 4)[0]


CONFIGS = {
    "in the decorator": ("", '@triton.autotune([triton.Config({"B": 64}, num_warps=8), triton.Config({"B": 32})], key=[])\n'),
    "in a list": ('CONFIGS = [triton.Config({"B": 64}, num_warps=8), triton.Config({"B": 32})]\n\n\n', "@triton.autotune(CONFIGS, key=[])\n"),
    "in a function": (
        'def configs():\n    return [triton.Config({"B": 64}, num_warps=8), triton.Config({"B": 32})]\n\n\n',
        "@triton.autotune(configs(), key=[])\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_configurations_say_how_many_and_launches_do_not(name: str):
    before, decorator = CONFIGS[name]
    text, notes = edited(HOST.replace("@triton.jit\n", f"{before}{decorator}@triton.jit\n"))
    assert 'Config({"B": 64}, num_warps=8, num_ctas=2)' in text and 'Config({"B": 32}, num_ctas=2)' in text
    assert text.count("num_ctas") == 2 and not notes


def test_a_file_without_launches_says_what_to_do():
    text, notes = edited(KERNEL)
    assert text == KERNEL and notes == ["launch k with num_ctas=2: this file shows none of its launches"]


def test_the_whole_file_and_its_launch(tmp_path: Path):
    spec = spec_of()
    text = translate(tmp_path, HOST, spec, target="gfx1250", choices=TWO).text
    assert "num_warps=4, num_ctas=2," in text and "gl.num_ctas() == 2" in text
    compiled(tmp_path, text, with_options(spec, TWO), "gfx1250")
    with pytest.raises(TranslationError, match=r"num_ctas\(\) == 2"):
        compiled(tmp_path, text, spec, "gfx1250")


def test_a_launcher_that_picks_cannot_launch_both(tmp_path: Path):
    (tmp_path / "k.py").write_text(HOST)
    request = TranslateRequest(
        str(tmp_path / "k.py"), "gfx1250", launches=(spec_of(),), choices=TWO, fallback="general"
    )
    result = translate_kernel(request)
    assert result.text is None and result.diagnostics[0].code == "fallback", result
    assert "k cannot be launched as a cluster here" in result.diagnostics[0].message


CROSSING = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def k(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr):
        m = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for i in range(0, K, B):
            a = tl.load(a_ptr + m[:, None] * K + m[None, :] + i)
            b = tl.load(b_ptr + (m[:, None] + i) * B + m[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + m[:, None] * B + m[None, :], acc + tl.trans(acc))
""")


def test_a_value_that_another_workgroup_has_is_refused_at_its_line(tmp_path: Path, capsys, monkeypatch):
    """Of the product workgroups have columns, and of what is added to it rows."""
    for name in ("GLUONIZE_CACHE", "TRITON_ALWAYS_COMPILE"):  # which `--no-cache` sets
        monkeypatch.setenv(name, "")
    (tmp_path / "k.py").write_text(CROSSING)
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32"}
    spec = launch("k", signature, {"B": 64}, attrs={"a_ptr": "DS", "b_ptr": "DS", "c_ptr": "DS", "K": "D"})
    entry = asdict(spec) | {"source": "k.py", "grid": list(spec.grid)}
    kept = ("id", "kernel", "source", "signature", "constexprs", "attrs", "options", "grid")
    launches = {"version": 1, "launches": [{name: entry[name] for name in kept}]}
    (tmp_path / "launches.json").write_text(json.dumps(launches))
    words = ["translate", str(tmp_path / "k.py"), "-t", "gfx1250", "-l", str(tmp_path / "launches.json")]
    status = run([*words, "--num-ctas", "2", "-o", str(tmp_path / "out.py"), "--no-validate"])
    said = " ".join(capsys.readouterr().err.split())
    assert (
        status == 2 and "k.py:13:51: num_ctas=2: a value that a CTA needs and another one has [clusters]" in said
    ), said
    assert not (tmp_path / "out.py").exists()


def test_a_cluster_is_in_a_bundle_for_a_device_that_has_clusters(tmp_path: Path, capsys):
    spec = spec_of(num_ctas=2)
    (tmp_path / "source.py").write_text(KERNEL)
    (tmp_path / "out.py").write_text(translate(tmp_path, KERNEL, spec, target="gfx1250").text)
    entry = {name: value for name, value in asdict(spec).items() if name in ("id", "kernel", "signature", "constexprs")}
    tensors = {
        name: {"tensor": {"dtype": "float32", "shape": [1024], "stride": [1], "storage": 1024, "offset": 0}}
        for name in ("x_ptr", "y_ptr")
    }
    entry |= {"attrs": spec.attrs, "options": spec.options, "grid": [1], "source": "source.py", "values": tensors}
    (tmp_path / "launches.json").write_text(json.dumps({"version": 1, "launches": [entry]}))
    words = ["bundle", str(tmp_path / "out.py"), "-k", "k", "-t", "gfx1250", "-l", str(tmp_path / "launches.json")]
    status = run([*words, "-o", str(tmp_path / "b.zip")])
    assert not status and (tmp_path / "b.zip").exists(), capsys.readouterr().err
