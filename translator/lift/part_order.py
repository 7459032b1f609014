"""Parts of one tensor that are stored in another order in some iterations than in others, in one order in all of them.

    for s in static_range(4):                      # one tile from the right, the next one from the left
        part = 3 - s if i % 2 == 0 else s
        tma.async_store(c, [m, n + 64 * part], acc.slice(64 * part, 64))

Parts that make up a tensor lie beside each other, so that their stores may change places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from translator.lift.symbolic_machine import Effect
from translator.lift.parts import tiles, unsliced
from translator.lift.tensor_values import Graph, Node


def in_order(graph: Graph, effects: Sequence[Effect]) -> list[Effect]:
    """The effects of one run, those that store all parts of a tensor one after another with the first part first."""
    out: list[Effect] = []
    for group in _together(effects):
        out += _sorted(graph, group) if len(group) > 1 else group
    return out


def _together(effects: Sequence[Effect]) -> Iterable[list[Effect]]:
    """Runs of stores to tiles of one descriptor in one iteration, each by another operation."""
    group: list[Effect] = []
    for effect in effects:
        if group and not (
            effect.kind == group[0].kind == "tile"
            and effect.operands[0] is group[0].operands[0]
            and effect.around == group[0].around
            and all(effect.op is not other.op for other in group)
        ):
            yield group
            group = []
        group.append(effect)
    if group:
        yield group


def _sorted(graph: Graph, group: list[Effect]) -> list[Effect]:
    values = [effect.operands[-1] for effect in group]
    found = [unsliced(graph, value) if isinstance(value, Node) else None for value in values]
    parts = [part for part in found if part is not None]
    if len(parts) < len(group) or len({id(whole) for whole, _ in parts}) != 1:
        return group
    axis = tiles([box for _, box in parts], parts[0][0].type.shape or ())
    if axis is None:
        return group
    order = sorted(range(len(group)), key=lambda i: parts[i][1][axis])
    return [replace(effect, operands=group[i].operands) for effect, i in zip(group, order)]
