"""One expression for a number that many iterations of many runs gave.

A number is known from each of them as a value and as an expression of the loops that it was computed in. These may be those of
another partition, or of an earlier iteration; what is wanted is an expression of the loops in which it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from gluonize.lift.values.scalars import Expr, Scalar, apply, atoms_of, const, evaluate, from_terms, substitute, terms

MOST_CANDIDATES = 400
MOST_SAMPLES = 12  # whose expressions are tried


@dataclass(frozen=True)
class Sample:
    """One use. values: of arguments, program numbers and the variables of the loops around the use; own: iterations that are
    such a variable; foreign: the other iterations with their values; trips: how often the loop of a variable runs, and of a foreign
    iteration; ends: the same of foreign iterations as an expression, where there is one.
    """

    values: Mapping[Expr, int]
    own: Mapping[Expr, Expr]
    foreign: Mapping[Expr, int]
    trips: Mapping[Expr, int]
    ends: Mapping[Expr, Expr]

    def variables(self) -> list[Expr]:
        return [x for x in self.values if x[0] == "var"]


def fit(found: Sequence[tuple[Scalar, Sample]]) -> Expr | None:
    """The expression that gives every value, None where none of those that were computed does."""
    first = found[0][0].value
    if all(scalar.expr.is_const for scalar, _ in found) and all(scalar.value == first for scalar, _ in found):
        return const(first)
    tried: set[Expr] = set()
    for scalar, sample in _telling(found):
        for candidate in _candidates(scalar.expr, sample, scalar.value):
            if candidate in tried:
                continue
            tried.add(candidate)
            if _gives(candidate, found):
                return candidate
            if len(tried) > MOST_CANDIDATES:
                return None
    return _line(found)


def _telling(found: Sequence[tuple[Scalar, Sample]]) -> list[tuple[Scalar, Sample]]:
    """Samples whose expressions say most: those of most loops, of each kind the last."""
    kinds: dict[tuple, tuple[Scalar, Sample]] = {}
    for scalar, sample in found:
        atoms = atoms_of(scalar.expr)
        key = (len(atoms & sample.foreign.keys()), len(atoms & sample.own.keys()), len(atoms))
        kinds.setdefault((*key, "first"), (scalar, sample))
        kinds[key] = (scalar, sample)
    order = sorted(kinds, key=lambda key: tuple(-n for n in key[:3]))
    return [kinds[key] for key in order[:MOST_SAMPLES]]


STALE = (0, -1, 1, -2)  # iterations from which a carried number may come, from the one that uses it


def _candidates(expr: Expr, sample: Sample, value: int) -> Iterator[Expr]:
    """The expression with every iteration told by a variable and a distance, the likeliest first."""
    keys = sorted((x for x in atoms_of(expr) if x[0] == "it"), key=lambda x: x[1])
    if len(keys) > 4:
        return
    now = {}
    for x in keys:
        if x in sample.own:
            now[x] = sample.values[sample.own[x]]
        elif x in sample.foreign:
            now[x] = sample.foreign[x]
        else:
            return
    for distances in sorted(product(STALE, repeat=len(keys)), key=lambda d: sum(map(abs, d))):
        then = {x: now[x] + d for x, d in zip(keys, distances)}
        try:
            if evaluate(expr, {**sample.values, **then}) != value:
                continue
        except KeyError:
            return
        choices = [_choices(x, then[x], sample) for x in keys]
        for chosen in product(*choices):
            yield substitute(expr, dict(zip(keys, chosen)))


def _choices(x: Expr, value: int, sample: Sample) -> list[Expr]:
    """What an iteration may be told by, the likeliest first: its own variable, one of a loop of as many iterations."""
    if x in sample.own:
        variable = sample.own[x]
        return [apply("add", variable, const(value - sample.values[variable]))]
    options = []
    for variable in sample.variables():
        distance = value - sample.values[variable]
        alike = sample.trips.get(variable) == sample.trips.get(x)
        options.append((abs(distance), not alike, apply("add", variable, const(distance))))
    options.sort(key=lambda option: option[:2])
    ends = [apply("add", sample.ends[x], const(value - sample.trips[x]))] if x in sample.ends else []
    return [option[2] for option in options] + ends + [const(value)]


def _gives(candidate: Expr, found: Sequence[tuple[Scalar, Sample]]) -> bool:
    for scalar, sample in found:
        try:
            if evaluate(candidate, sample.values) != scalar.value:
                return False
        except KeyError:
            return False
    return True


def _line(found: Sequence[tuple[Scalar, Sample]]) -> Expr | None:
    """A line in one variable beside what is the same everywhere, for numbers that an unrolled text has instead: `0, 64, 128`."""
    rests, points = set(), []
    for scalar, sample in found:
        parts = dict(terms(substitute(scalar.expr, dict(sample.own))))
        points.append((parts.pop((), 0), sample))
        rests.add(from_terms(parts))
    if len(rests) != 1:
        return None
    rest = rests.pop()
    for variable in found[0][1].variables()[::-1]:
        seen = {sample.values.get(variable): number for number, sample in points}
        if len(seen) < 2 or None in seen:
            continue
        (x, y), (x2, y2) = list(seen.items())[:2]
        slope, left = divmod(y2 - y, x2 - x)
        if left:
            continue
        line = apply("add", rest, apply("add", apply("mul", variable, const(slope)), const(y - slope * x)))
        if _gives(line, found):
            return line
    return None
