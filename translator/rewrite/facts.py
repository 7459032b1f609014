"""What the trace knows of one function: types and values of its nodes, and the layouts that Triton placed there."""

from __future__ import annotations

import ast
import functools
from typing import Any

import triton.language as tl
from triton.experimental.gluon import language as gl

from translator.frontend.trace import ConstFact, Frame, TensorFact, Visit, node_key
from translator.rewrite.splice import SourceText
from translator.rewrite.unit import Unit
from translator.ttgir.layouts import Blocked, Layout, Linear


class FunctionFacts:
    """The function of `frame`, reached by the chain of call visits `path`."""

    def __init__(self, unit: Unit, frame: Frame, path: tuple[int, ...]):
        self.unit, self.frame, self.path = unit, frame, path
        self.source = SourceText(frame.fn.src)
        self.tree: ast.FunctionDef = ast.parse(frame.fn.src).body[0]
        self._branches: dict[ast.AST, list[ast.If]] | None = None

    @functools.cached_property
    def source_names(self) -> frozenset[str]:
        """Names of variables and parameters in the source."""
        nodes = list(ast.walk(self.tree))
        variables = {n.id for n in nodes if isinstance(n, ast.Name)}
        return frozenset(variables | {n.arg for n in nodes if isinstance(n, ast.arg)})

    def branches_around(self, node: ast.AST) -> list[ast.If]:
        """The `if`s in whose bodies (not their `else`s) `node` stands."""
        if self._branches is None:
            self._branches = {}
            for branch in [n for n in ast.walk(self.tree) if isinstance(n, ast.If)]:
                for inner in {n for s in branch.body for n in ast.walk(s)}:
                    self._branches.setdefault(inner, []).append(branch)
        return self._branches.get(node, [])

    def taken(self, statement: ast.AST) -> bool:
        """Whether the traced specialization reached this statement."""
        if (iteration := getattr(statement, "iteration", None)) is not None:
            return bool(self.iteration_visits(statement, iteration))
        if node_key(statement) in self.frame.visits:
            return True
        return any(node_key(n) in self.frame.visits for n in ast.walk(statement) if isinstance(n, ast.expr | ast.stmt))

    def unrolled(self, loop: ast.For) -> bool:
        fact = self.fact(loop.iter.func) if isinstance(loop.iter, ast.Call) else None
        return isinstance(fact, ConstFact) and fact.value in (tl.static_range, gl.static_range)

    def dynamic(self, branch: ast.If) -> bool:
        return isinstance(self.fact(branch.test), TensorFact)

    def fact(self, node: ast.AST) -> Any:
        iteration = getattr(node, "iteration", None)
        if iteration is None:
            return self.frame.fact(node)
        visits = self.iteration_visits(node, iteration)
        return visits[0].fact if visits else None

    def iteration_visits(self, node: ast.AST, iteration: int) -> list[Visit]:
        visits = self.frame.visits.get(node_key(node), [])
        return [v for v in visits if not v.iterations or v.iterations[0] == iteration]

    def tensor(self, node: ast.AST) -> TensorFact | None:
        """The fact of `node` if it is a run-time tensor of rank 1 or more."""
        fact = self.fact(node)
        return fact if isinstance(fact, TensorFact) and fact.shape else None

    def visits(self, node: ast.AST) -> list[int]:
        iteration = getattr(node, "iteration", None)
        visits = (
            self.frame.visits.get(node_key(node), []) if iteration is None else self.iteration_visits(node, iteration)
        )
        return [v.ident for v in visits]

    def placed(self, node: ast.AST, name: str | None = None) -> list:
        """Triton's placed operations that this node made, over all its visits."""
        return [op for v in self.visits(node) for op in self.unit.anchors.at((*self.path, v), name)]

    def placed_layouts(self, node: ast.AST) -> list[Layout]:
        fact = self.tensor(node)
        if fact is None:
            return []
        out: list[Layout] = []
        for v in self.visits(node):
            for layout in self.unit.anchors.layouts((*self.path, v), fact.shape):
                if layout not in out:
                    out.append(layout)
        # Triton makes a value anew for each use. A layout in which several warps hold the same is the last to choose, but for
        # what is reshaped: that moves nothing between the right layouts.
        return sorted(out, key=lambda layout: isinstance(layout, Linear) and layout.rank == 2 and layout.copies > 1)

    def default_layout(self, shape: tuple[int, ...]) -> Blocked:
        """Triton's own default blocked layout: one element per thread along the last dimension first."""
        lanes, warps, rank = self.unit.target.warp_size, self.unit.num_warps, len(shape)
        tpw, wpc = [1] * rank, [1] * rank
        for d in reversed(range(rank)):
            tpw[d] = max(1, min(lanes, shape[d]))
            lanes //= tpw[d]
        tpw[0] *= lanes
        for d in reversed(range(rank)):
            wpc[d] = max(1, min(warps, shape[d] // tpw[d]))
            warps //= wpc[d]
        wpc[0] *= warps
        return Blocked((1,) * rank, tuple(tpw), tuple(wpc), tuple(reversed(range(rank))))
