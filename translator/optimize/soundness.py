"""Whether compiled ping-pong loops have their barriers at stage borders only.

The two groups of warps meet at every barrier. One inside a stage (a reduction across warps, a conversion through LDS)
would pair the middle of one group's stage with the border of the other's, so that neither border holds any more. Every
stage sets its priority once, so in each loop barriers and priorities have to be equally many.
"""

from __future__ import annotations

from translator.lowering.amdgcn import parse_instructions
from translator.lowering.loops import find_loops

_BARRIERS = ("s_barrier", "s_barrier_signal")


def barriers_inside_stages(assembly: str) -> int:
    """Barriers that loops with stages have beyond one per stage; 0 is sound."""
    code = parse_instructions(assembly)
    extra = 0
    for loop in find_loops(code):
        ops = [line.op for line in code[loop.first : loop.last + 1]]
        stages = ops.count("s_setprio")
        if loop.innermost and stages:
            extra += abs(sum(ops.count(name) for name in _BARRIERS) - stages)
    return extra
