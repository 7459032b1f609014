"""What a kernel says beside what it computes, which its source has to say too: hints of numbers, and barriers between accesses of other threads.

A hint (`multiple_of`, `max_contiguous`) that does not hold has the compiler read and write elsewhere. A barrier between a store and a load of
the same argument orders what different threads do; without it a load may give what was there before.
"""

from __future__ import annotations

from typing import Any

from gluonize.judge.prove.proof_values import RELEASE, UNKNOWN, Access, NotProved, Tensor, reached
from gluonize.judge.prove.slot_boxes import LOADED, STORED, Mark
from gluonize.judge.prove.terms.elements import Term, Terms
from gluonize.judge.prove.terms.term import conjuncts
from gluonize.trace.model.op import Op

# Kinds of accesses that stand for hints, for what is divided by, and for offsets that buffer operations have to reach.
HINT, DIVISOR, REACH = "hint", "divisor", "reach"


def hinted(m: Any, op: Op, value: Any) -> None:
    """Remember what an operation promises of its result; it is asked when the loops around it are understood."""
    if not isinstance(value, Tensor):
        raise NotProved("a hint of what is no tensor", op)
    t, term = m.terms, value.term
    if term.op == "ptr":
        base, offset = t.node("hinted", (), (term.args[0],), "ptr"), term.args[1]
    else:
        base, offset = t.node("hinted", (), (), "ptr"), term
    mask = t.both(*m.conditions)
    for said in sorted(op.promises.items()):
        m.accesses.append(Access(t.pointer(base, offset), mask, 0, f"{HINT} {said}", op, m.inside()))


def divided(m: Any, op: Op, by: Any, number: Term) -> None:
    """Remember what is divided by: nothing may be divided by 0, or the compiler may do anything."""
    if number.low <= 0 <= number.high:
        t = m.terms
        pointer = t.pointer(t.node("divisor", by.shape, (), "ptr"), number)
        m.accesses.append(Access(pointer, t.both(*m.conditions), 0, DIVISOR, op, m.inside()))


def within_reach(m: Any, op: Op, base: Term, step: Term, mask: Term, size: int) -> None:
    """Remember how far behind its base a buffer operation goes, where the launch does not promise that all of its memory is near."""
    argument = base.args[0] if base.op == "ptr" else base
    if m.side == 1 and not (argument.op == "argument" and argument.data[1]):
        t = m.terms
        pointer = t.pointer(t.node("reach", (), (), "ptr"), step)
        m.accesses.append(Access(pointer, t.both(*m.conditions, mask), size, REACH, op, m.inside()))


def follows(t: Terms, access: Access) -> bool:
    """Whether a hint holds whatever the source says, or a divisor is not 0: each part of a number is a multiple of the power of 2 that it is promised to be one of."""
    if access.kind == DIVISOR:
        return t.implied(conjuncts(access.mask), t.no(t.is_zero(access.pointer.args[1])))
    most = max(access.op.promises.get("tt.divisibility", ()), default=1)
    base, offset = access.pointer.args
    divides = access.kind.startswith(f"{HINT} ('tt.divisibility'") and most & (most - 1) == 0 and not base.args
    return divides and all(n % most == 0 for n in offset.poly.values())


def told(m: Any, op: Op, base: Term) -> None:
    """A load. Raises: NotProved where the kernel has it behind an atomic operation that tells others that it has been made."""
    key, count = (reached(base), m.version(base).data), sum(frame.counts.get(RELEASE, 0) for frame in m.frames)
    if m.side == 0:
        m.released[key] = max(count, m.released.get(key, 0))
    elif count > m.released.get(key, 0) and all(
        frame.loop is None for frame in m.frames
    ):  # iterations follow each other
        raise NotProved("a load behind an atomic operation that the source has behind it", op)


def ordered(m: Any, op: Op, base: Term, stores: bool) -> None:
    """An access to global memory, before it counts. Raises: NotProved where the kernel has no barrier before it, and the source has one."""
    if not m.barriers:
        return
    name = reached(base)
    what = (STORED, LOADED) if stores else (STORED,)
    met = any(x.what in what and (x.key[0] == name or UNKNOWN in (x.key[0], name)) for x in m.shared.marks)
    key = name, m.version(base).data, stores
    if m.side == 0:
        before = any((stored or stores) and (x == name or UNKNOWN in (x, name)) for x, stored in m.touched)
        m.apart[(*key, op)] = before and not met
    elif met and m.known_apart.get(key, True):
        raise NotProved("threads access memory without the barrier that the source has between them", op)
    m.touched.add((name, stores))
    m.shared.marks |= {Mark((name,), (), STORED if stores else LOADED)}
