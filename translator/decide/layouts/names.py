"""Names for the layouts of one function: placeholders while it is being rewritten, roles at the end.

While a function is rewritten a layout is referred to by a placeholder identifier; when its tree is final, each root
layout that still occurs becomes a named constexpr at the top of the function, named after its most telling use.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from gluonize.decide.layouts.constructors import constructor
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
    """Placeholders and role suggestions of one function. holes: what each placeholder stands for; tiles: the first tile of each layout for
    which one is told."""

    order: list[Layout] = field(default_factory=list)
    roles: dict[Layout, list[tuple[int, int, str]]] = field(default_factory=dict)
    holes: dict[str, Layout | Variant] = field(default_factory=dict)
    tiles: dict[Layout, Tile] = field(default_factory=dict)

    def copy(self) -> LayoutNames:
        roles = {k: list(v) for k, v in self.roles.items()}
        return LayoutNames(list(self.order), roles, dict(self.holes), dict(self.tiles))

    def spell(self, layout: Layout) -> str:
        """The expression for `layout` with its named part as a placeholder."""
        if isinstance(layout, Slice):
            return f"gl.SliceLayout({layout.dim}, {self.spell(layout.parent)})"
        return self._placeholder(layout)

    def _placeholder(self, layout: Layout) -> str:
        if layout not in self.order:
            if isinstance(layout, DotOperand):
                self._placeholder(layout.parent)
            self.order.append(layout)
        hole = f"__layout_{self.order.index(layout)}__"
        self.holes[hole] = layout
        return hole

    def variant(self, name: str, layout: Layout) -> str:
        """A placeholder for the variant of variable `name` in `layout`."""
        root = layout
        while isinstance(root, Slice):
            root = root.parent
        return self._variant(Variant(name, root, _slice_tag(layout)))

    def _variant(self, variant: Variant) -> str:
        self._placeholder(variant.root)
        hole = f"__variant_{self.order.index(variant.root)}_{variant.tag}_of_{variant.variable}__end__"
        self.holes[hole] = variant
        return hole

    def moved_to(
        self, other: LayoutNames, used: Iterable[str], instead: Mapping[Layout, Layout] = MappingProxyType({})
    ) -> dict[str, str]:
        """The placeholders of another function for those among the names `used`; instead: layouts that stand for some of these."""

        def moved(layout: Layout) -> Layout:
            new = instead.get(layout, layout)
            known = other.roles.setdefault(new, [])
            known += [role for role in self.roles.get(layout, []) if role not in known]
            if layout in self.tiles:
                other.tiles.setdefault(new, self.tiles[layout])
            return new

        holes = {name: self.holes[name] for name in used if name in self.holes}
        return {
            name: (
                other._variant(replace(hole, root=moved(hole.root)))
                if isinstance(hole, Variant)
                else other._placeholder(moved(hole))
            )
            for name, hole in holes.items()
        }

    def suggest(self, layout: Layout | None, role: str, rank: int, line: int = 0) -> None:
        """`role` names the use at `line`; the lowest rank wins, then the first line."""
        while isinstance(layout, Slice):
            layout = layout.parent
        if layout is not None and (rank, line, role) not in self.roles.setdefault(layout, []):
            self.roles[layout].append((rank, line, role))

    def named(
        self, used: Iterable[str], taken: set[str], defined: Container[str] = ()
    ) -> tuple[dict[str, str], list[tuple[str, Layout]]]:
        """Names for the placeholders among the names `used`, and the (name, layout) constants to define, parents first.

        defined: placeholders that the function itself defines.
        """
        holes = {name: self.holes[name] for name in used if name in self.holes}
        layouts: dict[Layout, None] = {}
        for hole in holes.values():
            if isinstance(hole, DotOperand):
                layouts.setdefault(hole.parent)
            if not isinstance(hole, Variant):
                layouts.setdefault(hole)
        names: dict[Layout, str] = {}
        busy = set(taken)
        data = [x for x in layouts if not isinstance(x, (Mfma, Wmma, DotOperand))]
        for layout in layouts:
            names[layout] = _unique(self._role(layout, len(data) == 1), busy)

        def variant(hole: Variant) -> str:
            name, tag = hole.variable, hole.tag
            suffix = names.get(hole.root) or self._role(hole.root, False)
            suffix = next((suffix.removesuffix(use) for use in _USES if suffix.endswith(use)), suffix)
            own = "dot" if isinstance(hole.root, DotOperand) else "2"
            base = f"{name}_{suffix}" if suffix != name else f"{name}_{own}"
            return base if tag == "full" else base + ("" if tag.startswith("s") else tag)

        found = {
            name: _unique(variant(hole), busy) if isinstance(hole, Variant) else names[hole]
            for name, hole in holes.items()
        }
        own = {hole for name, hole in holes.items() if name in defined}
        return found, [(names[x], x) for x in layouts if x not in own]

    def _role(self, layout: Layout, only: bool) -> str:
        if only and isinstance(layout, (Asked, Blocked, Linear)):
            return "layout"
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
