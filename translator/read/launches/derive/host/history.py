"""What is known of a host function before it is entered: what its callers pass, and what autograd kept for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gluonize.read.launches.derive.host.model import Model, Saved


@dataclass(frozen=True)
class Passed:
    """What callers tell of a parameter: the `element` type of the tensor and why, or that it is that of an earlier parameter
    (`like`); `present` where a call surely passes a tensor, `absent` where the first one passes None. `known`: one call passes `value`,
    or a tensor of the sizes `dims`, as far as they are numbers of the source; an object, which is `other` in `other_sizes`. agreed: all calls that show an element type show this one.
    """

    element: str = ""
    why: str = ""
    like: str = ""
    present: bool = False
    absent: bool = False
    known: bool = False
    value: Any = None
    other: Model | None = None
    dims: tuple[int | None, ...] | None = None
    agreed: bool = True

    def joined(self, later: Passed) -> Passed:
        """With what a further call tells; the first one says what is left out, and the types that it shows count, an element type
        more than one that is that of another tensor."""
        types = self if self.element or self.like and not later.element else later
        agreed = self.agreed and later.agreed and self.element == later.element
        return replace(
            types, present=self.present or later.present, absent=self.absent, known=False, dims=None, agreed=agreed
        )


@dataclass(frozen=True)
class History:
    """What is known before the outermost function is entered: of its parameters, and what autograd kept for it.

    calls: what further calls pass for parameters. other: the same of a run in `other_sizes`, where that may differ."""

    passed: Mapping[str, Passed] = field(default_factory=dict)
    saved: Saved | None = None
    calls: tuple[Mapping[str, Any], ...] = ()
    other: History | None = None
