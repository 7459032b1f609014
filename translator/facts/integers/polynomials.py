"""Integer expressions as sums of products of atoms: what proofs about addresses, masks and loop ends are written in."""

from __future__ import annotations

import ast

Monomial = tuple[str, ...]
Polynomial = dict[Monomial, int]

OPERATORS = (ast.Add, ast.Sub, ast.Mult)
INDEX = "<loop index>"
MAX_TERMS = 32


def add(a: Polynomial, b: Polynomial, sign: int) -> Polynomial:
    out = dict(a)
    for m, c in b.items():
        out[m] = out.get(m, 0) + sign * c
        if not out[m]:
            del out[m]
    return out


def product(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """None when it has more than MAX_TERMS terms."""
    out: Polynomial = {}
    for m, c in a.items():
        for n, d in b.items():
            out = add(out, {tuple(sorted((*m, *n))): c * d}, 1)
    return out if len(out) <= MAX_TERMS else None


def operated(op: ast.operator, a: Polynomial, b: Polynomial) -> Polynomial | None:
    """`a + b`, `a - b` or `a * b`, by the operator."""
    return product(a, b) if isinstance(op, ast.Mult) else add(a, b, -1 if isinstance(op, ast.Sub) else 1)


def quotient(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """`a / b` for a `b` of one term, where it comes out even."""
    if len(b) != 1:
        return None
    ((divisor, by),) = b.items()
    out: Polynomial = {}
    for monomial, c in a.items():
        left = list(monomial)
        for atom in divisor:
            if atom not in left:
                return None
            left.remove(atom)
        if c % by:
            return None
        out[tuple(left)] = c // by
    return out


def moving(polynomial: Polynomial) -> Polynomial:
    """The terms that change with the loop index."""
    return {m: c for m, c in polynomial.items() if INDEX in m}


def fixed(polynomial: Polynomial) -> Polynomial:
    """The terms that are the same in every iteration."""
    return {m: c for m, c in polynomial.items() if INDEX not in m}
