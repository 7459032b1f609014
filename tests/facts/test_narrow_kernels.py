"""What is said of the integers of a kernel, against what they are: types of few bits, every pair of arguments, whole kernels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from narrow_claims import unsound
from narrow_draw import body
from narrow_kernels import CONSTEXPRS, launches, narrow, run, traced
from narrow_numbers import Unknown

from triton.compiler.errors import CompilationError

from gluonize.facts.integers.given_launches import GivenNumbers

CASES = {
    "sums": "x = a + b\ny = x - 3\nz2 = (a + 1) * o + b",
    "products": "x = a * b\ny = a * o\nq = x + y\nr = (a * b) // 4 + (tl.load(p + o) & 3)",
    "programs": "p0 = tl.program_id(0)\np1 = tl.program_id(axis=1)\nn0 = tl.num_programs(0)\nx = p0 * a + p1\ny = p0 * C + o\nz2 = n0 - p0\nr = tl.num_programs(2) * b",
    "widths": "x = a.to(tl.int64) * b\ny = (a * b).to(tl.int64)\nr = w.to(tl.int32)\ns = (w + a).to(tl.int16)\nt = tl.cast(a, tl.int8)\nv = (a + b).to(tl.int8).to(tl.int32)\nf = (a.to(tl.float32) - 3).to(tl.int32)\ng = (o.to(tl.float32) * 2 - 3).to(tl.int32)\nk = (w // 2).to(tl.int32)\nj = (w // 3 + a).to(tl.int32)",
    "signs": "x = u.to(tl.int32)\ny = a.to(tl.uint32)\nr = (a.to(tl.uint32) - b.to(tl.uint32)).to(tl.int32)\ns = e.to(tl.int8)\nt = (e + 1).to(tl.int32)\nv = u + 5\nq = z - 1\nm = z.to(tl.int64)\nk = (e.to(tl.int8, bitcast=True)).to(tl.int32)",
    "quotients": "x = a // 3\ny = a // b\nr = (a * b) // 4\ns = a % 5\nt = (a + b) % C\nv = tl.cdiv(a, 3)\nq = tl.cdiv(a, b)\nm = tl.cdiv(w, a)\nn2 = a // MINUS\nn3 = a // MINUS + b\nk = a // 4 * 4\nj = (a - b) // 2\ng = (a - b) % 3",
    "bits": "x = a & 7\ny = a & b\nr = a | b\ns = a ^ b\nt = ~a\nv = a >> 2\nq = a << 2\nm = (a << 2) >> 2\nf = a << (b & 3)\ng = 1 << (c & 3)\nn2 = a.to(tl.int1)\nn3 = n2.to(tl.int32) - 1\nn4 = (a > b).to(tl.int8)\nk = u >> 1\nj = -a\np1 = tl.minimum(a, -1) & 7",
    "choices": "x = tl.minimum(a, b)\ny = tl.maximum(a - b, 0)\nr = tl.where(a > b, a, b - a)\ns = tl.where(o < a, o, a)\nt = min(a, 5)\nv = max(a, b)\nq = a if a > 3 else b\nm = tl.abs(a)\nk = tl.maximum(a * b, o)",
    "reductions": "x = tl.sum(o + a, 0)\ny = tl.cumsum(o * a, 0)\nr = tl.max(o - a, 0)\ns = tl.sum((o < a).to(tl.int32), 0)\nt = tl.flip(o) - b\nv = tl.min(o * b, 0)\nj = tl.cumsum((o < a).to(tl.int32), 0)\nk = tl.argmax(o * a, 0)\nm = tl.argmin(o - b, 0) + a\nf = tl.cumsum(o % 3 - 4, 0)",
    "memory": "x = tl.load(p + o)\ny = x + a\nr = x & 3\ns = tl.load(p + o) % 4\nt = tl.maximum(x, 0) + a",
    "shapes": "x = o[:, None] * a + o[None, :]\ny = x.T\nr = tl.full((C,), 3, tl.int32) + a\ns = tl.zeros((C,), tl.int64) + w\nt = tl.arange(2, 2 + C) * b",
    "helpers": "x = apart(a, b)\ny, r = both(a, o)\ns = behind(a)\nt = behind(a, by=b)\nv = chosen(a, b)\nj = early(a, b)\nf = behind((a * b) // 4, by=0)\ne2 = apart((a + b) % 5, a)\ng = branching(a, C) + branching(b, N)\nq = apart(y=a, x=b)\nm = inner(a, b)\nk = behind(x=b, by=2)\nu2, v2 = both(a & 3, 5)\nn2 = v2 + 1",
    "names of builtins": "x = arange(o, a)\ny = minimum(a, b)\nr = arange(y=a, x=b)",
    "loops": "x = 0\nfor i in range(a):\n    x = i\ny = x + b\nr = b\nfor j in range(0, a, 2):\n    r = j * b",
    "loops down": "x = 0\nfor i in range(a, 0, -1):\n    x = i\nfor i in tl.range(3, b, step=-1):\n    x = i + a\nfor i in tl.range(b, a):\n    x = i - b\nfor i in range(a, b, MINUS):\n    x = i",
    "moves": "x = a\nfor i in range(3):\n    x += b\ny = x\nfor i in range(b):\n    y -= 1\nr = 0\nwhile r < a:\n    r += 3\ns = o\nfor i in tl.static_range(3, -1, -1):\n    s = s + i * a",
    "products in loops": "x = o\nfor i in range(0, 6, 2):\n    x = o + i * a\n    y = (i + 1) * b\nr = x + 1",
    "branches": "x = a\nif a >= 0:\n    x = a + 1\n    y = a * 2\nelse:\n    x = 0\nr = x + b\nif b > a:\n    s = b - a\n    x = b - a",
    "below the least": "x = tl.maximum(a - b - 9, 0)\ny = tl.cdiv(a - b - 9, 2)\nr = (a - b - 9) // 2\ns = tl.minimum(a - b - 9, 3)\nt = (a - b - 9) >> 1\nv = tl.maximum(a - b - 9, b - a - 9)",
    "axes of unrolled loops": "for k in tl.static_range(2):\n    x = tl.num_programs(k) * a\n    y = tl.program_id(k) * b\n    r = a // tl.num_programs(k) * b",
    "guards": "x = 0\nif (a >= b) & (b >= 0):\n    x = a - b\nif 0 <= a < b:\n    x = a + x\n    y = b - a\nm = b % 5\nif a >= m:\n    x = a - m\nif a > 2:\n    a -= 4\n    x = a\nr = x",
    "guards that move": "x = a\ny = b\nif x >= y:\n    x += 2\n    r = x - y\nif x >= y:\n    y += 2\n    s = x - y\nif x >= 0:\n    x -= 3\n    t = x + 0\nif a < 3:\n    j = a + 0\nif b >= a:\n    k = a - b",
    "guards of what is assigned": "x = a\ny = b\nif x >= y:\n    y += 2\n    s = x - y\np1 = a\nq1 = b\nif p1 >= q1:\n    if w > 3:\n        p1 = b & 3\n    t = p1 - q1\np2 = a\nq2 = b\nif p2 >= q2:\n    p2 -= b & 3\n    v = p2 - q2\nk = a\nfor i in range(2):\n    if k >= 0:\n        if b > 3:\n            k = k - 9\n        r = k + 0",
    "guards of others": "x = a\nif x >= 0:\n    y = b + 0\n    x = b\n    r = x + 0\nif a >= 0 or b >= 0:\n    s = a + 0\nif (a >= 0) | (b > 3):\n    t = a + 0\nif 0 != b:\n    d = b + 0\nif a != b:\n    g = b - a\nif 3 == b:\n    f = b - a\nif a >= -2:\n    m = a + 0\nif -3 < b:\n    k = b + 0\nif not (a >= 0):\n    v = a + 0\nif b != 3:\n    p1 = b + 0\nif 3 <= a > b:\n    p2 = b + 0",
    "guards of unsigned": "x = u\nif u >= 1:\n    x = u - 2\nif c >= 0:\n    y = c - 1\nif w >= a:\n    r = w - a\nif h > c:\n    s = h - c",
    "guards of what overflows": "y = (a - 9) * b\nif y >= 0:\n    x = y + o\n    r = y * 2\nif b > 2:\n    s = (a - 9) * b\n    if s >= 0:\n        t = s + 1\nv = (a - 3) * (b - 7)\nif v >= 0:\n    m = v + a\nk = a * b\nif k >= 0:\n    j = k + o",
    "steps of any sign": "x = 0\ns = h.to(tl.int32)\nfor i in range(a, b, s):\n    x = i\nfor i in range(2, b, s):\n    x = i + 1",
    "constants": "K: tl.constexpr = C * 2\nm = K * a\nj = (a + MINUS) // C\nx = C * a\ny = C - 5\nr = N * C + a\nk = 3\ns = k * a\nC2 = C * 2\nt = C2 + a\nv = MINUS * a\nq = a // C",
    "parameters again": "a = a - 1\nx = a * 2\nb += 3\ny = b * 2",
    "tuples": "x, y = a, b - 1\nr = x + y\nx, y = y, x\ns = x - 1\npair = a, b - 2\nt, v = pair\nm = 3\nif a > 2:\n    m, j = pair\nk = m + 1",
    "hints": "x = tl.multiple_of(a, 1)\ny = x + 1\nr = tl.max_contiguous(o, 1) * b",
    "unrolled": "x = a\nfor i in tl.static_range(3):\n    x = x + i\n    y = x - i\nfor i in tl.static_range(2, 0, -1):\n    x = i * b - i",
    "unrolled up": "x = o\nfor i in tl.static_range(4):\n    x = o * i + a\n    y = i * b + o\n    r = b // (i + 1) + i",
    "divisors": "y = a // (c + 3)\nr = a // (tl.cdiv(b, C) + 9)\ns = a // ((b + 14) % 8 + 9)\nt = a // (b * b + 1)\nv = tl.cdiv(a, c + 3)\nq = a // (h + 5)\nm = u // (e + 6)\nk = a // (tl.maximum(c, 0) + 2)\nx = a // ((a * b) // 4 + 5)",
    "nested": "x = 0\nfor i in range(a):\n    for j in range(i, b):\n        x = j - i\n        y = i * 2 + j\nr = x",
    "carried": "x = a\ny = b\nfor i in range(2):\n    t = x\n    x = y\n    y = t - 1\nr = x",
    "early": "x = tl.minimum(a, 4)\nfor i in range(x):\n    y = i * b\nfor i in range(tl.minimum(a * b, 3)):\n    r = i + a\nfor i in range(tl.cdiv(a, C)):\n    s = i * C + o",
    "quotients of programs": "g = tl.program_id(0)\nx = g // tl.cdiv(a, C)\ny = g % tl.cdiv(a, C)\nr = y * C + o\ns = x * a + y\nt = tl.minimum(g * 2, a)\nv = (g - 5) // 2\nm = tl.cdiv(g - 6, 3) + o\nk = (g - 3) * 2 // 3",
}


GIVEN = {
    "negative": (GivenNumbers({"a": 3, "b": 2}), GivenNumbers({"b": -2, "a": 1})),
    "large": (GivenNumbers({"a": 15, "b": 15, **CONSTEXPRS}, (7, 15, 15)),),
    "unsaid": (GivenNumbers({"a": 1, **CONSTEXPRS}, (7, 1, 1), {"b": 9}),),
}


def made(
    folder: Path, body: str, seed: int = 0, said: Counter | None = None, given: tuple = (), every: bool = True
) -> str:
    """What is wrong of a kernel."""
    with narrow():
        facts, rows = traced(body, folder, given), launches(seed)
        run(facts, rows)
        return unsound(facts, rows, said, every)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("case", CASES)
def test_what_is_said_holds(case: str, tmp_path: Path):
    assert made(tmp_path, CASES[case]) == ""


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("case", ["products", "programs"])
def test_what_launches_break_is_not_assumed(case: str, given: str, tmp_path: Path):
    assert made(tmp_path, CASES[case], given=GIVEN[given], every=False) == ""


def test_something_is_said(tmp_path: Path):
    """Else the tests above say nothing."""
    said: Counter = Counter()
    for case in ("products", "quotients of programs", "widths"):
        made(tmp_path, CASES[case], said=said, every=False)
    assert said["sign"] > 20 and said["checked sign"] > 5 and said["conditions"] > 10 and said["value"] > 1, said


@pytest.mark.slow
def test_random_kernels(tmp_path: Path):
    ran = 0
    for seed in range(60):
        try:
            assert made(tmp_path, body(seed), seed, every=False) == "", f"seed {seed}:\n{body(seed)}"
            ran += 1
        except CompilationError:  # mixed signs, or a variable that changes its type
            continue
        except Unknown:  # a helper that unrolling gives another text in each iteration
            continue
    assert ran > 30
