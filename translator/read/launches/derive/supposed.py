"""What a model run of host code supposes where nothing is known: sizes, and which branch is taken.

What comes out the same whatever is supposed is known; `gluonize.read.launches.bound.launches` runs host code under several suppositions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Supposition:
    """size: what stands for a size that is not known, from the one that is usually supposed; other_branch: where a test cannot be
    told, the branch that is not usually taken, and of a loop the last item; second: this is the run that a first one is compared with.
    """

    size: Callable[[int], int] = lambda usual: usual
    other_branch: bool = False
    second: bool = False


def turned(usual: int) -> int:
    """Another size, large for a small one: the quotient of two says nothing if it is zero only because the one was made up larger."""
    return max(_TURNED // usual, 1)


_TURNED = 2**11  # no size is its own other one
# Sizes that are no multiples of anything, small ones, large ones for small ones, and the other branches.
SUPPOSITIONS = (
    Supposition(),
    Supposition(lambda usual: usual + 1),
    Supposition(lambda usual: usual // 64 + 3),
    Supposition(turned),
    Supposition(other_branch=True),
)
_CURRENT: ContextVar[Supposition] = ContextVar("supposition", default=SUPPOSITIONS[0])


@contextmanager
def supposing(supposition: Supposition) -> Iterator[None]:
    token = _CURRENT.set(supposition)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def other_sizes() -> Iterator[None]:
    """Runs in here suppose other sizes: what is the same as in a run outside does not rest on any that is made up."""
    now = _CURRENT.get()
    with supposing(replace(now, size=lambda usual: now.size(turned(usual)), second=True)):
        yield


def in_other_sizes() -> bool:
    return _CURRENT.get().second


def supposed_now() -> Supposition:
    return _CURRENT.get()


def supposed_size(usual: int) -> int:
    return _CURRENT.get().size(usual)


def takes_other_branch() -> bool:
    return _CURRENT.get().other_branch
