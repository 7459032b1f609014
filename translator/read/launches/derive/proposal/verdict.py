"""What a judge says of a proposed launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gluonize.read.spec.launch import LaunchSpec

# The text of a function, the place of the test of an `if` in it (kind, first line and column, last line and column), and the side; or
# the place of the function itself, which is called.
Branch = tuple[str, tuple[str, int, int, int, int], bool]

# The text of a function, the place of a `tl.store` in it, and the element type of what is stored, as Triton names it.
Stored = tuple[str, tuple[str, int, int, int, int], str]


@dataclass(frozen=True)
class Verdict:
    """`place` is where it is refused: the text of the function and the place in it. `progress` grows with how far the front end
    came; `branches` are the sides of every `if` that an accepted launch goes into, and the functions that it calls,
    `stored` what it stores."""

    accepted: bool
    message: str = ""
    place: tuple[str, tuple[str, int, int, int, int]] | None = None
    progress: int = 0
    branches: frozenset[Branch] = frozenset()
    stored: frozenset[Stored] = frozenset()


Judge = Callable[[LaunchSpec], Verdict]
