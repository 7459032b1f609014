"""Launches that differ in what device code cannot see: a class or a layout of the source that its translation does not take, or a function
of the same name.

One text cannot serve both `kernel[grid](x, ACT=mine.relu)` and `kernel[grid](x, ACT=theirs.relu)`: the first is translated, the other
refused.
"""

from __future__ import annotations

from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.output.merging.kernel_family import KernelVersion
from gluonize.read.spec.launch import LaunchSpec

_UNSEEN = ("$jit", "$class", "$call", "$layout")


class ToldLaunches:
    """The launches of a file so far."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], tuple[LaunchSpec, KernelVersion]] = {}

    def add(self, spec: LaunchSpec, version: KernelVersion) -> None:
        """Add the launch `spec`, translated as `version`.

        Raises: TranslationError `launches-alike` where one that device code takes for the same has another function, class or layout.
        """
        key = version.loaded.qualname, repr(version.configuration)
        other, first = self._first.setdefault(key, (spec, version))
        if version.loaded.lifted and version.loaded.lifted == first.loaded.lifted:
            return
        differing = [name for name, value in _unseen(spec).items() if _unseen(other).get(name) != value]
        if not differing:
            return
        name = differing[0]
        message = f"{spec.id} gives {name} another function, class or layout than {other.id} does"
        why = "device code cannot tell the two launches apart, and their kernels are different ones"
        help = "translate each into a file of its own, with a launch file that has one of them"
        raise TranslationError(
            Diagnostic("launches-alike", message, version.loaded.path, version.loaded.line, 1, why, help)
        )


def _unseen(spec: LaunchSpec) -> dict[str, Any]:
    """The arguments of a launch that are functions, classes or layouts, or hold some."""
    return {name: value for name, value in spec.constexprs.items() if any(f"'{x}'" in repr(value) for x in _UNSEEN)}
