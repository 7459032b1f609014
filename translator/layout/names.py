"""Names for the layouts of one function: placeholders while it is being rewritten, roles at the end.

While a function is rewritten a layout is referred to by a placeholder identifier; when the text is final, each root
layout that still occurs becomes a named constexpr at the top of the function, named after its most telling use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from translator.layout.constructors import constructor
from translator.numbered import numbered
from translator.ttgir.layouts import Blocked, DotOperand, Layout, Linear, Mfma, Slice, Wmma

_PLACEHOLDER = re.compile(r"__layout_(\d+)__")
_DEFINED = re.compile(rf"^\s*{_PLACEHOLDER.pattern}: gl\.constexpr = ", re.MULTILINE)
_VARIANT = re.compile(r"__variant_(\d+)_(\w+?)_of_(\w+?)__end__")


@dataclass(frozen=True)
class Asked(Layout):
    """The layout that the function's text asks a tensor for, such as `y.type.layout`: each specialization has its own."""

    text: str
    dimensions: int

    @property
    def rank(self) -> int:
        return self.dimensions


@dataclass
class LayoutNames:
    """Placeholders and role suggestions of one function."""

    order: list[Layout] = field(default_factory=list)
    roles: dict[Layout, list[tuple[int, int, str]]] = field(default_factory=dict)

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
        return f"__layout_{self.order.index(layout)}__"

    def variant(self, name: str, layout: Layout) -> str:
        """A placeholder for the variant of variable `name` in `layout`."""
        root = layout
        while isinstance(root, Slice):
            root = root.parent
        self._placeholder(root)
        tag = f"{self.order.index(root)}_{_slice_tag(layout)}"
        return f"__variant_{tag}_of_{name}__end__"

    def moved_to(self, other: LayoutNames, text: str, instead: Mapping[Layout, Layout] = MappingProxyType({})) -> str:
        """`text` with the placeholders of another function; instead: the layouts that stand for some of these."""

        def number(own: str) -> int:
            layout = self.order[int(own)]
            new = instead.get(layout, layout)
            other._placeholder(new)
            known = other.roles.setdefault(new, [])
            known += [role for role in self.roles.get(layout, []) if role not in known]
            return other.order.index(new)

        text = _VARIANT.sub(lambda m: f"__variant_{number(m[1])}_{m[2]}_of_{m[3]}__end__", text)
        return _PLACEHOLDER.sub(lambda m: f"__layout_{number(m[1])}__", text)

    def suggest(self, layout: Layout | None, role: str, rank: int, line: int = 0) -> None:
        """`role` names the use at `line`; the lowest rank wins, then the first line."""
        while isinstance(layout, Slice):
            layout = layout.parent
        if layout is not None and (rank, line, role) not in self.roles.setdefault(layout, []):
            self.roles[layout].append((rank, line, role))

    def resolve(self, text: str, taken: set[str]) -> tuple[str, list[tuple[str, Layout]]]:
        """Replace placeholders by names; -> text, and the (name, layout) constants to define, parents first.

        Placeholders that the text itself defines are none of these.
        """
        used: list[Layout] = []
        pattern = re.compile(f"{_PLACEHOLDER.pattern}")

        def use(layout: Layout) -> None:
            if isinstance(layout, DotOperand):
                use(layout.parent)
            if layout not in used:
                used.append(layout)

        for m in pattern.finditer(text):
            use(self.order[int(m.group(1))])
        names: dict[Layout, str] = {}
        busy = set(taken)
        data = [x for x in used if not isinstance(x, (Mfma, Wmma, DotOperand))]
        for layout in used:
            names[layout] = _unique(self._role(layout, len(data) == 1), busy)

        def variant(m: re.Match) -> str:
            root, tag, name = self.order[int(m.group(1))], m.group(2), m.group(3)
            suffix = names.get(root) or self._role(root, False)
            suffix = re.sub(r"_(load|operand|layout)$", "", suffix)
            base = f"{name}_{suffix}" if suffix != name else f"{name}_2"
            return base if tag == "full" else base + ("" if tag.startswith("s") else tag)

        variants: dict[str, str] = {}
        for m in _VARIANT.finditer(text):
            if m.group(0) not in variants:
                variants[m.group(0)] = _unique(variant(m), busy)
        text = _VARIANT.sub(lambda m: variants[m.group(0)], text)
        defined = {self.order[int(m.group(1))] for m in _DEFINED.finditer(text)}
        text = _PLACEHOLDER.sub(lambda m: names[self.order[int(m.group(1))]], text)
        return text, [(names[x], x) for x in used if x not in defined]

    def _role(self, layout: Layout, only: bool) -> str:
        if only and isinstance(layout, (Asked, Blocked, Linear)):
            return "layout"
        roles = sorted(self.roles.get(layout, []))
        if roles:
            return roles[0][2]
        if isinstance(layout, Mfma):
            return "mma"
        if isinstance(layout, Wmma):
            return "wmma"
        if isinstance(layout, DotOperand):
            return "ab"[layout.operand_index] + "_operand"
        return f"layout_{layout.rank}d"


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
