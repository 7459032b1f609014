"""Descriptors that stay bounds-masked accesses, planned before anything is written."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from gluonize.facts.function import FunctionFacts
from gluonize.facts.reading import reached_functions
from gluonize.loops.planner.planner import BesideRegisters, holds_tiles, plan_loop
from gluonize.write.descriptors import plain, tdm
from gluonize.write.state.unit import Decided


def plain_descriptors(kernel: FunctionFacts, decided: Decided) -> Mapping[tdm.Site, str]:
    """The descriptors of a kernel that the tensor data mover cannot serve, by where they are made (all of them for ()), each with the reason."""
    found: dict[tdm.Site, str] = {}
    if not kernel.kernel.target.supports_tdm:
        return found
    functions = list(reached_functions(kernel))
    accesses = [use for facts in functions for use in plain.uses(facts)]
    for origin, reason in accesses:
        if reason:
            found.setdefault(tdm.site_of(origin), reason)
    if accesses:
        for facts in functions:
            for loop in facts.for_loops:
                if facts.taken(loop):
                    _add_beside_registers(found, facts, decided, loop)
    if found and any(origin is None for origin, _ in accesses):
        found.setdefault((), "descriptors of different kinds reach one access")
    return found


def _add_beside_registers(found: dict[tdm.Site, str], facts: FunctionFacts, decided: Decided, loop: ast.For) -> None:
    """Adds the descriptors whose tiles would be copied in a loop in which other tiles go through registers."""
    while True:
        known = replace(decided, plain_descriptors=found)
        try:
            plan_loop(facts, known, loop, holds_tiles(facts, known, loop))
        except BesideRegisters as beside:
            assert beside.site not in found, "bug in gluonize: a tile of a plain descriptor is copied"
            found[beside.site] = "another load of its loop goes through registers"
        else:
            return
