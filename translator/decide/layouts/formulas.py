"""Entries of layouts as functions of a launch's sizes: products of powers of two within bounds.

Triton's passes derive an entry by multiplying and dividing tile sizes, warps and lanes, and by keeping the result within bounds; so
an entry is `min(max(c * P, least), most)`, where P is a product of sizes with exponents -1, 0 and 1, and `most` a number or a size
times a number. All are powers of two. `fit` finds the simplest such function that gives every sample.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Sizes = Mapping[str, int]
ROOT, MIN, MAX = "root", "min", "max"
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


def sum_text(products: Sequence[Product], spelled: Callable[[str], str]) -> str:
    """Several products added up, as Python, what they share written once: `2 * BLOCK_K * (BLOCK_M + BLOCK_N)`."""
    first, *others = products
    exponents = tuple(e for e in first.exponents if all(e in other.exponents for other in others))
    shared = Product(min(product.power for product in products), exponents)
    left = [
        Product(product.power - shared.power, tuple(e for e in product.exponents if e not in exponents))
        for product in products
    ]
    plain = not any(product.root or product.power < 0 or _has_divisors(product) for product in products)
    if not plain or shared == Product(0) or len(set(left)) == 1 < len(left):
        return " + ".join(product.text(spelled) for product in products)
    rest = " + ".join(product.text(spelled) for product in left)
    return shared.text(spelled) if rest == "1" else f"{shared.text(spelled)} * ({rest})"


def _has_divisors(product: Product) -> bool:
    return any(exponent < 0 for _, exponent in product.exponents)


@dataclass(frozen=True)
class Formula:
    """`min(max(value, least), most)`; least and most: None where they do not matter. Least is a number."""

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
    def functions(self) -> frozenset[str]:
        """The functions that the text calls."""
        bounds = [MAX] * (self.least is not None) + [MIN] * (self.most is not None)
        return frozenset(bounds + [ROOT] * self.value.root)

    @property
    def is_bounded(self) -> bool:
        return self.least is not None or self.most is not None

    def text(self, spelled: Callable[[str], str] = str) -> str:
        """As Python; spelled: how sizes and functions are written."""
        text = self.value.text(spelled)
        text = text if self.least is None else f"{spelled(MAX)}({text}, {self.least})"
        return text if self.most is None else no_more_than(self.most.text(spelled), text, spelled)


def no_more_than(most: str, value: str, spelled: Callable[[str], str]) -> str:
    """The call that keeps an entry below a bound: `min(N // 64, 8)`."""
    return f"{spelled(MIN)}({value}, {most})"


def fit(samples: Sequence[tuple[Sizes, int]]) -> Formula | None:
    """The simplest formula that gives the entry of every sample; None where there is none.

    samples: (sizes, entry); all have the same sizes, and all numbers are powers of two.
    """
    names = tuple(samples[0][0])
    return _fitted(names, tuple((*(sizes[name] for name in names), entry) for sizes, entry in samples))


# Many entries of many layouts are alike, and a search asks again after each launch that it tries.
@functools.lru_cache(maxsize=4096)
def _fitted(names: tuple[str, ...], rows: tuple[tuple[int, ...], ...]) -> Formula | None:
    """`fit`, of samples as rows: sizes of these names, and the entry."""
    samples = [(dict(zip(names, row)), row[-1]) for row in rows]
    if any(entry < 1 or entry & (entry - 1) for _, entry in samples):
        return None
    entries = [_log(entry) for _, entry in samples]
    if len(set(entries)) == 1:
        return Formula(Product(entries[0]))
    table = _Table.of(samples, entries)
    if not table.exponents:
        return None
    for search in (_unbounded, _bounded, _bounded_by_a_size, _rooted):
        if (found := search(table)) is not None:
            return found
    return None


Exponents = tuple[tuple[str, int], ...]
Samples = Sequence[tuple[Sizes, int]]


@dataclass(frozen=True, eq=False)
class _Table:
    """Samples by rows of numbers, so that all exponents are tried at once. logs: of each size in every sample; entries: logs of those;
    exponents: what a formula may have, few first, and positive ones before negative ones; products: for each of these, the log of
    the product in every sample."""

    logs: Mapping[str, np.ndarray]
    entries: np.ndarray
    exponents: Sequence[Exponents]
    products: np.ndarray

    @classmethod
    def of(cls, samples: Samples, entries: Sequence[int]) -> _Table:
        logs = {name: np.array([_log(sizes[name]) for sizes, _ in samples]) for name in samples[0][0]}
        names = [name for name, row in logs.items() if row.min() < row.max()]
        every = [e for e in itertools.product((0, 1, -1), repeat=len(names)) if any(e)]
        every.sort(key=lambda e: (sum(map(abs, e)), e.count(-1)))
        exponents = [tuple((name, e) for name, e in zip(names, row) if e) for row in every]
        rows = np.array([logs[name] for name in names], dtype=np.int64).reshape(len(names), len(entries))
        products = np.array(every, dtype=np.int64).reshape(len(every), len(names)) @ rows
        return cls(logs, np.array(entries), exponents, products)

    def log(self, product: Product) -> np.ndarray:
        """The log of a product without a root in every sample."""
        return product.power + sum((e * self.logs[name] for name, e in product.exponents), np.zeros_like(self.entries))


def _unbounded(table: _Table) -> Formula | None:
    powers = table.entries - table.products
    fits = np.flatnonzero(powers.min(axis=1) == powers.max(axis=1))
    return Formula(Product(int(powers[fits[0], 0]), table.exponents[fits[0]])) if fits.size else None


def _bounded(table: _Table) -> Formula | None:
    found = _within(table, Product(int(table.entries.max())))
    return None if found is None else found[1]


def _bounded_by_a_size(table: _Table) -> Formula | None:
    best: tuple[int, Formula] | None = None
    for name, exponent in itertools.product(table.logs, (1, -1)):
        logs = exponent * table.logs[name]
        if logs.min() < logs.max():
            most = Product(int((table.entries - logs).max()), ((name, exponent),))
            found = _within(table, most)
            best = found if best is None or found is not None and found[0] < best[0] else best
    return None if best is None else best[1]


def _rooted(table: _Table) -> Formula | None:
    """The root of a product, within bounds."""
    least, entries = int(table.entries.min()), table.entries
    bounds = [(Product(int(entries.max())), range(len(table.exponents)))]
    for name, logs in table.logs.items():
        has = [i for i, exponents in enumerate(table.exponents) if name in dict(exponents)]
        bounds.append((Product(int((entries - logs).max()), ((name, 1),)), has))  # type: ignore[arg-type]
    best: tuple[int, Formula] | None = None
    for most, rows in bounds:
        top, products = table.log(most), table.products[list(rows)]
        for power in sorted(range(-MOST_POWER, MOST_POWER + 1), key=abs):
            found = np.minimum(np.maximum((products + power) // 2, least), top)
            fits = np.flatnonzero((found == entries).all(axis=1))
            if fits.size and (best is None or rows[fits[0]] < best[0]):
                row = rows[fits[0]]
                best = row, _bounds(table, Product(power, table.exponents[row], root=True), least, most)
    return None if best is None else best[1]


def _within(table: _Table, most: Product) -> tuple[int, Formula] | None:
    """The first product that fits with a factor, between the least entry and `most`, and its number."""
    entries, top = table.entries, table.log(most)
    least = int(entries.min())
    if (entries > top).any():
        return None
    differences = entries - table.products
    sure = (entries > least) & (entries < top)  # where the product itself has to be the entry
    above, below = (entries == top) & (entries > least), (entries == least) & (entries < top)
    if not (sure | above | below).any():
        return None
    at_least, at_most = differences[:, sure | above], differences[:, sure | below]
    low = at_least.max(axis=1) if at_least.shape[1] else at_most.min(axis=1)
    high = at_most.min(axis=1) if at_most.shape[1] else low
    fits = np.flatnonzero(low <= high)
    if not fits.size:
        return None
    row = int(fits[0])
    exponents = table.exponents[row]
    found = [_bounds(table, Product(int(power[row]), exponents), least, most) for power in (low, high)]
    return row, min(found, key=lambda formula: (formula.least is not None) + (formula.most is not None))


def _bounds(table: _Table, value: Product, least: int, most: Product) -> Formula:
    """`value` with the bounds that matter for some sample."""
    log = table.log(value)
    log = log // 2 if value.root else log
    lower, upper = bool((log < least).any()), bool((log > table.log(most)).any())
    return Formula(value, 2**least if lower else None, most if upper else None)


def _log(number: int) -> int:
    return number.bit_length() - 1


__all__ = ["Formula", "MAX", "MIN", "Product", "ROOT", "Sizes", "fit", "no_more_than", "sum_text"]
