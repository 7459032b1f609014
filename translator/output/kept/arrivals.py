"""How many arrivals end a phase of a barrier, where those of threads and of copies are counted as on AMD GPUs.

A copy with a barrier arrives once for each warp that issues it, an `arrive` once for each thread of its partition; nothing counts bytes.
One program of the launch is run, and what arrives in each phase of each barrier is added up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gluonize.lift.machine.arguments import arguments_of
from gluonize.lift.machine.machine import NotLifted, Run
from gluonize.lift.machine.pure_ops import HANDLERS
from gluonize.lift.values.scalars import Scalar
from gluonize.lift.values.tensors import Value, View
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op

Site = tuple[str, int]  # file and line of an `init`


@dataclass
class _Counted:
    """The arrivals of one barrier in each of its phases, the one that has not ended last."""

    site: Op
    phases: list[int] = field(default_factory=lambda: [0])


def arrivals_of(module: Module, spec: LaunchSpec) -> dict[Site, int]:
    """The counts of the barriers, by where they are initialised. Raises: NotLifted where a count is not one number."""
    counted: dict[tuple, _Counted] = {}
    grid = tuple(n or 1 for n in (*spec.grid, 1, 1, 1)[:3])
    for program in dict.fromkeys(((0, 0, 0), tuple(n - 1 for n in grid))):
        barriers: dict[tuple, _Counted] = {}
        Run(module, arguments_of(module, spec), program, grid, _counting(barriers)).go()
        counted |= {(program, *key): found for key, found in barriers.items()}
    out: dict[Site, int] = {}
    for found in counted.values():
        *ended, last = found.phases
        place = found.site.place
        at = place.file, place.line
        counts = {*ended, out.get(at, 0)} - {0}
        if len(counts) > 1 or ended and (0 in ended or last > max(ended)):
            raise NotLifted("phases of a barrier end with different numbers of arrivals", found.site)
        if not ended and at not in out and last:
            counts = {last}
        if counts:
            out[at] = counts.pop()
    return out


def _counting(barriers: dict[tuple, _Counted]) -> Mapping[str, Callable]:
    """The operations' meanings, which also count what arrives."""
    changed: dict[str, Callable] = {}

    def init(run: Run, op: Op, given: list[Value]) -> list[Value]:
        barriers[given[0].key] = _Counted(op)
        return HANDLERS["ttng.init_barrier"](run, op, given)

    def counting(name: str, arrived: Callable[[Run, Op, list[Value]], int]) -> None:
        def counted(run: Run, op: Op, given: list[Value]) -> list[Value]:
            if _is_off(given):
                return HANDLERS[name](run, op, given)
            view = next((x for x in given if isinstance(x, View) and x.key in run.barriers), None)
            if view is None:
                raise NotLifted("a barrier is used before it is initialised", op)
            barrier, record = run.barriers[view.key], barriers[view.key]
            before = barrier.phase
            record.phases[-1] += arrived(run, op, given)
            out = HANDLERS[name](run, op, given)
            if barrier.phase != before:
                record.phases.append(0)
            return out

        changed[name] = counted

    changed["ttng.init_barrier"] = init
    counting("ttng.barrier_expect", lambda run, op, given: 0)
    counting("ttng.arrive_barrier", _threads)
    counting("ttng.async_copy_mbarrier_arrive", lambda run, op, given: run.part.warps * run.module.lanes)
    counting("ttng.async_tma_copy_global_to_local", lambda run, op, given: run.part.warps)
    return _Changed(changed)


class _Changed(dict):
    """Some meanings, and else those of the lifter."""

    def get(self, name, default=None):
        return super().get(name) or HANDLERS.get(name, default)


def _is_off(given: list[Value]) -> bool:
    """Whether the predicate, which comes last, is false."""
    return isinstance(given[-1], Scalar) and not given[-1].value


def _threads(run: Run, op: Op, given: list[Value]) -> int:
    return run.part.warps * run.module.lanes * (1 if op.counted is None else op.counted)
