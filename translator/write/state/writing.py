"""What is known of a function while its layouts are found, and how the parts of an expression are written: all that handlers of calls take."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.unscaled import Unscaled
from gluonize.facts.webs import Web
from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.written import Part, Written, indexed
from gluonize.numbered import numbered
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.layouts import Layout
from gluonize.write.state.layouts import Layouts
from gluonize.write.state.relations import Wants, operand_layout
from gluonize.write.state.unit import Decided, Record, Synthesized
from gluonize.write.state.variables import WebState


class Emit(Protocol):
    """Writes an expression: the Gluon text of `node`, a tensor in the layout `want`."""

    def __call__(self, node: ast.AST, want: Any = None) -> Written: ...


class Splice(Protocol):
    """Writes an expression with other text for parts of it; more: arguments behind those of a call."""

    def __call__(self, node: ast.AST, children: dict[ast.AST, Written], more: Sequence[Part] = ()) -> Written: ...


HomeOf = Callable[[ast.AST], Any]  # the layout in which a value lies, of a tuple those of its elements
StateOf = Callable[[Web], WebState]  # what is known so far of a variable in the output
Rebound = Callable[[str], bool]  # whether the author uses a name for several variables
Cheap = Callable[[ast.AST], bool]  # whether a value is made anew in each layout that its uses want
Convert = Callable[[Written, Layout], Written]  # writes a tensor in another layout


@dataclass(frozen=True)
class Asking:
    """Finding the layouts of one function, with nothing written: what is known and decided, what has been used so far, where values lie."""

    facts: FunctionFacts
    decided: Decided
    record: Record
    names: LayoutNames
    layouts: Layouts
    unscaled: Mapping[ast.AST, Unscaled]  # by statement, and by reduction

    def home(self, node: ast.AST) -> Any:
        return self.layouts.home(node)

    def cheap(self, node: ast.AST) -> bool:
        return self.layouts.cheap(node)

    def rebound(self, name: str) -> bool:
        return self.layouts.rebound(name)


@dataclass(frozen=True)
class Writing(Asking):
    """Writing one function whose layouts are found: how parts are written, too."""

    emit: Emit
    splice: Splice
    convert: Convert

    def operand_in(self, node: ast.AST, fact: TensorFact | None, want: Layout | None) -> Written:
        """An operand of an elementwise operation as its result, `fact`, is: in its layout, with the dimensions that it lacks."""
        return self.texts({node: operand_layout(self.facts, node, fact, want)}, fact)[node]

    def texts(self, wants: Wants, fact: TensorFact | None = None) -> dict[ast.AST, Written]:
        """Each part in its layout; fact: of which they are elementwise operands, with the dimensions that they lack."""
        made = {}
        for node, want in wants.items():
            made[node], mine = self.emit(node, want), self.facts.tensor(node)
            if fact is not None and want is not None and mine is not None and fact.rank != mine.rank:
                made[node] = indexed(made[node], ", ".join(["None"] * (fact.rank - mine.rank) + [":"] * mine.rank))
        return made

    def added(self, function: Synthesized) -> str:
        """Put a function into the output; -> its name."""
        return added(self.facts, self.record, function)


def added(facts: FunctionFacts, record: Record, function: Synthesized) -> str:
    """Put a function into the output, for calls in the one of `facts`; -> its name, which is none of the source's."""
    own = function.called(numbered(function.name, facts.kernel.words.__contains__))
    record.need(own, facts.frame.fn)
    return own.name
