"""Where two numbers or conditions differ: small values of the arguments at which they do, the smallest first.

Terms are evaluated as Python integers, by the definitions of `terms`. What is read from memory or computed in floats is not looked into.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from gluonize.judge.prove.terms.elements import Term

MOST_ATOMS, MOST_TRIED, MOST_FOUND = 6, 20_000, 12
SMALL = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 80, 127, 128, 129, 255, 256, 257, 512, 1024)
LEAVES = ("argument", "program", "programs", "idx", "count")


class Unknown(Exception):
    """It is not a matter of integers alone."""


def apart(a: Term, b: Term, multiples: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Values of integer arguments at which two terms differ; what is not given may be anything. multiples: what arguments are multiples of."""
    try:
        atoms = sorted({*leaves(a), *leaves(b)})
    except Unknown:
        return
    if not atoms or len(atoms) > MOST_ATOMS:
        return
    ways = [_values(x, multiples) for x in atoms]
    while len(ways) > 1 and _size(ways) > MOST_TRIED:
        longest = max(ways, key=len)
        longest.pop(len(longest) // 2)
    found: list[dict[str, int]] = []
    for chosen in sorted(product(*ways), key=lambda values: (max(values), sum(values))):
        values = dict(zip(atoms, chosen))
        try:
            if evaluated(a, values) == evaluated(b, values):
                continue
        except (Unknown, ZeroDivisionError):
            continue
        arguments = {x.data[0]: value for x, value in values.items() if x.op == "argument"}
        if arguments not in found:
            found.append(arguments)
            yield arguments
        if len(found) == MOST_FOUND:
            return


def _size(ways: list[list[int]]) -> int:
    size = 1
    for way in ways:
        size *= len(way)
    return size


def _values(atom: Term, multiples: Mapping[str, int]) -> list[int]:
    """Values to try of a leaf, within what is known of it. A launch that passes 1 is compiled as another kernel."""
    step = multiples.get(atom.data[0], 1) if atom.op == "argument" else 1
    least = [atom.low] if atom.op == "idx" else []
    values = [v for v in {*SMALL, *least, *([atom.high] if atom.op == "idx" else [])} if atom.low <= v <= atom.high]
    if atom.op == "argument":
        values = [v for v in values if v % step == 0 and v != 1]
    if atom.op in ("program", "programs", "count"):
        values = [v for v in values if v <= 3]
    return sorted(values)


def leaves(term: Term) -> set[Term]:
    """The leaves of a term of integers. Raises: Unknown of another term."""
    found: set[Term] = set()
    seen: set[Term] = {term}
    todo = [term]
    while todo:
        x = todo.pop()
        if x.op in LEAVES:
            if x.op == "argument" and x.element[0] != "i":
                raise Unknown
            found.add(x)
            continue
        if x.op not in OPERATIONS and x.op not in ("poly", "wrap", "uwrap"):
            raise Unknown
        for y in x.args:
            if y not in seen:
                seen.add(y)
                todo.append(y)
    return found


OPERATIONS = {
    "true": lambda: True,
    "false": lambda: False,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "rem": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "min": min,
    "max": max,
    "lt0": lambda a: a < 0,
    "eq0": lambda a: a == 0,
    "not": lambda a: not a,
    "and": lambda *a: all(a),
    "or": lambda *a: any(a),
    "sel": lambda c, a, b: a if c else b,
}


def evaluated(term: Term, values: Mapping[Term, int]) -> int:
    """The number, or the truth, that a term stands for where its leaves have values. Raises: Unknown, ZeroDivisionError."""
    memo: dict[Term, int] = dict(values)

    def walk(t: Term) -> int:
        if t in memo:
            return memo[t]
        if t.poly is not None:
            out = 0
            for monomial, n in t.poly.items():
                for x in monomial:
                    n *= walk(x)
                out += n
        elif t.op in ("wrap", "uwrap"):
            whole = 1 << t.data
            out = walk(t.args[0]) % whole
            if t.op == "wrap" and out >= whole // 2:
                out -= whole
        elif t.op in OPERATIONS:
            out = OPERATIONS[t.op](*map(walk, t.args))
        else:
            raise Unknown
        memo[t] = out
        return out

    return walk(term)
