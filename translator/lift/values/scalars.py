"""Integers of a kernel as expressions: of its arguments, program numbers and the iterations of its loops.

Equal expressions are one object. An iteration is counted from 0; which loop it belongs to is the atom's key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


class Expr(tuple):
    """`(operation, operand, ...)`; atoms are `("const", 4)`, `("arg", name)`, `("pid", axis)`, `("np", axis)`, `("it", key)`."""

    _known: dict[tuple, "Expr"] = {}
    __hash__, __eq__, __ne__ = object.__hash__, object.__eq__, object.__ne__

    @property
    def is_const(self) -> bool:
        return self[0] == "const"

    @property
    def is_atom(self) -> bool:
        return self[0] in ATOMS


ATOMS = ("const", "arg", "pid", "np", "it", "var")


@dataclass(frozen=True)
class Scalar:
    """An integer of one run: its value, and the expression that gave it."""

    value: int
    expr: Expr


def atom(*parts: Any) -> Expr:
    """The expression object of these parts."""
    known = Expr._known.get(parts)
    if known is None:
        known = Expr._known[parts] = Expr(parts)
    return known


def const(value: int) -> Expr:
    return atom("const", int(value))


def number(value: int) -> Scalar:
    """A constant."""
    return Scalar(int(value), const(value))


def _quotient(a: int, b: int) -> int:
    """Division towards zero; by zero 0, of a tile that nothing uses."""
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _unsigned(operation: Callable[[int, int], int], result: bool = False) -> Callable[[int, int, int], int]:
    """An operation on two integers of so many bits taken as unsigned; result: what it gives is one of them, taken as signed."""

    def run(a: int, b: int, bits: int) -> int:
        mask = (1 << bits) - 1
        value = operation(a & mask, b & mask)
        return value - (mask + 1) if result and value > mask >> 1 else value

    return run


OPERATIONS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _quotient,
    "rem": lambda a, b: a - b * _quotient(a, b),
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
    "select": lambda c, a, b: a if c else b,
    "i64": lambda a: a,
    "i32": lambda a: a,
    "divu": _unsigned(_quotient, True),
    "remu": _unsigned(lambda a, b: a - b * _quotient(a, b), True),
    "minu": _unsigned(min, True),
    "maxu": _unsigned(max, True),
    "shru": _unsigned(lambda a, b: a >> b, True),
    "ltu": _unsigned(lambda a, b: int(a < b)),
    "leu": _unsigned(lambda a, b: int(a <= b)),
    "gtu": _unsigned(lambda a, b: int(a > b)),
    "geu": _unsigned(lambda a, b: int(a >= b)),
}
NAMES: dict["Expr", str] = {}  # the author's names


def apply(name: str, *operands: Expr) -> Expr:
    """The expression `name(operands)`, folded where it is simpler."""
    if all(x.is_const for x in operands):
        return const(OPERATIONS[name](*(x[1] for x in operands)))
    if name in ("add", "sub", "mul"):
        return from_terms(_terms_of(name, *operands))
    if name == "select" and operands[0].is_const:
        return operands[1] if operands[0][1] else operands[2]
    if name == "select" and operands[1] is operands[2]:
        return operands[1]
    if name == "div" and operands[1].is_const and (exact := _divided(operands[0], operands[1][1])) is not None:
        return exact
    if name == "i64" and (counted := _counted(operands[0])) is not None:
        return apply("add", atom("i64", counted[0]), const(counted[1]))
    if name == "i32" and operands[0][0] == "i64":
        return operands[0][1]  # what was widened before
    if name == "max" and operands[1].is_const and operands[1][1]:
        # One form of what is compared with a constant: `max(x, 2)` is `max(x - 2, 0) + 2`.
        return apply("add", apply("max", apply("sub", operands[0], operands[1]), const(0)), operands[1])
    if name in ("min", "max", "and", "or") and operands[0] is operands[1]:
        return operands[0]
    return atom(name, *operands)


def _counted(expr: Expr) -> tuple[Expr, int] | None:
    """(i, c) of `i + c`, an iteration some iterations later, which is no more than how often a loop runs; None for anything else."""
    found = dict(terms(expr))
    later = found.pop((), 0)
    ((key, factor),) = found.items() if len(found) == 1 else (((), 0),)
    return (key[0], later) if later and len(key) == 1 and factor == 1 and key[0][0] in ("it", "var") else None


def combine(name: str, *operands: Scalar) -> Scalar:
    """`name(operands)`, value and expression."""
    value = OPERATIONS[name](*(x.value for x in operands))
    return Scalar(value, apply(name, *(x.expr for x in operands)))


def unsigned(name: str, a: Scalar, b: Scalar, bits: int) -> Scalar:
    """`name(a, b)` of integers taken as unsigned ones of so many bits: the plain operation where neither can be negative."""
    if never_negative(a.expr) and never_negative(b.expr):
        return combine(name, a, b)
    return combine(name + "u", a, b, number(bits))


def never_negative(expr: Expr) -> bool:
    """Whether its parts show that it is not negative whatever the arguments are."""
    name = expr[0]
    if expr.is_atom:
        return name in ("pid", "np", "it", "var") or (name == "const" and expr[1] >= 0)
    if name in ("add", "mul", "div", "rem", "min", "and", "shr", "i64", "i32"):
        return all(never_negative(x) for x in expr[1:])
    if name in ("max", "select"):
        return any(map(never_negative, expr[1:])) if name == "max" else all(map(never_negative, expr[2:]))
    return False


# A polynomial is {sorted atoms of a product: factor}; () is the constant.
Terms = dict[tuple[Expr, ...], int]


def terms(expr: Expr) -> Terms:
    """The expression as a sum of products of what is no sum or product."""
    if expr.is_const:
        return {(): expr[1]} if expr[1] else {}
    if expr[0] in ("add", "sub", "mul"):
        return _terms_of(*expr)
    return {(expr,): 1}


def order_of(expr: Expr) -> tuple[int, str]:
    """What factors are sorted by, small ones first: the same in every process."""
    found = _ORDERS.get(expr)
    if found is None:
        inner = [order_of(x) for x in expr[1:] if isinstance(x, Expr)]
        own = [str(x[1] if expr[0] == "it" and isinstance(x, tuple) else x) for x in expr if not isinstance(x, Expr)]
        text = hashlib.md5(" ".join([*own, *(digest for _, digest in inner)]).encode()).hexdigest()
        found = _ORDERS[expr] = (1 + sum(size for size, _ in inner), text)
    return found


_ORDERS: dict[Expr, tuple[int, str]] = {}


def _terms_of(name: str, a: Expr, b: Expr) -> Terms:
    left, right = terms(a), terms(b)
    out: Terms = {}
    if name == "mul":
        for x, m in left.items():
            for y, n in right.items():
                key = tuple(sorted(x + y, key=order_of))
                out[key] = out.get(key, 0) + m * n
    else:
        out = dict(left)
        for y, n in right.items():
            out[y] = out.get(y, 0) + (n if name == "add" else -n)
    return {key: n for key, n in out.items() if n}


def from_terms(given: Terms) -> Expr:
    """The sum of products as one expression, positive products first, the constant last."""
    if not given:
        return const(0)
    total: Expr | None = None
    for key, factor in sorted(given.items(), key=lambda item: (not item[0], item[1] < 0)):
        part: Expr | None = None
        for x in key:
            part = x if part is None else atom("mul", part, x)
        size = abs(factor) if total is not None else factor
        if part is None:
            part = const(size)
        elif size != 1:
            part = atom("mul", part, const(size))
        total = part if total is None else atom("sub" if factor < 0 else "add", total, part)
    assert total is not None
    return total


def floored(expr: Expr) -> tuple[Expr, int] | None:
    """(x, c) of what is `max(x, c)`, in the form in which it is kept; None for anything else."""
    found = terms(expr)
    floor = found.get((), 0)
    others = [key for key in found if key]
    if len(others) != 1 or len(others[0]) != 1 or found[others[0]] != 1:
        return None
    (inner,) = others[0]
    if inner[0] != "max" or inner[2] is not const(0):
        return None
    return apply("add", inner[1], const(floor)), floor


def _divided(expr: Expr, by: int) -> Expr | None:
    """`expr / by` where every product has the factor and nothing is cut off."""
    found = terms(expr)
    if by > 0 and all(n % by == 0 for n in found.values()):
        return from_terms({key: n // by for key, n in found.items()})
    return None


def ceil_div(expr: Expr, by: Expr) -> Expr:
    """How many steps of `by` cover `expr`; both non-negative."""
    return apply("div", apply("add", expr, apply("sub", by, const(1))), by)


def evaluate(expr: Expr, values: Mapping[Expr, int], memo: dict[Expr, int] | None = None) -> int:
    """The number that `expr` is where its atoms have `values`. Raises: KeyError for an atom without one."""
    if expr.is_const:
        return expr[1]
    if expr.is_atom:
        return values[expr]
    memo = {} if memo is None else memo
    if expr not in memo:
        memo[expr] = OPERATIONS[expr[0]](*(evaluate(x, values, memo) for x in expr[1:]))
    return memo[expr]


def substitute(expr: Expr, by: Mapping[Expr, Expr], memo: dict[Expr, Expr] | None = None) -> Expr:
    """`expr` with atoms replaced."""
    if expr in by:
        return by[expr]
    if expr.is_atom:
        return expr
    memo = {} if memo is None else memo
    if expr not in memo:
        memo[expr] = apply(expr[0], *(substitute(x, by, memo) for x in expr[1:]))
        if expr in NAMES and not memo[expr].is_atom:
            NAMES.setdefault(memo[expr], NAMES[expr])
    return memo[expr]


def atoms_of(expr: Expr) -> frozenset[Expr]:
    """The atoms in it, constants left out."""
    if expr.is_const:
        return frozenset()
    if expr.is_atom:
        return frozenset((expr,))
    found = _ATOMS.get(expr)
    if found is None:
        found = _ATOMS[expr] = frozenset().union(*map(atoms_of, expr[1:]))
    return found


_ATOMS: dict[Expr, frozenset[Expr]] = {}
