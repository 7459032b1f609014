"""The CTAs of a program that is a cluster: what each knows of the others, which run the same operations at a pace of their own.

A copy into a tile that CTAs share comes to all of them from the moment at which the first one starts it until the last one has
waited for it. So nobody may use that memory for anything else in between, and what one CTA did is known to another only behind
a barrier of the cluster. One warp of a CTA arrives there for all of them: the arrival says that the CTA is done with what lies
before the last barrier of its own, and with nothing else.

    read a slot; barrier of the CTA; arrive; wait; copy into the slot
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gluonize.judge.machine.hazards import Finding, Hazard, Report, stop
from gluonize.judge.machine.memory.cluster import PeerAccesses, holders
from gluonize.trace.model.attributes import Attribute
from gluonize.trace.model.cta_parts import along_shared_axis, ctas_of, moved, of_one_cta, shares_tensors, stays
from gluonize.trace.model.locations import UNKNOWN, Place
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op
from gluonize.trace.model.shared_layouts import read_shared

Extents = list[tuple[int, int]]
# Accesses of memory by each CTA for its part, with where the type of that part stands: of the first operand, or behind the arrow.
_ACCESSES = {
    "tt.load": "behind the arrow",
    "amdg.buffer_load": "behind the arrow",
    "ttg.async_copy_global_to_local": "behind the arrow",
    "amdg.async_tdm_copy_global_to_local": "behind the arrow",
    "amdg.buffer_store": "behind the arrow",
    "tt.store": "operand",
}


@dataclass(frozen=True)
class _Use:
    """The last use of some bytes: by which allocation, in which interval between barriers of the CTA, and where."""

    name: str
    interval: int
    place: Place


@dataclass(eq=False)
class _Spread:
    """A copy to several CTAs. landed: the interval in which this one waited for it, None before."""

    copy: object
    extents: Extents
    landed: int | None = None


class Cluster:
    """`known`: all CTAs are done with the intervals before it, None where nothing is known. `place`: of the op that runs now. report(hazard):
    raises it, or notes it. `peers`: what CTAs do to memory, None where they share nothing and one of them stores everything.
    """

    def __init__(self, report: Report = stop, module: Module | None = None) -> None:
        self.report = report
        self.module = module
        self.peers = PeerAccesses(report) if module is not None and shares_tensors(module) else None
        self.known: int | None = None
        self.place = UNKNOWN
        self._arrived: tuple[int, Place] | None = None
        self._uses: dict[tuple[int, int], _Use] = {}
        self._spread: list[_Spread] = []

    def begin(self, op: Op, interval: int, used: bool) -> None:
        """`op` is about to run; used: whether anything reads its result. Raises: Hazard where it needs what another CTA has."""
        self.place = op.place
        if "peer" not in op.memo:
            op.memo["peer"] = _needed(self.module, op, used)
        if op.memo["peer"]:
            raise Hazard("cluster-peer", op.memo["peer"])
        if self.peers is not None:
            self.peers.interval, self.peers.known = interval, -1 if self.known is None else self.known
            self.peers.held = _held(self.module, op) if op.name in _ACCESSES else None

    # The barrier of the cluster.

    def arrive(self, interval: int) -> None:
        """Raises: Hazard for a second arrival."""
        if self._arrived is not None:
            raise Hazard(
                "cluster-arrive",
                f"arrives at the barrier of the cluster again; nothing has waited for the arrival in line {self._arrived[1].line}",
            )
        self._arrived = interval, self.place

    def wait(self) -> None:
        """Raises: Hazard where nobody arrives."""
        if self._arrived is None:
            raise Hazard("cluster-wait", "waits at the barrier of the cluster, at which its workgroup has not arrived")
        self.known, self._arrived = self._arrived[0], None
        self._spread = [s for s in self._spread if s.landed is None or s.landed >= self.known]

    # Accesses.

    def used(self, view, interval: int, writes: bool) -> None:
        """An access to shared memory by the program's own lanes. Reports where a copy of another CTA may come in between."""
        extents = extents_of(view)
        for spread in self._spread:
            same = view.allocation.is_same(spread.copy.target.allocation)
            if spread.landed is not None and (writes or not same) and _meet(extents, spread.extents):
                self.report(
                    Hazard("cluster-reuse", f"uses bytes that another workgroup may still copy to{_of(spread)}")
                )
        self._note(extents, view.allocation.name, interval)

    def scratch(self, begin: int, end: int, interval: int) -> None:
        """An op uses these bytes for itself."""
        for spread in self._spread:
            if spread.landed is not None and _meet([(begin, end)], spread.extents):
                self.report(
                    Hazard("cluster-reuse", f"uses bytes that another workgroup may still copy to{_of(spread)}")
                )
        self._note([(begin, end)], "memory of an operation", interval)

    def _note(self, extents: Extents, name: str, interval: int) -> None:
        for extent in extents:
            self._uses[extent] = _Use(name, interval, self.place)

    # Copies to several CTAs.

    def start(self, copy) -> None:
        """Reports where another CTA may not have started, or may still use what the copy fills there."""
        name, extents = copy.target.allocation.name, extents_of(copy.target)
        if self.known is None:
            what = f"copies to {name} of workgroups that may not have started: no barrier of the cluster before"
            self.report(Hazard("cluster-start", what))
        for extent, use in self._uses.items():
            if self.known is not None and use.interval >= self.known and _meet(extents, [extent]):
                used = f"fills {name} where another workgroup may still use {use.name}, as in line {use.place.line}"
                between = "a barrier of the workgroup and then one of the cluster must lie between"
                self.report(Hazard("cluster-overwrite", f"{used}; {between}"))
        for spread in self._spread:
            if spread.landed is not None and _meet(extents, spread.extents):
                what = f"fills {name}, to which another workgroup may still copy{_of(spread)}"
                self.report(Hazard("cluster-overwrite", what))
        self._spread.append(_Spread(copy, extents))

    def land(self, copy, interval: int) -> None:
        """This CTA has waited for `copy`."""
        for spread in self._spread:
            if spread.copy is copy:
                spread.landed = interval

    def close(self, program: tuple[int, ...]) -> list[Finding]:
        """The program ends: its CTAs may not leave while others copy to them, nor with an arrival that nobody waits for."""
        found = []
        for spread in self._spread:
            p, name = spread.copy.place, spread.copy.target.allocation.name
            message = (
                f"a workgroup may end while another one copies to its {name}: no barrier of the cluster after the wait"
            )
            found.append(Finding("cluster-exit", message, spread.copy.op, p.file, p.line, p.column, program))
        if self._arrived is not None:
            p = self._arrived[1]
            message = "nothing waits for this arrival at the barrier of the cluster"
            found.append(
                Finding("cluster-arrive", message, "amdg.cluster_barrier_arrive", p.file, p.line, p.column, program)
            )
        return found


def _needed(module: Module, op: Op, used: bool) -> str:
    """What a CTA would need of another one to carry out `op`, "" for nothing."""
    what = along_shared_axis(module, op) or of_one_cta(module, op, used)
    held, wanted = moved(module, op)
    if held and wanted and not stays(held, wanted):
        what = "a part of a tile that another workgroup has in its LDS, or that this one does not bring it"
        what = "a value that another workgroup has" if op.name == "ttg.convert_layout" else what
    return f"needs what another workgroup of the cluster has: {what}" if what else ""


def _held(module: Module, op: Op) -> np.ndarray:
    """Of the elements that an access reads or stores, in order, the CTAs that have them."""
    if "held" not in op.memo:
        kind = op.operand_types[0] if _ACCESSES[op.name] == "operand" else op.target
        ctas = ctas_of(module, kind)
        whole = ((0,) * len(kind.shape or ()),) * (module.clusters.bit_length() - 1)
        op.memo["held"] = holders(kind.shape or (), ctas if ctas and len(ctas[0]) == len(whole[0]) else whole)
    return op.memo["held"]


def extents_of(view) -> Extents:
    """The bytes of a view; of an allocation whose place is not known a range that is no other's."""
    return view.extents() or [(-id(view.allocation), 1 - id(view.allocation))]


def is_spread(layout: Attribute, shape: tuple[int, ...]) -> bool:
    """Whether several CTAs have the same part of a tile in this layout."""
    shared = read_shared(layout, shape[-2:])
    return shared is not None and not all(map(any, shared.ctas))


def parts_of(layout: Attribute, shape: tuple[int, ...]) -> int:
    """How many different parts of a tile the CTAs of a cluster have."""
    shared = read_shared(layout, shape[-2:])
    return 1 << sum(map(any, shared.ctas)) if shared is not None else 1


def _meet(some: Extents, others: Extents) -> bool:
    return any(first < end and begin < last for first, last in some for begin, end in others)


def _of(spread: _Spread) -> str:
    return f"; the {spread.copy.op} at {spread.copy.place.file}:{spread.copy.place.line} has landed in this one alone"
