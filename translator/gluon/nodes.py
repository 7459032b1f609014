"""What the body of a pipelined loop is made of, as far as passes look into it: tree -> tree, printed at the end.

One principle makes passes possible: **the author's code is opaque but for the nodes in it**. `Code` is text in which what passes
ask for stands as a node of its own:

    acc += a_smem.index(slot).load(l) * s      ("acc += ", Read(Slot("a_smem", "slot"), "l"), " * s")

Which variables the author's code reads and binds is known from the facts, and stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, Union

from gluonize.diagnostics import InternalError


@dataclass(frozen=True)
class Node:
    """Base of everything below; all are frozen and compare by value. lines: for each line of its text that of the source which it came
    from, 0 for none; a single number is for all of them."""

    lines: tuple[int, ...] = field(default=(), compare=False, repr=False, kw_only=True)


Code = tuple[Union[str, Node], ...]


@dataclass(frozen=True)
class Unnamed(Node):
    """A name that is given when the whole function is known. of: what has it: a layout, a variable in a layout, a version of a helper."""

    of: Any

    def __str__(self) -> str:
        raise InternalError(f"a name that is not given yet is taken for text: {self!r}")


Name = Union[str, Unnamed]
NONE: frozenset[Name] = frozenset()


# Numbers -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number(Node):
    """A literal, or what a variable or an expression gives."""

    text: Any


@dataclass(frozen=True)
class Current(Node):
    """The number of the tile that this iteration is about, as the loop spells it."""

    text: Any = ""


@dataclass(frozen=True)
class Binary(Node):
    left: Node
    op: str
    right: Node


@dataclass(frozen=True)
class Least(Node):
    """`min(left, right)`."""

    left: Node
    right: Node


@dataclass(frozen=True)
class Previous(Node):
    """The slot before `slot` in a ring of `count`. function: what computes it; "" for a selection."""

    slot: Node
    count: Node
    function: str = ""


ONE = Number("1")


# Places in LDS -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot(Node):
    """`ring.index(index)`; tile: which one is to lie there, or to be put there."""

    ring: str
    index: str
    tile: Node = Current()


@dataclass(frozen=True)
class Named(Node):
    """A variable that is a place in LDS: a tile's slot, or a buffer."""

    name: Name


@dataclass(frozen=True)
class Permuted(Node):
    place: Place
    order: tuple[int, ...]


@dataclass(frozen=True)
class Part(Node):
    """`size` rows or columns of a place, along dimension `dim`."""

    place: Place
    start: int
    size: int
    dim: int


Place = Union[Slot, Named, Permuted, Part]

# Expressions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Read(Node):
    """What lies at a place, in registers. layout: how that is spelled; relaxed: the module whose reads do not wait for copies; else empty."""

    place: Place
    layout: Code
    relaxed: str = ""


@dataclass(frozen=True)
class Variable(Node):
    name: Name


@dataclass(frozen=True)
class ElementType(Node):
    """`name.dtype`."""

    name: str


@dataclass(frozen=True)
class Operand(Node):
    """An operand of a matrix instruction; reads: beside the nodes in it; stem: the variable that it is made from."""

    code: Code
    stem: str
    reads: frozenset[Name] = NONE

    @property
    def is_variable(self) -> bool:
        only = self.code[0] if len(self.code) == 1 else None
        return isinstance(only, Unnamed) or isinstance(only, str) and only.isidentifier()


@dataclass(frozen=True)
class Product(Node):
    """A matrix instruction; its operands are nodes in the call. reads: what it reads beside those."""

    code: Code
    reads: frozenset[Name] = NONE


# Statements, without indentation -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line(Node):
    """A statement of ours, or a comment, that no pass looks into."""

    code: Code

    @property
    def is_comment(self) -> bool:
        """Whether it is no statement; so is an empty line."""
        return isinstance(self.code[0], str) and (self.code == ("",) or self.code[0].startswith("#"))


@dataclass(frozen=True)
class Assign(Node):
    """An assignment to a variable; code: the whole statement. name: the author's variable that the target stands for.

    reads: what it reads beside the nodes in it.
    """

    target: Name
    code: Code
    name: str = ""
    reads: frozenset[Name] = NONE

    @property
    def value(self) -> Code | None:
        """The right side of a plain assignment; None where the statement is written in another way."""
        head, own = " = ", self.code
        if isinstance(self.target, Unnamed):
            own = own[1:] if own[0] == self.target else ("",)
        else:
            head = f"{self.target} = "
        first = own[0] if own else ""
        if not isinstance(first, str) or not first.startswith(head):
            return None
        rest = first.removeprefix(head)
        return (rest, *own[1:]) if rest else own[1:]


@dataclass(frozen=True)
class Authored(Node):
    """Statements of the author's as rewritten. verbatim: with their indentation, as some of their lines begin left of the block."""

    code: Code
    reads: frozenset[Name] = NONE
    binds: frozenset[Name] = NONE
    verbatim: bool = False


@dataclass(frozen=True)
class Choose(Node):
    """A slot that the iteration uses: `target = number`."""

    target: str
    number: Node


@dataclass(frozen=True)
class Fill(Node):
    """A copy into a slot, which is under way from here on: in the group that the next `Commit` closes, or counted by itself."""

    code: Code
    grouped: bool


@dataclass(frozen=True)
class Commit(Node):
    text: str


@dataclass(frozen=True)
class Wait(Node):
    """Until at most `left` groups, or copies that are counted by themselves, are under way; all warps meet."""

    function: str
    left: Node
    grouped: bool


@dataclass(frozen=True)
class Barrier(Node):
    """All warps meet."""


@dataclass(frozen=True)
class Load(Node):
    """A load of the tile `tile` to a variable, from which `Store` takes it."""

    code: Code
    target: str
    tile: Node


@dataclass(frozen=True)
class Store(Node):
    """What `source` holds goes to a slot, which `code` names."""

    code: Code
    source: str


@dataclass(frozen=True)
class When(Node):
    """The body, where there is a tile `tile` of `count`; decided while compiling."""

    tile: Node
    count: Node
    body: tuple[Node, ...]


@dataclass(frozen=True)
class Stage(Node):
    """What one group of warps does while the other is in a stage of the other kind."""

    kind: str
    priority: int
    body: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat(Node):
    """The body `count` times, for each value of a number that is then a literal."""

    name: str
    count: Node
    body: tuple[Node, ...]


@dataclass(frozen=True)
class Pipelined(Node):
    """A loop whose tiles come in slots: what stands before it, its body, and what stands behind it.

    depth: how the number of slots is spelled, and how many it needs; count: how the number of tiles is, of a loop that is written
    out; trips: the numbers that there can be, () for any. unrolled: whether the body is that of as many iterations as there
    are slots.
    """

    before: tuple[Node, ...]
    body: tuple[Node, ...]
    after: tuple[Node, ...]
    depth: str
    fewest: int = 2
    count: str = ""
    trips: tuple[int, ...] = ()
    unrolled: bool = False


# Walking -------------------------------------------------------------------------------------------------------------

Tree = TypeVar("Tree", bound=Any)


def mapped(node: Tree, change: Callable[[Node], Node]) -> Tree:
    """`node` with `change` applied to each direct part; the same object where nothing changes."""
    if isinstance(node, tuple):
        out = tuple(change(item) if isinstance(item, Node) else mapped(item, change) for item in node)
        return node if all(a is b for a, b in zip(out, node)) else out
    if not isinstance(node, Node):
        return node
    old = {part.name: getattr(node, part.name) for part in fields(node)}
    new = {k: change(v) if isinstance(v, Node) else mapped(v, change) for k, v in old.items()}
    changed = {k: v for k, v in new.items() if v is not old[k]}
    return replace(node, **changed) if changed else node


def walk(node: Any) -> Iterator[Node]:
    """`node` and all that is in it, in the order in which it is written."""
    if isinstance(node, Node):
        yield node
        for part in fields(node):
            yield from walk(getattr(node, part.name))
    elif isinstance(node, tuple):
        for item in node:
            yield from walk(item)


def reads(node: Any) -> frozenset[Name]:
    """The variables that are read anywhere in `node`; element types of variables are not read."""
    found = {n.name for n in walk(node) if isinstance(n, (Named, Variable))}
    return frozenset(found.union(*(getattr(n, "reads", NONE) for n in walk(node))))


def binds(node: Any) -> frozenset[Name]:
    """The variables that are bound anywhere in `node`."""
    found = {name for n in walk(node) if isinstance(n, Assign) for name in (n.target, n.name) if name}
    return frozenset(found.union(*(n.binds for n in walk(node) if isinstance(n, Authored))))


def beside(names: frozenset[Name], code: Code) -> frozenset[Name]:
    """Those of the variables which an expression reads that are not places in LDS which nodes in it read."""
    return names - {n.name for n in walk(code) if isinstance(n, Named)}


def places(node: Any) -> list[Node]:
    """The slots and variables in LDS that are read or named anywhere in `node`."""
    return [n for n in walk(node) if isinstance(n, (Slot, Named))]
