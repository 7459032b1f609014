"""What is said of the rounds of loops, against the rounds that there are: types of few bits, every pair of arguments."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from narrow_kernels import launches, narrow, run, traced
from narrow_rounds import Rounds, unsound_rounds

from gluonize.facts.loops.span import known_trips

LOOPS = {
    "constants": "x = a\nfor i in range(2, 11, 3):\n    x += i\nfor i in range(5, 0, -2):\n    x += i\nfor i in range(3, 3):\n    x += i\nfor i in range(5, 2):\n    x += i\nfor i in range(C):\n    x += i\nfor i in range(0, N, C):\n    x += i",
    "apart": "x = b\nfor i in range(a * 2, (a + 1) * 2):\n    x = i\nfor i in range(b, b + 6, 4):\n    x = i\nfor i in range(b - 1, b + C):\n    x = i\nfor i in range(a, b + 3):\n    x = i\nfor i in range(a * b, b * a + 2):\n    x = i\nfor i in range(a // 2, a):\n    x = i\nfor i in range(a, b):\n    x = i",
    "given": "k = tl.cdiv(C, 3)\nx = a\nfor i in range(k):\n    x += i\nm = 2\nif a > 3:\n    m = 4\nfor i in range(m):\n    x += i\nn = C * 2\nfor i in range(1, n, 3):\n    x += i",
    "what changes": "x = a\nlow = x\nx = x + 1\nfor i in range(low, x + 2):\n    y = i\nfor i in range(3):\n    for j in range(x, x + 2):\n        y = j\n    low = x\n    x += b\n    for j in range(low, x):\n        y = j",
    "ends that move": "x = a\nfor i in range(x, x + 3):\n    x += 1\nfor i in range(2):\n    y = b\n    if a > 2:\n        y = b + 1\n    for j in range(b, y + 1):\n        x = j",
    "by name": "x = a\nfor i in tl.range(0, 6, step=2):\n    x = i\nfor i in tl.range(arg1=1, arg2=5):\n    x = i\nfor i in tl.range(1, arg2=7, step=3):\n    x = i\nfor i in tl.range(b, a, step=-1):\n    x = i\nfor i in tl.range(0, 7, 3, num_stages=2):\n    x = i",
    "steps": "s2 = h.to(tl.int32)\ny = b\nfor i in range(9, 0, s2):\n    y += i\ns = tl.maximum(b, 1)\nx = a\nfor i in range(0, 9, s):\n    x += i\nfor i in range(0, 9, C):\n    x += i\nfor i in range(9, 0, MINUS):\n    x += i\nfor i in range(b, a, -1):\n    x += i\nfor i in range(a, b, 1):\n    x += i",
    "what stays": "x = a\ny = b + 1\nt = o * a\nfor i in range(3):\n    x += y\n    v = t + b\n    w2 = v * 2\n    r = x + v\n    s = i * y",
    "branches": "x = a\ny = b\nfor i in range(3):\n    if a > 2:\n        x += 1\n    else:\n        y += 2\n    if C > 3:\n        x += 2\n    else:\n        y += 3\n    if N > 3:\n        y += 4\n    x += 1",
    "unrolled branches": "x = a\nfor k in tl.static_range(2):\n    for i in range(2):\n        if k == 0:\n            x += 1\n        else:\n            x += 2\n    for i in range(0, 6, k + 2):\n        x += k\n    for i in range(k, 5):\n        x += 1\n    for i in range(k + 2):\n        x += 1\n    n = k + 2\n    for i in range(n):\n        x += 1",
    "nested": "x = a\nfor i in range(3):\n    for j in range(2):\n        x = i + b\n        y = j + b\n        z2 = x + y\n    for j in range(b, b + i):\n        x = j",
    "hints": "x = a\nfor i in range(0, 8, 4):\n    i = tl.multiple_of(i, 4)\n    x = i + 1\n    for j in range(3):\n        j = tl.multiple_of(i, 4)\n        x = j\n    for j in range(3):\n        j = multiple_of(j, 1)\n        x = j\n    for j in range(3):\n        k = tl.multiple_of(j, 1)\n        x = k\n        k = k + 1\n        x = k",
    "other values of indices": "x = a\nfor i in range(3):\n    k = tl.maximum(i, 1)\n    x = k + b\n    m = tl.abs(i)\n    x = m + b",
    "indices again": "x = a\nfor i in range(3):\n    x = i\n    i = i + 1\n    x = i\nfor i in range(4):\n    if a > i:\n        i = tl.multiple_of(i, 1)\n    x = i\nfor i in range(4):\n    if a > i:\n        i = multiple_of(i, 1)\n    x = i",
    "wide": "x = w\nfor i in range(w, w + 3):\n    x = i\nfor i in range(a, w):\n    x = i\nfor i in range(a, w):\n    x = w\nfor i in range(tl.cdiv(w, C)):\n    x = i\nfor i in range(h, h + 2):\n    x = i.to(tl.int64)",
    "carried": "x = a\ny = b\nfor i in range(4):\n    t = x\n    x = y\n    y = t\n    r = t + C\n    v = a + C",
}


def made(folder: Path, body: str) -> str:
    with narrow():
        facts, rows = traced(body, folder), launches(0)
        rows.machine.rounds = Rounds()
        run(facts, rows)
        return unsound_rounds(facts, rows.machine.rounds, rows.machine.dead)


@pytest.mark.parametrize("case", LOOPS)
def test_what_is_said_of_loops_holds(case: str, tmp_path: Path):
    assert made(tmp_path, LOOPS[case]) == ""


def test_numbers_of_rounds_are_known(tmp_path: Path):
    """Else the tests above say nothing."""
    found = []
    for case in ("constants", "apart", "given", "by name"):
        facts = traced(LOOPS[case], tmp_path, name=case.replace(" ", "_"))
        found += [known_trips(facts, loop) for loop in ast.walk(facts.tree) if isinstance(loop, ast.For)]
    assert found.count(None) <= 8 and {0, 1, 2, 3, 4} <= set(found), found
