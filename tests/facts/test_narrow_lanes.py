"""What is said to be the same in all lanes, in all rounds of a loop, a tensor in every launch or a multiple, against real arithmetic."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from narrow_kernels import Launches, launches, narrow, run, traced
from narrow_numbers import wrapped
from narrow_rounds import Rounds

from gluonize.facts.function import FunctionFacts
from gluonize.loops.plan.tiles.copy_width import multiple_by
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.write.accesses.addresses import Term
from gluonize.write.accesses.run_time import is_run_time
from gluonize.write.accesses.uniform_parts import taken_apart

# Addresses of loops, whether they have a part that all lanes share, and one that stays.
APART = {
    "rows": ("for i in range(0, 8, 4):\n    rows = i + o\n    x = rows * a", True),
    "products": ("for i in range(4):\n    x = (i + o) * a * b\n    y = (o + i * b) * a", True),
    "twice": ("for i in range(4):\n    rows = (i + o) + i * b\n    x = rows[:, None] * a", True),
    "wide": ("for i in range(4):\n    x = (o + i.to(tl.int64)) * w", True),
    "a factor that moves": ("s = a\nfor i in range(4):\n    s += 1\n    x = (i + o) * s", False),
    "what moves after it": ("s = a\nfor i in range(4):\n    rows = s + o\n    s = s + b\n    x = rows * a", False),
    "what moves before it": ("s = a\nfor i in range(4):\n    s = s + b\n    rows = s + o\n    x = rows * a", False),
    "lanes that move": ("t = o\nfor i in range(4):\n    t = t + b\n    x = (i + t) * a", False),
    "differences": ("for i in range(4):\n    x = (o - i) * a\n    y = (i - o) * a", False),
    "sums of tensors": ("for i in range(4):\n    x = (o + i * o) * a", False),
    "new axes": (
        "for i in range(4):\n    rows = o + i\n    x = rows[None, :] * a\n    y = (rows * b)[:, None] * a",
        True,
    ),
    "what stays": ("for i in range(4):\n    x = (o + a) * b", False),
    "of floats": ("for i in range(4):\n    x = (o + i) * 2.0", False),
    "two variables": (
        "s = a\nfor i in range(4):\n    rows = s + o\n    if b > i:\n        s += 1\n    x = rows * a",
        False,
    ),
}


def unsound_parts(facts: FunctionFacts, given: Launches, found: list) -> str:
    """The first address whose parts are not what it is, or move; found: gets the addresses that have parts."""
    wrong: list[str] = []
    rounds = given.machine.rounds = Rounds()
    loops = [n for n in ast.walk(facts.tree) if isinstance(n, ast.For)]
    for s, loop in [(s, loop) for loop in loops for s in ast.walk(loop) if isinstance(s, ast.Assign)]:
        node = s.value
        if ast.unparse(s.targets[0]) in ("x", "y"):
            if (parts := taken_apart(facts, Term(node, "+"), loop)) is not None:
                found.append((node, loop, parts))
                given.machine.checks[node] = _check(facts, node, parts, wrong)
    run(facts, given)
    for node, loop, (scalars, tensor) in found:
        for part in (tensor.node, *tensor.factors):
            if (loop, part) in rounds.changed:
                wrong.append(f"{ast.unparse(node)}: {ast.unparse(part)} moves")
        wrong += [f"{ast.unparse(s.node)} is no scalar" for s in scalars if facts.tensor(s.node) is not None]
    return wrong[0] if wrong else ""


def _check(facts: FunctionFacts, node: ast.expr, parts: tuple, wrong: list[str]):
    scalars, tensor = parts

    def check(call, number, active) -> None:
        total = 0
        for term in (tensor, *scalars):
            made = call.number(call.evaluated(term.node, active), number.dtype)
            value = made.value
            for axis in term.axes:
                value = np.expand_dims(value, axis + 1)
            for factor in term.factors:
                by = call.number(call.evaluated(factor, active), number.dtype).value
                value = value * by.reshape(-1, *[1] * (value.ndim - 1))
            total = total + value.reshape(value.shape[0], *[1] * (number.value.ndim - value.ndim), *value.shape[1:])
        if (wrapped(total, number.dtype) != number.value)[active].any():
            wrong.append(f"{ast.unparse(node)} is not the sum of its parts")

    return check


@pytest.mark.parametrize("case", APART)
def test_the_parts_of_an_address_make_it_up(case: str, tmp_path: Path):
    body, some = APART[case]
    found: list = []
    with narrow():
        assert unsound_parts(traced(body, tmp_path), launches(0), found) == ""
    assert bool(found) == some


# Tensors in every launch -------------------------------------------------------------------------------------------------

FIXED = """
x = a
y = a + 1
r = tl.cdiv(a, 2) + tl.program_id(0)
s = min(a, b)
t = tl.maximum(a, b)
k = a if a > 0 else b
v = -a
m = a > b
q = behind(a)
for i in range(3):
    x = x + a
    j = i * a
for i in tl.static_range(3):
    j2 = i * a
    y2 = i + 1
c2 = C * a
z2 = tl.zeros((), tl.int32) + a
n2 = (a * b) // 3
w2 = min(C, a)
t3 = tl.maximum(a, 2)
k3 = t3 if a > 1 else b
k4 = tl.cdiv(b, a)
"""


def unsound_fixed(folder: Path, said: list | None = None) -> str:
    """The first expression that is said to be a tensor in every launch, and is a constant in one: Triton makes a constant of an argument
    that is 1, and we may make one of the index of a loop of few rounds. said: gets those that are said to be tensors.
    """
    facts = traced(FIXED, folder, name="general")
    loop = next(n for n in ast.walk(facts.tree) if isinstance(n, ast.For) and not facts.unrolled(n))
    unrolled = FIXED.replace("in range(3)", "in tl.static_range(3)")
    said = [] if said is None else said
    for name, text, written in (("fixed", FIXED, None), ("unrolled", unrolled, loop)):
        other = traced(text, folder, name=name, fixed={"a": 1, "b": 1})
        for mine, its in zip(_expressions(facts), _expressions(other), strict=True):
            if is_run_time(facts, mine, written):
                said.append(mine)
                if not isinstance(facts.fact(mine), TensorFact) or isinstance(other.fact(its), ConstFact):
                    return f"{ast.unparse(mine)} in line {mine.lineno}"
    return ""


def test_what_is_a_tensor_in_every_launch_is_no_constant_in_any(tmp_path: Path):
    said: list = []
    assert unsound_fixed(tmp_path, said) == "" and len(said) > 16


def _expressions(facts: FunctionFacts) -> list[ast.expr]:
    """Those that the trace saw, but for what is called."""
    called = {n for c in ast.walk(facts.tree) if isinstance(c, ast.Call) for n in ast.walk(c.func)}
    nodes = (
        n
        for n in ast.walk(facts.tree)
        if isinstance(n, ast.Name | ast.BinOp | ast.UnaryOp | ast.Compare | ast.IfExp | ast.Call)
    )
    return [
        n
        for n in nodes
        if n not in called and not isinstance(getattr(n, "ctx", None), ast.Store) and "range" not in ast.unparse(n)
    ]


# Multiples ---------------------------------------------------------------------------------------------------------------

MULTIPLES = {
    "sums": "x = w + 4\ny = w - 8 + a\nr = w + 2\ns = w * b\nt = b * 4 + w\nv = b * w + 6\nq = 12 - w",
    "products": "x = b * 2 * 2\ny = (b * 2) * (a + 2)\nr = b * 3\ns = (b + 2) * 2\nt = (w + 4) * b + 8",
    "names": "x = w + 8\ny = x * 2\nif b > 0:\n    x = x + 1\nr = x\nw = w + 1\ns = w",
    "loops": "x = 0\nfor i in range(0, b, 4):\n    x = i\nfor i in range(4, b, 8):\n    x = i + 4\ny = w\nfor i in range(w, b, 4):\n    y = i\nfor i in range(2, b, 4):\n    x = i\nfor i in range(0, b):\n    x = i\nfor i in range(b, 8, 4):\n    x = i\nfor i in range(8, b, -4):\n    x = i\nfor i in tl.range(4, b, step=6):\n    x = i\nfor i in range(0, b, 3):\n    x = i\nfor i in range(w, b, 3):\n    y = i",
    "widths": "x = (b * 4).to(tl.int64)\ny = w.to(tl.int8)\nr = (w + 4).to(tl.int32)\ns = (b * 4).to(tl.int16) + 4\nt = tl.cast(w, tl.int32)",
    "others": "x = w // 4\ny = w % 8\nr = w >> 2\ns = tl.cdiv(w, 4)\nt = -w\nv = tl.maximum(w, b)\nq = tl.minimum(w, 4)\nm = apart(w, b)\nk = w | 1\nj = w % 12\nf = w & 12",
    "hints": "x = multiple_of(w, 1)\ny = tl.multiple_of(b * 2, 2) + 2\nr = tl.max_contiguous(o + b, 8)\ns = tl.multiple_of(b * 2, 1)\nt = tl.max_constancy(o + w, 8)",
    "of helpers": "x = scaled(b, w)\ny = scaled(w, b)",
    "floats": "x = (b.to(tl.float32) * 0.5 * 4).to(tl.int32)\ny = (b.to(tl.float32) * 4).to(tl.int32)",
    "unrolled": "for i in tl.static_range(0, 3):\n    x = i\n    y = w + i\n    r = i * 2",
}
DIVISIBLE = frozenset({"a", "w"})


def multiples(tmp_path: Path, case: str) -> tuple[str, int]:
    """(what is said to be a multiple and is none, the number of multiples that were said)"""
    facts, given, said = traced(MULTIPLES[case], tmp_path), launches(0), 0
    whole = np.random.default_rng(0).random(given.machine.rows) < 0.7
    for name in DIVISIBLE:  # the narrow numbers that are multiples of 16, in most launches
        given.numbers[name] = np.where(whole, given.numbers[name] // 16 * 16, given.numbers[name])
    wrong: list[str] = []
    for owner in (facts, *(c for n in facts.nodes if isinstance(n, ast.Call) if (c := facts.callee(n)[0]) is not None)):
        object.__setattr__(owner.kernel, "divisible", DIVISIBLE)
        for node in (n for n in ast.walk(owner.tree) if isinstance(n, ast.BinOp | ast.Call | ast.Name)):
            if isinstance(getattr(node, "ctx", None), ast.Store) or not isinstance(
                owner.fact(node), TensorFact | ConstFact
            ):
                continue
            found = {of: rests for of in (2, 4, 8) if (rests := multiple_by(owner, node, of)) is not None}
            said += len(found) * isinstance(owner.fact(node), TensorFact)
            if found:
                given.machine.checks[node] = _divides(node, found, given, wrong)
    if case != "floats":  # of which the machine has whole ones only
        run(facts, given)
    return wrong[0] if wrong else "", said


def _divides(node: ast.expr, found: dict[int, frozenset[str]], given: Launches, wrong: list[str]):
    """found: the numbers that the node is a multiple of, each with the arguments that are to be multiples of 16 for that."""

    def check(call, number, active) -> None:
        for of, rests in found.items():
            rows = np.all([active, *(given.numbers[name] % 16 == 0 for name in rests)], axis=0)
            if (np.broadcast_to(number.value, (len(rows), *number.value.shape[1:])) % of != 0)[rows].any():
                wrong.append(f"{ast.unparse(node)} is not a multiple of {of} by {sorted(rests)}")

    return check


@pytest.mark.parametrize("case", MULTIPLES)
def test_multiples_are_multiples(case: str, tmp_path: Path):
    with narrow():
        wrong, said = multiples(tmp_path, case)
    assert wrong == ""
    if case == "floats":
        assert said == 0
