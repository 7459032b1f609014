"""What a rewrite rests on, and how that is made sure of: proved, checked before each launch, or so by what the source means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gluonize.facts.integers.host_bounds import Condition

# What has to hold.
KINDS = {
    "not-negative": "the expression is not negative",
    "no-overflow": "nothing in the expression overflows",
    "storage": "the storage behind a pointer is within 2 GiB",
    "start": "what is accessed does not lie before the pointer",
    "reach": "the expression is fewer than 2 GiB away from its base, which may lie before the tensor",
    "descriptor": "an argument is given as base, shape and strides",
    "multiple": "an argument, or a stride of one that is a descriptor, is a multiple of 16",
    "aligned": "a tensor that is an argument starts at a multiple of 16 bytes",
    "positive": "an argument is positive, from 2**-30 to 2**30",
    "ends": "the mask is false past the end of the loop",
    "outside": "what is negative lies outside of the tensor as an unsigned number too",
    "rows": "rows past the end reach masked stores only",
    "once": "the loop starts less than a step before its end",
    "apart": "what the loop writes is not what its tiles ahead read",
    "shrinks": "a lane that a tile reads was read in the first tile too",
}
# How it is made sure of.
DISCHARGES = {
    "proven": "holds for every launch",
    "launch": "checked before each launch",
    "contract": "what the launch promises to Triton's own compiler in the same words (docs/design/offsets.md)",
}


@dataclass(frozen=True)
class Obligation:
    """One thing that a rewrite rests on.

    expression: what it is about, as the source spells it (`offs * stride`), or a pointer argument of the kernel for `storage`.
    kind: a key of KINDS. rewrite: what was written because of it, in words. file, line: of the source; "" and 0 where it is
    about the kernel's signature. discharge: a key of DISCHARGES. arguments: those of the kernel that are checked at launch
    (not negative for `not-negative`, the size of their storage for `storage`), and in order; who looks for inputs that break
    the obligation changes these and what else the expression is made of. condition: what of them, and of the number of
    programs, is checked instead.
    """

    line: int
    expression: str
    kind: str
    rewrite: str
    discharge: str
    arguments: tuple[str, ...] = ()
    file: str = ""
    condition: Condition | None = None

    def __post_init__(self):
        assert self.kind in KINDS and self.discharge in DISCHARGES, f"bug in gluonize: {self!r}"
        checks = bool(self.arguments) or self.condition is not None
        assert checks == (self.discharge == "launch"), f"bug in gluonize: {self!r}"

    def __lt__(self, other: Obligation) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple:
        plain = (self.line, self.expression, self.kind, self.rewrite, self.discharge, self.arguments, self.file)
        return (*plain, str(self.condition or ""))

    def as_json(self) -> dict:
        condition = str(self.condition or "")
        return {**vars(self), "arguments": list(self.arguments), "condition": condition}

    def __str__(self) -> str:
        """`offs * stride >= 0: checked at launch (stride); for offsets from a base that moves`."""
        checks = str(self.condition or ", ".join(self.arguments))
        what = {
            "not-negative": f"{self.expression} >= 0",
            "no-overflow": f"{self.expression} does not overflow",
            "storage": f"storage of {self.expression} within 2 GiB",
            "start": f"accesses from the start of {self.expression}",
            "reach": f"{self.expression} within 2 GiB of its base",
            "descriptor": f"{self.expression} is (base, shape, strides)",
            "multiple": f"{self.expression} is a multiple of 16",
            "aligned": f"{self.expression} starts at a multiple of 16 bytes",
            "positive": f"{self.expression} is positive",
            "ends": f"{self.expression} is false past the loop's end",
            "outside": "what is negative lies outside of the tensor as an unsigned number too",
            "rows": "rows past the end reach masked stores only",
            "once": "the loop starts less than a step before its end",
            "apart": "what the loop writes is not what its tiles ahead read",
            "shrinks": f"lanes of {self.expression} only end",
        }[self.kind]
        how = {
            "proven": "proven",
            "launch": f"checked at launch ({checks})",
            "contract": "promised to Triton by the launch",
        }[self.discharge]
        return f"{what}: {how}; for {self.rewrite}"


def checked(obligations: Iterable[Obligation], kind: str) -> set[str]:
    """The kernel's arguments that obligations of one kind have checked at launch."""
    said = (o for o in obligations if o.kind == kind and o.discharge == "launch" and o.condition is None)
    return {name for o in said for name in o.arguments}


def conditions(obligations: Iterable[Obligation]) -> dict[Condition, str]:
    """The conditions that are checked at launch, each with an expression that it is for."""
    return {o.condition: o.expression for o in sorted(obligations, reverse=True) if o.condition is not None}


__all__ = ["DISCHARGES", "KINDS", "Obligation", "checked", "conditions"]
