"""Launches in which an argument is 1, for Triton a constant: what is the same for all lanes is a tensor where Gluon wants one.

Each output is compiled as Triton does for its last launch, and compared with the source.
"""

from __future__ import annotations

import pytest
from kernelgen.draw import Launch, RandomKernel, kernel_text, launch_spec, tensor
from random_run import Judges
from slow_rows import in_turn, slow_but_crossed

HELPER = "@triton.jit\ndef twice(x):\n    return x * 2\n\n\n"
# On the scalars `n` and `m`, the constexpr YES, and lanes `o`.
MASKS = (
    "n > 0",
    "n > 0 and m > 2",
    "(n > 0) & (m > 2)",
    "(n > 0) ^ (m > 0)",
    "(n > 0) | YES",
    "tl.cdiv(n, 4) > 1",
    "min(n, 4) < 3",
    "twice(n) > 2",
    "n == 1 if YES else n != 1",
    "(n > 0) & (o < m)",
    "pid < n",
)
VALUES = ("n", "-n", "n > 2", "n * 2.5", "n / m", "max(n, m)", "n & m", "twice(n)", "n if m > 2 else m", "pid + n")
HEADS = (
    "for k in range(K):",
    "for k in range(tl.cdiv(K, B)):",
    "for k in range(0, min(K, n)):",
    "for k in range(twice(K)):",
    "for k in range(n, K if YES else n):",
    "for k in tl.range(K - 1, -1, -1):",
    "for k in tl.static_range(3):",
)
ENDS = ("", ", mask=k < n, other=0.0", ", mask=n > 0, other=1.0", ", mask=(r < K - k * B)[None, :], other=0.0")
LAUNCHES = ({"n": 5, "m": 9, "K": 3}, {"n": 0, "m": 1, "K": 2}, {"n": 1, "m": 1, "K": 1})


@pytest.fixture(scope="module")
def judges():
    with Judges(interpreter=False) as started:
        yield started


def kernel(body: list, pointers: dict[str, str], size: int) -> RandomKernel:
    signature = pointers | dict.fromkeys(("n", "m", "K"), "i32") | dict.fromkeys(("B", "YES"), "constexpr")
    values = {name: tensor(kind, 8192, low=-50, high=50) for name, kind in pointers.items()} | LAUNCHES[0]
    spec = launch_spec(signature, {"B": size, "YES": True}, values, (2,), set(), 4, 2)
    launches = tuple(Launch(values, (2,)) for values in LAUNCHES)
    return RandomKernel(kernel_text(signature, body, HELPER), spec, launches, specialized=True)


def vectors(statements: list[str]) -> RandomKernel:
    body = ["pid = tl.program_id(0)", "o = tl.arange(0, B)", *statements]
    return kernel(body, dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), "*i32"), 64)


def check(judges: Judges, made: RandomKernel, target: str) -> None:
    found = judges.judge(made, target)
    assert found["status"] == "right" and found["ran"] == len(LAUNCHES), f"{found['reason']}\n{found['output']}"


@pytest.mark.one_of(3)
@pytest.mark.parametrize("mask, target", in_turn(MASKS, ["gfx942", "gfx1250"]))
def test_masks(judges: Judges, mask: str, target: str):
    counted = f"tl.histogram(o, 64, mask=(o < 50) & ({mask}))"
    statements = [
        f"a = tl.load(x_ptr + o, mask={mask}, other=7)",
        f"tl.store(y_ptr + pid * B + o, a, mask={mask})",
        f"tl.atomic_max(z_ptr + o, o, mask={mask})",
        f"tl.store(y_ptr + 1024 + pid * B + o, {counted})",
    ]
    check(judges, vectors(statements), target)


@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
def test_values(judges: Judges, target: str):
    statements = []
    for i, value in enumerate(VALUES):
        statements.append(f"tl.store(y_ptr + {i} * 256 + pid * B + o, {value})")
    statements += ["tl.atomic_add(z_ptr + o, n)", "tl.atomic_max(z_ptr + 64 + o, m - n)"]
    statements += ["tl.store(y_ptr + 7000 + o, tl.load(x_ptr + o, mask=o < 5, other=n), mask=pid == 0)"]
    check(judges, vectors(statements), target)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("head, target", slow_but_crossed(HEADS, ["gfx942", "gfx950", "gfx1250"], 3))
def test_pipelined_loops(judges: Judges, head: str, target: str):
    end = ENDS[HEADS.index(head) % len(ENDS)]
    tile = "(r[:, None] * B + r[None, :])"
    loads = [f"a = tl.load(a_ptr + k * 8 + {tile}{end})", f"b = tl.load(b_ptr + k * 8 + {tile})"]
    body = ["r = tl.arange(0, B)", "acc = tl.zeros((B, B), tl.float32)", (head, [*loads, "acc = tl.dot(a, b, acc)"])]
    body.append(f"tl.store(c_ptr + {tile}, acc * n * m, mask=tl.program_id(0) == 0)")
    check(judges, kernel(body, {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}, 32), target)
