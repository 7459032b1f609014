"""Arguments that give a flag of `@triton.heuristics` its other value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from gluonize.read.evaluate.host_objects import UserFunction
from gluonize.read.launches.derive.evidence import Evidence
from gluonize.read.launches.derive.proposal.guess import Guess, Proposal
from gluonize.read.launches.derive.proposal.propose import Proposer

# Numbers that are tried: of both signs, and with and without a large power of two in them.
_FLOATS, _INTEGERS = (0.0, 1.0, -1.0), (100, 3 * 4096, 0, -1)


def heuristic_choices(evidence: Evidence, first: Proposal, proposer: Proposer) -> list[tuple[str, Guess]]:
    """(argument, guess) with which a flag that a heuristic gives is not what it is in the first launch."""
    config = evidence.configs[0] if evidence.configs else None
    out: list[tuple[str, Guess]] = []
    for flag, function in evidence.heuristics.items():
        if flag not in first.arguments:
            continue  # an option of the launch
        value = first.arguments[flag].value
        if not isinstance(value, bool) or not isinstance(function, UserFunction):
            continue
        for name in _asked(function.node):
            guess = first.arguments.get(name)
            if guess is None or guess.confidence in ("given", "read") or name in evidence.heuristics:
                continue
            for other in _others(guess):
                again = proposer.heuristic(flag, {**first.arguments, name: other}, config).value
                if again is not value and isinstance(again, bool):
                    out.append((name, replace(other, why=f"with it {flag} is {again}")))
                    break
    return out


def _asked(function: ast.AST) -> list[str]:
    """The arguments that a heuristic asks for by name."""
    nodes = (node for node in ast.walk(function) if isinstance(node, ast.Subscript))
    return [n.slice.value for n in nodes if isinstance(n.slice, ast.Constant) and isinstance(n.slice.value, str)]


def _others(guess: Guess) -> Iterator[Guess]:
    """The same argument with other numbers."""
    if guess.kind.startswith("fp"):
        yield from (replace(guess, number=number) for number in _FLOATS)
    elif type(guess.number) is int and guess.is_constant:
        yield from (Guess.constant(number, "", "use") for number in _INTEGERS if number > 0)
    elif type(guess.number) is int and guess.kind in ("i32", "i64"):
        yield from (replace(guess, number=n, divisible=n % 16 == 0, confidence="use") for n in _INTEGERS)
