"""Helpers in place of their calls, however their text and that of their arguments is laid out."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import slow_but
from translation_of import dedent, launch, tensor, validated

HEAD = """
import triton
import triton.language as tl


@triton.jit
def step({parameters}):
{body}


@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tile = o[:, None] * B + o[None, :]
    a = x_ptr + tile
    b = y_ptr + tile
"""
LOOP = """    acc = tl.zeros((B, B), dtype=tl.float32)
    for i in range(n):
        acc = step(a, b, acc, {argument}, B{more})
    tl.store(z_ptr + tile, acc)
"""
LOADS = "    u = tl.load(a + j)\n    v = tl.load(b + j)\n"
PRODUCT = "    acc = tl.dot(u, v, acc)\n"
END = "    return acc\n"
# What the helper does, and what is given for its `j`; everything between is by lines of their own.
STEPS = {
    "a comment at the beginning of a line": (
        "#   u = u * 2\n".join(LOADS.splitlines(True)) + PRODUCT + END,
        "i * B * B",
    ),
    "words at the beginning of a line": ("# of y\n".join(LOADS.splitlines(True)) + PRODUCT + END, "i * B * B"),
    "brackets that end left of the block": (LOADS + PRODUCT + "    acc += (1.0\n-2.0 + 7.0\n)\n" + END, "i * B * B"),
    "an argument over lines": (f"    j = j + 0\n{LOADS}{PRODUCT}{END}", "i * B * B\n        + B"),
    "an argument that is computed over lines": (LOADS + PRODUCT + END, "tl.minimum(i, 3) * B * B\n        + B"),
    "a text over lines": (f'    tl.static_assert(B == 32, """a size\n  of 32""")\n{LOADS}{PRODUCT}{END}', "i * B * B"),
}


def judged(text: str, folder: Path) -> str:
    """The kernel that a translation has, after it has given the same results as its source."""
    signature = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "n": "i32"}
    values = {"x_ptr": tensor(32 * 6, 32), "y_ptr": tensor(32 * 6, 32), "z_ptr": tensor(32, 32), "n": 4}
    made = validated(folder, dedent(text), launch("kernel", signature, {"B": 32}, values=values), "gfx950")
    return made.partition("def kernel(")[2]


@pytest.mark.compile
@pytest.mark.parametrize("what", slow_but(STEPS, 3))
def test_text_of_a_helper(what: str, tmp_path: Path):
    body, argument = STEPS[what]
    head = HEAD.format(parameters="a, b, acc, j, B: tl.constexpr", body=body)
    kernel = judged(head + LOOP.format(argument=argument, more=""), tmp_path)
    assert ("acc = step(" in kernel) == (what == "a text over lines")


@pytest.mark.compile
@pytest.mark.parametrize("flag", [True, False])
def test_returns_over_lines(flag: bool, tmp_path: Path):
    body = f"{LOADS}    w = tl.dot(u, v)\n    if F:\n        acc += 1\n        return (\n            acc * 0.5\n            + w\n        )\n"
    body += "    else:\n        acc += 3\n        return acc + w\n"
    head = HEAD.format(parameters="a, b, acc, j, B: tl.constexpr, F: tl.constexpr", body=body)
    kernel = judged(head + LOOP.format(argument="i * B * B", more=f", {flag}"), tmp_path)
    assert "acc = step(" not in kernel


WHOLE = f"""    acc = tl.zeros((B, B), dtype=tl.float32)
    for j in range(0, n * B * B, B * B):
        u = tl.load(a)
        v = tl.load(b)
    {PRODUCT}        a += B * B
        b += B * B
{END}"""


@pytest.mark.compile
@pytest.mark.parametrize("given", slow_but(["b, a", "a + B * B, a", "b, b + B * B", "a, a"], 2))
def test_pointers_that_the_caller_names_otherwise(given: str, tmp_path: Path):
    """What moves in the helper has the name of something else in its caller, which another argument needs."""
    head = HEAD.format(parameters="a, b, n, B: tl.constexpr", body=WHOLE)
    kernel = judged(f"{head}    acc = step({given}, n, B)\n    tl.store(z_ptr + tile, acc)\n", tmp_path)
    assert "acc = step(" not in kernel
