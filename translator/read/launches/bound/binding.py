"""What a launch in host code shows of its arguments, as plain data: it travels between processes, and needs no Triton."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class BoundValue:
    """What a launch shows of one argument. kind: its type as signatures have it, `constexpr`, `*` for a pointer to elements of a type
    that is not known, "" where nothing is known; value: of a constexpr, in the form of launch specs. divisible: whether it is a
    multiple of 16, None where that is not known; number: the number that is passed. text: the expression at the launch. is_constexpr: the
    parameter is a `tl.constexpr`; described: whether a tensor is given by a descriptor, None where that is not known.
    """

    kind: str = ""
    value: Any = None
    divisible: bool | None = None
    number: int | float | None = None
    text: str = ""
    is_constexpr: bool = False
    described: bool | None = None

    def agreed(self, other: BoundValue) -> BoundValue:
        """What both say."""
        if self == other:
            return self
        if "constexpr" in (self.kind, other.kind) or self.kind != other.kind:
            both = self.kind.startswith("*") and other.kind.startswith("*")
            described = self.described if self.described == other.described else None
            return BoundValue("*" if both else "", text=self.text, is_constexpr=self.is_constexpr, described=described)
        divisible = self.divisible if self.divisible == other.divisible else None
        number = self.number if self.number == other.number else None
        return replace(self, divisible=divisible, number=number)


@dataclass(frozen=True)
class BoundConfig:
    """What decorators add to a launch, a configuration of `triton.autotune` and the heuristics: constexpr values in the form of launch
    specs, and options."""

    constexprs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LaunchBinding:
    """One way in which one launch in host code is reached. caller: where it is called from, and with which parameters of a test, "" where
    nothing calls it. values, grid: the numbers that arguments hold and the sizes of tensors, as launch specs have them, and how many programs
    there are, where host code says so. open_options: those that the launch gives, with values that host code does not show. problem: why it cannot be read, with the line of that, "" where it can. left: in how many further
    ways the launch is reached that are not followed; of each launch one binding counts them."""

    kernel: str
    path: str
    line: int
    caller: str = ""
    arguments: dict[str, BoundValue] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    configs: tuple[BoundConfig, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    grid: tuple[int, ...] = ()
    open_options: tuple[str, ...] = ()
    problem: str = ""
    problem_line: int = 0
    left: int = 0
