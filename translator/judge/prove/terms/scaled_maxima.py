"""A product with a positive number keeps the order of what is multiplied, rounding included: the greatest of what is scaled is the greatest, scaled.

So such products are written in one way: behind a maximum, and in front of a selection of an infinity, which they leave as it is. Each number
lies between LEAST and MOST, and they are no more than MOST_FACTORS: their product is a normal number of 32 bits. Of zeros of both signs a
maximum may be either one.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from gluonize.judge.prove.terms.elements import Term, Terms

LEAST, MOST = 2.0**-30, 2.0**30
MOST_FACTORS = 4
_ORDERED = ("maximumf", "maxnumf", "minimumf", "minnumf")


def multiplied(t: Terms, data: Any, args: Sequence[Term]) -> Term:
    """The product of two numbers of 32 bits."""
    for x, by in (args, args[::-1]):
        if x.op == "sel" and is_positive(t, by) and any(map(_is_infinite, x.args[1:])):
            ways = [way if _is_infinite(way) else multiplied(t, data, (way, by)) for way in x.args[1:]]
            return t.select(x.args[0], *ways)
    return t.node("mulf", data, sorted(args), "f32")


def ordered(function: Sequence[Term]) -> bool:
    """Whether a function of two numbers of 32 bits gives the greater or the lesser one."""
    return len(function) == 1 and function[0].op in _ORDERED and [x.op for x in function[0].args] == ["sym", "sym"]


def scaled(t: Terms, x: Term) -> tuple[Term, Term, Any] | None:
    """(what is multiplied, by which positive number, what the product says) of a product, also where some of it is an infinity instead."""
    if x.op == "mulf" and x.element == "f32":
        found = next(((a, b) for a, b in (x.args, x.args[::-1]) if is_positive(t, b)), None)
        return None if found is None else (*found, x.data)
    if x.op != "sel":
        return None
    ways = [(way, None, None) if _is_infinite(way) else scaled(t, way) for way in x.args[1:]]
    by = {(way[1], way[2]) for way in ways if way is not None and way[1] is not None}
    if None in ways or len(by) != 1:
        return None
    return (t.select(x.args[0], *(way[0] for way in ways if way is not None)), *by.pop())  # type: ignore[return-value]


def is_positive(t: Terms, x: Term) -> bool:
    """Whether `x` is a product of few positive numbers of 32 bits, the same for all elements."""
    found = _factors(t, x)
    return found is not None and found <= MOST_FACTORS


def _factors(t: Terms, x: Term) -> int | None:
    if x.element != "f32":
        return None
    if x in t.positive:
        return 1
    if x.op == "float":
        value = _value(x)
        return 1 if value is not None and LEAST <= value <= MOST else None
    if x.op not in ("mulf", "divf"):
        return None
    parts = [_factors(t, part) for part in x.args]
    return None if None in parts else sum(parts)  # type: ignore[arg-type]


def _is_infinite(x: Term) -> bool:
    value = _value(x) if x.op == "float" and x.element == "f32" else None
    return value is not None and math.isinf(value)


def _value(x: Term) -> float | None:
    """The number that a constant is spelled as."""
    text = str(x.data)
    try:
        return struct.unpack(">f", bytes.fromhex(text[2:]))[0] if text.startswith("0x") else float(text)
    except (ValueError, struct.error):
        return None


__all__ = ["is_positive", "multiplied", "ordered", "scaled"]
