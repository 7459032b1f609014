"""Every golden keeps the rules of docs/explanation/output.md, and each rule finds what is planted against it."""

from __future__ import annotations

import statistics
from pathlib import Path

import fixture_set
import pytest
from output_rules import RULES, contracts
from triton.language import standard

GOLDENS = sorted(fixture_set.ROOT.glob("*/golden/**/*.py"))
MOST_IN_THE_MEDIAN = 3
OF_AUTHORS = ("lines", "duplicates")  # rules of which what authors wrote is free

# What some golden does not keep yet: when all do, the mark goes.
BROKEN = {"check": "eight conditions, of which some have messages in lines of their own, take 30 lines"}


def rules() -> list:
    return [
        pytest.param(rule, marks=pytest.mark.xfail(strict=True, reason=BROKEN[rule])) if rule in BROKEN else rule
        for rule in RULES
    ]


def written(golden: Path) -> str:
    """What authors wrote of a golden: its fixture, and the helpers that Triton brings."""
    sources = next(p for p in golden.parents if p.parent == fixture_set.ROOT).glob("*.py")
    return "\n".join(path.read_text() for path in (*sources, Path(standard.__file__)))


@pytest.mark.parametrize("rule", rules())
def test_goldens_keep(rule):
    found = [
        f"{path.relative_to(fixture_set.ROOT)}: {what}"
        for path in GOLDENS
        for what in RULES[rule](path.read_text(), *([written(path)] if rule in OF_AUTHORS else []))
    ]
    assert GOLDENS and not found, "\n".join(found)


def test_contracts_are_short_in_the_median():
    counts = [len(conditions) for path in GOLDENS for conditions in contracts(path.read_text()).values() if conditions]
    assert statistics.median(counts) <= MOST_IN_THE_MEDIAN


# A rule, and a text that it finds once.
PLANTED = {
    "lines": "x = " + " + ".join(["1"] * 40),
    "conditions": "# k: 4 warps\n" + "".join(f"#   assumes n{i} >= 0\n" for i in range(9)),
    "implied": "# k: 4 warps\n#   assumes K <= 2**31 - 192\n#   assumes K + 63 <= 2**31 - 1\n",
    "check": "def _check_k(x, *_):\n" + "    pass\n" * 25,
    "names": "import triton\n\n\n@triton.jit\ndef step(x):\n    return x\n",
    "layouts": "def k(x):\n    a: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])\n    return x\n",
    "duplicates": "def k(x):\n    a: gl.constexpr = gl.DotOperandLayout(0, mma, 8)\n    b: gl.constexpr = gl.DotOperandLayout(0, mma, 8)\n"
    "    return f(a, b)\n",
    "bools": "def k(x):\n    gl.static_assert(\n        x.dtype.element_ty != gl.int1\n        and y.dtype.element_ty != gl.int1,\n        \"\",\n    )\n",
    "numbers": "x = 1  # as in line 12\n",
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_finds_what_is_planted(rule):
    text = PLANTED[rule]
    assert len(list(RULES[rule](text))) == 1, text


def test_rules_pass_what_they_are_not_about():
    text = PLANTED["names"] + "\n\ndef run(x):\n    return step[(1,)](x)\n"
    assert not list(RULES["names"](text))
    other = PLANTED["duplicates"].replace(
        "b: gl.constexpr = gl.DotOperandLayout(0, mma, 8)", "b: gl.constexpr = gl.DotOperandLayout(1, mma, 8)"
    )
    assert not list(RULES["duplicates"](other))
    assert not list(RULES["implied"](PLANTED["implied"].replace("K + 63", "N + 63")))
