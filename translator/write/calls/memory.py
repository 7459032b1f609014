"""Calls that access memory: addresses, masks and values share one layout."""

from __future__ import annotations

from typing import Any

from gluonize.gluon.written import Written
from gluonize.write.accesses import accesses
from gluonize.write.calls.kind import Kind, LikeOperand, Place
from gluonize.write.descriptors import descriptors
from gluonize.write.state.call_text import Called
from gluonize.write.state.relations import Wants


class Load(LikeOperand):
    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        return accesses.load_wants(at.site, at.addressing, call, want)

    def text(self, at: Place, call: Called, want: Any) -> Written:
        return accesses.emit_load(at.site, at.addressing, call, want)


class Store(Kind):
    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        return accesses.store_wants(at.site, at.addressing, call, _alone(at))

    def text(self, at: Place, call: Called, want: Any) -> Written:
        return accesses.emit_store(at.site, at.addressing, call, _alone(at))


def _alone(at: Place) -> bool:
    """Whether a store stands outside of loops, in a function whose warps all do the same."""
    return not at.site.loops and not at.site.partitioned


class Atomic(LikeOperand):
    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        return accesses.atomic_wants(at.site, at.addressing, call)

    def text(self, at: Place, call: Called, want: Any) -> Written:
        return accesses.emit_atomic(at.site, at.addressing, call, want)


class Descriptor(Kind):
    """A function that makes a tensor descriptor."""

    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        return descriptors.wants(at.site, call.node, call.callee, call.given, want)

    def text(self, at: Place, call: Called, want: Any) -> Written:
        return descriptors.emit_make(at.site, call.node, call.callee, call.given, want)


class DescriptorMethod(Descriptor):
    """An access by a tensor descriptor."""

    def text(self, at: Place, call: Called, want: Any) -> Written:
        return descriptors.emit_method(at.site, call.node, call.callee, call.given, want)


__all__ = ["Atomic", "Descriptor", "DescriptorMethod", "Load", "Store"]
