"""One LDS slot for tiles that Triton keeps in registers: the next tile is copied into it after the last read of this one.

wait for tile i; read it ...; the last read; barrier; copy tile i + 1; what else the body has

Triton hands such tiles from iteration to iteration in registers and moves them through LDS that it uses again for other
things. Two slots would take twice that LDS and more; with one, the copy has the rest of the iteration to arrive in. Where no
matrix instruction is left by then, the loop keeps a ring: nothing would hide the copy. Where LDS has no room for a ring, operands
that are read after all others are read with them, to registers (`PipelinePlan.reads_early`).
"""

from __future__ import annotations

from collections.abc import Callable

from gluonize.gluon.code import assignment
from gluonize.gluon.nodes import Assign, Node, Permuted, Read, Slot, Variable, mapped, places, walk
from gluonize.loops.plan.impossible import REFILLED, Impossible
from gluonize.write.function.written import WrittenFunction

Statements = tuple[Node, ...]  # what one of the author's has become


def check_refills(every: list[WrittenFunction]) -> None:
    """Asked when the text is final. Raises: Impossible for a loop whose one slot is read until its end."""
    for written in every:
        for loop in written.loops.pipelined.values():
            if not written.loops.finished[loop.plan.loop].body.in_time:
                reason = "its slot is read until its end, which leaves no time for a copy"
                raise Impossible(written.facts, loop.plan.loop.lineno, REFILLED, reason)


def refilled(
    steps: list[Statements],
    multiplies: list[bool],
    rings: set[str],
    copies: Statements,
    early: Callable[..., str] | None,
) -> tuple[list[Statements], bool]:
    """The body with the copies of the next tiles behind the last read of these; and whether a product follows them.

    rings: those that are filled again. early: gives a name that the function does not use, for operands that are read with
    those of the statement before, so that a product does follow; None where none may be.
    """
    steps, last, reads = list(steps), _last_reader(steps, rings), {}
    while early is not None and not any(multiplies[last + 1 :]):
        named, found = _read_early(steps[last], rings, _slots(steps, rings), dict(reads), early)
        before = _last_reader([*steps[:last], named], rings)
        if before == last:
            break
        steps[last], reads, last = named, found, before
    steps[last] = (*steps[last], *(assignment(name, (read,)) for read, name in reads.items()), *copies)
    return steps, any(multiplies[last + 1 :])


def _read_early(
    step: Statements,
    rings: set[str],
    slots: set[str],
    names: dict[Read, str],
    fresh: Callable[..., str],
) -> tuple[Statements, dict[Read, str]]:
    """A step that takes operands from variables, where it reads them from LDS; and the variable of each read.

    slots: the variables that name a tile where it lies.
    """

    def change(node: Node) -> Node:
        if not isinstance(node, Read) or not _reads(node, rings | slots):
            return mapped(node, change)
        place = node.place.place if isinstance(node.place, Permuted) else node.place
        if node not in names:
            stem = place.ring if isinstance(place, Slot) else place.name
            names[node] = fresh(f"{stem.partition('_smem')[0]}_early", taken=names.values())
        return Variable(names[node])

    return mapped(step, change), names


def _slots(steps: list[Statements], rings: set[str]) -> set[str]:
    """What tiles are called where they lie in LDS."""
    named = [(s.target, s.value) for s in walk(tuple(steps)) if isinstance(s, Assign)]
    return {
        name for name, v in named if v and len(v) == 1 and isinstance(v[0], (Slot, Permuted)) and _reads(v[0], rings)
    }


def _reads(node: Node, names: set[str]) -> bool:
    return any((place.ring if isinstance(place, Slot) else place.name) in names for place in places(node))


def _last_reader(steps: list[Statements], rings: set[str]) -> int:
    """The number of the last step that reads one of `rings`, also by a name for its slot."""
    names = rings | _slots(steps, rings)
    return max((i for i, step in enumerate(steps) if any(_reads(s, names) for s in step)), default=0)
