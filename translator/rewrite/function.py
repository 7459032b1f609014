"""Rewrite one traced function to Gluon: every tensor expression in a known layout, the author's text otherwise.

`FunctionRewriter.emit(node, want)` returns the Gluon expression for `node` in the layout `want`. Demands flow from the
anchors (stores, dots, reductions...) to the definitions; a definition is emitted once per layout its uses demand where
it is cheap, else once, with conversions. The function is rewritten repeatedly until no use adds a demand; text is only
taken from the last round.
"""

from __future__ import annotations

import ast
import copy
import re
import sys
import textwrap
import types
from typing import Any

import triton.language as tl
from triton.experimental.gluon import language as gl
from triton.runtime.jit import JITCallable

from translator.frontend.trace import ConstFact, Frame, OpaqueFact, TensorFact, TupleFact, Visit, node_key
from translator.layout.model import Blocked, Layout, Slice
from translator.layout.names import LayoutNames
from translator.pipeline import emit as pipeline
from translator.rewrite import calls, contracts, descriptors, lds_operands, pointers
from translator.rewrite.splice import SourceText, closed, operand, replace_spans
from translator.rewrite.unit import Record, Unit, refuse
from translator.rewrite.variables import WebState
from translator.rewrite.webs import UnrolledLoop, Web, build_webs

MAX_ROUNDS = 40

_OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}

ELEMENTWISE_NODES = (ast.BinOp, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.IfExp)


class Promotion(ast.BinOp):
    """The sum of `x += t`, which has the statement's span and no text of its own."""


class FunctionRewriter:
    """Rewrites the function of `frame`, reached by the chain of call visits `path`."""

    def __init__(self, unit: Unit, frame: Frame, path: tuple[int, ...], wants: Any = None, argument_homes=None):
        self.unit, self.frame, self.path, self.wants = unit, frame, path, wants
        self.source = SourceText(frame.fn.src)
        self.tree: ast.FunctionDef = ast.parse(frame.fn.src).body[0]
        self.expand_promotions()
        self.unroll_loops()
        self.names = LayoutNames()
        self.argument_homes = argument_homes or {}
        self.record = Record()
        self.pointer_roots: dict[str, str] = {}  # helper's pointer parameter -> the kernel parameter it comes from
        self.bare_pointers: set[str] = set()  # helper's pointer parameters that are kernel arguments as they came
        self.fresh_names: dict[tuple[int, str], str] = {}
        self.webs = build_webs(self.tree, self.taken, self.unrolled, self.dynamic)
        self.states: dict[int, WebState] = {}
        self.changed = False
        self.loops: tuple[ast.AST, ...] = ()
        self.locals = {d.name for w in self.webs.all for d in w.definitions}
        # Pipelined loops (translator.pipeline.emit): what stands for their loads, statements and iterators.
        self.plans: list[Any] = []
        self.staged: dict[ast.Call, Any] = {}
        self.pipelined_statements: dict[ast.stmt, Any] = {}
        self.pipelined_loops: dict[ast.For, Any] = {}
        self.pushed: set[ast.AST] = set()  # computed in the wanted layout even where a conversion looks cheaper
        self.added_parameters: dict[str, str] = {}  # constexpr parameters that the source did not have -> default
        self.redefined = {
            d.name
            for w in self.webs.all
            for d in w.definitions
            if d.value is not None
            and not d.augmented
            and any(isinstance(n, ast.Name) and n.id == d.name for n in ast.walk(d.value))
        }
        self._cheap: dict[int, bool] = {}
        self._homes: dict[int, Any] = {}
        self._busy_homes: set[int] = set()

    def expand_promotions(self) -> None:
        """`x += t` that turns a scalar into a tensor is a new variable: `x = x + t`."""

        def expand(body: list[ast.stmt]) -> None:
            for i, s in enumerate(body):
                for inner in ("body", "orelse"):
                    expand(getattr(s, inner, []) or [])
                if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
                    before = self.fact(ast.copy_location(ast.Name(s.target.id, ast.Load()), s.target))
                    after = self.fact(augmented_binop(s))
                    if isinstance(before, TensorFact) and isinstance(after, TensorFact) and before.shape != after.shape:
                        left = ast.copy_location(ast.Name(s.target.id, ast.Load()), s.target)
                        value = Promotion(left, s.op, s.value)
                        body[i] = ast.copy_location(ast.Assign([s.target], ast.copy_location(value, s)), s)

        expand(self.tree.body)

    def unroll_loops(self) -> None:
        """Write out `static_range` loops in which a tensor changes its shape."""

        def changes_shape(loop: ast.For) -> bool:
            for n in ast.walk(loop):
                if isinstance(n, ast.expr) and hasattr(n, "lineno"):
                    shapes = {v.fact.shape for v in self.frame.visits.get(node_key(n), []) if isinstance(v.fact, TensorFact)}
                    if len(shapes) > 1:
                        return True
            return False

        def unroll(body: list[ast.stmt], depth: int) -> None:
            for i, s in enumerate(body):
                static = isinstance(s, ast.For) and self.unrolled(s)
                if static and not depth and isinstance(s.target, ast.Name) and changes_shape(s):
                    visits = [v for b in s.body for v in self.frame.visits.get(node_key(b), [])]
                    rounds = sorted({v.iterations[0] for v in visits if v.iterations})
                    bounds = [self.fact(a).value for a in s.iter.args]
                    values = list(range(*bounds))
                    loop = UnrolledLoop(s.target, s.iter, s.body, s.orelse)
                    loop.bodies, loop.index = [], values
                    for r in rounds:
                        copies = copy.deepcopy(s.body)
                        for statement in copies:
                            for n in ast.walk(statement):
                                n.iteration = r
                                if isinstance(n, ast.Name) and n.id == s.target.id:
                                    n.literal = str(values[r])
                        loop.bodies.append(copies)
                    body[i] = ast.copy_location(loop, s)
                    continue
                for inner in ("body", "orelse"):
                    unroll(getattr(s, inner, []) or [], depth + static)

        if not self.frame.joined:
            unroll(self.tree.body, 0)

    # Facts ----------------------------------------------------------------------------------------------------------

    def taken(self, statement: ast.AST) -> bool:
        """Whether the traced specialization reached this statement."""
        if (iteration := getattr(statement, "iteration", None)) is not None:
            return bool(self.iteration_visits(statement, iteration))
        if node_key(statement) in self.frame.visits:
            return True
        return any(
            node_key(n) in self.frame.visits for n in ast.walk(statement) if isinstance(n, ast.expr | ast.stmt)
        )

    def unrolled(self, loop: ast.For) -> bool:
        fact = self.fact(loop.iter.func) if isinstance(loop.iter, ast.Call) else None
        return isinstance(fact, ConstFact) and fact.value in (tl.static_range, gl.static_range)

    def rebound(self, name: str) -> bool:
        """Whether the author uses one name for several variables, so that it does not always mean the same."""

        def split(web: Web) -> bool:
            facts = [self.fact(n) for d in web.definitions if (n := self.definition_node(d)) is not None]
            pointers_only = facts and all(isinstance(f, TensorFact) and f.is_pointer and f.shape for f in facts)
            return bool(pointers_only) and self.state(web).split is not None

        return sum(w.name == name and not split(w) for w in self.webs.all) > 1

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
        visits = self.frame.visits.get(node_key(node), []) if iteration is None else self.iteration_visits(node, iteration)
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
        return out

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

    # Homes: the layout a value has when nobody asks for another --------------------------------------------------

    def home(self, node: ast.AST) -> Any:
        """The natural layout of `node`: Triton's choice, else its operands', else the default."""
        fact = self.fact(node)
        if isinstance(fact, TupleFact):
            if isinstance(node, (ast.Tuple, ast.List)):
                return tuple(self.home(e) for e in node.elts)
            if isinstance(node, ast.Name) and node in self.webs.of_use:
                return self.web_home(self.webs.of_use[node])
            if isinstance(node, ast.Call):
                return calls.tuple_home(self, node, fact)
            return tuple(
                self.default_layout(f.shape) if isinstance(f, TensorFact) and f.shape else None for f in fact.items
            )
        if not (isinstance(fact, TensorFact) and fact.shape):
            return None
        if isinstance(node, ast.Name):
            web = self.webs.of_use.get(node)
            return self.web_home(web) if web else self.default_layout(fact.shape)
        placed = self.placed_layouts(node)
        if placed:
            is_call = isinstance(node, ast.Call)
            return placed[-1] if is_call and calls.is_helper(self, node) else placed[0]
        return self.structural_home(node) or self.default_layout(fact.shape)

    def structural_home(self, node: ast.AST) -> Layout | None:
        fact = self.tensor(node)
        if isinstance(node, ELEMENTWISE_NODES):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr) and (f := self.tensor(child)) and f.rank == fact.rank:
                    return self.home(child)
        if isinstance(node, ast.Subscript) and isinstance(self.fact(node.value), TupleFact):
            homes = self.home(node.value)
            index = self.fact(node.slice)
            if homes and isinstance(index, ConstFact):
                return homes[index.value]
        if isinstance(node, ast.Call):
            return calls.home(self, node)
        return None

    def state(self, web: Web) -> WebState:
        if web.index not in self.states:
            cheap = self.web_cheap(web)
            self.states[web.index] = WebState(web, cheap)
            self.states[web.index].split = pointers.split_web(self, web)
        return self.states[web.index]

    def web_home(self, web: Web) -> Any:
        if web.index in self._homes:
            return self._homes[web.index]
        if web.index in self._busy_homes:
            return None
        self._busy_homes.add(web.index)
        home = None
        if web.is_parameter:
            home = self.argument_homes.get(web.name)
        ordered = sorted(web.definitions, key=lambda d: -d.loop_depth)
        if home is None:
            for d in ordered:
                placed = self.definition_placed(d)
                if placed:
                    home = placed[0]
                    break
        if home is None:
            for d in ordered:
                home = self.definition_home(d)
                if home is not None:
                    break
        if home is None and web.index in self.states and self.states[web.index].variants:
            home = self.states[web.index].variants[0]
        self._busy_homes.discard(web.index)
        if home is not None:
            self._homes[web.index] = home
        return home

    def definition_node(self, d) -> ast.AST | None:
        """The node whose visit produced the defined value."""
        if d.augmented:
            return augmented_binop(d.node)
        return d.value

    def definition_placed(self, d) -> list[Layout]:
        node = self.definition_node(d)
        return self.placed_layouts(node) if node is not None and not isinstance(node, ast.Name) else []

    def definition_home(self, d) -> Any:
        if d.augmented:
            return self.home(d.value) if self.tensor(d.value) else None
        if d.value is not None:
            return self.home(d.value) if self.fact(d.value) is not None else None
        if isinstance(d.node, ast.Assign):  # part of a tuple
            homes = self.home(d.node.value)
            for target, home in zip(flat_targets(d.node.targets[0]), flatten(homes)):
                if isinstance(target, ast.Name) and target.id == d.name:
                    return home
        return None

    # Cost --------------------------------------------------------------------------------------------------------

    def web_cheap(self, web: Web) -> bool:
        if web.index not in self._cheap:
            self._cheap[web.index] = True  # while recursing through loops
            self._cheap[web.index] = not web.is_parameter and all(
                d.value is not None and self.cheap(d.value) for d in web.definitions
            )
            if web.is_parameter and all(not isinstance(d.node, ast.arg) for d in web.definitions):
                self._cheap[web.index] = True
        return self._cheap[web.index]

    def cheap(self, node: ast.AST) -> bool:
        """Whether recomputing `node` costs less than moving it: index and mask arithmetic."""
        fact = self.fact(node)
        if isinstance(fact, (TupleFact, OpaqueFact)):
            return False
        if not (isinstance(fact, TensorFact) and fact.shape):
            return True
        if isinstance(node, ast.Name):
            web = self.webs.of_use.get(node)
            return web is None or self.web_cheap(web)
        if isinstance(node, ast.Call):
            return calls.cheap(self, node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return False
        if isinstance(node, ast.Subscript):
            return self.cheap(node.value)
        if isinstance(node, ELEMENTWISE_NODES):
            return all(self.cheap(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))
        return isinstance(node, ast.Attribute) and self.cheap(node.value)

    # Expressions -------------------------------------------------------------------------------------------------

    def emit(self, node: ast.AST, want: Any = None) -> str:
        """The Gluon text for `node`; a tensor comes in layout `want` (None: in whatever layout is at hand)."""
        fact = self.fact(node)
        if not (isinstance(fact, TensorFact) and fact.shape):
            return self.construct(node, want)
        if isinstance(node, ast.Name):
            return self.use(node, want)
        if want is None:
            want = self.home(node)
        placed = self.placed_layouts(node)
        if placed and want not in placed and node not in self.pushed and not self.cheap(node) and not isinstance(
            node, ast.NamedExpr
        ):
            return self.convert(self.construct(node, placed[0]), want)
        return self.construct(node, want)

    def convert(self, text: str, layout: Layout) -> str:
        return f"gl.convert_layout({text}, {self.names.spell(layout)})"

    def splice(self, node: ast.AST, children: dict[ast.AST, str]) -> str:
        edits = []
        for child, text in children.items():
            if text == self.source.of(child):
                continue
            needs_parens = isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.BoolOp, ast.Attribute))
            needs_parens = needs_parens or (isinstance(node, ast.Subscript) and child is node.value)
            changed_kind = type(child) is not type(_parse(text))
            edits.append((child, operand(text) if needs_parens and changed_kind else text))
        return self.source.splice(node, edits)

    def construct(self, node: ast.AST, want: Any) -> str:
        """Like `emit`, with no conversion around the whole node unless its kind demands one."""
        if isinstance(node, ast.Name):
            return self.use(node, want)
        if isinstance(node, ast.Call):
            return calls.emit_call(self, node, want)
        if isinstance(node, ast.Attribute):
            return self.attribute(node, want)
        if isinstance(node, ast.Subscript):
            return self.subscript(node, want)
        if isinstance(node, ast.NamedExpr):
            return self.splice(node, {node.value: self.emit(node.value, want)})
        if isinstance(node, ELEMENTWISE_NODES):
            return self.elementwise(node, want)
        if isinstance(node, (ast.Tuple, ast.List)):
            wants = want if isinstance(want, tuple) else (None,) * len(node.elts)
            return self.splice(node, {e: self.emit(e, w) for e, w in zip(node.elts, wants)})
        children = {c: self.emit(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr) and _spanned(c)}
        if isinstance(node, (ast.JoinedStr, ast.Lambda, ast.Constant)):
            return self.source.of(node)
        return self.splice(node, children)

    def elementwise(self, node: ast.AST, want: Layout | None) -> str:
        fact = self.tensor(node)
        if fact is not None and (fused := calls.fused_dot(self, node, want)) is not None:
            return fused
        children = {}
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):
                continue
            untaken = self.untaken_arm(node, child)
            children[child] = untaken or self.operand_in(child, fact, want)
        if isinstance(node, ast.IfExp) and self.fact(node.test) is not None:
            taken = [c for c in (node.body, node.orelse) if self.fact(c) is not None]
            children = {c: t for c, t in children.items() if c is node.test or c in taken or self.fact(c) is None}
        if isinstance(node, Promotion):
            left, right = (operand(children[c]) for c in (node.left, node.right))
            return f"{left} {_OPERATORS[type(node.op)]} {right}"
        return self.splice(node, children)

    def untaken_arm(self, node: ast.AST, child: ast.expr) -> str:
        """The refusal that stands for a call in the arm of a conditional expression which this specialization leaves out."""
        if not isinstance(node, ast.IfExp) or child is node.test or not isinstance(self.fact(node.test), ConstFact):
            return ""
        if self.taken(child) or not any(isinstance(n, ast.Call) for n in ast.walk(child)):
            return ""
        test = self.source.of(node.test)
        return contracts.untranslated(self.frame.fn, child, test if child is node.body else contracts.negated(test))

    def operand_in(self, child: ast.expr, fact: TensorFact | None, want: Layout | None) -> str:
        """An operand of an elementwise operation: in the result's layout, with leading dimensions added if it lacks some."""
        mine = self.tensor(child)
        if mine is None or fact is None or want is None:
            return self.emit(child)
        missing = fact.rank - mine.rank
        layout = want
        for axis in reversed(range(missing)):
            layout = Slice(axis, layout)
        text = self.emit(child, layout)
        if missing:
            text = operand(text) + "[" + ", ".join(["None"] * missing + [":"] * mine.rank) + "]"
        return text

    def use(self, node: ast.Name, want: Any) -> str:
        if (literal := getattr(node, "literal", None)) is not None:
            return literal
        web = self.webs.of_use.get(node)
        if web is None:
            if isinstance(node.ctx, ast.Load) and node.id not in self.locals:
                return self.global_name(node)
            return node.id
        fact = self.fact(node)
        if isinstance(fact, TupleFact):
            return node.id
        if not (isinstance(fact, TensorFact) and fact.shape):
            if isinstance(fact, TensorFact) and fact.is_pointer and (split := self.state(web).split) is not None:
                return f"({split.root} + {pointers.scalar_name(self, web)})"
            return node.id
        state = self.state(web)
        if want is None:
            if state.variants:
                want = state.variants[0]
            else:
                want = self.web_home(web) or self.default_layout(fact.shape)
        if state.split:
            self.changed |= state.demand(want, (node.lineno, node.col_offset))
            base, offsets = pointers.names_of(self, state, want)
            return f"({base} + {offsets})"
        if state.cheap:
            self.changed |= state.demand(want, (node.lineno, node.col_offset))
            return self.variant_name(state, want)
        if state.home is None:
            state.home = self.web_home(web) or want
        if web.is_parameter and not any(d for d in web.definitions if not isinstance(d.node, ast.arg)):
            self.changed |= state.demand(want, (node.lineno, node.col_offset))
            if len(state.variants) == 1:
                state.home = want
            elif state.home not in state.variants:
                state.home = state.variants[0]
        if want == state.home:
            return node.id
        depth = min((d.loop_depth for d in web.definitions), default=0)
        if len(self.loops) > depth and not web.is_parameter and all(d.loop_depth <= depth for d in web.definitions):
            self.changed |= state.demand_converted(want)
            return self.names.variant(node.id, want)
        return self.convert(node.id, want)

    def variant_name(self, state: WebState, layout: Layout) -> str:
        name = state.web.name
        return name if self.primary(state) == layout else self.names.variant(name, layout)

    def primary(self, state: WebState) -> Layout:
        """The variant that keeps the author's name.

        Where a variable is redefined from itself (`x = f(x)`), all its webs agree on it: the new variants are assigned
        one after the other, and none may overwrite what the next one still reads.
        """
        if state.web.name not in self.redefined:
            return state.variants[0]
        same = [s for s in self.states.values() if s.web.name == state.web.name and s.cheap and s.variants and not s.split]
        first = min(same, key=lambda s: s.first_use[s.variants[0]])
        return first.variants[0]

    def global_name(self, node: ast.Name) -> str:
        name = node.id
        env = self.frame.fn.__globals__
        if name in env:
            value = env[name]
        else:
            fact = self.fact(node)
            value = fact.value if isinstance(fact, ConstFact) else None
            if value is None or name in ("min", "max", "range", "len", "int", "float", "isinstance", "getattr", "hasattr"):
                return name
            if name in vars(__builtins__) if isinstance(__builtins__, types.ModuleType) else name in __builtins__:
                return name
        self.refuse_nvidia(node, value)
        self.record.globals_needed[name] = (value, self.frame.fn)
        return name

    def refuse_nvidia(self, node: ast.AST, value: Any) -> None:
        """Raises for what is written in PTX: the AMD compiler drops that without a message."""
        module = getattr(value, "__module__", None) or ""
        if module.startswith("triton.language.extra.cuda") and not module.endswith("libdevice"):
            what = f"`{getattr(value, '__name__', value)}` exists on NVIDIA GPUs only"
            why = "it is PTX assembly, which the AMD compiler drops without a message"
            help = "for clocks and ids there are tl.program_id and AMDGCN assembly (tl.inline_asm_elementwise)"
            raise refuse(self.frame, node, "nvidia-only", what, why, help)

    def attribute(self, node: ast.Attribute, want: Any) -> str:
        if (spelled := self.static_attribute(node)) is not None:
            return spelled
        base = node.value
        if (spelled := descriptors.attribute(self, node)) is not None:
            return spelled
        if node.attr in ("dtype", "shape") and isinstance(base, ast.Name) and base in self.webs.of_use:
            if self.tensor(base) is not None and self.state(self.webs.of_use[base]).split is None:
                return f"{base.id}.{node.attr}"  # the same in all its layouts: none is asked for
        if self.tensor(node) is not None:  # x.T and namedtuple or aggregate fields
            return calls.emit_attribute(self, node, want)
        if self.tensor(base) is not None and isinstance(base, ast.Name) and base in self.webs.of_use:
            state = self.state(self.webs.of_use[base])
            if state.split and not self.rebound(state.split.root):
                return f"{state.split.root}.{node.attr}"
        return self.splice(node, {base: self.emit(base)})

    def static_value(self, node: ast.AST) -> Any:
        """The object that a dotted global name denotes, or None."""
        if isinstance(node, ast.Name):
            return self.frame.fn.__globals__.get(node.id) if node.id not in self.locals else None
        if isinstance(node, ast.Attribute):
            base = self.static_value(node.value)
            return getattr(base, node.attr, None) if isinstance(base, (types.ModuleType, type)) else None
        return None

    def static_attribute(self, node: ast.Attribute) -> str | None:
        """`tl.float32` -> `gl.float32`: attributes of Triton's language modules that Gluon has too."""
        base = self.static_value(node.value)
        if not isinstance(base, types.ModuleType):
            return None
        self.refuse_nvidia(node, getattr(base, node.attr, None))
        module = base.__name__
        if module in ("triton.language", "triton.language.core", "triton.language.math", "triton.language.standard"):
            value = getattr(base, node.attr, None)
            if hasattr(gl, node.attr) and not isinstance(value, types.ModuleType):
                return f"gl.{node.attr}"
            if isinstance(value, types.ModuleType):
                return None
            self.record.imports.add("import triton.language as tl")
            inner = "" if module == "triton.language" else module.removeprefix("triton.language") + "."
            prefix = "tl." if not inner or hasattr(tl, node.attr) else f"tl{inner}"
            return f"{prefix}{node.attr}"
        top = module.partition(".")[0]
        value = getattr(base, node.attr, None)
        if top != "triton" and top not in sys.stdlib_module_names and isinstance(value, (JITCallable, tl.constexpr)):
            if node.attr not in self.locals:  # a function or constant of the user's own package comes along
                self.record.globals_needed[node.attr] = (value, self.frame.fn)
                return node.attr
        return None

    def subscript(self, node: ast.Subscript, want: Any) -> str:
        base = self.tensor(node.value)
        if base is None:
            fact = self.fact(node.value)
            if isinstance(fact, TensorFact):  # scalar[None]: a tensor of one element
                result = self.tensor(node)
                shape = ", ".join("1" for _ in result.shape)
                scalar = self.emit(node.value)
                return f"gl.full([{shape}], {scalar}, {operand(scalar)}.dtype, layout={self.names.spell(want)})"
            text = self.splice(node, {node.value: self.emit(node.value), node.slice: self.emit(node.slice)})
            if isinstance(fact, TupleFact) and isinstance(want, Layout):
                homes = self.home(node.value)
                index = self.fact(node.slice)
                home = homes[index.value] if homes and isinstance(index, ConstFact) else None
                if home != want:
                    return self.convert(text, want)
            return text
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        axes = [i for i, p in enumerate(parts) if isinstance(p, ast.Constant) and p.value is None]
        layout = want
        for axis in reversed(axes):
            layout = Slice(axis, layout) if layout is not None else None
        return self.splice(node, {node.value: self.emit(node.value, layout)})

    # Statements --------------------------------------------------------------------------------------------------

    def rewrite(self) -> str:
        """The function's text with placeholders for layouts; rounds until no demand is new."""
        pipeline.prepare(self)
        for _ in range(MAX_ROUNDS):
            self.changed = False
            self.record = Record()
            for state in self.states.values():
                state.settle()
                if state.split is not None:
                    self.record.non_negative |= state.split.assumed
            self.edits: list[tuple[int, int, str]] = []
            self.signature()
            self.block(self.tree.body)
            if not self.changed:
                break
        else:
            raise refuse(self.frame, self.tree, "layout-fixpoint", f"layouts of `{self.frame.fn.__name__}` do not settle")
        return replace_spans(self.source.text, 0, len(self.source.text), self.edits)

    def replace(self, node: ast.AST, text: str) -> None:
        if text != self.source.of(node):
            self.edits.append((*self.source.span(node), text))

    def signature(self) -> None:
        args = self.tree.args
        for arg in [*args.args, *args.kwonlyargs]:
            if arg.annotation is not None:
                self.replace(arg.annotation, self.emit(arg.annotation))
        for default in [*args.defaults, *(d for d in args.kw_defaults if d is not None)]:
            self.replace(default, self.emit(default))
        if self.tree.returns is not None:
            self.replace(self.tree.returns, self.emit(self.tree.returns))
        if self.added_parameters:
            self.add_parameters()

    def add_parameters(self) -> None:
        """Constexpr parameters with defaults after the author's own, so that launches keep working."""
        args = self.tree.args
        parameters = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        ends = [self.source.span(n)[1] for n in [*parameters, *args.defaults, *args.kw_defaults] if n is not None]
        end = max(ends, default=self.source.text.index("(") + 1)
        texts = [f"{name}: gl.constexpr = {default}" for name, default in self.added_parameters.items()]
        following = re.match(r",[ \t]*(#[^\n]*)?(?=\n)", self.source.text[end:])
        if following:  # one parameter or more per line, with a trailing comma
            at = end + following.end()
            line = self.source.text[self.source.text.rfind("\n", 0, end) + 1 : end]
            indent = line[: len(line) - len(line.lstrip())]
            self.edits.append((at, at, "".join(f"\n{indent}{text}," for text in texts)))
            return
        self.edits.append((end, end, (", " if ends else "") + ", ".join(texts)))

    def block(self, statements: list[ast.stmt], condition: str = "") -> None:
        """The statements of one block, which runs under the compile-time `condition` if there is one."""
        reached = max((i + 1 for i, s in enumerate(statements) if self.taken(s)), default=0)
        if reached < len(statements):
            self.unreached(statements[reached:], condition if not reached else self.left(statements[reached - 1]))
        for statement in reversed(statements[:reached]):
            self.statement(statement)

    def unreached(self, statements: list[ast.stmt], condition: str) -> None:
        """The rest of a block that this specialization does not run: compiling it is an error that says so."""
        start, end = self.source.span(statements[0])[0], self.source.span(statements[-1])[1]
        text = contracts.untranslated(self.frame.fn, statements[0], condition)
        if self.source.text.startswith("elif", start):
            text = f"else:\n{self.source.indent(statements[0])}    {text}"
        self.edits.append((start, end, text))

    def left(self, s: ast.stmt) -> str:
        """The condition for not having left the block in the compile-time conditional `s`."""
        if not (isinstance(s, ast.If) and isinstance(fact := self.fact(s.test), ConstFact)):
            return ""
        return contracts.negated(self.source.of(s.test)) if fact.value else self.source.of(s.test)

    def statement(self, s: ast.stmt) -> None:
        if not pipeline.emit_statement(self, s):
            self.plain_statement(s)

    def plain_statement(self, s: ast.stmt) -> None:
        if not self.taken(s):
            self.untaken(s)
        elif isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self.assignment(s)
        elif isinstance(s, ast.If):
            self.conditional(s)
        elif isinstance(s, ast.For):
            self.for_loop(s)
        elif isinstance(s, ast.While):
            self.loops = (*self.loops, s)
            self.block(s.body)
            self.replace(s.test, self.emit(s.test))
            self.loops = self.loops[:-1]
        elif isinstance(s, ast.Return):
            if s.value is not None:
                self.return_statement(s)
        elif isinstance(s, ast.Expr):
            if not isinstance(s.value, ast.Constant):
                self.replace(s.value, calls.emit_statement_call(self, s.value))
        elif isinstance(s, ast.Assert):
            self.replace(s.test, self.emit(s.test))
        elif isinstance(s, ast.With):
            self.block(s.body)
        elif not isinstance(s, (ast.Pass, ast.Import, ast.ImportFrom, ast.Global)):
            raise refuse(self.frame, s, "statement", f"statement `{type(s).__name__}` is not translated")

    def untaken(self, s: ast.stmt) -> None:
        """Code that this specialization does not reach: names are translated, layouts are unknown."""
        for node in ast.walk(s):
            if isinstance(node, ast.Attribute) and (text := self.static_attribute(node)) is not None:
                self.replace(node, text)

    def conditional(self, s: ast.If) -> None:
        test = self.source.of(s.test)
        self.block(s.orelse, contracts.negated(test))
        self.block(s.body, test)
        if self.fact(s.test) is not None:
            self.replace(s.test, self.emit(s.test))

    def unrolled_loop(self, s: UnrolledLoop) -> None:
        outer, start, end = self.edits, self.source.starts[s.body[0].lineno - 1], self.source.span(s.body[-1])[1]
        texts = []
        for body in reversed(s.bodies):
            self.edits = []
            self.block(body)
            texts.append(textwrap.dedent(replace_spans(self.source.text, start, end, self.edits)))
        self.edits = outer
        indent = self.source.indent(s)
        lines = "\n".join(reversed(texts)).splitlines()
        text = ("\n").join((indent + line if line.strip() else line) for line in lines)
        note = f"# {self.source.text[self.source.span(s)[0]:self.source.span(s.iter)[1]]}, written out: shapes change"
        self.replace(s, note + "\n" + text)

    def for_loop(self, s: ast.For) -> None:
        if isinstance(s, UnrolledLoop):
            return self.unrolled_loop(s)
        if pipeline.emit_loop(self, s):
            return
        self.loops = (*self.loops, s)
        self.block(s.body)
        self.loops = self.loops[:-1]
        self.replace(s.iter, calls.emit_iterator(self, s.iter))

    def return_statement(self, s: ast.Return) -> None:
        want = self.wants
        if want is None:
            want = self.home(s.value)
        elif isinstance(want, tuple):
            homes = flatten_like(self.home(s.value), len(want))
            want = tuple(w if w is not None else h for w, h in zip(want, homes))
        self.wants = want
        self.replace(s.value, self.emit(s.value, want))

    def assignment(self, s: ast.stmt) -> None:
        target = s.targets[0] if isinstance(s, ast.Assign) else s.target
        if isinstance(s, ast.AnnAssign) and s.value is None:
            self.replace(s.annotation, self.emit(s.annotation))
            return
        if isinstance(target, ast.Name):
            web = self.webs.of_definition[(s, target.id)]
            fact = self.assigned_fact(s)
            if isinstance(fact, TensorFact) and fact.shape:
                self.tensor_assignment(s, target.id, web)
                return
            if isinstance(fact, TensorFact) and fact.is_pointer and self.state(web).split is not None:
                self.replace(s, pointers.assign_scalar(self, s, self.state(web)))
                return
            if isinstance(s, ast.AnnAssign):
                self.replace(s.annotation, self.emit(s.annotation))
            want = self.web_home(web) if isinstance(fact, TupleFact) else None
            self.replace(s.value, self.emit(s.value, want))
            return
        wants = self.target_wants(s, target)
        self.replace(s.value, self.emit(s.value, wants))
        extra = [line for name in flat_targets(target) for line in self.conversions_after(s, name)]
        if extra:
            indent = self.source.indent(s)
            end = self.source.span(s)[1]
            self.edits.append((end, end, "".join(f"\n{indent}{line}" for line in extra)))

    def assigned_fact(self, s: ast.stmt) -> Any:
        if isinstance(s, ast.AugAssign):
            return self.fact(augmented_binop(s))
        return self.fact(s.value)

    def target_wants(self, s: ast.stmt, target: ast.AST) -> Any:
        if isinstance(target, (ast.Tuple, ast.List)):
            return tuple(self.target_wants(s, e) for e in target.elts)
        if isinstance(target, ast.Name):
            web = self.webs.of_definition.get((s, target.id))
            if web is None:
                return None
            state = self.state(web)
            state.cheap = False
            if state.home is None:
                state.home = self.web_home(web)
            return state.home
        return None

    def conversions_after(self, s: ast.stmt, target: ast.AST) -> list[str]:
        if not isinstance(target, ast.Name):
            return []
        web = self.webs.of_definition.get((s, target.id))
        state = self.states.get(web.index) if web else None
        if state is None:
            return []
        lines = [
            f"{self.names.variant(target.id, layout)} = {self.convert(target.id, layout)}"
            for layout in state.converted
        ]
        if state.shared is not None:
            lines.append(f"{self.shared_name(web)} = {lds_operands.allocation(self, target.id, state.shared)}")
        return lines

    def shared_name(self, web: Web) -> str:
        """The variable of the LDS buffer that holds a copy of a variable."""
        return pointers._fresh(self, f"{web.name}_smem", self.state(web))

    def tensor_assignment(self, s: ast.stmt, name: str, web: Web) -> None:
        state = self.state(web)
        if state.split:
            self.replace(s, self.joined(s, pointers.assign(self, s, state)))
            return
        if state.cheap:
            layouts = state.variants or [self.web_home(web) or self.home(s.value)]
        else:
            if state.home is None:
                state.home = self.web_home(web) or (self.home(s.value) if not isinstance(s, ast.AugAssign) else None)
            layouts = [state.home]
        role = calls.role_of(self, s.value, name)
        lines = []
        for layout in layouts:
            if role:
                self.names.suggest(layout, *role, s.lineno)
            if state.cheap and state.variants:
                variant = self.variant_name(state, layout)
            else:
                variant = name if layout == layouts[0] else self.names.variant(name, layout)
            lines.append(self.assign_text(s, name, variant, layout))
        lines += self.conversions_after(s, ast.Name(id=name))
        self.replace(s, self.joined(s, lines))

    def assign_text(self, s: ast.stmt, name: str, variant: str, layout: Layout) -> str:
        target = s.targets[0] if isinstance(s, ast.Assign) else s.target
        if isinstance(s, ast.AugAssign):
            fact = self.assigned_fact(s)
            dot = calls.accumulated_dot(self, s, variant, layout)
            if dot is not None:
                return f"{variant} = {dot}"
            value = self.operand_in(s.value, fact, layout)
        else:
            value = self.emit(s.value, layout)
        if isinstance(s.value, Promotion) and not isinstance(s, ast.AugAssign):
            return f"{variant} = {closed(value)}"
        children = {s.value: value}
        if variant != self.source.of(target):
            children[target] = variant
        if isinstance(s, ast.AnnAssign):
            children[s.annotation] = self.emit(s.annotation)
        return self.splice(s, children)

    def joined(self, s: ast.stmt, lines: list[str]) -> str:
        return ("\n" + self.source.indent(s)).join(lines)


def augmented_binop(s: ast.AugAssign) -> ast.BinOp:
    """The binary operation that Triton's front end visits for `x += y` (same span as the statement)."""
    node = ast.BinOp(s.target, s.op, s.value)
    return ast.copy_location(node, s)


def flat_targets(target: ast.AST) -> list[ast.AST]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [t for e in target.elts for t in flat_targets(e)]
    return [target]


def flatten(value: Any) -> list:
    if isinstance(value, tuple):
        return [v for item in value for v in flatten(item)]
    return [value]


def flatten_like(value: Any, n: int) -> tuple:
    return value if isinstance(value, tuple) and len(value) == n else (None,) * n


def _spanned(node: ast.AST) -> bool:
    return hasattr(node, "lineno")


def _parse(text: str) -> ast.AST | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
