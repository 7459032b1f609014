"""What a rewrite rests on, and how that is made sure of: proved, checked before each launch, or so by what the source means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

# What has to hold.
KINDS = {
    "not-negative": "the expression is not negative",
    "no-overflow": "no sum or product of the expression overflows on its way into an address",
    "storage": "the storage behind a pointer is within 2 GiB",
    "index": "the expression, made of what the kernel reads from memory, is not negative",
    "descriptor": "an argument is given as base, shape and strides",
    "ends": "the mask is false past the end of the loop, as its index arithmetic does not overflow",
    "shrinks": "a lane that a tile reads was read in the first tile too",
}
# How it is made sure of.
DISCHARGES = {
    "proven": "holds for every launch",
    "launch": "checked before each launch",
    "source": "holds wherever the source is well defined on this target (docs/design/offsets.md)",
}


@dataclass(frozen=True, order=True)
class Obligation:
    """One thing that a rewrite rests on.

    expression: what it is about, as the source spells it (`offs * stride`), or a pointer argument of the kernel for `storage`.
    kind: a key of KINDS. rewrite: what was written because of it, in words. file, line: of the source; "" and 0 where it is
    about the kernel's signature. discharge: a key of DISCHARGES. arguments: those of the kernel that are checked at launch
    (not negative for `not-negative`, the size of their storage for `storage`), and in order; who looks for inputs that break
    the obligation changes these and what else the expression is made of.
    """

    line: int
    expression: str
    kind: str
    rewrite: str
    discharge: str
    arguments: tuple[str, ...] = ()
    file: str = ""

    def __post_init__(self):
        assert self.kind in KINDS and self.discharge in DISCHARGES, f"bug in gluonize: {self!r}"
        assert bool(self.arguments) == (self.discharge == "launch"), f"bug in gluonize: {self!r}"

    def as_json(self) -> dict:
        return {**asdict(self), "arguments": list(self.arguments)}

    def __str__(self) -> str:
        """`offs * stride >= 0: checked at launch (stride); for offsets from a base that moves`."""
        names = ", ".join(self.arguments)
        what = {
            "not-negative": f"{self.expression} >= 0",
            "no-overflow": f"{self.expression} does not overflow",
            "storage": f"storage of {self.expression} within 2 GiB",
            "index": f"{self.expression} >= 0",
            "descriptor": f"{self.expression} is (base, shape, strides)",
            "ends": f"{self.expression} is false past the loop's end",
            "shrinks": f"lanes of {self.expression} only end",
        }[self.kind]
        how = {
            "proven": "proven",
            "launch": f"checked at launch ({names})",
            "source": "so in a source that is well defined",
        }[self.discharge]
        return f"{what}: {how}; for {self.rewrite}"


def checked(obligations: Iterable[Obligation], kind: str) -> set[str]:
    """The kernel's arguments that obligations of one kind have checked at launch."""
    return {name for o in obligations if o.kind == kind and o.discharge == "launch" for name in o.arguments}


__all__ = ["DISCHARGES", "KINDS", "Obligation", "checked"]
