"""What each tile computes anew, under names of its own where tiles other than the one ahead are fetched."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gluonize.facts.function import FunctionFacts
from gluonize.facts.webs import Webs
from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.write.state.fresh_names import LoopNames


@contextlib.contextmanager
def own_names(facts: FunctionFacts, loop_names: LoopNames, loop: PipelinedLoop, suffix: str) -> Iterator[None]:
    """Names with a suffix for what each tile computes anew: a name that the loop assigns too would be carried by it."""
    webs = {web.index: web for _, web in loop.own_names}
    names = {i: web.name for i, web in webs.items()}
    added = {}
    for i, web in webs.items():
        # Nothing else is called that where the tiles wait in registers.
        stem = names[i].removesuffix("_ahead") if loop.only_holds else names[i]
        web.name = loop_names.fresh(f"{stem}_{suffix}", loop.plan.loop)
    for name, web in loop.own_names:
        name.id = web.name
    for key, web in facts.webs.of_definition.items():
        if web.index in webs and (key[0], web.name) not in facts.webs.of_definition:
            added[key[0], web.name] = web
    before = facts.webs
    facts.webs = before.with_more(Webs(of_definition=added))
    yield
    facts.webs = before
    for i, web in webs.items():
        web.name = names[i]
    for name, web in loop.own_names:
        name.id = web.name
