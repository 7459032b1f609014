"""Layouts that are lists of bases, as calls of the functions that give them: what a layout follows from says more than its bases do.

    a_shared: gl.constexpr = cdna4.compute_efficient_padded_shared_layout(a_operand, [BLOCK_M, BLOCK_K], gl.float16)
    a_load: gl.constexpr = direct_copy(a_shared, 8, gl.num_warps())

A call stands for a layout only where it gives exactly this layout for the launch that is translated.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gluonize.decide.layouts.constructors import Called
from gluonize.decide.layouts.gluon_values import as_gluon, linear, of_gluon
from gluonize.decide.layouts.rule_texts import PADDED_OPERAND, TRANSPOSED, WIDE_STORE, RuleText, copy_in_order
from gluonize.gluon.layout_names import Tile
from gluonize.numbered import numbered
from gluonize.trace.model.layouts import Blocked, DotOperand, Layout, Linear, Mfma
from gluonize.trace.model.shared_layouts import Padded
from gluonize.triton_api.gluon_language import gl

_WIDTHS = (16, 8, 4, 2, 1)  # elements that a lane copies at once
_WARPS = "gl.num_warps()"
Constants = Sequence[tuple[str, Layout]]


@dataclass
class RuleLayouts:
    """The layouts of one function. tiles: what has a layout; lanes: of a warp; warps: how many; parameters: of the function, of which sizes of
    tiles may be made; taken: what says which names functions of the output cannot have. called: the rules that are called, by the names of their
    functions."""

    constants: Constants
    tiles: Mapping[Layout, Tile]
    lanes: int
    warps: int
    parameters: Collection[str]
    taken: Callable[[], Collection[str]]
    called: dict[str, RuleText] = field(default_factory=dict)

    def written(self) -> Constants:
        """The constants with calls for what they give, those that others are made of first."""
        out: dict[str, Layout] = {}
        left = {name: self._call(name, layout) or layout for name, layout in self.constants}
        while left:  # a circle there is none: copies follow from tiles in LDS, these from operands
            for name, layout in list(left.items()):
                if not (isinstance(layout, Called) and left.keys() & set(re.findall(r"\w+", layout.text))):
                    out[name] = left.pop(name)
        return tuple(out.items())

    def _call(self, name: str, layout: Layout) -> Called | None:
        if getattr(layout, "twin", 0):
            return None
        if isinstance(layout, Padded) and layout.offsets and not layout.ctas:
            return next(self._padded(name, layout), None)
        if isinstance(layout, Linear) and not layout.block:
            found = itertools.chain(self._copied(layout), self._stored(layout), self._transposed(layout))
            return next(found, None)
        return None

    def _padded(self, own: str, layout: Padded) -> Iterator[Called]:
        """A tile in LDS that is read as an operand of a product."""
        tile = self._tile(layout)
        dtype = None if tile is None else getattr(gl, tile.dtype[0].removeprefix("gl."), None)
        if tile is None or dtype is None or not self._known(tile.dtype[1]):
            return
        stem = own.removesuffix("_shared")
        for name, operand in sorted(self.constants, key=lambda constant: not constant[0].startswith(stem)):
            if not (
                isinstance(operand, DotOperand) and isinstance(operand.parent, Mfma) and operand.parent.version == 4
            ):
                continue
            along = 1 - operand.operand_index  # the dimension of K
            rows, columns, depth = operand.parent.instr_shape
            least = (rows, depth) if along else (depth, columns)
            if (held := as_gluon(operand)) is None or any(map(int.__lt__, tile.shape, least)):
                continue  # Gluon's function aborts the process for tiles that have less than an instruction takes
            contiguous = layout.offsets[0][along] != 0
            if of_gluon(PADDED_OPERAND.given(held, list(tile.shape), dtype, contiguous)) == layout:
                shape = f"[{', '.join(tile.dimensions)}], {tile.dtype[1]}"
                more = "" if contiguous else ", is_k_contig=False"
                yield self._by(PADDED_OPERAND, f"{name}, {shape}{more}", layout.described())

    def _copied(self, layout: Linear) -> Iterator[Called]:
        """A copy to a tile in LDS that is padded."""
        rule = copy_in_order(self.lanes)
        for name, shared in self.constants:
            if isinstance(shared, Padded) and shared.offsets and not shared.ctas and shared.shape == layout.shape:
                for each in _WIDTHS:
                    if of_gluon(rule.given(as_gluon(shared), each, self.warps)) == layout:
                        about = f"Direct copies of {each} elements per lane."
                        yield self._by(rule, f"{name}, {each}, {_WARPS}", about if each > 1 else "")

    def _stored(self, layout: Linear) -> Iterator[Called]:
        """A result of a product that is stored in wider vectors."""
        tile = self._tile(layout)
        if tile is None:
            return
        for name, product in self.constants:
            if not isinstance(product, Mfma) or (bases := linear(product, tile.shape)) is None:
                continue
            if of_gluon(WIDE_STORE.given(as_gluon(product), as_gluon(bases))) == layout:
                shape = ", ".join(tile.dimensions)
                yield self._by(WIDE_STORE, f"{name}, gl.to_linear_layout({name}, [{shape}])", "")

    def _transposed(self, layout: Linear) -> Iterator[Called]:
        """A tile that each lane has transposed after it loaded it."""
        for name, held, tile in self._held(layout.shape):
            if of_gluon(TRANSPOSED.given(as_gluon(held), as_gluon(linear(held, tile.shape)))) == layout:
                shape = ", ".join(tile.dimensions)
                yield self._by(TRANSPOSED, f"{name}, gl.to_linear_layout({name}, [{shape}])", "")

    def _held(self, shape: tuple[int, ...]) -> Iterator[tuple[str, Blocked, Tile]]:
        """The layouts of tiles of a shape that lanes hold in blocks."""
        for name, held in self.constants:
            if isinstance(held, Blocked) and held.rank == 2 and not held.ctas:
                if (tile := self._tile(held)) is not None and tile.shape == shape:
                    yield name, held, tile

    def _tile(self, layout: Layout) -> Tile | None:
        """The tile that has a layout, if its dimensions are known where constants stand."""
        tile = self.tiles.get(layout)
        return tile if tile is not None and all(map(self._known, tile.dimensions)) else None

    def _known(self, text: str) -> bool:
        words = set(re.findall(r"(?<![\w.])[^\W\d]\w*", text)) - {"gl"}
        return words <= set(self.parameters)

    def _by(self, rule: RuleText, arguments: str, about: str) -> Called:
        if rule.module:
            self.called[f"{rule.module}.{rule.name}"] = rule
            return Called(f"{rule.module}.{rule.name}({arguments})", about)
        taken = self.taken()
        name = numbered(rule.name, lambda name: name in taken or self.called.get(name, rule) != rule)
        self.called[name] = rule
        return Called(f"{name}({arguments})", about)


__all__ = ["RuleLayouts"]
