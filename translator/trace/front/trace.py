"""Trace a Triton kernel with Triton's own front end: the type of every expression, and an identity for every operation.

The subclass of Triton's code generator below visits the kernel exactly as the compiler does. For each AST node it
records what the node evaluated to, and it gives every visit a location of its own (`loc("gluonize":ID:0)`), so that
after any MLIR pass each surviving operation still names the visit, and with call-site locations the call path, that
made it. Constexpr folding, promotion, helper specialization and unrolling are therefore Triton's, not ours.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gluonize.read.text.depth import TOO_DEEP, TRITONS, deep_calls
from gluonize.trace.front.offline import FrontEnd
from gluonize.triton_api.differences import CodeGenerator
from gluonize.triton_api.front_end import CompilationError, code_generator
from gluonize.triton_api.language import base_value, constexpr, tl

LOC_FILE = "gluonize"

NodeKey = tuple[str, int, int, int, int]


@dataclass(frozen=True)
class TensorFact:
    """A run-time value: `shape` is () for a scalar; `dtype` in Triton's spelling; pointers give `pointee`."""

    shape: tuple[int, ...]
    dtype: str
    pointee: str | None = None

    @property
    def is_pointer(self) -> bool:
        return self.pointee is not None

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class ConstFact:
    """A compile-time value: a Python object, a dtype, a function or a module."""

    value: Any


@dataclass(frozen=True)
class TupleFact:
    items: tuple
    fields: tuple[str, ...] | None = None


@dataclass(frozen=True)
class MethodFact:
    """A method bound to a value: `x.to`, `x.sum`; `function` is what Triton would call."""

    name: str
    function: Any
    owner: Any


@dataclass(frozen=True)
class OpaqueFact:
    """An aggregate, a descriptor, a slice: known by its Triton object type only."""

    type_name: str
    detail: Any = None


@dataclass(frozen=True)
class Visit:
    """One evaluation of one node: `ident` is the line number in this visit's location."""

    ident: int
    fact: Any
    iterations: tuple[int, ...] = ()  # of the `static_range` loops around it, outermost first


@dataclass
class Frame:
    """One specialization of one function."""

    index: int
    name: str
    fn: Any
    args: dict[str, Any]
    visits: dict[NodeKey, list[Visit]] = field(default_factory=dict)
    calls: dict[int, str] = field(default_factory=dict)  # visit ident of the call -> callee's mangled name
    joined: bool = False  # several specializations that share one text

    def first(self, node: ast.AST) -> Visit | None:
        seen = self.visits.get(node_key(node))
        return seen[0] if seen else None

    def fact(self, node: ast.AST) -> Any:
        visit = self.first(node)
        return visit.fact if visit else None


@dataclass
class Trace:
    """All frames of one kernel launch; `frames[0]` is the kernel."""

    frames: list[Frame]
    by_name: dict[str, Frame]
    module: Any = None  # the MLIR module of the TTIR, alive with its context
    context: Any = None
    siblings: dict[str, tuple[Frame, ...]] = field(
        default_factory=dict
    )  # of gluonize.facts.variables.siblings, by frame
    _joined: dict[tuple[int, ...], Frame] = field(default_factory=dict)

    def joined(self, frames: list[Frame]) -> Frame:
        """One frame for several specializations of a helper: facts of the first, reachability of all."""
        key = tuple(frame.index for frame in frames)
        if key not in self._joined:
            first = frames[0]
            self._joined[key] = joined = Frame(first.index, first.name, first.fn, first.args, joined=True)
            for frame in frames:
                for place, visits in frame.visits.items():
                    joined.visits.setdefault(place, []).extend(visits)
                joined.calls.update(frame.calls)
        return self._joined[key]


def node_key(node: ast.AST) -> NodeKey:
    name = "BinOp" if isinstance(node, ast.BinOp) else type(node).__name__
    return (name, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


def tensor_fact(ty: Any) -> TensorFact:
    shape = tuple(int(s) for s in ty.shape) if ty.is_block() else ()
    scalar = ty.scalar
    if scalar.is_ptr():
        return TensorFact(shape, str(scalar), str(scalar.element_ty))
    return TensorFact(shape, str(scalar))


def value_fact(value: Any) -> Any:
    """What a front-end value is, without keeping its MLIR handle alive."""
    if isinstance(value, constexpr):
        inner = value.value
        return value_fact(inner) if isinstance(inner, (base_value, tl.tuple)) else ConstFact(inner)
    if isinstance(value, tl.tensor):
        return tensor_fact(value.type)
    if isinstance(value, tl.tuple):
        fields = getattr(value.type, "fields", None)
        return TupleFact(tuple(value_fact(v) for v in value.values), tuple(fields) if fields else None)
    if isinstance(value, code_generator.BoundJITMethod):
        return MethodFact(value.__func__.__name__, value.__func__, value_fact(value.__self__))
    owner = getattr(value, "__self__", None)
    if isinstance(owner, base_value):
        return MethodFact(value.__name__, value, value_fact(owner))
    if isinstance(value, tl.slice):
        return OpaqueFact("slice")
    if isinstance(value, base_value):
        if getattr(type(value), "__triton_aggregate__", False):
            names = [n for n in getattr(type(value), "__annotations__", {}) if hasattr(value, n)]
            return OpaqueFact("aggregate", (type(value), tuple((n, value_fact(getattr(value, n))) for n in names)))
        return OpaqueFact(type(value).__name__, getattr(value, "type", None))
    return ConstFact(value)


@dataclass
class _Unrolling:
    body: list
    iteration: int = -1


def session_function(generator: Any, node: ast.AST) -> Any:
    """The object that a dotted name denotes in the function being traced, or None."""
    if isinstance(node, ast.Name):
        return generator.lscope.get(node.id, generator.gscope.get(node.id))
    if isinstance(node, ast.Attribute):
        return getattr(session_function(generator, node.value), node.attr, None)
    return None


class TracingGenerator(CodeGenerator):
    """Triton's code generator, recording facts and giving each visit its own location."""

    _session: "_Session"

    def __init__(self, context, prototype, gscope, function_name, jit_fn, **kwargs):
        session = type(self)._session
        super().__init__(context, prototype, gscope, function_name, jit_fn, **kwargs)
        self._unrolling: list[_Unrolling] = []
        names = list(jit_fn.arg_names)
        self.frame = Frame(len(session.frames), function_name, jit_fn, dict.fromkeys(names))
        session.frames.append(self.frame)

    def visit(self, node):
        if node is None:
            return None
        session = type(self)._session
        if not hasattr(node, "lineno"):
            return super().visit(node)
        ident = session.next_ident()
        # Triton's visit() makes its location from these three; all that is wanted from them here is the identity.
        saved = self.file_name, self.begin_line, self.begin_col
        self.file_name, self.begin_line, self.begin_col = LOC_FILE, ident - node.lineno, -node.col_offset
        self._ident, outer = ident, getattr(self, "_ident", 0)
        session.depth += 1
        try:
            if session.depth > TRITONS:
                raise CompilationError(self.jit_fn.src, node, TOO_DEEP)
            value = super().visit(node)
        finally:
            session.depth -= 1
            self.file_name, self.begin_line, self.begin_col = saved
            self._ident = outer
        if not self.discovers:
            iterations = tuple(loop.iteration for loop in self._unrolling)
            self.frame.visits.setdefault(node_key(node), []).append(Visit(ident, value_fact(value), iterations))
        return value

    def visit_FunctionDef(self, node):
        def bind():
            for name in self.frame.args:
                if name in self.lscope:
                    self.frame.args[name] = value_fact(self.lscope[name])

        self._bind_args, self._args_bound = bind, False
        super().visit_FunctionDef(node)

    def visit_For(self, node):
        static = session_function(self, node.iter.func) is tl.static_range if hasattr(node.iter, "func") else False
        if static:
            self._unrolling.append(_Unrolling(node.body))
        super().visit_For(node)
        if static:
            self._unrolling.pop()

    def visit_compound_statement(self, stmts):
        if self._unrolling and stmts is self._unrolling[-1].body:
            self._unrolling[-1].iteration += 1
        if not self._args_bound:
            self._args_bound = True
            self._bind_args()
        super().visit_compound_statement(stmts)

    def call_JitFunction(self, fn, args, kwargs, caller_context=None):
        session = type(self)._session
        mark = len(session.mangled)
        ident = self._ident
        result = super().call_JitFunction(fn, args, kwargs, caller_context)
        self.frame.calls[ident] = session.mangled[mark]
        return result


class _Session:
    def __init__(self):
        self.frames: list[Frame] = []
        self.mangled: list[str] = []
        self.depth = 0  # of the node that is visited, in all functions that are being called
        self._ident = 0

    def next_ident(self) -> int:
        self._ident += 1
        return self._ident


@contextlib.contextmanager
def _tracing() -> Iterator[_Session]:
    """Install the tracing generator where Triton looks it up (nested calls resolve it through the module global)."""
    session = _Session()
    generator = type("TracingGenerator", (TracingGenerator,), {"_session": session})
    plain, mangle = code_generator.CodeGenerator, code_generator.mangle_fn

    def recording_mangle(*args):
        name = mangle(*args)
        session.mangled.append(name)
        return name

    code_generator.CodeGenerator, code_generator.mangle_fn = generator, recording_mangle
    try:
        with deep_calls():  # a visit is one call more than Triton's own
            yield session
    finally:
        code_generator.CodeGenerator, code_generator.mangle_fn = plain, mangle


def trace_source(source: Any, gpu_target: Any, options: dict) -> Trace:
    """Trace `source` (a Triton `ASTSource`) for a target; raises what Triton's front end raises."""
    front_end = FrontEnd.of(gpu_target, options)
    with _tracing() as session:
        module = front_end.module(source)
    return Trace(session.frames, {f.name: f for f in session.frames}, module, front_end.context)
