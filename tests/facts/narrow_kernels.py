"""Kernels of integers, traced as they are and asked about as if their types had few bits; and launches of them to run beside that."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from narrow_machine import Machine
from narrow_numbers import BITS, Number, kind_of
from triton.compiler import ASTSource

from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers import known, ranges
from gluonize.facts.integers.host_bounds import Bound, Condition
from gluonize.facts.integers.ranges import IntType
from gluonize.facts.kernel import KernelFacts
from gluonize.facts.loops import span
from gluonize.facts.numbers import launch_values, overflow, signs, values
from gluonize.facts.reading import read_function
from gluonize.loops.plan.tiles import tail
from gluonize.read.kernels.load import load_for_launch
from gluonize.read.spec.compile_arguments import compile_arguments
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.targets import target
from gluonize.trace.front.offline import offline_target
from gluonize.trace.front.trace import trace_source
from gluonize.trace.passes.anchors import Anchors

TARGET = "gfx950"
SIGNATURE = {"a": "i32", "b": "i32", "w": "i64", "u": "u32", "z": "u64", "h": "i16", "c": "i8", "e": "u8", "p": "*i32"}
CONSTEXPRS = {"C": 4, "N": 3, "MINUS": -2}
WARPS, LANES_OF_A_WARP = 2, 2
MOST_PROGRAMS, MOST_ITEMS = 15, 31  # of 2**31 - 1 and 2**32 - 1
HEAD = "import triton\nimport triton.language as tl\n\n\n"
HELPERS = """
@triton.jit
def multiple_of(x, n):
    return x + n


@triton.jit
def apart(x, y):
    return x - y


@triton.jit
def both(x, y):
    return x - y, x + y


@triton.jit
def behind(x, by=3):
    return x - by


@triton.jit
def chosen(x, n):
    if n > 1:
        found = x - n
    else:
        found = x
    return found


@triton.jit
def early(x, n):
    if n > 1:
        return x
    return x - n * 2


@triton.jit
def branching(x, n: tl.constexpr):
    if n > 3:
        return x - n
    else:
        return x


@triton.jit
def arange(x, y):
    return x - y


@triton.jit
def minimum(x, y):
    return tl.maximum(x, y)


@triton.jit
def scaled(w, x):
    return w * 3 + x


@triton.jit
def inner(x, y):
    t = x * y
    return apart(t, x) + y


"""


class _NarrowTarget:
    """A target whose warps have few lanes."""

    def __init__(self, row):
        self.row, self.warp_size = row, LANES_OF_A_WARP

    def __getattr__(self, name: str):
        return getattr(self.row, name)


def traced(
    body: str, folder: Path, given: tuple = (), name: str = "kernel", fixed: Mapping[str, int] | None = None
) -> FunctionFacts:
    """The facts of a kernel whose arguments are those of SIGNATURE and CONSTEXPRS; fixed: arguments that are compile-time numbers.

    Raises what Triton's front end raises.
    """
    lines = "\n".join("    " + line for line in body.splitlines())
    arguments = [*SIGNATURE, *(f"{name}: tl.constexpr" for name in CONSTEXPRS)]
    path = folder / f"{name}.py"
    path.write_text(
        f"{HEAD}{HELPERS}@triton.jit\ndef kernel({', '.join(arguments)}):\n    o = tl.arange(0, C)\n{lines}\n"
    )
    constexprs = CONSTEXPRS | (fixed or {})
    signature = SIGNATURE | dict.fromkeys(constexprs, "constexpr")
    spec = LaunchSpec(name, "kernel", str(path), signature, constexprs, {}, {"num_warps": WARPS})
    fn = load_for_launch(spec).fn
    compiled = compile_arguments(spec, fn, None)
    source = ASTSource(fn=fn, signature=compiled.signature, constexprs=compiled.constexprs, attrs=compiled.attrs)
    with offline_target(TARGET) as gpu:
        trace = trace_source(source, gpu, dict(spec.options))
    trace.module = trace.context = None
    row = _NarrowTarget(target(TARGET))
    kernel = KernelFacts(trace, Anchors(), row, WARPS, frozenset(), given=given)
    facts = read_function(kernel, trace.frames[0])
    for node in (n for n in ast.walk(facts.tree) if isinstance(n, ast.Call)):
        _called(facts, node)
    return facts


def _called(facts: FunctionFacts, node: ast.Call) -> None:
    """As the rewriter does: a helper that one call reaches knows what that gives it."""
    inner, arguments = facts.callee(node)
    if inner is not None:
        inner.called = (facts, arguments) if len(facts.visits(node)) == 1 else None
        for call in (n for n in ast.walk(inner.tree) if isinstance(n, ast.Call)):
            _called(inner, call)


@contextlib.contextmanager
def narrow() -> Iterator[None]:
    """Rules answer as for types of few bits: the same rules, of other numbers."""
    whole, linear = ranges.int_type, known.is_linear
    wide = {few: bits for bits, few in BITS.items()}

    @functools.cache
    def narrow_type(dtype: str) -> IntType | None:
        type = whole(dtype)
        return None if type is None else replace(type, bits=BITS[type.bits])

    @functools.cache
    def narrow_linear(type: IntType) -> bool:
        return linear(replace(type, bits=wide.get(type.bits, type.bits)))

    changed = [(m, "int_type", narrow_type) for m in (launch_values, overflow, signs, span, values, tail)]
    changed += [(m, "is_linear", narrow_linear) for m in (known, launch_values, span, values, overflow)]
    changed += [(m, "MOST_PROGRAMS", MOST_PROGRAMS) for m in (values, overflow)]
    changed += [(values, "MOST_ITEMS", MOST_ITEMS)]
    saved = [(module, name, getattr(module, name)) for module, name, _ in changed]
    for module, name, value in changed:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in saved:
            setattr(module, name, value)


_DONE = {"+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "min": np.minimum, "max": np.maximum}


@dataclass
class Launches:
    """Launches side by side: every pair of the narrow int32 arguments, each with some of the others."""

    numbers: dict[str, np.ndarray]
    grid: np.ndarray
    machine: Machine

    def admits(self, rows: np.ndarray, names: frozenset[str], conditions: frozenset[Condition]) -> np.ndarray:
        """Those of the launches `rows` that the check before a launch takes."""
        for name in names:
            rows = rows[self.numbers[name][rows] >= 0]
        for c in conditions:
            rows = rows[self.bounded(c.bound, rows) <= c.most]
        return rows

    def bounded(self, bound: Bound, rows: np.ndarray) -> np.ndarray:
        """What a bound is in each of the launches `rows`. Raises: KeyError for an argument that they have not, ZeroDivisionError."""
        if bound.op == "number":
            return np.full(len(rows), bound.parts[0])
        if bound.op == "programs":
            return self.grid[rows, bound.parts[0]]
        if bound.op == "argument":
            (name,) = bound.parts
            return np.full(len(rows), CONSTEXPRS[name]) if name in CONSTEXPRS else self.numbers[name][rows]
        a, b = (self.bounded(part, rows) for part in bound.parts)
        if bound.op == "//" and (b == 0).any():
            raise ZeroDivisionError(bound.text())
        return _DONE[bound.op](a, b)

    def arguments(self, row: int) -> dict[str, int]:
        return {name: int(column[row]) for name, column in self.numbers.items()} | CONSTEXPRS

    def described(self, row: int) -> str:
        used = self.arguments(row) | {"grid": self.grid[row].tolist(), "program": self.machine.programs[row].tolist()}
        return ", ".join(f"{name}={value}" for name, value in used.items())


def launches(seed: int) -> Launches:
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.product(range(-16, 16), repeat=2)))
    rows = len(pairs)
    positive = (pairs >= 0).all(axis=1) & (rng.random(rows) < 0.8)

    def numbers(kind: str) -> np.ndarray:
        bits, signed = kind_of(_dtype(kind))
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        drawn = rng.integers(low, high + 1, rows)
        ends = rng.choice([low, low + 1, -1 if signed else high // 2, 0, 1, 2, 3, high - 1, high], rows)
        found = np.where(rng.random(rows) < 0.5, drawn, ends)
        return np.where(positive & (found < 0), ~found, found)

    found = {name: numbers(kind) for name, kind in SIGNATURE.items() if not kind.startswith("*")}
    found["a"], found["b"] = pairs.T
    along_x = MOST_ITEMS // (WARPS * LANES_OF_A_WARP)
    grid = np.stack(
        [
            rng.choice([1, 2, 3, along_x], rows),
            rng.choice([1, 2, 4, MOST_PROGRAMS], rows),
            rng.choice([1, 5, MOST_PROGRAMS], rows),
        ],
        axis=1,
    )
    last = rng.random((rows, 3)) < 0.5
    programs = np.where(last, grid - 1, rng.integers(0, grid))
    return Launches(found, grid, Machine(rows, grid, programs, rng))


def run(facts: FunctionFacts, given: Launches) -> None:
    """All launches of a kernel; what its nodes were is in the machine."""
    names: dict = {
        name: Number.of(_dtype(SIGNATURE[name]), column) for name, column in given.numbers.items() if name in SIGNATURE
    }
    rows = given.machine.rows
    given.machine.run(facts, names | CONSTEXPRS | {"p": Number.of("int64", np.zeros(rows, np.int64))})


def _dtype(kind: str) -> str:
    return ("int" if kind[0] == "i" else "uint") + kind[1:]


__all__ = ["CONSTEXPRS", "Launches", "launches", "narrow", "run", "traced"]
