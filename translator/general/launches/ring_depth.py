"""How many tiles the rings of a kernel have: as many as `num_stages` of the launch asks for, and as LDS has room for.

A launch hands an option to a parameter of its name too, so a kernel with a parameter `num_stages` reads the option.

    NUM_BUFFERS: gl.constexpr = 2,  ->  num_stages: gl.constexpr = 2,
                                        ...
                                        NUM_BUFFERS: gl.constexpr = min(num_stages, 163840 // (2 * BLOCK_M * BLOCK_K))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import libcst as cst
from gluonize.decide.layouts.formulas import Product, no_more_than, sum_text
from gluonize.decide.layouts.size_range import Bound, RoomBound, SizeRange
from gluonize.decide.readback.traced_launch import TracedLaunch
from gluonize.general.layout_roles import ring_bytes
from gluonize.gluon.trees.function import GluonFunction, expression
from gluonize.read.spec.launch import LaunchSpec
from gluonize.write.state.emitted import EmittedKernel, FewestBuffers

STAGES = "num_stages"
STAGES_LEFT_OUT = 2  # HIPOptions.num_stages, triton/backends/amd/compiler.py of Triton 3.9.0
STAGES_TRIED = (2, 3, 4, 6, 8)
_PARAMETER = "NUM_BUFFERS"


@dataclass(frozen=True)
class RingDepth:
    """The parameter `name` that holds a depth. asked: tiles that every launch asks for; None where `num_stages` says it, less
    `in_registers` tiles. room: bytes of LDS."""

    name: str
    room: int
    in_registers: int = 0
    asked: int | None = None

    @property
    def ranges(self) -> tuple[SizeRange, ...]:
        """What `num_stages` may be."""
        return (SizeRange(STAGES, STAGES_TRIED[0], STAGES_TRIED[-1]),) if self.asked is None else ()

    def at(self, launch: TracedLaunch) -> int:
        asked = stages_of(launch.spec) - self.in_registers if self.asked is None else self.asked
        return min(asked, self.room // max(sum(ring_bytes(launch)), 1))

    def taken_out(self, emitted: EmittedKernel, launch: TracedLaunch) -> EmittedKernel:
        """A translation without its depth, where that is the one expected: those of other depths are then the same text."""
        if emitted.kernel.laid_out is None or _depth(emitted, self.name) != self.at(launch):
            return emitted
        plain = replace(emitted.kernel.laid_out, function=self._without(emitted.kernel.laid_out.function))
        return replace(emitted, kernel=replace(emitted.kernel, laid_out=plain))

    def _without(self, function: GluonFunction) -> GluonFunction:
        """The function with a parameter for `num_stages` instead of the depth, or with none."""
        if self.asked is not None:
            return function.without_parameters([self.name])[0]

        def renamed(parameter: cst.Param) -> cst.Param:
            if parameter.name.value != self.name:
                return parameter
            return parameter.with_changes(name=cst.Name(STAGES), default=expression(str(STAGES_LEFT_OUT)))

        params = function.node.params
        changes = {group: [renamed(p) for p in getattr(params, group)] for group in ("params", "kwonly_params")}
        return function.with_node(function.node.with_changes(params=params.with_changes(**changes)))

    def implies(self, depth: FewestBuffers, rings: Sequence[Product], bounds: Iterable[Bound]) -> bool:
        """Whether a depth is no less than that wherever its stages and bounds hold, which are asserted. rings: bytes of a tile of each."""
        asked = STAGES_TRIED[0] - self.in_registers if self.asked is None else self.asked
        known = [b for b in bounds if isinstance(b, RoomBound) and Counter(b.products) == Counter(rings)]
        room = any(b.slots >= depth.least and b.room <= self.room for b in known)
        return depth.name == self.name and asked >= depth.least and room

    def definition(self, rings: Sequence[Product], spelled: Callable[[str], str]) -> str:
        """The statement that says the depth. rings: bytes of a tile of each; spelled: how a size and a function are written."""
        asked = str(self.asked) if self.asked is not None else STAGES
        asked += f" - {self.in_registers}" if self.in_registers else ""
        held = sum_text(rings, spelled)
        why = "Tiles in LDS: as many as there is room for, up to "
        why += "those asked for" if self.asked is not None else "the stages of the launch"
        why += ", of which one is in registers." if self.in_registers else "."
        return f"# {why}\n{self.name}: gl.constexpr = {no_more_than(f'{self.room} // ({held})', asked, spelled)}"


def ring_depth(
    known: Sequence[tuple[EmittedKernel, TracedLaunch]], others: Callable[[LaunchSpec], tuple | None]
) -> RingDepth | None:
    """What gives the depth of the rings in some translations of a kernel, and in those of the same launches with other `num_stages`.

    others: translates a launch, None where it is refused. -> None where nothing gives it, or several parameters hold depths.
    """
    held = [p.name.value for p in known[0][0].kernel.function.parameters if p.name.value.startswith(_PARAMETER)]
    if len(held) != 1 or any(_depth(emitted, held[0]) is None for emitted, _ in known):
        return None
    samples = list(known)
    for _, launch in known:
        for stages in STAGES_TRIED:
            if (other := others(with_stages(launch.spec, stages))) is None:
                return None
            samples.append(other)
    if any(_depth(emitted, held[0]) is None for emitted, _ in samples):
        return None
    room = known[0][1].target.lds_bytes
    most = max(_depth(emitted, held[0]) or 0 for emitted, _ in samples)
    ways = [RingDepth(held[0], room, asked=most)]
    function = known[0][0].kernel.function
    if STAGES not in function.bound | function.variables.keys():
        ways = [RingDepth(held[0], room), RingDepth(held[0], room, in_registers=1), *ways]
    return next((way for way in ways if _gives(way, samples)), None)


def stages_of(spec: LaunchSpec) -> int:
    """What a launch says of `num_stages`, or leaves to Triton."""
    return int(spec.options.get(STAGES, STAGES_LEFT_OUT))


def with_stages(spec: LaunchSpec, stages: int) -> LaunchSpec:
    return replace(spec, options=spec.options | {STAGES: stages})


def _gives(way: RingDepth, samples: Iterable[tuple[EmittedKernel, TracedLaunch]]) -> bool:
    return all(way.at(launch) == _depth(emitted, way.name) for emitted, launch in samples)


def _depth(emitted: EmittedKernel, name: str) -> int | None:
    """The default of a parameter; None where there is none."""
    held = next((p for p in emitted.kernel.function.parameters if p.name.value == name), None)
    return int(held.default.value) if held is not None and isinstance(held.default, cst.Integer) else None


__all__ = ["RingDepth", "STAGES", "STAGES_TRIED", "ring_depth", "stages_of", "with_stages"]
