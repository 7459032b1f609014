"""The numbers of programs, dealt anew so that neighbours are on one XCD.

tl.program_id(0)    ->    remap_xcd(gl.program_id(0), gl.num_programs(0))
"""

from __future__ import annotations

import ast

from gluonize.decide.choices.chosen import Choices
from gluonize.facts.kernel import KernelFacts
from gluonize.facts.programs.numbers import why_numbered
from gluonize.gluon.written import Written, call
from gluonize.write.programs.persistent import own_number
from gluonize.write.state.unit import Synthesized
from gluonize.write.state.writing import Writing

_REMAP = '''@gluon.jit
def remap_xcd(pid, programs, NUM_XCDS: gl.constexpr = {xcds}):
    """The number that program `pid` has instead: each XCD gets neighbours, though programs go to the XCDs in turn."""
    xcd = pid % NUM_XCDS
    # The first `programs % NUM_XCDS` of the XCDs have one more than the others.
    return xcd * (programs // NUM_XCDS) + gl.minimum(xcd, programs % NUM_XCDS) + pid // NUM_XCDS
'''


def xcds_of(kernel: KernelFacts, choices: Choices) -> tuple[int, str]:
    """The XCDs among which the numbers of programs are dealt anew, 1 for none; and why not, where that is asked for."""
    if not choices.asks("program-order", "per-xcd"):
        return 1, ""
    if kernel.target.xcds == 1:
        return 1, f"the workgroups of {kernel.target.name} share one L2 cache"
    why = why_numbered(kernel)
    return (1 if why else kernel.target.xcds), why


def dealt(writing: Writing, node: ast.Call, number: Written) -> Written:
    """`number`, what the call `node` of `program_id` gives, or the number of the tile, as it is dealt."""
    number, programs = own_number(writing, node, number)
    if writing.decided.xcds == 1:
        return number
    name = writing.added(Synthesized("remap_xcd", _REMAP.format(xcds=writing.decided.xcds)))
    return call(name, number, programs)


__all__ = ["dealt", "xcds_of"]
