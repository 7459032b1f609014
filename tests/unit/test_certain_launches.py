"""Launches under `--strict`: what the source says is taken, and what would be a guess is asked for by name."""

from pathlib import Path

import pytest
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.planned_launches import PlannedLaunches, planned_launches
from gluonize.request import TranslateRequest

HEAD = "import torch\nimport triton\nimport triton.language as tl\nopen('executed', 'w')\nraise SystemExit\n"
KERNEL = HEAD + (
    "@triton.jit\ndef k(x_ptr, out, n, eps, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
    "    tl.store(out + i, (tl.load(x_ptr + i, mask=i < n) + eps).to(tl.float16), mask=i < n)\n"
)
HOST = (
    "def run(x: torch.Tensor):\n    x = x.to(torch.bfloat16)\n    out = torch.empty_like(x, dtype=torch.float16)\n"
    "    k[(1,)](x, out, x.numel(), 1e-5, B=256)\n"
)


def derived(folder: Path, text: str, *settings: tuple[str, str], keep_going: bool = False) -> PlannedLaunches:
    (folder / "m.py").write_text(text)
    request = TranslateRequest(str(folder / "m.py"), "gfx950", assignments=settings, strict=True, keep_going=keep_going)
    return planned_launches(request)


def refused(folder: Path, text: str, *settings: tuple[str, str]) -> tuple[Diagnostic, ...]:
    with pytest.raises(TranslationError) as caught:
        derived(folder, text, *settings)
    return caught.value.diagnostics


def test_constants_and_types_are_asked_for_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = refused(tmp_path, KERNEL)
    assert [(d.code, d.line, d.message) for d in found] == [
        ("spec-missing", 7, "k: the type of x_ptr is not known"),
        ("spec-missing", 7, "k: the value of B is not known"),
    ]
    assert "--set x_ptr=TYPE" in found[0].help and "--set B=VALUE" in found[1].help and "-l" in found[1].help
    assert not (tmp_path / "executed").exists()


def test_what_is_set_is_not_asked_for(tmp_path):
    (spec,) = derived(tmp_path, KERNEL, ("B", "128"), ("x_ptr", "*fp32")).launches
    assert spec.constexprs == {"B": 128}
    kinds = {"x_ptr": "*fp32", "out": "*fp16", "n": "i32", "eps": "fp32", "B": "constexpr"}
    assert spec.signature == kinds, "what is stored, counted and added says the other types"


def test_a_launch_in_host_code_says_all(tmp_path):
    (spec,) = derived(tmp_path, KERNEL + HOST).launches
    assert spec.signature["x_ptr"] == "*bf16" and spec.constexprs == {"B": 256}


def test_what_the_host_computes_from_a_size_that_nothing_says_is_asked_for(tmp_path):
    host = HOST.replace("B=256", "B=triton.next_power_of_2(x.shape[1])")
    (found,) = refused(tmp_path, KERNEL + host)
    assert found.message == "k: the value of B is not known"


def test_no_launch_is_made_up_for_another_branch(tmp_path):
    text = KERNEL.replace("B: tl.constexpr)", "B: tl.constexpr, ADD: tl.constexpr = True)")
    text = text.replace("    tl.store", "    if ADD:\n        i += 1\n    tl.store") + HOST
    assert [spec.constexprs for spec in derived(tmp_path, text).launches] == [{"B": 256, "ADD": True}]


def test_kernels_that_are_asked_for_are_passed_over_with_keep_going(tmp_path):
    second = "@triton.jit\ndef second(p, W: tl.constexpr):\n    tl.store(p + tl.arange(0, W), 2.0)\n"
    planned = derived(tmp_path, KERNEL + HOST + second, keep_going=True)
    assert [spec.kernel for spec in planned.launches] == ["k"]
    assert [(o.spec.kernel, o.status) for o in planned.unknown] == [("second", "refused")]
