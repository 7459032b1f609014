"""Sums whatever their order: what is added up as one sum of all of it, also what a matrix product is added to.

Floating-point sums in another order give other last bits, so that a proof that needs this says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from gluonize.judge.prove.terms.elements import Term, Terms

ZEROS = ("0.000000e+00", "-0.000000e+00")


def in_any_order(t: Terms, effects: Sequence[Term]) -> list[Term]:
    """Effects with every sum in one order."""
    memo: dict[Term, Term] = {}

    def parts(x: Term, sign: int) -> list[tuple[Term, int]]:
        """What is added up in a term that has been walked, each with its sign."""
        if x.op == "sum":
            return [(y, sign * n) for y, n in zip(x.args, x.data[1])]
        if x.op == "float" and x.data in ZEROS:
            return []
        return [(x, sign)]

    def total(element: str, given: list[tuple[Term, int]]) -> Term:
        given = sorted(given, key=lambda part: (part[0].number, part[1]))
        if not given:
            return t.node("float", ZEROS[0], (), element)
        if len(given) == 1 and given[0][1] == 1:
            return given[0][0]
        return t.node("sum", (element, tuple(n for _, n in given)), [x for x, _ in given], element)

    def walk(x: Term) -> Term:
        found = memo.get(x)
        if found is not None:
            return found
        args = [walk(y) for y in x.args]
        if x.op in ("addf", "subf"):
            out = total(x.element, parts(args[0], 1) + parts(args[1], 1 if x.op == "addf" else -1))
        elif x.op == "negf":
            out = total(x.element, parts(args[0], -1))
        elif x.op == "dot" and x.element[0] == "f":
            product = t.node("dot", x.data, (*args[:2], t.node("float", ZEROS[0], (), x.element), *args[3:]), x.element)
            out = total(x.element, [*parts(args[2], 1), (product, 1)])
        else:
            out = t.rebuilt(x, args)
        memo[x] = out
        return out

    return [walk(x) for x in effects]
