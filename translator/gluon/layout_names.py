"""Names for the layouts of one function: `Unnamed` while it is written, roles at the end.

When the tree of a function is final, each root layout that still occurs becomes a named constexpr at the top of the function, named
after its most telling use.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from gluonize.decide.layouts.constructors import constructor
from gluonize.gluon.nodes import Unnamed
from gluonize.gluon.written import Written, call, name
from gluonize.numbered import numbered
from gluonize.trace.model.layouts import Blocked, DotOperand, Layout, Linear, Mfma, SharedLayout, Slice, Wmma

_USES = ("_load", "_operand", "_layout")  # how names of layouts end
_OF_TILES = ("_load", "_operand")  # what is read in the layout of a product is so because a product wants it


@dataclass(frozen=True)
class Asked(Layout):
    """The layout that the function's text asks a tensor for, such as `y.type.layout`: each specialization has its own."""

    text: str
    dimensions: int

    @property
    def rank(self) -> int:
        return self.dimensions


@dataclass(frozen=True)
class Variant:
    """A variable in another layout than the one that has its name: `root`, which has a name, or the slices of it in `tag`."""

    variable: str
    root: Layout
    tag: str


@dataclass(frozen=True)
class Tile:
    """What has a layout. shape: its dimensions, and their texts; dtype: the element type, by Gluon's name and by its text in the function, ""
    where neither is known."""

    shape: tuple[int, ...]
    dimensions: tuple[str, ...]
    dtype: tuple[str, str] = ("", "")


@dataclass
class LayoutNames:
    """What layouts of one function are for. roles: the uses of each; tiles: the first tile of each for which one is told; spelled: those
    that its code has named so far; slices: slices of slices of slices have names too."""

    roles: dict[Layout, list[tuple[int, int, str]]] = field(default_factory=dict)
    tiles: dict[Layout, Tile] = field(default_factory=dict)
    spelled: dict[Layout, None] = field(default_factory=dict)
    slices: bool = False

    def spell(self, layout: Layout) -> Written:
        """The expression for `layout`, whose named part has no name yet."""
        if isinstance(layout, Slice):
            parent = self.spell(layout.parent)
            if not (self.slices and isinstance(layout.parent, Slice) and isinstance(layout.parent.parent, Slice)):
                return call("gl.SliceLayout", str(layout.dim), parent)
        self.spelled.setdefault(layout)
        return name(Unnamed(layout))

    def variant(self, variable: str, layout: Layout) -> Unnamed:
        """The name of the variant of a variable in `layout`."""
        root = unsliced(layout)
        self.spelled.setdefault(root)
        return Unnamed(Variant(variable, root, _slice_tag(layout)))

    def with_those_of(self, other: LayoutNames, used: Iterable[Any]) -> LayoutNames:
        """The names of a function that is also another one; used: the layouts and variants that this one uses."""
        both = LayoutNames({k: list(v) for k, v in self.roles.items()}, dict(self.tiles), dict(self.spelled))
        for one in used:
            layout = one.root if isinstance(one, Variant) else one
            both.spelled.setdefault(layout)
            both.know(layout, layout, other)
        return both

    def know(self, layout: Layout, old: Layout, other: LayoutNames) -> None:
        """Of a layout what another function, or this one, knows of `old`."""
        known = self.roles.setdefault(layout, [])
        known += [role for role in other.roles.get(old, []) if role not in known]
        if old in other.tiles:
            self.tiles.setdefault(layout, other.tiles[old])

    def suggest(self, layout: Layout | None, role: str, rank: int, line: int = 0) -> None:
        """`role` names the use at `line`; the lowest rank wins, then the first line."""
        layout = unsliced(layout)
        if layout is not None and (rank, line, role) not in self.roles.setdefault(layout, []):
            self.roles[layout].append((rank, line, role))

    def named(
        self, used: Iterable[Any], taken: set[str], defined: Container[Any] = ()
    ) -> tuple[dict[Any, str], list[tuple[str, Layout]]]:
        """Names for the layouts and variants that a function uses, and the (name, layout) constants to define, parents first.

        defined: layouts that the function itself defines.
        """
        every = list(dict.fromkeys(used))
        layouts: dict[Layout, None] = {}
        for one in every:
            if isinstance(one, DotOperand):
                layouts.setdefault(one.parent)
            if isinstance(one, (Layout, SharedLayout)):
                layouts.setdefault(one)
        names: dict[Layout, str] = {}
        busy = set(taken)
        data = [x for x in layouts if not isinstance(x, (Mfma, Wmma, DotOperand))]
        for layout in layouts:
            names[layout] = _unique(self._role(layout, len(data) == 1), busy)

        def variant(one: Variant) -> str:
            name, tag = one.variable, one.tag
            suffix = names.get(one.root) or self._role(one.root, False)
            suffix = next((suffix.removesuffix(use) for use in _USES if suffix.endswith(use)), suffix)
            own = "dot" if isinstance(one.root, DotOperand) else "2"
            base = f"{name}_{suffix}" if suffix != name else f"{name}_{own}"
            return base if tag == "full" else base + ("" if tag.startswith("s") else tag)

        variants = {one: _unique(variant(one), busy) for one in every if isinstance(one, Variant)}
        found = {one: names[one] for one in every if isinstance(one, (Layout, SharedLayout))} | variants
        return found, [(names[x], x) for x in layouts if x not in defined]

    def _role(self, layout: Layout, only: bool) -> str:
        if only and isinstance(layout, (Asked, Blocked, Linear)):
            return "layout"
        if isinstance(layout, Slice):
            return f"{self._role(unsliced(layout), only)}_{layout.rank}d"
        roles = sorted(self.roles.get(layout, []))
        if isinstance(layout, (Mfma, Wmma)):
            roles = [role for role in roles if not role[2].endswith(_OF_TILES)]
        if roles:
            return roles[0][2]
        if isinstance(layout, (Mfma, Wmma)):
            return product_role(layout)
        if isinstance(layout, DotOperand):
            return "ab"[layout.operand_index] + "_operand"
        return "shared" if isinstance(layout, SharedLayout) else f"layout_{layout.rank}d"


def product_role(layout: Layout) -> str:
    """The role of the layout that a product has."""
    return "mma" if isinstance(layout, Mfma) else "wmma" if isinstance(layout, Wmma) else "dot"


def store_role(pointer: str) -> str:
    """The role of the layout in which something is stored to what a pointer points to, "" for one without a name: `c_ptr` gives `c_store`."""
    stem = pointer.lower() or "out"
    for suffix in ("_ptrs", "_ptr", "_pointers", "_pointer"):
        stem = stem.removesuffix(suffix)
    return f"{stem}_store"


def unsliced(layout: Layout | None) -> Layout | None:
    """The layout that slices are cut from."""
    while isinstance(layout, Slice):
        layout = layout.parent
    return layout


def _slice_tag(layout: Layout) -> str:
    tag = ""
    while isinstance(layout, Slice):
        tag += f"s{layout.dim}"
        layout = layout.parent
    return tag or "full"


def _unique(name: str, busy: set[str]) -> str:
    found = numbered(name, busy.__contains__)
    busy.add(found)
    return found


def definition(name: str, layout: Layout, names: dict[Layout, str]) -> str:
    """`a_load: gl.constexpr = gl.BlockedLayout(...)`."""
    return f"{name}: gl.constexpr = {constructor(layout, names, top=True)}"
