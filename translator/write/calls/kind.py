"""What the kind of a row decides about calls: where their results lie, what they want of their arguments, what they cost, their text.

One class for each kind of `gluonize.rules.rows` answers all of these, from the row: what looks for layouts and what writes them ask the same
object.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gluonize.facts.function import FunctionFacts
from gluonize.facts.syntax import arguments_of
from gluonize.gluon.written import Written
from gluonize.trace.front.trace import TensorFact, TupleFact
from gluonize.trace.model.layouts import Layout
from gluonize.write import costs
from gluonize.write.accesses.addresses import Addressing
from gluonize.write.calls.helpers import Helpers
from gluonize.write.state.call_text import Called
from gluonize.write.state.relations import Wants
from gluonize.write.state.site import Site
from gluonize.write.state.writing import Cheap


@dataclass(frozen=True)
class Place:
    """Where a call stands, and what addresses and helpers of the function are. site: a `Spot` while layouts are found."""

    site: Site
    addressing: Addressing
    helpers: Helpers


class Kind:
    """A kind of row. asked: what knows where values lie before anything is written; want: the layout in which the result is wanted, of a
    tuple those of its elements."""

    def cheap(self, facts: FunctionFacts, is_cheap: Cheap, call: Called) -> bool:
        """Whether computing a call again in another layout costs less than moving its result; its row says that it is cheap."""
        arguments = arguments_of(call.node)
        if call.callee.owner is not None:
            arguments.append(call.callee.owner)
        return all(is_cheap(a) for a in arguments) or costs.spread(facts, call.node, call.callee)

    def cheap_anew(self, facts: FunctionFacts, is_cheap: Cheap, call: Called) -> bool:
        """The same where the row says that it costs more."""
        return False

    def home(self, asked: Helpers, call: Called, fact: TensorFact) -> Layout | None:
        """The layout of a result, `fact`, for which Triton's own module says none; None for the default."""
        return None

    def homes(self, asked: Helpers, call: Called, fact: TupleFact) -> tuple:
        """The layouts of several results."""
        return for_tensors(fact, lambda f: asked.facts.default_layout(f.shape))

    def wants(self, at: Place, call: Called, want: Any) -> Wants:
        """In which layouts it wants its arguments; what it says nothing of is taken as it is."""
        return {}

    def text(self, at: Place, call: Called, want: Any) -> Written:
        """The call in Gluon."""
        raise NotImplementedError


def tensors_of(facts: FunctionFacts, call: Called) -> list[ast.expr]:
    """The arguments that are tensors."""
    return [a for a in call.given.values() if facts.tensor(a) is not None]


class LikeOperand(Kind):
    """A kind whose result lies as an argument with its dimensions, as one that is no single value where there is such."""

    def home(self, asked: Helpers, call: Called, fact: TensorFact) -> Layout | None:
        for argument in sorted(tensors_of(asked.facts, call), key=asked.is_one_value):
            if asked.facts.tensor(argument).rank == fact.rank:
                return asked.home(argument)
        return None


def for_tensors(fact: TupleFact, layout: Callable[[TensorFact], Layout | None]) -> tuple:
    """A layout for each element of a tuple that is a tensor; None for the others."""
    return tuple(layout(f) if isinstance(f, TensorFact) and f.shape else None for f in fact.items)


__all__ = ["Kind", "LikeOperand", "Place", "for_tensors", "tensors_of"]
