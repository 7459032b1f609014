"""Layouts of variables before anything is written: what each use wants, found by walking from the statements that fix layouts to the
definitions.

    tl.store(p, x + 1)       the store wants `x + 1` in its layout, so `x` is wanted in it here, and so is what `x` is made of

What an expression wants of its parts is asked of the relations that also write it (`calls.wants` and others). A function is walked
until no use wants what was not known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gluonize.decide.layouts.demands import Round
from gluonize.diagnostics import TranslationError
from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.unscaled import unscaled_products
from gluonize.facts.reading import read_function
from gluonize.facts.refusals import refuse
from gluonize.facts.syntax import ELEMENTWISE_NODES, index_parts, is_new_axis, target_of
from gluonize.facts.variables.definitions import assigned_fact
from gluonize.facts.webs import UnrolledLoop, Web
from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.written import Written
from gluonize.read.text.moved_lines import file_line
from gluonize.trace.front.trace import Frame, TensorFact, TupleFact
from gluonize.trace.model.layouts import Layout
from gluonize.write import costs
from gluonize.write.accesses import pointer_variables
from gluonize.write.accesses.addresses import Addressing
from gluonize.write.calls import calls, inline_asm, shapes
from gluonize.write.calls.helpers import Helpers
from gluonize.write.calls.kind import Place
from gluonize.write.calls.tuples import flatten_like
from gluonize.write.layouts import needed_statements
from gluonize.write.layouts.homes import Homes
from gluonize.write.products import dots, invariant
from gluonize.write.state.fresh_names import FreshNames, LoopNames
from gluonize.write.state.function_loops import FunctionLoops
from gluonize.write.state.layouts import TileRead
from gluonize.write.state.relations import NOT_READ, Wants, operands_in, sliced
from gluonize.write.state.site import Spot
from gluonize.write.state.unit import Record, Unit
from gluonize.write.state.variables import WebState
from gluonize.write.state.writing import Asking

MAX_ROUNDS = 40


class DemandWalk(Homes):
    """Finds the layouts of one function of a kernel, whose `facts` these are, before anything is written.

    `ask(node, want)` notes what `node`, in the layout `want`, wants of variables; who writes it asks the same. writer: what writes another
    function of the kernel, a helper, for arguments that lie in some layouts.
    """

    def __init__(
        self,
        unit: Unit,
        facts: FunctionFacts,
        writer: Callable[..., Any],
        wants: Any = None,
        argument_homes: dict[str, Any] | None = None,
    ):
        super().__init__(unit, facts, argument_homes)
        self.writer, self.wants = writer, wants
        self.names = LayoutNames()
        self.unscaled = {} if unit.decided.choices.asks("maxima", "scaled") else unscaled_products(facts)
        self.loops: tuple[ast.AST, ...] = ()  # around what is walked through, or written
        self.locals = {d.name for w in facts.webs.all for d in w.definitions}
        self.locals |= {x.name for x in self.unscaled.values()} | unit.decided.given_names
        self.fresh = FreshNames(self.locals)
        self.of_loops = FunctionLoops()
        self.pushed: set[ast.AST] = set()  # computed in the wanted layout even where a conversion looks cheaper
        self.addressing = Addressing(facts, self.state, self.fresh, self.rebound, self.demand, {}, {}, {})
        own = self.home, self.lies_anywhere, self.is_one_value
        self.helpers = Helpers(unit, facts, *own, self.reader, writer)
        self.loop_names = LoopNames(facts, self.locals, unit.decided.given_names)
        self.added_parameters: dict[str, str] = {}  # constexpr parameters that the source did not have -> default
        self.begin_round()

    def reader(self, frame: Frame, path: tuple[int, ...], argument_homes: dict[str, Any]) -> DemandWalk:
        """Another function of the kernel, to be read where its arguments lie so."""
        facts = read_function(self.facts.kernel, frame, path)
        return type(self)(self.unit, facts, self.writer, None, argument_homes)

    def prepare(self) -> None:
        """Before anything is found: loops that are to be pipelined."""

    def find(self) -> None:
        """Walk through the function until no use of a variable wants it in a layout that was not known."""
        for _ in range(MAX_ROUNDS):
            self.begin_round()
            self.ask_block(self.facts.tree.body)
            if self.demanded.settled:
                return
        raise self.unsettled(self.demanded.contradiction(file_line(self.facts.frame.fn, 1)))

    def begin_round(self) -> None:
        """Nothing is demanded yet."""
        self.demanded = Round()
        for state in self.states.values():
            state.settle()
        self._spot: Spot | None = None
        record = Record(self.facts.kernel.target.gluon_module)
        self.asking = Asking(self.facts, self.unit.decided, record, self.names, self, self.unscaled)

    def unsettled(self, why: str) -> TranslationError:
        """Refuses a function whose variables have no layouts that serve all uses."""
        what = f"layouts of `{self.facts.frame.fn.__name__}` do not settle"
        help = "give the variable another name for one of the uses, and please report it"
        return refuse(self.facts.frame, self.facts.tree, "layout-fixpoint", what, why, help)

    @property
    def spot(self) -> Spot:
        """The place that is walked through."""
        known = self._spot
        if known is None or known.loops is not self.loops:
            self._spot = known = Spot(**vars(self.asking), loops=self.loops)
        return known

    def load_in(self, load: ast.Call, web: Web, layout: Layout) -> None:
        """Have `load`, which gives `web` its value, made in `layout`."""
        self.pushed.add(load)
        self.settle_home(web, layout)

    def demand_more(self) -> None:
        """Not all demands are met yet: one more walk is needed."""
        self.demanded.again = True

    def permuted_tile(self, spot: Spot, data: ast.expr, order: tuple[int, ...], layout: Layout) -> Written | None:
        return None

    def tile_read_at_use(self, data: ast.expr) -> TileRead | None:
        return None

    # Expressions ---------------------------------------------------------------------------------------------------

    def ask(self, node: ast.AST, want: Any = None) -> None:
        """What writing `node` in layout `want` (None: in whatever layout is at hand) wants of variables."""
        fact = self.facts.fact(node)
        if isinstance(node, ast.Name):
            web = self.facts.webs.of_use.get(node)
            if web is not None and isinstance(fact, TensorFact) and fact.shape and not hasattr(node, "literal"):
                self.asked(node, web, want)
            return
        if isinstance(fact, TensorFact) and fact.shape:
            want = self.made_in(node, self.home(node) if want is None else want)
        self.ask_parts(node, want)

    def ask_parts(self, node: ast.AST, want: Any) -> None:
        if (tile := self.of_loops.held.get(node)) is not None:
            tile.ring_in(self.spot, want or self.home(node))
        self.ask_all(self.parts(node, want))

    def ask_all(self, wants: Wants) -> None:
        for part, layout in wants.items():
            if layout != NOT_READ:
                self.ask(part, layout)

    def made_in(self, node: ast.AST, want: Layout) -> Layout:
        """The layout in which the tensor `node` is made where it is wanted in `want`: another one where moving it then costs less."""
        if node not in self.pushed:
            home = costs.common_home(self.facts, self.home, self.cheap, self.loops, self.state, node, want)
            if home is not None:
                self.pushed |= {n for n in ast.walk(node) if n is not node and isinstance(n, ast.expr)}
                return home
        placed = self.facts.placed_layouts(node)
        if (
            placed
            and want not in placed
            and node not in self.pushed
            and not self.cheap(node)
            and not isinstance(node, ast.NamedExpr)
            and not (
                isinstance(node, (*ELEMENTWISE_NODES, ast.Subscript))
                and invariant.row_at_hand(self.facts, self.loops, self.cheap, self.state, node)
            )
        ):
            return placed[0]
        if node in self.pushed:
            return want
        return costs.narrowed_home(self.facts, self.cheap, self.home, node, want) or want

    def asked(self, node: ast.Name, web: Web, want: Layout | None) -> Layout:
        """The layout in which the use `node` reads its variable, a tensor: the wanted one, which is noted."""
        state, place = self.state(web), (node.lineno, node.col_offset)
        if want is None:
            default = self.facts.default_layout
            want = state.variants[0] if state.variants else self.web_home(web) or default(self.facts.tensor(node).shape)
        if state.split or state.cheap:
            self.demand(state, want, place)
            return want
        if state.home is None:
            state.home = self.web_home(web) or want
        if web.is_parameter and not any(d for d in web.definitions if not isinstance(d.node, ast.arg)):
            self.demand(state, want, place)
            if len(state.variants) == 1:
                state.home = want
            elif state.home not in state.variants:
                state.home = state.variants[0]
        if want == state.home or web.in_expression:
            return want
        if invariant.moved_before(self.facts, self.loops, web) or invariant.moved_where_loaded(
            self.facts, self.of_loops.staged, node, web
        ):
            self.demanded.demand_converted(web.name, state.wanted, want, place)
        elif not invariant.is_row_before_loop(self.facts, self.loops, node, web) and invariant.carried_row(
            self.facts, self.loops, web, self.web_home(web), want
        ):
            self.settle_home(web, want)
        return want

    def is_moved(self, node: ast.expr, want: Layout) -> bool:
        """Whether a chain of casts and transposes of a variable, wanted in `want`, moves a tensor to another layout where it stands."""
        if isinstance(node, ast.Name):
            web = self.facts.webs.of_use[node]
            state, want = self.state(web), self.asked(node, web, want)
            if state.split or state.cheap or want == state.home:
                return False
            before = invariant.moved_before(self.facts, self.loops, web)
            return web.in_expression or not (before or invariant.is_row_before_loop(self.facts, self.loops, node, web))
        if self.made_in(node, want) != want:
            return True
        parts = {part: layout for part, layout in self.parts(node, want).items() if isinstance(layout, Layout)}
        inner = callees.transposed_by(self.facts, node)
        if inner in parts and shapes.permuted_in(self.asking, node, inner, (1, 0), want)[1] not in (None, want):
            return True
        return any(self.is_moved(part, layout) for part, layout in parts.items())

    def parts(self, node: ast.AST, want: Any) -> Wants:
        """The parts of `node`, each in the layout in which it is wanted where `node` is made in `want`."""
        if isinstance(node, ast.Call):
            return calls.wants(Place(self.spot, self.addressing, self.helpers), node, want)
        if isinstance(node, ast.Attribute):
            return self.attribute_parts(node, want)
        if isinstance(node, ast.Subscript):
            return self.subscript_parts(node, want)
        if isinstance(node, ast.NamedExpr):
            return {node.value: self.named_in(node, want)}
        if node in self.of_loops.clips:
            return self.of_loops.clips[node].wants(self.asking, want)
        if isinstance(node, ELEMENTWISE_NODES):
            return dots.fused_wants(self.spot, node) or self.operands_of(node, want)
        if isinstance(node, (ast.Tuple, ast.List)):
            return dict(zip(node.elts, want if isinstance(want, tuple) else (None,) * len(node.elts)))
        return {c: None for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr) and hasattr(c, "lineno")}

    def operands_of(self, node: ast.AST, want: Layout | None) -> Wants:
        """Those of an elementwise operation."""
        operands = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        return operands_in(self.facts, operands, self.facts.tensor(node), want)

    def named_in(self, node: ast.NamedExpr, want: Layout | None) -> Layout | None:
        """The layout of the variable in `(x := value)`, which is one; what stands around it may want another."""
        if self.facts.tensor(node) is None:
            return want
        web = self.facts.webs.of_definition[(node, node.target.id)]
        state = self.state(web)
        state.home = state.home or self.web_home(web) or want or self.home(node.value)
        return state.home

    def attribute_parts(self, node: ast.Attribute, want: Any) -> Wants:
        """A dtype or shape is the same in all layouts of a variable: none is asked for."""
        if callees.element_type_of(self.facts, node) is not None:
            return {}
        base, web = node.value, self.facts.webs.of_use.get(node.value)
        if self.facts.tensor(node) is not None:
            return calls.attribute_wants(self.spot, node, want)
        if isinstance(base, ast.Name) and self.facts.tensor(base) is not None and web is not None:
            split = self.state(web).split
            if not self.rebound(split.root) if split is not None else node.attr in ("dtype", "shape"):
                return {}
        return {base: None}

    def subscript_parts(self, node: ast.Subscript, want: Any) -> Wants:
        """`x[:, None]`, in whose layout `x` is a slice; elements of tuples."""
        if self.facts.tensor(node.value) is None:
            own = {node.value: None}
            return own if isinstance(self.facts.fact(node.value), TensorFact) else own | {node.slice: None}
        parts = index_parts(node)
        axes = [i for i, p in enumerate(parts) if is_new_axis(p)]
        return {node.value: sliced(want, axes) if want is not None else None}

    # Statements ----------------------------------------------------------------------------------------------------

    def ask_block(self, statements: list[ast.stmt]) -> None:
        """What the statements of a block want, uses before definitions."""
        for s in reversed(statements):
            if self.facts.taken(s) and s not in self.of_loops.dropped:
                self.ask_statement(s)

    def ask_statement(self, s: ast.stmt) -> None:
        if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self.ask_assignment(s)
        elif isinstance(s, ast.If):
            self.ask_block(s.orelse)
            self.ask_block(s.body)
            if self.facts.fact(s.test) is not None:
                self.ask(s.test)
        elif isinstance(s, UnrolledLoop):
            for body in reversed(s.bodies):
                self.ask_block(body)
        elif isinstance(s, (ast.For, ast.While)):
            self.loops = (*self.loops, s)
            self.ask_block(s.body)
            if isinstance(s, ast.While):
                self.ask(s.test)
            self.loops = self.loops[:-1]
            if isinstance(s, ast.For):
                self.ask(s.iter)
        elif isinstance(s, ast.Return):
            if s.value is not None:
                self.ask(s.value, self.returned(s))
        elif isinstance(s, ast.Expr):
            if not isinstance(s.value, ast.Call):
                self.ask(s.value)
            elif not inline_asm.statement(self.facts, s.value):
                self.ask_parts(s.value, None)
        elif isinstance(s, ast.Assert):
            self.ask(s.test)
        elif isinstance(s, ast.With):
            self.ask_block(s.body)

    def ask_assignment(self, s: ast.stmt) -> None:
        target, fact = target_of(s), assigned_fact(self.facts, s)
        if s.value is None:
            return
        if not isinstance(target, ast.Name):
            self.ask(s.value, self.target_wants(s, target))
            return
        web = self.facts.webs.of_definition[(s, target.id)]
        if not (isinstance(fact, TensorFact) and fact.shape):
            self.ask(s.value, self.web_home(web) if isinstance(fact, TupleFact) else None)
            return
        state = self.state(web)
        if state.split:
            wants = pointer_variables.wants(self.addressing, s, self.split_layouts(s, state))
        elif (unscaled := self.unscaled.get(s)) is not None:
            value = s.value if s is not unscaled.source else unscaled.product
            wants = [{value: self.layouts_of(state, s)[0]}]
            if s is unscaled.statement:
                wants.append(dict.fromkeys(unscaled.factors))
        else:
            layouts = self.layouts_of(state, s)
            wants = [needed_statements.wants(self.spot, s, layout) for layout in layouts]
            wants += [self.assigned_parts(s, fact, layout) for layout in layouts]
        for own in wants:
            self.ask_all(own)

    def assigned_parts(self, s: ast.stmt, fact: TensorFact, layout: Layout) -> Wants:
        """What an assignment of a tensor in `layout` wants."""
        if not isinstance(s, ast.AugAssign):
            return {s.value: layout}
        if dots.accumulates(self.facts, s):
            return dots.accumulated_wants(self.spot, s)
        return operands_in(self.facts, [s.value], fact, layout)

    def layouts_of(self, state: WebState, s: ast.stmt) -> list[Layout]:
        """The layouts in which a tensor is assigned."""
        if state.cheap:
            return state.variants or [self.web_home(state.web) or self.home(s.value)]
        if state.home is None:
            own = self.home(s.value) if not isinstance(s, ast.AugAssign) else None
            state.home = self.web_home(state.web) or own
        return [state.home]

    def split_layouts(self, s: ast.stmt, state: WebState) -> list[Layout]:
        """The layouts in which the offsets of a split pointer variable are assigned."""
        default = self.facts.default_layout
        return state.variants or [self.web_home(state.web) or default(assigned_fact(self.facts, s).shape)]

    def target_wants(self, s: ast.stmt, target: ast.AST) -> Any:
        if isinstance(target, (ast.Tuple, ast.List)):
            return tuple(self.target_wants(s, e) for e in target.elts)
        if isinstance(target, ast.Name):
            web = self.facts.webs.of_definition.get((s, target.id))
            if web is None:
                return None
            state = self.state(web)
            state.cheap = False
            if state.home is None:
                state.home = self.web_home(web)
            return state.home
        return None

    def returned(self, s: ast.Return) -> Any:
        """The layouts in which a function gives back what it returns: those that its caller wants, else its own."""
        want = self.wants
        if want is None:
            want = self.home(s.value)
        elif isinstance(want, tuple):
            homes = flatten_like(self.home(s.value), len(want))
            want = tuple(w if w is not None else h for w, h in zip(want, homes))
        self.wants = want
        return want
