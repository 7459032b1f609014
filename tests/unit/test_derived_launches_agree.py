"""A launch that is derived never contradicts itself: heuristics and flags are what its very arguments give."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from translation_of import dedent

from gluonize.read.evaluate.spec_values import decode_value
from gluonize.read.launches.derivation import derive_kernel
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.acceptance import FrontEndJudge

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
KERNEL = dedent("""
    DECORATORS
    @triton.jit
    def kernel(x_ptr, y_ptr, h0, bias, n, D: tl.constexpr, B: tl.constexpr, USE_H0: tl.constexpr, HAS_BIAS: tl.constexpr, EVEN: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        if EVEN:
            x = tl.load(x_ptr + o)
        else:
            x = tl.load(x_ptr + o, mask=o < n, other=0.0)
        if USE_H0:
            x += tl.load(h0 + o % D).to(tl.float32)
        if HAS_BIAS:
            x += tl.load(bias + o % D)
        tl.store(y_ptr + o, x, mask=o < n)
""")
HEURISTICS = {
    "lambdas": '@triton.heuristics({"USE_H0": lambda args: args["h0"] is not None, "HAS_BIAS": lambda args: args["bias"] is not None, '
    '"EVEN": lambda a: a["n"] % a["B"] == 0})',
    "functions": 'def given(args):\n    return args["h0"] is not None\n\n\n@triton.heuristics({"USE_H0": given, '
    '"HAS_BIAS": lambda args: not (args["bias"] is None), "EVEN": lambda a: a["n"] % a["B"] == 0})',
    "one of another": '@triton.heuristics({"USE_H0": lambda args: args["h0"] is not None})\n'
    '@triton.heuristics({"HAS_BIAS": lambda args: args["bias"] is not None and args["D"] > 1, "EVEN": lambda a: a["n"] % a["B"] == 0})',
    "autotuned": '@triton.heuristics({"USE_H0": lambda args: args["h0"] is not None, "HAS_BIAS": lambda args: args["bias"] is not None, '
    '"EVEN": lambda a: a["n"] % a["B"] == 0})\n@triton.autotune([triton.Config({"B": 64}), triton.Config({"B": 128}, num_warps=2)], key=["n"])',
}
HOSTS = {
    "defaults": "def run(x, h0=None, bias=None):\n    CALL",
    "annotated": "def run(x: torch.Tensor, h0: torch.Tensor | None = None, bias: torch.Tensor | None = None):\n    CALL",
    "none": "",
}
CALL = "y = torch.empty_like(x)\n    n = x.numel()\n    kernel[(triton.cdiv(n, 64),)](x, y, h0, bias, n, D=x.shape[-1]SIZE)"


def derived(folder: Path, text: str) -> tuple[LaunchSpec, ...]:
    path = folder / "m.py"
    path.write_text(text)
    return derive_kernel(str(path), "kernel", lambda loaded: FrontEndJudge(loaded, "gfx950")).launches


def argument(spec: LaunchSpec, name: str) -> Any:
    """What a heuristic sees of an argument: a tensor, None, or a number where the launch has it."""
    kind = spec.signature[name]
    if kind == "constexpr":
        return decode_value(spec.constexprs[name])
    if kind.startswith("*"):
        return SimpleNamespace(name=name)
    return 16 if "D" in spec.attrs.get(name, "") else 3


def optional(spec: LaunchSpec) -> tuple[bool, bool]:
    return tuple(argument(spec, name) is not None for name in ("h0", "bias"))


@pytest.mark.one_of(3)
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("style", HEURISTICS)
def test_heuristics_are_evaluated_on_the_arguments(style: str, host: str, tmp_path: Path):
    tuned = style == "autotuned"
    text = HEAD + KERNEL.replace("DECORATORS", HEURISTICS[style]) + "\n\n"
    text += HOSTS[host].replace("CALL", CALL.replace("SIZE", "" if tuned else ", B=64"))
    launches = derived(tmp_path, text)
    space: dict[str, Any] = {}
    tree = ast.parse(text)
    plain = [s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name == "given"]
    exec(compile(ast.Module(plain, []), "m", "exec"), space)
    kernel = next(s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name == "kernel")
    tables = [d.args[0] for d in kernel.decorator_list if ast.unparse(d).startswith("triton.heuristics")]
    for spec in launches:
        arguments = {name: argument(spec, name) for name in spec.signature}
        for name, function in [(k.value, v) for t in tables for k, v in zip(t.keys, t.values)]:
            expected = eval(ast.unparse(function), space)(arguments)
            if name != "EVEN" or spec.signature["n"] == "constexpr":
                assert arguments[name] == expected, (spec.id, name, spec)
    assert {(True, True), (False, False)} <= set(map(optional, launches)), [optional(s) for s in launches]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("flag", ["bias is not None", "(bias is not None)", "False if bias is None else True"])
@pytest.mark.parametrize("given", ["bias=None", "bias: torch.Tensor | None = None"])
def test_flags_that_the_host_computes_agree_with_optional_arguments(flag: str, given: str, tmp_path: Path):
    text = HEAD + KERNEL.replace("DECORATORS\n", "") + f"\n\ndef run(x, h0, {given}):\n    has = {flag}\n    "
    text += CALL.replace("SIZE", ", B=64, USE_H0=h0 is not None, HAS_BIAS=has, EVEN=n % 64 == 0")
    launches = derived(tmp_path, text)
    for spec in launches:
        assert optional(spec) == (spec.constexprs["USE_H0"], spec.constexprs["HAS_BIAS"]), spec
    assert {optional(s)[1] for s in launches} == {True, False}, [optional(s) for s in launches]
