"""The two ways in which a static evaluation ends without a value."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A node of a source file; line and column count from 1."""

    path: str
    line: int
    column: int

    @staticmethod
    def of(path: str, node: ast.AST) -> Place:
        return Place(path, getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1)


class Undetermined(Exception):
    """The value depends on something that only running the host program would tell."""

    def __init__(self, reason: str, place: Place | None = None):
        super().__init__(reason)
        self.reason = reason
        self.place = place


class Raised(Exception):
    """Running the host program would certainly raise `error` here."""

    def __init__(self, error: Exception, place: Place | None = None):
        super().__init__(f"{type(error).__name__}: {error}")
        self.error = error
        self.place = place

    @property
    def reason(self) -> str:
        return str(self)


NoValue = (Undetermined, Raised)
