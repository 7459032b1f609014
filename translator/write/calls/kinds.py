"""The kinds of rows (`gluonize.rules.rows.KINDS`), each with the one object that decides about its calls."""

from __future__ import annotations

from typing import Any

from gluonize.facts.callees import Callee, is_descriptor, is_given, is_helper
from gluonize.facts.function import FunctionFacts
from gluonize.gluon.written import Part, Written
from gluonize.trace.front.trace import TensorFact, TupleFact
from gluonize.trace.model.layouts import Layout
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.write.accesses.run_time import as_tensor
from gluonize.write.calls import helpers
from gluonize.write.calls.elementwise import Creator, Elementwise, Refused, Same
from gluonize.write.calls.helpers import Helpers
from gluonize.write.calls.kind import Kind, Place
from gluonize.write.calls.memory import Atomic, Descriptor, DescriptorMethod, Load, Store
from gluonize.write.calls.reductions import Reduce, Scan
from gluonize.write.calls.shapes import Shape
from gluonize.write.products import dots, scaled_dots
from gluonize.write.state.call_text import Called, by_template, generic, with_function
from gluonize.write.state.relations import Wants, operands_in


class Dot(Kind):
    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        return dots.dot_wants(at.site, call.node)

    def text(self, at: Place, call: Called, want: Any) -> Written:
        return dots.emit_dot(at.site, call.node, want)


class ScaledDot(Kind):
    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        return scaled_dots.dot_scaled_wants(at.site, call.node, call.given)

    def text(self, at: Place, call: Called, want: Any) -> Written:
        return scaled_dots.emit_dot_scaled(at.site, call.node, call.given, want)


class Gather(Kind):
    """The result lies as the index does."""

    def home(self, asked: Helpers, call: Called, fact: TensorFact) -> Layout | None:
        return asked.home(call.given["index"]) if "index" in call.given else None

    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        source, index = call.given["src"], call.given["index"]
        placed = at.site.facts.placed(call.node, "tt.gather")
        from_layout = placed[0].operands[0].layout if placed and placed[0].operands else at.site.home(source)
        return {source: from_layout, index: want or at.site.home(call.node)}

    def text(self, at: Place, call: Called, want: Any) -> Written:
        return with_function(at.site, call.node, call.callee, at.site.texts(self.wants(at, call, want)))


class Histogram(Kind):
    """What is counted lies as it likes, and the counts as they are wanted."""

    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        facts, data = at.site.facts, call.given["input"]
        counted = [a for a in (data, call.given.get("mask")) if is_given(facts, a)]
        return operands_in(facts, counted, facts.tensor(data), at.site.home(data))

    def text(self, at: Place, call: Called, want: Any) -> Written:
        writing, facts = at.site, at.site.facts
        want = want or writing.home(call.node)
        data, mask = call.given["input"], call.given.get("mask")
        texts = writing.texts(self.wants(at, call, want), facts.tensor(data))
        values: dict[str, Part | None] = {"input": texts[data], "mask": None}
        if mask in texts:
            values["mask"] = as_tensor(facts, mask, texts[mask])
        values |= {"num_bins": writing.emit(call.given["num_bins"]), "layout": writing.names.spell(want)}
        return by_template(writing.record, call.callee.row, values)


class Helper(Kind):
    """The author's own functions, and those of Triton's that are translated like them: each is written for the layouts of a call."""

    def home(self, asked: Helpers, call: Called, fact: TensorFact) -> Layout | None:
        return helpers.return_home(asked, call.node, call.callee) if is_helper(asked.facts, call.node) else None

    def homes(self, asked: Helpers, call: Called, fact: TupleFact) -> tuple:
        if not is_helper(asked.facts, call.node):
            return super().homes(asked, call, fact)
        return helpers.return_homes(asked, call.node, call.callee, fact)

    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        own = isinstance(call.callee.function, JITFunction)
        return helpers.helper_wants(at.helpers, call.node, call.callee, want) if own else {}

    def text(self, at: Place, call: Called, want: Any) -> Written:
        if isinstance(call.callee.function, JITFunction):
            return helpers.emit_helper_call(at.site, at.helpers, call.node, call.callee, want)
        return generic(at.site, call.node, {})


KINDS: dict[str, Kind] = {
    "elementwise": Elementwise(),
    "creator": Creator(),
    "load": Load(),
    "store": Store(),
    "atomic": Atomic(),
    "reduce": Reduce(),
    "scan": Scan(),
    "shape": Shape(),
    "dot": Dot(),
    "dot_scaled": ScaledDot(),
    "gather": Gather(),
    "histogram": Histogram(),
    "descriptor": Descriptor(),
    "helper": Helper(),
    "same": Same(),
    "refuse": Refused(),
}
_BY_DESCRIPTOR = DescriptorMethod()


def kind_of(facts: FunctionFacts, callee: Callee) -> Kind:
    """What decides about the calls of a function."""
    if callee.row is None:
        return KINDS["helper"]
    found = KINDS[callee.row.kind]
    decided = isinstance(found, (Helper, Refused))
    by_descriptor = not decided and callee.owner is not None and is_descriptor(facts.fact(callee.owner))
    return _BY_DESCRIPTOR if by_descriptor else found


__all__ = ["KINDS", "kind_of"]
