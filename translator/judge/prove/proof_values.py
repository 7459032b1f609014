"""What the values of a module are to the prover: tensors as terms of their elements, views of shared memory, tensor descriptors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gluonize.judge.prove.terms.elements import Term, Terms, bits, is_integer
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type


class NotProved(Exception):
    """Something that the prover does not decide: why, and at which operation."""

    def __init__(self, why: str, op: Op | None = None):
        super().__init__(why)
        self.why, self.op = why, op


class Hazard(Exception):
    """What no correct kernel does: why, and at which operation."""

    def __init__(self, why: str, op: Op | None = None):
        super().__init__(why)
        self.why, self.op = why, op


class NeedConstant(Exception):
    """An index of slots that is no number yet: a loop has to be looked at by the remainder of its iteration."""

    def __init__(self, index: Term, extent: int, op: Op):
        super().__init__("an index of slots is not known")
        self.index, self.extent, self.op = index, extent, op


class NeedCase(Exception):
    """What lies in slots behind a loop depends on the remainder of its number of iterations."""

    def __init__(self, trips: Term, modulus: int, op: Op):
        super().__init__("slots behind a loop")
        self.trips, self.modulus, self.op = trips, modulus, op


UNKNOWN = "?"  # what is reached through a pointer that is no argument
# They stand for arguments that are stored to: by atomic operations whose result says what others have stored, and by those that tell others.
ACQUIRE, RELEASE = "acquire", "release"


class StoresTo(Exception):
    """A loop stores to an argument that it was not known to store to."""

    def __init__(self, name: str, frame: Any):
        super().__init__(name)
        self.name, self.frame = name, frame


@dataclass(frozen=True)
class Tensor:
    """A tensor or scalar: the term of its element at `idx(0), idx(1), ...`. shape: () of a scalar. element: `i32`, `f16`, `ptr`."""

    term: Term
    shape: tuple[int, ...]
    element: str
    pointee: str = ""


@dataclass(eq=False)
class Allocation:
    """A piece of shared memory."""

    key: tuple
    name: str
    shape: tuple[int, ...]
    element: str
    op: Op


@dataclass(frozen=True)
class View:
    """A part of an allocation. places: the index in each dimension of the allocation, of the view's indices; inverse: the view's index in
    each of its dimensions, of the allocation's indices; box: where it lies in the allocation."""

    allocation: Allocation
    shape: tuple[int, ...]
    places: tuple[Term, ...]
    inverse: tuple[Term, ...]
    box: tuple[tuple[int, int], ...]
    raw: bool = False  # seen as another type


@dataclass(frozen=True)
class Descriptor:
    """A tensor descriptor. sizes, strides: integers; block: the shape of a tile; offsets: how far it was moved; enabled: a condition."""

    base: Term
    sizes: tuple[Term, ...]
    strides: tuple[Term, ...]
    block: tuple[int, ...]
    element: str
    offsets: tuple[Term, ...]
    bounds: tuple[Term, ...]
    enabled: Term
    padding: int = 1


def indices(terms: Terms, shape: tuple[int, ...]) -> list[Term]:
    """The indices of a tensor."""
    return [terms.index(d, n) for d, n in enumerate(shape)]


def moved(terms: Terms, term: Term, shape: tuple[int, ...], to: list[Term]) -> Term:
    """The element of a tensor at other indices."""
    by = {}
    for d, (n, x) in enumerate(zip(shape, to)):
        if n > 1:
            by[terms.node("idx", (d, n), (), "int", 0, n - 1)] = x
    return terms.substitute(term, by)


def linear(terms: Terms, at: list[Term], shape: tuple[int, ...]) -> Term:
    """The number of an element in row-major order."""
    total = terms.integer(0)
    for x, n in zip(at, shape):
        total = terms.add(terms.scaled(total, n), x)
    return total


def unravelled(terms: Terms, number: Term, shape: tuple[int, ...]) -> list[Term]:
    """The indices of the element with a number."""
    out = []
    size = 1
    for n in reversed(shape):
        part = terms.div(number, terms.integer(size)) if size > 1 else number
        out.append(terms.rem(part, terms.integer(n)) if n > 1 else terms.integer(0))
        size *= n
    return out[::-1]


def again_shaped(terms: Terms, term: Term, shape: tuple[int, ...], wanted: tuple[int, ...]) -> Term:
    """A tensor in another shape, in row-major order."""
    kept, new = [n for n in shape if n > 1], [(d, n) for d, n in enumerate(wanted) if n > 1]
    if kept == [n for _, n in new]:  # dimensions of one element come and go
        at = iter(terms.index(d, n) for d, n in new)
        return moved(terms, term, shape, [next(at) if n > 1 else terms.integer(0) for n in shape])
    number = linear(terms, indices(terms, wanted), wanted)
    return moved(terms, term, shape, unravelled(terms, number, shape))


def symbol_of(term: Term) -> Term | None:
    """The symbol that an index is; None of one that is always 0."""
    if term.constant is not None:
        return None
    (monomial,) = term.poly
    return monomial[0]


def lam_over(terms: Terms, term: Term, shape: tuple[int, ...]) -> Term:
    """A tensor as a function of its indices."""
    return terms.lam(term, [symbol_of(terms.index(d, n)) for d, n in enumerate(shape)])


def element_of_type(kind: str, element: str) -> str:
    return "ptr" if kind == "ptr" else element


def wrap(terms: Terms, term: Term, element: str) -> Term:
    """An integer as its type has it: modulo its width."""
    return terms.reduced(term, bits(element))


def argument(t: Terms, x: Tensor) -> Term:
    """A value as an operand of what is not interpreted."""
    return t.value(x.term, bits(x.element)) if is_integer(x.element) else x.term


def like(term: Term, kind: Type) -> Tensor:
    """A tensor of a printed type."""
    element = element_of_type(kind.kind, kind.element)
    return Tensor(term, kind.shape or (), element, kind.element if kind.kind == "ptr" else "")


@dataclass(frozen=True)
class Access:
    """An access to global memory that has to be where the source accesses memory: its pointer as it is computed, and when."""

    pointer: Term
    mask: Term
    size: int
    kind: str  # `pointer`, `buffer`, `copy`; `assume`: `mask` is what must not be
    op: Op
    loops: tuple[tuple[Term, Term], ...] = ()  # iterations and how many there are, outermost first


def reached(base: Term) -> str:
    return base.data[0] if base.op == "argument" else UNKNOWN
