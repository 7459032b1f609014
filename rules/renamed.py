"""Names of Triton that releases moved or removed, and what has their meaning today: one row each.

A source that uses one is read as if it had the new name, and its translation has the new name; what has none is refused where a kernel uses
it. A row counts only where the Triton that runs has no such name, but for those that are about a target: NVIDIA's device library is there,
and is not linked for AMD.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Renamed:
    """One name. old, new: dotted; a last part `*` stands for any name; new is "" where nothing has the meaning. since: the release that no
    longer has the old name, or that has it for another target only. instead: what to write where there is no new name.
    """

    old: str
    new: str
    since: str
    instead: str = ""
    of_target: bool = False

    def __post_init__(self):
        assert bool(self.new) != bool(self.instead), f"{self.old}: a new name, or what to do"
        assert self.old.endswith(".*") == self.new.endswith(".*"), self.old

    def applied(self, name: str) -> str | None:
        """What a dotted name is called today: itself or something in it; None where the row is not about it, "" where nothing is."""
        if self.old.endswith(".*"):
            home, _, last = name.rpartition(".")
            return f"{self.new[:-1]}{last}" if home == self.old[:-2] else None
        if name != self.old and not name.startswith(self.old + "."):
            return None
        return self.new and self.new + name[len(self.old) :]


_LIBDEVICE = "triton.language.extra.libdevice"
RENAMED = (
    # Which library has a function of the device is for the target to say: Triton puts its own in place of this module.
    Renamed("triton.language.extra.cuda.libdevice", _LIBDEVICE, "3.0", of_target=True),
    Renamed("triton.language.extra.intel.libdevice", _LIBDEVICE, "3.0", of_target=True),
    Renamed("triton.language.libdevice", _LIBDEVICE, "2.1"),
    # Of two numbers, as `fmax` and `fmin` of the device library are.
    Renamed("triton.language.math.max", "triton.language.maximum", "3.0"),
    Renamed("triton.language.math.min", "triton.language.minimum", "3.0"),
    Renamed("triton.language.math.*", f"{_LIBDEVICE}.*", "3.0"),
    Renamed("triton.language.float8e4", "triton.language.float8e4nv", "2.1"),
    Renamed("triton.language._experimental_make_tensor_descriptor", "triton.language.make_tensor_descriptor", "3.4"),
    Renamed("triton.language._experimental_descriptor_load", "", "3.4",
            "make a descriptor with tl.make_tensor_descriptor and call its load"),
    Renamed("triton.language._experimental_descriptor_store", "", "3.4",
            "make a descriptor with tl.make_tensor_descriptor and call its store"),
    Renamed("triton.tools.experimental_descriptor", "", "3.4",
            "the host's descriptors are TensorDescriptor of triton.tools.tensor_descriptor"),
    Renamed("triton.ops", "", "3.0", "its kernels have left Triton: take a copy of them along"),
)  # fmt: skip


def renamed(name: str) -> Renamed | None:
    """The row of a dotted name of Triton's, the nearest first; None for a name that no release moved."""
    found = [row for row in RENAMED if row.applied(name) is not None]
    return max(found, key=lambda row: len(row.old.removesuffix("*")), default=None)


__all__ = ["RENAMED", "Renamed", "renamed"]
