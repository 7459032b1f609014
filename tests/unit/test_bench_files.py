"""bench/files.py: which files are cases, and in which bin an outcome is."""

from __future__ import annotations

import pytest

from bench.files import cases, launches, outcome, sample, table

KERNEL = "import triton\n\n\n@triton.jit\ndef k(x):\n    pass\n"


def test_a_sample_takes_from_each_code_base_in_turn(tmp_path):
    for name, count in (("large", 5), ("small", 1), ("gluon", 1)):
        (tmp_path / name).mkdir()
        for number in range(count):
            text = KERNEL.replace("triton.jit", "gluon.jit") if name == "gluon" else KERNEL
            (tmp_path / name / f"m{number}.py").write_text(text)
        (tmp_path / name / "plain.py").write_text("import triton\n")
    found = cases([str(tmp_path)])
    assert {name: len(paths) for name, paths in found.items()} == {"large": 5, "small": 1}
    chosen = sample(found, 3, seed=1)
    assert [path.parent.name for path in chosen] == ["large", "small", "large"] and chosen == sample(found, 3, seed=1)


def result(status, **more):
    return {"kernel": "k", "status": status, "diagnostics": [], "host_launches": [], **more}


def validated(complete, proof="", status="validated"):
    return {"validation": {"status": status, "coverage": {"complete": complete}, "proof": {"status": proof}}}


SITE = {"kernel": "k", "file": "m.py", "line": 3, "status": "not-served"}


@pytest.mark.parametrize(
    "status, results, text, expected",
    [
        (0, [result("translated", **validated(True))], "", "validated"),
        (0, [result("translated", **validated(False, "proved"))], "", "validated"),
        (0, [result("translated", **validated(False))], "", "translated"),
        (0, [result("translated", **validated(True)), result("passed-over")], "", "stays Triton"),
        (2, [result("passed-over")], "", "stays Triton"),
        (1, [result("translated", host_launches=[SITE], **validated(True))], "", "launch not served"),
        (1, [result("failed")], "", "check failed"),
        (1, [result("mismatch")], "", "wrong"),
        (1, [], "", "crash"),  # no result was written
        (2, [], "... [source-no-kernels]", "no kernel"),
        (2, [result("refused")], "", "refused"),
        (2, [result("refused"), result("translated") | {"kernel": "other"}], "", "in part"),
        (3, [result("failed")], "", "crash"),
        (None, [], "", "no end"),
    ],
)
def test_bins(status, results, text, expected):
    case = {"file": "m.py", "status": status, "seconds": 2.0, "results": results, "text": text}
    assert outcome(case) == expected
    assert f"1 {expected}" in table([case])


def test_a_launch_that_several_results_have_counts_once():
    case = {"results": [result("translated", host_launches=[SITE]), result("translated", host_launches=[SITE])]}
    assert launches(case) == {("k", "m.py", 3): "not-served"}
