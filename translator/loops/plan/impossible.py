"""What a loop turns out not to be able to have once it is written, though its plan gives it that."""

from __future__ import annotations

from gluonize.facts.function import FunctionFacts
from gluonize.write.state.unit import Decided

REFILLED, SPLIT = "refilled", "split"  # one slot that is filled again; warps that copy and warps that compute


class Impossible(Exception):
    """The loop in `line` of the function that is reached by the call visits `path` cannot be `what`."""

    def __init__(self, facts: FunctionFacts, line: int, what: str, reason: str):
        super().__init__(f"line {line} cannot be {what}: {reason}")
        self.key = (facts.path, line, what)
        self.reason = reason


def why_not(facts: FunctionFacts, decided: Decided, line: int, what: str) -> str:
    """Why the loop in `line` cannot be `what`, as was found when it was written; "" where nothing is known against it."""
    return decided.cannot.get((facts.path, line, what), "")
