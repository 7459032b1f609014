"""Made-up sizes with which a loop of the kernel makes fewer than two trips, or one that is unrolled makes many: several tiles show more than
none, and hundreds of copies of a body take the compiler minutes and show no more than some."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from gluonize.read.launches.derive.evidence import Evidence
from gluonize.read.launches.derive.kernel.origins import expressions
from gluonize.read.launches.derive.proposal.guess import Guess, Proposal

_LEAST, _DOUBLED = 3, 8  # trips that are enough, and how often a size is doubled for them
_UNROLLED = 16  # trips of a loop that is unrolled


def fitting_sizes(evidence: Evidence, proposal: Proposal) -> dict[str, Guess]:
    """Larger guesses for the constants that are made up and bound a loop which would not run twice, smaller ones for those that bound one
    which is unrolled."""
    constants = {n: g.value for n, g in proposal.arguments.items() if g.is_constant and type(g.value) is int}
    out: dict[str, Guess] = {}
    for function, node, _ in expressions(evidence.flow):
        if function is not evidence.flow.kernel or not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call):
            continue
        if (callee := evidence.flow.callee(function, node.iter)) not in ("range", "static_range"):
            continue
        bounds = node.iter.args[:3]
        free = [n for b in bounds[:2] for n in _names(function.node, b, 0) if _is_made_up(evidence, proposal, n)]
        known = constants | {name: guess.value for name, guess in out.items()}
        for name in dict.fromkeys(free):
            for _ in range(_DOUBLED):
                trips = _trips([_number(function.node, bound, known, 0) for bound in bounds])
                if trips is None or callee == "range" and trips >= _LEAST:
                    break
                if callee == "static_range" and (trips <= _UNROLLED or known[name] <= 2):
                    break
                known[name] = known[name] * 2 if callee == "range" else known[name] // 2
            if trips is not None and known[name] != constants[name]:
                what = "runs several times" if callee == "range" else "is unrolled a few times"
                why = f"{proposal.arguments[name].why}, so that a loop {what}"
                out[name] = Guess.constant(known[name], why, "name")
    return out


def _is_made_up(evidence: Evidence, proposal: Proposal, name: str) -> bool:
    guess = proposal.arguments.get(name)
    if guess is None or not guess.is_constant or type(guess.value) is not int or guess.value < 2:
        return False
    return guess.confidence in ("use", "name") and not evidence.uses.arguments[name].any("tile")


def _trips(bounds: list[int | None]) -> int | None:
    """The trips of `range(*bounds)`; None where a bound is not known."""
    numbers = [number for number in bounds if number is not None]
    return len(range(*numbers)) if len(numbers) == len(bounds) and (len(numbers) < 3 or numbers[2]) else None


def _assigned(function: ast.FunctionDef, name: str) -> ast.expr | None:
    """The one value that a function gives a name."""
    found = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        if any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]
    return found[0] if len(found) == 1 else None


def _names(function: ast.FunctionDef, node: ast.expr, depth: int) -> list[str]:
    out: list[str] = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            value = _assigned(function, inner.id) if depth < 4 else None
            out += [inner.id] if value is None else _names(function, value, depth + 1)
    return out


def _number(function: ast.FunctionDef, node: ast.expr, known: Mapping[str, Any], depth: int) -> int | None:
    """The integer that an expression of constants is; None of anything else."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        value = _assigned(function, node.id) if node.id not in known and depth < 4 else None
        return known.get(node.id) if value is None else _number(function, value, known, depth + 1)
    if isinstance(node, ast.Call) and len(node.args) == 2 and ast.unparse(node.func).rpartition(".")[2] == "cdiv":
        one, two = (_number(function, arg, known, depth) for arg in node.args)
        return -(-one // two) if one is not None and two else None
    if isinstance(node, ast.BinOp):
        one, two = (_number(function, side, known, depth) for side in (node.left, node.right))
        if one is None or two is None:
            return None
        if isinstance(node.op, ast.FloorDiv):
            return one // two if two else None
        computed = {ast.Add: one + two, ast.Sub: one - two, ast.Mult: one * two}
        return computed.get(type(node.op))
    return None
