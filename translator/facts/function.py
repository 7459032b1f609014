"""What the trace knows of one function: types and values of its nodes, and the layouts that Triton placed there."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gluonize.facts.kernel import KernelFacts
from gluonize.facts.webs import Webs
from gluonize.read.text.source_text import SourceText
from gluonize.trace.front.trace import ConstFact, Frame, TensorFact, Visit, node_key
from gluonize.trace.model.layouts import Blocked, Layout, Linear, dealt
from gluonize.triton_api.gluon_language import gl
from gluonize.triton_api.language import tl

# The twin of default layouts, where these are told from layouts that are asked for: those are counted from 0.
_OF_DEFAULTS = -1


class Function(Protocol):
    """What is asked of a function: its trace, its variables, and the helpers that it calls."""

    frame: Frame
    path: tuple[int, ...]
    tree: ast.FunctionDef
    returned: tuple[ast.expr | None, ...]
    webs: Any
    kernel: Any
    called: Any
    signs: dict[tuple[ast.AST, bool], Any]

    def fact(self, node: ast.AST) -> Any: ...
    def settled(self, node: ast.AST) -> Any: ...
    def taken(self, statement: ast.AST) -> bool: ...
    def iteration_visits(self, node: ast.AST, iteration: tuple[int, ...]) -> list[Visit]: ...
    def branches_around(self, node: ast.AST) -> list[ast.If]: ...
    def callee(self, node: ast.Call) -> tuple[Any, dict[str, ast.expr]]: ...


# The facts of the helper that a call of the function reaches, and the arguments it gives.
FindCallee = Callable[["FunctionFacts", ast.Call], tuple["FunctionFacts | None", dict[str, ast.expr]]]


def _is_same(one: Any, other: ConstFact) -> bool:
    """Whether a fact is of the same constant: 0 is neither False nor -0.0."""
    if not isinstance(one, ConstFact) or type(one.value) is not type(other.value):
        return False
    return one == other and (not isinstance(one.value, float) or repr(one.value) == repr(other.value))


@dataclass(frozen=True)
class GivenPointers:
    """The pointer parameters of a helper, as a call gives them. roots: parameter -> the kernel parameter it comes from. bare:
    those that are kernel arguments as they came."""

    roots: Mapping[str, str] = field(default_factory=dict)
    bare: frozenset[str] = frozenset()


class FunctionFacts:
    """The function of `frame`, reached by the chain of call visits `path`; made by `gluonize.facts.reading`.

    tree: its syntax, with some statements written out (gluonize.facts.desugar). webs: its variables. looped: the calls that
    stand in loops. equals: the others that give the value of an expression, where Triton makes it once. called: of a helper that is written for
    one call, by whom and with what. pointers: of a helper that is written, what its pointer parameters are. signs: those found so far
    (gluonize.facts.numbers.signs).
    """

    webs: Webs

    def __init__(self, kernel: KernelFacts, frame: Frame, path: tuple[int, ...], find_callee: FindCallee):
        self.kernel, self.frame, self.path = kernel, frame, path
        self.source = SourceText(frame.fn.src)
        self.tree: ast.FunctionDef = ast.parse(frame.fn.src).body[0]  # type: ignore[assignment]
        self.equals: dict[ast.expr, list[ast.expr]] = {}
        self.looped: frozenset[ast.AST] = frozenset()
        self.called: tuple[FunctionFacts, dict[str, ast.expr]] | None = None
        self.pointers = GivenPointers()
        self.signs: dict[tuple[ast.AST, bool], Any] = {}
        self._branches: dict[ast.AST, list[ast.If]] | None = None
        self._taken: dict[ast.AST, bool] = {}
        self.known_callees: dict[ast.Call, Any] = {}  # of gluonize.facts.callees
        self._find_callee = find_callee
        self._callees: dict[ast.Call, tuple[FunctionFacts | None, dict[str, ast.expr]]] = {}

    def add_syntax(self, webs: Webs, looped: Collection[ast.AST]) -> None:
        """Have copies of its syntax known as what they were made from: their variables, and those that stand in loops."""
        self.webs, self.looped = self.webs.with_more(webs), self.looped.union(looped)

    def callee(self, node: ast.Call) -> tuple[FunctionFacts | None, dict[str, ast.expr]]:
        """The helper that `node` calls, to be read, and its arguments; None where there is not one helper."""
        if node not in self._callees:
            self._callees[node] = None, {}  # while it is read
            self._callees[node] = self._find_callee(self, node)
        return self._callees[node]

    @functools.cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of the tree, in the order of `ast.walk`; to be asked for once it is written out."""
        return tuple(ast.walk(self.tree))

    @functools.cached_property
    def for_loops(self) -> tuple[ast.For, ...]:
        """Its `for` loops, in the order of `nodes`."""
        return tuple(n for n in self.nodes if isinstance(n, ast.For))

    @functools.cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """What each node stands in."""
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @functools.cached_property
    def returned(self) -> tuple[ast.expr | None, ...]:
        """What the `return`s give that the traced specialization reached."""
        return tuple(s.value for s in self.nodes if isinstance(s, ast.Return) and self.taken(s))

    @functools.cached_property
    def source_names(self) -> frozenset[str]:
        """Names of variables and parameters in the source."""
        variables = {n.id for n in self.nodes if isinstance(n, ast.Name)}
        return frozenset(variables | {n.arg for n in self.nodes if isinstance(n, ast.arg)})

    def branches_around(self, node: ast.AST) -> list[ast.If]:
        """The `if`s in whose bodies (not their `else`s) `node` stands."""
        if self._branches is None:
            self._branches = {}
            for branch in [n for n in self.nodes if isinstance(n, ast.If)]:
                for inner in {n for s in branch.body for n in ast.walk(s)}:
                    self._branches.setdefault(inner, []).append(branch)
        return self._branches.get(node, [])

    def taken(self, statement: ast.AST) -> bool:
        """Whether the traced specialization reached this statement."""
        if (iteration := getattr(statement, "iteration", None)) is not None:
            return bool(self.iteration_visits(statement, iteration))
        if statement not in self._taken:
            nodes = (n for n in ast.walk(statement) if isinstance(n, ast.expr | ast.stmt))
            self._taken[statement] = any(node_key(n) in self.frame.visits for n in nodes)
        return self._taken[statement]

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

    def settled(self, node: ast.AST) -> Any:
        """The fact of `node`; None of a compile-time value that is another one in another visit, as the index of an unrolled loop is."""
        fact = self.fact(node)
        if not isinstance(fact, ConstFact):
            return fact
        iteration = getattr(node, "iteration", None)
        visits = self.frame.visits[node_key(node)] if iteration is None else self.iteration_visits(node, iteration)
        return fact if all(_is_same(v.fact, fact) for v in visits[1:]) else None

    def iteration_visits(self, node: ast.AST, iteration: tuple[int, ...]) -> list[Visit]:
        """The visits of a node in one iteration of the loops that are written out around it, outermost first."""
        visits = self.frame.visits.get(node_key(node), [])
        return [v for v in visits if not v.iterations or v.iterations[: len(iteration)] == iteration]

    def tensor(self, node: ast.AST) -> TensorFact | None:
        """The fact of `node` if it is a run-time tensor of rank 1 or more."""
        fact = self.fact(node)
        return fact if isinstance(fact, TensorFact) and fact.shape else None

    def visits(self, node: ast.AST) -> list[int]:
        """The visits of `node`; where Triton left nothing of them, those of an equal expression of which it did."""
        own = self._own_visits(node)
        if node not in self.equals or self._left(own):
            return own
        return next((v for other in self.equals[node] if self._left(v := self._own_visits(other))), own)

    def _own_visits(self, node: ast.AST) -> list[int]:
        iteration = getattr(node, "iteration", None)
        if iteration is not None:
            return [v.ident for v in self.iteration_visits(node, iteration)]
        return [v.ident for v in self.frame.visits.get(node_key(node), [])]

    def _left(self, visits: list[int]) -> bool:
        return any(self.kernel.anchors.at((*self.path, v)) for v in visits)

    def placed(self, node: ast.AST, name: str | None = None) -> list:
        """Triton's placed operations that this node made, over all its visits."""
        return [op for v in self.visits(node) for op in self.kernel.anchors.at((*self.path, v), name)]

    def placed_in(
        self, node: ast.AST, names: Iterable[str], shape: tuple[int, ...], taken: bool = False
    ) -> Layout | None:
        """The layout in which the first of Triton's operations `names` at a node has a tensor of a shape, an operand if `taken`."""
        ops = (op for name in names for op in self.placed(node, name))
        types = (ty for op in ops for ty in (op.operands if taken else op.types))
        return next((ty.layout for ty in types if ty.shape == shape), None)

    def placed_layouts(self, node: ast.AST) -> list[Layout]:
        fact = self.tensor(node)
        if fact is None:
            return []
        out: list[Layout] = []
        for v in self.visits(node):
            for layout in self.kernel.anchors.layouts((*self.path, v), fact.shape):
                if layout not in out:
                    out.append(layout)
        # Triton makes a value anew for each use. A layout in which several warps hold the same is the last to choose, but for
        # what is reshaped: that moves nothing between the right layouts.
        return sorted(out, key=lambda layout: isinstance(layout, Linear) and layout.rank == 2 and layout.copies > 1)

    def default_layout(self, shape: tuple[int, ...]) -> Blocked:
        """Triton's own default blocked layout: one element per thread along the last dimension first."""
        rank = len(shape)
        lanes = dealt(self.kernel.target.warp_size, shape, [1] * rank)
        warps = dealt(self.kernel.num_warps, shape, lanes)
        ctas = self.kernel.whole(rank)
        order = tuple(reversed(range(rank)))
        return Blocked(
            (1,) * rank, tuple(lanes), tuple(warps), order, ctas, twin=_OF_DEFAULTS if self.kernel.loose else 0
        )
