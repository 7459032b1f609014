"""The loops of a function: how each is written, and what stands for the loads and statements of those that are pipelined."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any


@dataclass
class FunctionLoops:
    """What pipelining makes of a function's loops before anything is written.

    plans: of every loop that was considered. pipelined: those that are. statements: the statements of their bodies that are
    written otherwise, with their loop. staged, held: what stands for loads, whose tiles lie in LDS or wait in registers. clips:
    comparisons in masks of tiles ahead. whole: loops that were to be split between warps, and why they are not. finished: pipelined loops
    as they came out. dropped:
    assignments that nothing needs any more.
    """

    plans: list[Any] = field(default_factory=list)
    pipelined: dict[ast.For, Any] = field(default_factory=dict)
    statements: dict[ast.stmt, Any] = field(default_factory=dict)
    staged: dict[ast.Call, Any] = field(default_factory=dict)
    held: dict[ast.Call, Any] = field(default_factory=dict)
    clips: dict[ast.AST, Any] = field(default_factory=dict)
    whole: dict[ast.For, str] = field(default_factory=dict)
    finished: dict[ast.For, Any] = field(default_factory=dict)
    dropped: frozenset[ast.stmt] = frozenset()

    @property
    def partitioned(self) -> bool:
        """Whether some loop is split between warps."""
        return any(loop.form.splits for loop in self.pipelined.values())
