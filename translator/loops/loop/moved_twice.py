"""Variables that move from tile to tile for both sides of a pipelined loop: the producer's own starts from the consumer's.

x_ahead_base = x_base                       # before the loop
x_ahead_offs = x_offs
for k in range(n):
    ... copy from x_ahead_base + x_ahead_offs, store to x_base + x_offs
    x_base += stride
    x_ahead_base += stride
"""

from __future__ import annotations

import ast
import copy

from gluonize.facts.function import FunctionFacts
from gluonize.facts.webs import Definition, Web, Webs
from gluonize.gluon.code import code_of
from gluonize.gluon.nodes import Code
from gluonize.loops.loop.site import LoopSite
from gluonize.trace.front.trace import TensorFact
from gluonize.write.accesses import pointer_variables


def can_start(facts: FunctionFacts, loop: ast.For, web: Web) -> bool:
    """Whether `web` is one value in `loop`, a number, a pointer or a tensor of them, that another variable can start from."""
    return _use(facts, loop, web) is not None


def start_of(facts: FunctionFacts, loop: ast.For, web: Web, ahead: Web) -> tuple[Definition, Webs]:
    """`ahead = web` before `loop`, and the variables of that. Its syntax stands where the loop uses `web`, so that the facts of that use apply to it."""
    found = _use(facts, loop, web)
    assert found is not None, f"bug in gluonize: {web.name} cannot start another variable"
    use, around = found
    value = copy.copy(use)
    target = ast.copy_location(ast.Name(ahead.name, ast.Store()), use)
    made = ast.copy_location(ast.Assign([target], value), use)
    webs = Webs((), {value: web}, {(made, ahead.name): ahead}, {value: list(web.definitions)})
    return Definition(ahead.name, made, value, len(around), around), webs


def _use(facts: FunctionFacts, loop: ast.For, web: Web) -> tuple[ast.Name, tuple] | None:
    """A use of `web` in `loop` that has a type, and the loops around `loop`."""
    for use, loops in web.uses:
        if loop in loops and isinstance(facts.fact(use), TensorFact):
            return use, loops[: loops.index(loop)]
    return None


def start_lines(site: LoopSite, ahead: Web) -> list[Code]:
    """The statements before the loop that give the producer's variable its first value, in each of its layouts."""
    made = ahead.definitions[0].node
    if site.facts.tensor(made.value) is None:
        return [code_of(f"{ahead.name} = ", site.emit(made.value))]
    state = site.state(ahead)
    if state.split is not None:
        default = site.facts.default_layout
        layouts = state.variants or [site.web_home(ahead) or default(site.facts.tensor(made.value).shape)]
        lines = pointer_variables.assign(site, site.addressing, made, state, layouts)
        return [line.code for line in lines] or [("pass",)]
    return [
        code_of(site.plain.variant_name(state, layout), " = ", site.emit(made.value, layout))
        for layout in state.variants
    ]


def name_ahead(name: str) -> str:
    """What the producer's variable is called: that it is one of pointers stays at the end."""
    stem, _, kind = name.rpartition("_")
    return f"{stem}_ahead_{kind}" if stem and kind in ("ptr", "ptrs", "pointer", "pointers") else f"{name}_ahead"
