"""What the names and expressions of a traced function are, found by where they stand in its text."""

from __future__ import annotations

import inspect
import types
from dataclasses import dataclass
from typing import Any

import libcst as cst
from gluonize.gluon.trees.function import GluonFunction, parsed
from gluonize.trace.front.trace import ConstFact, Frame, TupleFact
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

_NVIDIA = "triton.experimental.gluon.language.nvidia"


@dataclass(frozen=True)
class FunctionText:
    """The text of a traced function as a tree, and what its parts were when it was traced."""

    frame: Frame
    function: GluonFunction
    positions: dict[cst.CSTNode, CodeRange]

    @staticmethod
    def of(frame: Frame) -> FunctionText:
        wrapper = MetadataWrapper(parsed(frame.fn.src).module, unsafe_skip_copy=True)
        return FunctionText(frame, GluonFunction(wrapper.module), dict(wrapper.resolve(PositionProvider)))

    def facts(self, node: cst.CSTNode) -> list[Any]:
        """What an expression was each time that it was evaluated; empty where it never was."""
        at = self.positions[node]
        span = at.start.line, at.start.column, at.end.line, at.end.column
        kinds = ("Call", "Name", "Attribute", "Subscript", "Tuple", "List", "Constant", "BinOp", "IfExp", "Compare")
        return [visit.fact for kind in kinds for visit in self.frame.visits.get((kind, *span), ())]

    def constant(self, node: cst.CSTNode) -> Any:
        """The one compile-time value that an expression had; None where it had none, or several."""
        facts = self.facts(node)
        found = [_plain(fact) for fact in facts if isinstance(fact, (ConstFact, TupleFact))]
        if len(found) < len(facts):
            return None
        return found[0] if found and all(type(x) is type(found[0]) and x == found[0] for x in found) else None

    def line(self, node: cst.CSTNode) -> int:
        """The line of the function's text in which a node stands, from 1."""
        return self.positions[node].start.line

    def outside(self, node: cst.CSTNode) -> Any:
        """What a name, or names with dots, mean outside of the function; None for what is bound in it or is none."""
        if isinstance(node, cst.Name):
            if node.value in self.function.bound:
                return None
            return _environment(self.frame.fn).get(node.value)
        if isinstance(node, cst.Attribute):
            owner = self.outside(node.value)
            known = isinstance(owner, (types.ModuleType, type)) or is_nvidias(owner)
            return getattr(owner, node.attr.value, None) if known else None
        return None


def _plain(fact: Any) -> Any:
    """A compile-time value, a sequence of them as a list; None for what is none."""
    if isinstance(fact, TupleFact):
        return [_plain(item) for item in fact.items]
    return fact.value if isinstance(fact, ConstFact) else None


def _environment(fn: Any) -> dict[str, Any]:
    plain = getattr(fn, "fn", None)
    captured = inspect.getclosurevars(plain).nonlocals if inspect.isfunction(plain) else {}
    return {**fn.__globals__, **captured}


def is_nvidias(value: Any) -> bool:
    """Whether a function, class or module is one of Gluon's for NVIDIA GPUs."""
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return isinstance(module, str) and module.startswith(_NVIDIA)


def nvidia_name(value: Any) -> str:
    """`tma.async_load` of such a function: the last part of its module, and its own name."""
    return f"{value.__module__.rpartition('.')[2]}.{value.__name__}"
