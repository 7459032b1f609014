"""`--rules FILE`: a function of the user's own becomes what its row says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.read.spec.launch import parse_launches
from gluonize.request import TranslateRequest
from gluonize.rules.given import rules_with
from gluonize.rules.targets import target

LIBRARY = """
import triton
import triton.language as tl


@triton.jit
def fast_exp(x, base=1):
    return tl.exp2(x * 1.5) * base
"""
KERNEL = """
import triton
import triton.language as tl
from mylib import fast_exp as exponential


@triton.jit
def fast_exp(x):
    return x + 1


@triton.jit
def kernel(x_ptr, y_ptr):
    i = tl.arange(0, 64)
    x = tl.load(x_ptr + i)
    y = {call}
    tl.store(y_ptr + i, y)
"""
RULE = """
[[rule]]
callee = "mylib.fast_exp"
becomes = "gl.exp2({x} * 1.5)"
takes = ["x"]
cost = "heavy"
example = ["y = fast_exp(x)", "y = gl.exp2(x * 1.5)"]
near_miss = ["y = fast_exp(x, 2)", "y = fast_exp(x, 2)"]
"""


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1) as found:
        yield found


def lines(pool: WorkerPool, folder: Path, call: str, rule: str) -> str:
    """The statement of `call` in the translated kernel."""
    for name, text in (("mylib.py", LIBRARY), ("kernel.py", KERNEL.format(call=call)), ("rules.toml", rule)):
        (folder / name).write_text(text)
    launches = parse_launches(json.dumps({"kernel": "kernel", "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32"}}))
    request = TranslateRequest(
        str(folder / "kernel.py"),
        "gfx950",
        launches=tuple(launches),
        search_path=(str(folder),),
        rules=(str(folder / "rules.toml"),),
    )
    result = pool.call("gluonize.translation:translate_kernel", request)
    assert result.status == "translated", result
    return next(line.strip() for line in result.text.splitlines() if line.strip().startswith("y = "))


@pytest.mark.parametrize(
    "call, rule, expected",
    [
        ("exponential(x + 1.0)", RULE, "y = gl.exp2((x + 1.0) * 1.5)"),
        ("exponential(x=x)", RULE, "y = gl.exp2(x * 1.5)"),
        ("exponential(x)", RULE.replace("gl.exp2({x} * 1.5)", "gl.exp2({...})"), "y = gl.exp2(x)"),
        ("exponential(x, 2)", RULE, "y = fast_exp_gluon(x, 2)"),
        ("fast_exp(x)", RULE, "y = fast_exp(x)"),
        ("exponential(x)", RULE + 'needs = "supports_tdm"\n', "y = fast_exp_gluon(x)"),
    ],
    ids=["template", "by name", "arguments", "a parameter that it does not take", "another module's", "another target"],
)
def test_a_made_up_builtin_becomes_its_template(call, rule, expected, pool, tmp_path):
    assert lines(pool, tmp_path, call, rule) == expected


def test_a_function_that_is_called_like_one_of_tritons_becomes_what_its_row_says(pool, tmp_path, monkeypatch):
    """`exp2` of the author's is not `tl.exp2`, by whose name Gluon's is called too."""
    for name in ("LIBRARY", "KERNEL"):
        monkeypatch.setitem(
            globals(), name, globals()[name].replace("fast_exp as exponential", "exp2").replace("fast_exp", "exp2")
        )
    rule = RULE.replace("fast_exp", "exp2").replace("gl.exp2({x} * 1.5)", "gl.exp2({...})")
    own = KERNEL.replace("@triton.jit\ndef exp2(x):\n    return x + 1\n", "")
    monkeypatch.setitem(globals(), "KERNEL", own)
    assert lines(pool, tmp_path, "exp2(x)", rule) == "y = gl.exp2(x)"


@pytest.mark.parametrize(
    "rule, why",
    [
        (RULE.replace("[[rule]]", "[rules]"), "rules"),
        (RULE.replace("{x} * 1.5)", "{x"), "no Python expression"),
        (RULE.replace('becomes = "gl.exp2({x} * 1.5)"\n', ""), "missing: becomes"),
        (RULE + "speed = 3\n", "unknown: speed"),
        (RULE + 'layouts = "slice"\n', "layouts are one of"),
        (RULE + 'needs = "has_wings"\n', "no field 'has_wings'"),
        (RULE.replace("mylib.", ""), "given with its module"),
        ("rule = 3 4", "line 1"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused(rule, why, tmp_path):
    (tmp_path / "rules.toml").write_text(rule)
    with pytest.raises(TranslationError) as refused:
        rules_with((str(tmp_path),))
    (found,) = refused.value.diagnostics
    assert found.code == "rule-file" and why in found.why and found.file == str(tmp_path / "rules.toml")


def test_the_last_row_for_a_function_counts(tmp_path):
    (tmp_path / "a.toml").write_text(RULE.replace("mylib.", "triton.language."))
    (tmp_path / "b.toml").write_text(RULE.replace("mylib.fast_exp", "triton.language.exp").replace("1.5", "2.5"))
    rules = rules_with((str(tmp_path),))
    assert rules.row("triton.language.exp", target("gfx950")).becomes == "gl.exp2({x} * 2.5)"
    assert rules.row("triton.language.log", target("gfx950")).becomes == "gl.log({...})"
