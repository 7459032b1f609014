"""Entries of layouts as functions of a launch's sizes: products of powers of two within bounds.

Triton's passes derive an entry by multiplying and dividing tile sizes, warps and lanes, and by keeping the result within bounds; so
an entry is `between(c * P, least, most)`, where P is a product of sizes with exponents -1, 0 and 1, and `most` a number or a size
times a number. All are powers of two. `fit` finds the simplest such function that gives every sample.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Sizes = Mapping[str, int]
ROOT = "root"
FEW = 8  # samples that formulas are compared with first
MOST_POWER = 12  # of two, by which a product is multiplied or divided under a root


@dataclass(frozen=True)
class Product:
    """2 ** `power` times sizes to the power 1 or -1; rounded down, as an entry of less than 1 is none."""

    power: int
    exponents: tuple[tuple[str, int], ...] = ()
    root: bool = False  # its square root, rounded down: how warps are shared out over the two sides of a tile

    def log(self, sizes: Sizes) -> int:
        log = self.power + sum(e * _log(sizes[name]) for name, e in self.exponents)
        return log // 2 if self.root else log

    def text(self, spelled: Callable[[str], str]) -> str:
        """As Python: `BLOCK // (64 * gl.num_warps())`."""
        above = [spelled(name) for name, e in self.exponents if e > 0]
        below = [spelled(name) for name, e in self.exponents if e < 0]
        (above if self.power >= 0 else below).insert(0, str(2 ** abs(self.power)))
        above, below = ([x for x in side if x != "1"] for side in (above, below))
        over = " * ".join(above) or "1"
        under = " * ".join(below)
        whole = over if not below else f"{over} // {f'({under})' if len(below) > 1 else under}"
        return f"{spelled(ROOT)}({whole})" if self.root else whole


@dataclass(frozen=True)
class Formula:
    """`between(value, least, most)`; least and most: None where they do not matter. Least is a number."""

    value: Product
    least: int | None = None
    most: Product | None = None

    def at(self, sizes: Sizes) -> int:
        log = self.value.log(sizes)
        log = log if self.least is None else max(log, _log(self.least))
        log = log if self.most is None else min(log, self.most.log(sizes))
        return 2**log if log >= 0 else 0

    @property
    def sizes(self) -> frozenset[str]:
        parts = (self.value, *([self.most] if self.most is not None else []))
        return frozenset(name for part in parts for name, _ in part.exponents)

    @property
    def function(self) -> str:
        """What keeps the value within bounds: `between`, `at_least` or `at_most`; empty where it has none."""
        if self.least is None:
            return "" if self.most is None else "at_most"
        return "at_least" if self.most is None else "between"

    @property
    def functions(self) -> frozenset[str]:
        """The functions that the text calls."""
        return frozenset({self.function, ROOT if self.value.root else ""} - {""})

    def text(self, spelled: Callable[[str], str] = str) -> str:
        """As Python; spelled: how a size is written, and a function that keeps a value within bounds."""
        value = self.value.text(spelled)
        bounds = [str(self.least)] * (self.least is not None) + ([] if self.most is None else [self.most.text(spelled)])
        return f"{spelled(self.function)}({', '.join([value, *bounds])})" if bounds else value


def fit(samples: Sequence[tuple[Sizes, int]]) -> Formula | None:
    """The simplest formula that gives the entry of every sample; None where there is none.

    samples: (sizes, entry); all have the same sizes, and all numbers are powers of two.
    """
    if any(entry < 1 or entry & (entry - 1) for _, entry in samples):
        return None
    entries = [_log(entry) for _, entry in samples]
    if len(set(entries)) == 1:
        return Formula(Product(entries[0]))
    names = [n for n in samples[0][0] if len({sizes[n] for sizes, _ in samples}) > 1]
    few = _few(samples, entries)
    some = [samples[i] for i in few], [entries[i] for i in few]
    for search in (_unbounded, _bounded, _bounded_by_a_size, _rooted):
        for exponents in _exponents(names):
            # What gives all samples gives some: of exponents that give these, few are left.
            if search(exponents, *some) is not None and (found := search(exponents, samples, entries)) is not None:
                return found
    return None


def _few(samples: Samples, entries: Sequence[int]) -> list[int]:
    """The numbers of a few samples: one for each entry, those with the ends of each size, and some all over the others."""
    every = range(len(entries))
    found = {next(i for i in every if entries[i] == entry) for entry in set(entries)}
    for name in samples[0][0]:
        found |= {end(every, key=lambda i: samples[i][0][name]) for end in (min, max)}
    return sorted({*found, *range(0, len(entries), max(1, len(entries) // FEW))})


def _exponents(names: Sequence[str]) -> Iterator[tuple[tuple[str, int], ...]]:
    """Exponents of some of the sizes, few first, and positive ones before negative ones."""
    every = [e for e in itertools.product((0, 1, -1), repeat=len(names)) if any(e)]
    for exponents in sorted(every, key=lambda e: (sum(map(abs, e)), e.count(-1))):
        yield tuple((name, e) for name, e in zip(names, exponents) if e)


Exponents = tuple[tuple[str, int], ...]
Samples = Sequence[tuple[Sizes, int]]


def _unbounded(exponents: Exponents, samples: Samples, entries: list[int]) -> Formula | None:
    powers = {y - Product(0, exponents).log(sizes) for (sizes, _), y in zip(samples, entries)}
    return Formula(Product(powers.pop(), exponents)) if len(powers) == 1 else None


def _bounded(exponents: Exponents, samples: Samples, entries: list[int]) -> Formula | None:
    return _within(exponents, samples, entries, Product(max(entries)))


def _bounded_by_a_size(exponents: Exponents, samples: Samples, entries: list[int]) -> Formula | None:
    for name, exponent in itertools.product(samples[0][0], (1, -1)):
        logs = [exponent * _log(sizes[name]) for sizes, _ in samples]
        if len(set(logs)) == 1:
            continue
        most = Product(max(y - x for x, y in zip(logs, entries)), ((name, exponent),))
        if (found := _within(exponents, samples, entries, most)) is not None:
            return found
    return None


def _rooted(exponents: Exponents, samples: Samples, entries: list[int]) -> Formula | None:
    """The root of a product, within bounds."""
    least = min(entries)
    bounds = [Product(max(entries))]
    for name, _ in exponents:
        above = max(y - _log(sizes[name]) for (sizes, _), y in zip(samples, entries))
        bounds.append(Product(above, ((name, 1),)))
    for most, power in itertools.product(bounds, sorted(range(-MOST_POWER, MOST_POWER + 1), key=abs)):
        value = Product(power, exponents, root=True)
        if all(min(max(value.log(s), least), most.log(s)) == y for (s, _), y in zip(samples, entries)):
            return _bounds(value, least, most, samples)
    return None


def _within(exponents: Exponents, samples: Samples, entries: list[int], most: Product) -> Formula | None:
    """The product with a factor that fits, between the least entry and `most`."""
    least = min(entries)
    product = Product(0, exponents)
    rows = [(product.log(sizes), y, most.log(sizes)) for (sizes, _), y in zip(samples, entries)]
    if any(y > top for _, y, top in rows):
        return None
    inside = {y - x for x, y, top in rows if least < y < top}
    above = [y - x for x, y, top in rows if y == top and y > least]
    below = [y - x for x, y, top in rows if y == least and y < top]
    if not (inside or above or below):
        return None
    low = max([*inside, *above]) if inside or above else min(below)
    high = min([*inside, *below]) if inside or below else low
    if low > high:
        return None
    found = [_bounds(Product(power, exponents), least, most, samples) for power in (low, high)]
    return min(found, key=lambda formula: (formula.least is not None) + (formula.most is not None))


def _bounds(value: Product, least: int, most: Product, samples: Samples) -> Formula:
    """`value` with the bounds that matter for some sample."""
    lower = any(value.log(sizes) < least for sizes, _ in samples)
    upper = any(value.log(sizes) > most.log(sizes) for sizes, _ in samples)
    return Formula(value, 2**least if lower else None, most if upper else None)


def _log(number: int) -> int:
    return number.bit_length() - 1


__all__ = ["Formula", "Product", "Sizes", "fit"]
