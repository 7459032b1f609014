"""Statements that share a line are taken apart before a function is traced; others stay as they are."""

from __future__ import annotations

import pytest
from gluonize.read.kernels.load import load_kernel
from gluonize.read.text.moved_lines import file_line
from gluonize.read.text.own_lines import take_apart

HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"

APART = {
    "a loop": (
        "def f(p, n):\n    for i in range(n): a = i; p += a  # last\n",
        "def f(p, n):\n    for i in range(n):\n        a = i\n        p += a  # last\n",
    ),
    "branches": (
        "def f(p, n):\n    if n: p += 1\n    elif p: p += 2; n = 3\n    else: p = n\n",
        "def f(p, n):\n    if n:\n        p += 1\n    elif p:\n        p += 2\n        n = 3\n    else:\n        p = n\n",
    ),
    "a function": ("def f(p, n): return p + n\n", "def f(p, n):\n    return p + n\n"),
    "tabs": ("def f(p, n):\n\twhile n: n -= 1\n", "def f(p, n):\n\twhile n:\n\t\tn -= 1\n"),
    "several lines": (
        "def f(p, n):\n    p = (\n        n); n = 1\n",
        "def f(p, n):\n    p = (\n        n)\n    n = 1\n",
    ),
}
AS_IT_IS = {
    "a semicolon in text": 'def f(p, n):\n    "a; b"\n    return p\n',
    "a colon in a slice": "def f(p, n):\n    return p[:, None]\n",
    "a comment": "def f(p, n):\n    for i in range(n):  # a; b\n        p += i\n",
}


def taken_apart(text: str, tmp_path):
    file = tmp_path / "source.py"
    file.write_text(HEAD + text)
    fn = load_kernel(str(file), "f").fn
    take_apart(fn)
    return fn


@pytest.mark.parametrize("before, after", APART.values(), ids=APART)
def test_each_statement_has_a_line(before: str, after: str, tmp_path):
    assert taken_apart(before, tmp_path).src.rstrip("\n") == after.rstrip("\n")


@pytest.mark.parametrize("text", AS_IT_IS.values(), ids=AS_IT_IS)
def test_others_stay(text: str, tmp_path):
    assert taken_apart(text, tmp_path).src.rstrip("\n") == text.rstrip("\n")


def test_lines_of_the_file_are_known(tmp_path):
    fn = taken_apart(APART["a loop"][0], tmp_path)
    first = HEAD.count("\n") + 1
    assert [file_line(fn, line) for line in (1, 2, 3, 4)] == [first, first + 1, first + 1, first + 1]
