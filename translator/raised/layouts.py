"""Names for the layouts of one function, by what they are used for; each is a constexpr at the top of the function."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gluonize.decide.layouts.constructors import constructor
from gluonize.decide.layouts.described import describe
from gluonize.gluon.long_lines import bases_in_lines
from gluonize.trace.model.layouts import DotOperand, Layout, Mfma, SharedLayout, Slice, Wmma

_HOLE = re.compile(r"__layout_(\d+)__")


@dataclass
class LayoutNames:
    """Holes stand for the names until the whole function is written."""

    order: list[Layout] = field(default_factory=list)
    roles: dict[Layout, str] = field(default_factory=dict)

    def spell(self, layout: Layout, role: str = "") -> str:
        """The expression for a layout. role: what the name is made of; the first one counts."""
        if isinstance(layout, Slice):
            return f"gl.SliceLayout({layout.dim}, {self.spell(layout.parent, role)})"
        if layout not in self.order:
            if isinstance(layout, DotOperand):
                self.spell(layout.parent)
            self.order.append(layout)
        if role:
            self.roles.setdefault(layout, role)
        return f"__layout_{self.order.index(layout)}__"

    def definitions(self, taken: set[str]) -> tuple[dict[str, str], list[str]]:
        """What each hole is called, and the lines that define the names. taken: names of other things."""
        names: dict[Layout, str] = {}
        for layout in self.order:
            base = name = self._base(layout)
            number = 1
            while name in taken:
                number += 1
                name = f"{base}_{number}"
            taken.add(name)
            names[layout] = name
        lines = []
        for layout, name in names.items():
            about = describe(layout)
            lines += [f"# {about}"] * bool(about)
            lines.append(bases_in_lines(f"{name}: gl.constexpr = {constructor(layout, names, top=True)}"))
        return {f"__layout_{self.order.index(layout)}__": name for layout, name in names.items()}, lines

    def _base(self, layout: Layout) -> str:
        if isinstance(layout, (Mfma, Wmma)):
            return "mma"
        if isinstance(layout, DotOperand):
            return f"{'ab'[layout.operand_index]}_operand"
        role = self.roles.get(layout, "")
        return f"{role or 'tile'}_{'shared' if isinstance(layout, SharedLayout) else 'layout'}"


def filled(text: str, names: dict[str, str]) -> str:
    """The text with names in place of holes."""
    return _HOLE.sub(lambda found: names[found.group()], text)
