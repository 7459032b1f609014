"""How long each allocation of shared memory is in use: behind that, the compiler may give its place to what needs shared memory next.

A module that is proved has no places yet. What an operation such as a change of layout needs is found for it by the compiler, which knows
of reads and writes, but not of a copy that is still under way.
"""

from __future__ import annotations

from gluonize.trace.model.module import Function
from gluonize.trace.model.op import Block, Op

# What may be given shared memory of its own.
TAKES_PLACE = frozenset(
    "ttg.local_alloc ttg.convert_layout tt.reduce tt.scan tt.histogram tt.gather tt.atomic_rmw tt.atomic_cas "
    "amdg.buffer_atomic_rmw amdg.buffer_atomic_cas".split()
)
_LOOPS = ("scf.for", "scf.while")


def last_uses(function: Function) -> dict[int, int]:
    """Of each allocation, by the line of its operation: the last line on which it, or a part of it, is used; of one that a loop uses,
    and that was made outside of it, the line on which the loop ends."""
    found: dict[int, int] = {}
    parts: dict[str, set[int]] = {}  # the allocations that a value may be a part of
    for _ in range(2):  # what a loop carries is known of its second iteration
        for block in function.region.blocks:
            _visit(block, [], parts, found)
    return found


def _visit(block: Block, loops: list[Op], parts: dict[str, set[int]], found: dict[int, int]) -> set[int]:
    every: set[int] = set()
    for op in block.ops:
        used = set().union(*(parts.get(name, ()) for name in op.operands))
        inner = [*loops, op] if op.name in _LOOPS else loops
        for region in op.regions:
            for own in region.blocks:
                for name, kind in own.arguments:
                    if kind.kind == "memdesc":
                        parts.setdefault(name, set()).update(used)
                used |= _visit(own, inner, parts, found)
        if op.name == "ttg.local_alloc":
            used.add(op.line)
        for line in used:
            ends = [loop.end for loop in loops if line < loop.line]
            found[line] = max(found.get(line, 0), op.line, *ends)
        for name, kind in zip(op.results, op.result_types if used else ()):
            if kind.kind == "memdesc":
                parts.setdefault(name, set()).update(used)
        every |= used
    return every


__all__ = ["TAKES_PLACE", "last_uses"]
