"""Proofs that a mask ends with its loop, or only shrinks, against real arithmetic: types of few bits, every value, every tile."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from slow_rows import slow_but_crossed
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gluonize.decide.readback.traced_launch import trace_launch
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers import known, ranges
from gluonize.facts.integers.ranges import IntType
from gluonize.facts.loops.loop_range import loop_bounds
from gluonize.facts.numbers import launch_values, overflow, signs, values
from gluonize.facts.obligations import Obligation
from gluonize.facts.reading import read_function
from gluonize.loops.kernel import kernel_facts
from gluonize.loops.plan.tiles import tail
from gluonize.loops.plan.tiles.tail import TailProof
from gluonize.read.kernels.load import load_for_launch
from gluonize.read.spec.launch import LaunchSpec

AHEAD = 2  # tiles past the end
TILE = 4

# before the loop; its range; the mask; after the load
CASES = {
    "what is left": ("", "0, tl.cdiv(K, B)", "offs < K - k * B", ""),
    "what is left, by elements": ("", "0, K, B", "offs < K - k", ""),
    "the index as offset": ("", "0, K, B", "k + offs < K", ""),
    "the index as offset, ceiling by hand": ("", "0, (K + B - 1) // B", "k * B + offs < K", ""),
    "a limit that is smaller": ("", "0, tl.cdiv(K, B)", "offs < N - k * B", ""),
    "from above": ("", "0, K, B", "K > k + offs", ""),
    "moved by hand": ("m = offs", "0, tl.cdiv(K, B)", "m < K", "m += B"),
    "moved by hand, too slowly": ("m = offs", "0, tl.cdiv(K, B)", "m < K", "m += 2"),
    "a part of K": ("", "0, K - 3, B", "k + offs < K - 3", ""),
    "more than K": ("", "0, K + 5, B", "k + offs < K + 5", ""),
    "another loop's end": ("", "0, N, B", "k + offs < K", ""),
    "from a start": ("", "N, K, B", "k + offs < K", ""),
    "two bounds": ("", "0, K, B", "(k + offs < K) & (offs < N)", ""),
    "a product": ("", "0, K * 2, B", "k + offs < K * 2", ""),
    "at most": ("", "0, K, B", "k + offs <= K - 1", ""),
    "one too many": ("", "0, K, B", "k + offs <= K", ""),
    "one lane too early": ("", "0, K, B", "k + offs - 1 < K", ""),
    "wider": ("", "0, K, B", "k.to(tl.int64) + offs < K", ""),
    "one by one": ("", "0, K", "k < K - offs", ""),
}
KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, c_ptr, K, N, B: tl.constexpr):
    offs = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    {before}
    for k in range({range}):
        acc += tl.load(a_ptr + offs, mask={mask}, other=0.0)
        {after}
    tl.store(c_ptr + offs, acc)
"""


@dataclass(frozen=True)
class Loop:
    """A loop with a masked load: what the proofs are asked about, and what runs."""

    facts: FunctionFacts
    node: ast.For
    mask: ast.expr
    start: ast.expr | None  # of a variable that each iteration moves, and by how much
    by: int

    def proof(self) -> TailProof:
        return TailProof(self.facts, self.node, *loop_bounds(self.facts, self.node), AHEAD)


def loop_of(case: str, folder: Path) -> Loop:
    before, bounds, mask, after = CASES[case]
    path = folder / "kernel.py"
    path.write_text(KERNEL.format(before=before or "pass", range=bounds, mask=mask, after=after or "pass"))
    signature = {"a_ptr": "*fp32", "c_ptr": "*fp32", "K": "i32", "N": "i32", "B": "constexpr"}
    spec = LaunchSpec("t", "kernel", str(path), signature, {"B": TILE}, {}, {"num_warps": 1})
    launch = trace_launch(load_for_launch(spec).fn, spec, "gfx950")
    facts = read_function(kernel_facts(launch), launch.trace.frames[0])
    (node,) = [n for n in ast.walk(facts.tree) if isinstance(n, ast.For)]
    (load,) = [n for n in ast.walk(node) if isinstance(n, ast.Call) and ast.unparse(n.func) == "tl.load"]
    (found,) = [word.value for word in load.keywords if word.arg == "mask"]
    start = ast.parse(before.partition("= ")[2], mode="eval").body if before else None
    return Loop(facts, node, found, start, int(after.partition("+= ")[2].replace("B", str(TILE)) or 0) if after else 0)


class Machine:
    """Expressions of a kernel in types of so many bits, `wide` for what the kernel makes 64 bits wide."""

    def __init__(self, bits: int, wide: int):
        self.types = {"int32": IntType(bits), "int64": IntType(wide)}

    def value(self, node: ast.expr, names: dict[str, tuple[int, str]]) -> tuple[int, str]:
        """(value, type); a compile-time number has the type "", and takes that of what it meets."""
        if isinstance(node, ast.Constant):
            return node.value, ""
        if isinstance(node, ast.Name):
            return names[node.id]
        if isinstance(node, ast.Call):
            return self._called(node, names)
        if isinstance(node, ast.Compare):
            (a, _), (b, _) = self.value(node.left, names), self.value(node.comparators[0], names)
            return int({ast.Lt: a < b, ast.LtE: a <= b, ast.Gt: a > b, ast.GtE: a >= b}[type(node.ops[0])]), "int1"
        (a, of_a), (b, of_b) = self.value(node.left, names), self.value(node.right, names)
        if isinstance(node.op, ast.BitAnd):
            return a & b, of_a
        made = {ast.Add: a + b, ast.Sub: a - b, ast.Mult: a * b}.get(type(node.op))
        made = made if made is not None else abs(a) // b * (1 if a >= 0 else -1)  # rounds toward zero
        kind = max(of_a, of_b)
        return (self.types[kind].wrap(made) if kind else made), kind

    def _called(self, node: ast.Call, names) -> tuple[int, str]:
        if ast.unparse(node.func) == "tl.cdiv":
            plus, by = (self.value(argument, names) for argument in node.args)
            kind = plus[1]
            top = self.types[kind].wrap(plus[0] + by[0] - 1)
            return abs(top) // by[0] * (1 if top >= 0 else -1), kind
        assert isinstance(node.func, ast.Attribute) and node.func.attr == "to"
        return self.value(node.func.value, names)[0], "int64"

    def tiles(self, loop: Loop, arguments: dict[str, int]) -> Iterator[tuple[bool, list[bool]]]:
        """(whether the loop has the tile, its mask) of the tiles, some where there are many, and of those ahead of the end."""
        names = {name: (value, "int32") for name, value in arguments.items()} | {"B": (TILE, "")}
        low, high, step = loop_bounds(loop.facts, loop.node)
        first = 0 if low is None else self.value(low, names)[0]
        last, by = self.value(high, names)[0], 1 if step is None else self.value(step, names)[0]
        trips = len(range(first, last, by))
        many = {0, 1, trips // 3, trips // 2, trips - 1, *range(trips, trips + AHEAD)}
        for tile in range(trips + AHEAD) if trips < 64 else sorted(many):
            index = self.types["int32"].wrap(first + tile * by)
            lanes = []
            for lane in range(TILE):
                here = names | {"k": (index, "int32"), "offs": (lane, "int32")}
                if loop.start is not None:
                    started = self.value(loop.start, here)[0]
                    here["m"] = self.types["int32"].wrap(started + tile * loop.by), "int32"
                lanes.append(bool(self.value(loop.mask, here)[0]))
            yield tile < trips, lanes


def admitted(assumed: set[Obligation], arguments: dict[str, int]) -> bool:
    """Whether the check before a launch takes the arguments."""
    for o in assumed:
        if o.condition is not None:
            if not o.condition.holds(arguments | {"B": TILE}, (1,)):
                return False
        elif o.discharge == "launch" and any(arguments[name] < 0 for name in o.arguments):
            return False
    return True


def unsound_end(loop: Loop, machine: Machine, assumed: set[Obligation], every) -> str:
    """Arguments with which a tile ahead has a lane; empty where there are none."""
    for arguments in every:
        if admitted(assumed, arguments):
            for inside, lanes in machine.tiles(loop, arguments):
                if not inside and any(lanes):
                    return f"{arguments}: {lanes}"
    return ""


def unsound_shrinking(loop: Loop, machine: Machine, assumed: set[Obligation], every) -> str:
    """Arguments with which some tile has a lane that the first has not; empty where there are none."""
    for arguments in every:
        if admitted(assumed, arguments):
            found = [lanes for inside, lanes in machine.tiles(loop, arguments) if inside]
            if any(lane and not first for lanes in found for lane, first in zip(lanes, found[0])):
                return f"{arguments}: {found}"
    return ""


def every_value(bits: int) -> list[dict[str, int]]:
    numbers = range(-(1 << (bits - 1)), 1 << (bits - 1))
    return [{"K": k, "N": n} for k, n in itertools.product(numbers, numbers)]


@pytest.fixture
def small(monkeypatch):
    """Types of the traces as narrow ones."""

    def narrowed(bits: int) -> Machine:
        machine = Machine(bits, bits + 2)
        whole = ranges.int_type
        for module in (launch_values, overflow, signs, values, tail):
            monkeypatch.setattr(module, "int_type", lambda dtype: machine.types.get(dtype) or whole(dtype))
        for module in (known, launch_values, values, overflow):
            monkeypatch.setattr(module, "is_linear", lambda type: type.signed and type.bits >= bits)
        return machine

    return narrowed


@pytest.mark.one_of(3)
@pytest.mark.parametrize("bits", [5, 6])
@pytest.mark.parametrize("case", CASES)
def test_masks_that_are_said_to_end_do(case: str, bits: int, small, tmp_path: Path):
    machine, loop = small(bits), loop_of(case, tmp_path)
    proof = loop.proof()
    if proof.implied(loop.mask):
        assert proof.counts_on("int32")
        assert unsound_end(loop, machine, proof.assumed, every_value(bits)) == ""


@pytest.mark.one_of(3)
@pytest.mark.parametrize("case, bits", slow_but_crossed(CASES, [5, 6], 2))
def test_masks_that_are_said_to_shrink_do(case: str, bits: int, small, tmp_path: Path):
    machine, loop = small(bits), loop_of(case, tmp_path)
    rests = loop.proof().shrinks(loop.mask)
    if rests is not None:
        assert unsound_shrinking(loop, machine, set(rests), every_value(bits)) == ""


# Rules that are wrong are found ------------------------------------------------------------------------------------------


class OneTooMany(TailProof):
    """Takes a lane too many to be off at the end."""

    def _margin(self, node):
        margin = super()._margin(node)
        return None if margin is None else tail.add(margin, {(): 1}, -1)


class AnyMargin(TailProof):
    """Takes any mask that moves against the index to end with the loop."""

    def _conjunct(self, node):
        return (self._margin(node) or {}).get((tail.INDEX,), 0) < 0


class NeverShort(TailProof):
    """Takes nothing to be fetched ahead."""

    def beyond(self):
        return replace(super().beyond(), distance=tail.number(0))


PLANTED = {
    "one lane too early": (OneTooMany, "one lane too early"),
    "any margin, another limit": (AnyMargin, "a limit that is smaller"),
    "any margin, another end": (AnyMargin, "another loop's end"),
    "any margin, too slowly": (AnyMargin, "moved by hand, too slowly"),
    "nothing ahead": (NeverShort, "the index as offset"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_an_unsound_proof_is_found(planted: str, small, tmp_path: Path):
    rule, case = PLANTED[planted]
    machine, loop = small(5), loop_of(case, tmp_path)
    proof = rule(loop.facts, loop.node, *loop_bounds(loop.facts, loop.node), AHEAD)
    assert proof.implied(loop.mask)
    assert unsound_end(loop, machine, proof.assumed, every_value(5))


@pytest.mark.parametrize("case", ["what is left", "the index as offset", "from a start", "one by one"])
def test_an_end_that_rests_on_nothing_is_found(case: str, small, tmp_path: Path):
    assert unsound_end(loop_of(case, tmp_path), small(5), set(), every_value(5))


def test_shrinking_that_rests_on_nothing_is_found(small, tmp_path: Path):
    """`N - k * B` goes below the least number, and is large then."""
    loop = loop_of("a limit that is smaller", tmp_path)
    assert unsound_shrinking(loop, small(5), set(), every_value(5))


# Types as they are -------------------------------------------------------------------------------------------------------

NEAR = st.sampled_from([-(2**31), -(2**30), 0, 2**30, 2**31 - 1]).flatmap(
    lambda n: st.integers(max(n - 70, -(2**31)), min(n + 70, 2**31 - 1))
)
NUMBERS = st.one_of(st.integers(-(2**31), 2**31 - 1), NEAR)


@pytest.fixture(scope="module")
def proved(tmp_path_factory) -> dict[str, tuple[Loop, set | None, frozenset | None]]:
    """By case what masks that end rest on, and those that shrink; None for others."""
    out = {}
    for case in CASES:
        loop = loop_of(case, tmp_path_factory.mktemp("tail"))
        proof = loop.proof()
        ends = proof.implied(loop.mask) and proof.counts_on("int32")
        out[case] = loop, set(proof.assumed) if ends else None, loop.proof().shrinks(loop.mask)
    return out


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(sorted(CASES)), NUMBERS, NUMBERS)
@example("a limit that is smaller", 64, -(2**31) + 3)
@example("what is left", 2**31 - 4, 0)
def test_masks_of_the_real_types(proved, case: str, k: int, n: int):
    loop, ends, shrinks = proved[case]
    machine, arguments = Machine(32, 64), [{"K": k, "N": n}]
    assert ends is None or unsound_end(loop, machine, ends, arguments) == ""
    assert shrinks is None or unsound_shrinking(loop, machine, set(shrinks), arguments) == ""


def test_most_of_the_masks_are_proved(proved):
    """Else the tests above say nothing."""
    assert sum(ends is not None for _, ends, _ in proved.values()) == 13
    assert sum(shrinks is not None for _, _, shrinks in proved.values()) == 17
