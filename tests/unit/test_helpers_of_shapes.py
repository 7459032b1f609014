"""Helpers that a `static_range` calls with tensors that it reshapes otherwise each time: sorting networks, butterflies.

One call then stands for several shapes, which no one text serves: the loop is written out, loops in it too.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import in_turn
from translation_of import compiled, dedent, launch, tensor, validated

HELPERS = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def mirrored(x, n: tl.constexpr, width: tl.constexpr):
        return tl.reshape(tl.flip(tl.reshape(x, [n // width, width]), 1), [n])


    @triton.jit
    def merged(x, n: tl.constexpr, width: tl.constexpr):
        y = tl.reshape(x, [n // width, width])
        z = tl.flip(y, 1)
        low = (tl.arange(0, width) < width // 2)[None, :]
        return tl.reshape(tl.where(low, tl.minimum(y, z), tl.maximum(y, z)), [n])


    @triton.jit
    def exchanged(x, n: tl.constexpr, width: tl.constexpr):
        y = tl.reshape(x, [n // width, 2, width // 2])
        z = tl.flip(y, 1)
        low = (tl.arange(0, 2) == 0)[None, :, None]
        return tl.reshape(tl.where(low, tl.minimum(y, z), tl.maximum(y, z)), [n])


    @triton.jit
    def cleaned(x, n: tl.constexpr, log: tl.constexpr):
        for t in tl.static_range(log, 0, -1):
            x = exchanged(x, n, 2**t)
        return x


    @triton.jit
    def butterfly(re, im, n: tl.constexpr, half: tl.constexpr):
        r = tl.reshape(re, [n // (2 * half), 2, half])
        i = tl.reshape(im, [n // (2 * half), 2, half])
        angle = tl.arange(0, half)[None, None, :].to(tl.float32) * (-3.141592653589793 / half)
        c, s = tl.cos(angle), tl.sin(angle)
        even = (tl.arange(0, 2) == 0)[None, :, None]
        rf, f = tl.flip(r, 1), tl.flip(i, 1)
        er, ei = tl.where(even, r, rf), tl.where(even, i, f)
        odd_r, odd_i = tl.where(even, rf, r), tl.where(even, f, i)
        wr, wi = odd_r * c - odd_i * s, odd_r * s + odd_i * c
        return tl.reshape(tl.where(even, er + wr, er - wr), [n]), tl.reshape(tl.where(even, ei + wi, ei - wi), [n])


    @triton.jit
    def folded(x, n: tl.constexpr, k: tl.constexpr):
        for t in tl.static_range(2):
            x = tl.sum(tl.reshape(x, [n >> (t + 1), 2]), 1)
        return tl.sum(x, 0) * k


    @triton.jit
    def kernel(x_ptr, y_ptr, N: tl.constexpr, LOG: tl.constexpr):
        i = tl.arange(0, N)
        x = tl.load(x_ptr + i)
        y = x
    BODY
        tl.store(y_ptr + i, x)
        tl.store(y_ptr + N + i, y)
""")
N, LOG = 64, 6
BODIES = {
    "flip": "for s in tl.static_range(1, LOG + 1):\n    x = mirrored(x, N, 2**s)",
    "sort": (
        "for s in tl.static_range(1, LOG + 1):\n    x = merged(x, N, 2**s)\n"
        "    for t in tl.static_range(s - 1, 0, -1):\n        x = exchanged(x, N, 2**t)"
    ),
    "loop in a helper": "for s in tl.static_range(1, LOG + 1):\n    x = cleaned(merged(x, N, 2**s), N, s - 1)",
    "butterflies": "for s in tl.static_range(LOG):\n    x, y = butterfly(x, y, N, 2**s)",
    "a step": "for s in tl.static_range(1, LOG + 1, step=2):\n    x = merged(x, N, 2**s)",
    "branches": (
        "for s in tl.static_range(1, LOG):\n    if s % 2 == 0:\n        x = exchanged(x, N, 2**s)\n"
        "    else:\n        x = mirrored(x, N, 2 ** (s + 1))"
    ),
    "in a loop": "for r in range(3):\n    for s in tl.static_range(1, LOG + 1):\n        x = merged(x, N, 2**s) + r",
    "shapes change inside": "for s in tl.static_range(3):\n    y += folded(x, N, s)",
    "sorted both ways": "for s in tl.static_range(2):\n    y += tl.sort(x, descending=s == 0)",
}


def source(body: str) -> str:
    return HELPERS.replace("BODY\n", "".join(f"    {line}\n" for line in BODIES[body].splitlines()))


def spec(element: str, warps: int):
    signature = {"x_ptr": f"*{element}", "y_ptr": f"*{element}"}
    values = {"x_ptr": tensor(N), "y_ptr": tensor(2 * N)}
    return launch("kernel", signature, {"N": N, "LOG": LOG}, warps=warps, values=values)


MACHINES = [("gfx942", "fp32", 4), ("gfx1201", "i32", 1)]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("body, machine", in_turn(BODIES, MACHINES))
def test_networks(tmp_path: Path, body: str, machine: tuple[str, str, int]):
    target, element, warps = machine
    if body == "butterflies":
        element = "fp32"
    text = validated(tmp_path, source(body), spec(element, warps), target)
    compiled(tmp_path, text, spec(element, warps), target)


def test_loops_in_a_loop_are_written_out_where_their_own_text_changes(tmp_path: Path):
    text = validated(tmp_path, source("sort"), spec("fp32", 4))
    kernel = text[text.index("def kernel") :]
    assert kernel.count("written out: shapes change") > 1 and "for s in gl." not in kernel


def test_helpers_of_one_text_leave_the_loop_as_it_is(tmp_path: Path):
    """`exact` has nothing that depends on the shape: it is one function, and its loop a loop."""
    exact = "\n\n@triton.jit\ndef exact(x, n: tl.constexpr, width: tl.constexpr):\n"
    exact += "    return tl.reshape(tl.reshape(x, [n // width, width]) + 1, [n])\n\n\n@triton.jit\ndef kernel"
    text = HELPERS.replace("\n\n@triton.jit\ndef kernel", exact)
    body = "    for s in tl.static_range(3, 5):\n        x = exact(x, N, 2**s)\n"
    found = validated(tmp_path, text.replace("BODY\n", body), spec("fp32", 1))
    assert found.count("def exact") == 1 and "for s in gl.static_range(3, 5):" in found, found


PAIRS = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, y_ptr, N: tl.constexpr, LOG: tl.constexpr):
        a, b = tl.split(tl.load(x_ptr + tl.arange(0, 2)))
        i = tl.arange(0, N)
        tl.store(y_ptr + i, i.to(y_ptr.dtype.element_ty) * a + b)
        tl.store(y_ptr + N + tl.arange(0, 2), tl.join(b, a))
        four = tl.join(tl.interleave(a, a + 1), tl.join(b, b))
        tl.store(y_ptr + N + 2 + tl.arange(0, 2)[:, None] * 2 + tl.arange(0, 2)[None, :], four)
""")


@pytest.mark.parametrize("machine", MACHINES)
def test_two_numbers_are_split_and_joined(tmp_path: Path, machine: tuple[str, str, int]):
    target, element, warps = machine
    text = validated(tmp_path, PAIRS, spec(element, warps), target)
    compiled(tmp_path, text, spec(element, warps), target)
