"""A function that has been written: its Gluon, and what is read of the work afterwards."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from gluonize.facts.function import FunctionFacts
from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.trees.function import GluonFunction
from gluonize.write.accesses.addresses import Addressing
from gluonize.write.state.function_loops import FunctionLoops
from gluonize.write.state.unit import Decided, Record
from gluonize.write.state.variables import WebState
from gluonize.write.state.writing import HomeOf, StateOf


@dataclass(frozen=True, eq=False)
class WrittenFunction:
    """function: its layouts and helpers have no names yet; names: what its layouts are for. wants, argument_homes: the layouts in which it
    gives and takes tensors. locals: the names that it assigns. added_parameters: constexpr parameters that the source did not have,
    with their defaults. states: of its variables, by the number of the web."""

    facts: FunctionFacts
    decided: Decided
    function: GluonFunction
    record: Record
    names: LayoutNames
    wants: Any
    argument_homes: dict[str, Any]
    locals: set[str]
    added_parameters: dict[str, str]
    states: dict[int, WebState]
    state: StateOf
    home: HomeOf
    addressing: Addressing
    loops: FunctionLoops

    @property
    def taken(self) -> set[str]:
        """The names that layouts and helpers cannot have."""
        return self.locals | {n.id for n in self.facts.nodes if isinstance(n, ast.Name)}
