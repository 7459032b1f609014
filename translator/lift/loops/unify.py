"""From what several runs stored to one text: iterations, programs and sizes that do the same become one loop of one expression."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gluonize.lift.loops.chains import PRODUCTS, Chain, chain_of, fold_parts, varying
from gluonize.lift.loops.fit import Sample, fit
from gluonize.lift.loops.trip_counts import counted, loop_name, whole_size, without_fill
from gluonize.lift.machine.machine import Around, Effect, NotLifted, Run
from gluonize.lift.values.induction import moved_by, unmoved
from gluonize.lift.values.parts import tiles, unsliced
from gluonize.lift.values.recurrences import Carrying
from gluonize.lift.values.scalars import Expr, Scalar, apply, atom, const, number
from gluonize.lift.values.tensors import Graph, Node
from gluonize.lift.values.tree import BranchText, Fold, Held, LoopText, StoreText, Text

# Parts of one tensor that are stored in another order in some iterations than in others, in one order in all of them.
#
#     for s in static_range(4):                      # one tile from the right, the next one from the left
#         part = 3 - s if i % 2 == 0 else s
#         tma.async_store(c, [m, n + 64 * part], acc.slice(64 * part, 64))
#
# Parts that make up a tensor lie beside each other, so that their stores may change places.


def in_order(graph: Graph, effects: Sequence[Effect]) -> list[Effect]:
    """The effects of one run, those that store all parts of a tensor one after another with the first part first."""
    out: list[Effect] = []
    for group in _together(effects):
        out += _sorted(graph, group) if len(group) > 1 else group
    return out


def _together(effects: Sequence[Effect]) -> Iterable[list[Effect]]:
    """Runs of stores to tiles of one descriptor in one iteration, each by another operation."""
    group: list[Effect] = []
    for effect in effects:
        if group and not (
            effect.kind == group[0].kind == "tile"
            and effect.operands[0] is group[0].operands[0]
            and effect.around == group[0].around
            and all(effect.op is not other.op for other in group)
        ):
            yield group
            group = []
        group.append(effect)
    if group:
        yield group


def _sorted(graph: Graph, group: list[Effect]) -> list[Effect]:
    values = [effect.operands[-1] for effect in group]
    found = [unsliced(graph, value) if isinstance(value, Node) else None for value in values]
    parts = [part for part in found if part is not None]
    if len(parts) < len(group) or len({id(whole) for whole, _ in parts}) != 1:
        return group
    axis = tiles([box for _, box in parts], parts[0][0].type.shape or ())
    if axis is None:
        return group
    order = sorted(range(len(group)), key=lambda i: parts[i][1][axis])
    return [replace(effect, operands=group[i].operands) for effect, i in zip(group, order)]


MOST = 160  # uses of one store that are looked at


@dataclass(frozen=True, eq=False)
class Use:
    """An effect of a run, or one step of a sum in it, and what is known where it happens."""

    run: Run
    effect: Effect
    values: dict[Expr, int]
    own: dict[Expr, Expr]
    trips: dict[Expr, int]
    where: tuple = ()

    def inside(self, variable: Expr, value: int, trips: int, key: Expr | None = None) -> "Use":
        own = self.own | ({key: variable} if key is not None else {})
        where = (*self.where, variable, value)
        values, counts = self.values | {variable: value}, self.trips | {variable: trips}
        return replace(self, values=values, own=own, trips=counts, where=where)

    def sample(self, context: tuple[Around, ...]) -> Sample:
        """For a number that was computed within `context`."""
        loops = {a.loop.key: a for a in context if a.loop is not None}
        # What an earlier iteration of a loop around computed is not told by the loop's variable.
        here = {key: v for key, v in self.own.items() if key not in loops or loops[key].iteration == self.values[v]}
        loops = {key: a for key, a in loops.items() if key not in here}
        trips = {key: a.loop.trips.value for key, a in loops.items() if a.loop.trips is not None}
        ends = {key: a.loop.trips.expr for key, a in loops.items() if a.loop.trips is not None}
        return Sample(self.values, here, {key: a.iteration for key, a in loops.items()}, self.trips | trips, ends)


class Unifier:
    """Makes the tree; `graph` has its nodes."""

    def __init__(self, runs: Sequence[Run]):
        self.runs, self.graph = runs, Graph()
        self.variables = 0
        self.memo: dict[tuple, Node] = {}
        self.held: dict[tuple, Held] = {}
        self.results: dict[tuple[int, int], Node] = {}
        self.carried: dict[tuple, Expr] = {}

    def tree(self) -> list[Text]:
        """Raises: NotLifted."""
        uses = []
        for run in self.runs:
            values = known_values(run)
            uses += [Use(run, effect, values, {}, {}, (id(run),)) for effect in in_order(run.graph, run.effects)]
        return self._level(uses, 0)

    def variable(self) -> Expr:
        self.variables += 1
        return atom("var", self.variables)

    # --- loops, branches, stores

    def _level(self, uses: list[Use], depth: int) -> list[Text]:
        groups: dict[object, list[Use]] = {}
        for use in uses:
            around = use.effect.around
            key = (around[depth].op, around[depth].taken) if len(around) > depth else (use.effect.op, -1)
            groups.setdefault(key, []).append(use)
        out: list[Text] = []
        for (op, taken), inner in sorted(groups.items(), key=lambda item: item[0][0].line):
            if taken < 0:
                out.append(self._store(inner))
            elif inner[0].effect.around[depth].loop is None:
                out += self._branch(inner, depth, taken)
            else:
                out += self._loop(inner, depth)
        return out

    def _loop(self, uses: list[Use], depth: int) -> list[Text]:
        variable = self.variable()
        loops = {id(u.effect.around[depth].loop): u for u in uses}
        op = uses[0].effect.around[depth].op
        if op.name == "scf.while":
            return self._while(uses, depth, variable)

        def common(which: str) -> Expr:
            found = [(getattr(u.effect.around[depth].loop, which), u.sample(())) for u in loops.values()]
            return self._fitted(found, f"the {which} of a loop", op)

        low, step, trips = common("low"), common("step"), common("trips")
        inner = []
        for use in uses:
            around = use.effect.around[depth]
            inner.append(use.inside(variable, around.iteration, around.loop.trips.value, around.loop.key))
        body = self._level(inner, depth + 1)
        return [LoopText(variable, low, step, trips, loop_name(op), body, op.place)]

    def _while(self, uses: list[Use], depth: int, variable: Expr) -> list[Text]:
        """A loop that counts: its condition compares what grows with a bound. One that never runs twice is no loop."""
        op = uses[0].effect.around[depth].op
        if all(u.effect.around[depth].iteration == 0 for u in uses):
            inner = [u.inside(variable, 0, 1, u.effect.around[depth].loop.key) for u in uses]
            return self._level(inner, depth + 1)
        inner, conditions = [], []
        for use in uses:
            around = use.effect.around[depth]
            again = use.inside(variable, around.iteration, 0, around.loop.key)
            inner.append(again)
            conditions.append((around.condition, again.sample(())))
        condition = self._fitted(conditions, "the condition of a loop", op)
        trips = counted(condition, variable)
        if trips is None:
            raise NotLifted("a loop whose condition is not a bound on what grows", op)
        body = self._level(inner, depth + 1)
        return [LoopText(variable, const(0), const(1), trips, "", body, op.place)]

    def _branch(self, uses: list[Use], depth: int, taken: int) -> list[Text]:
        op = uses[0].effect.around[depth].op
        found = [(u.effect.around[depth].condition, u.sample(())) for u in uses]
        condition = self._fitted(found, "the condition of a branch", op, values=False)
        body = self._level(uses, depth + 1)
        return body if condition.is_const else [BranchText(condition, taken, body, op.place)]

    def _fitted(self, found: list[tuple[Scalar, Sample]], what: str, op, values: bool = True) -> Expr:
        expr = fit(found)
        if expr is None:
            raise NotLifted(f"{what} is not one expression of the loops around it", op)
        return expr

    def _store(self, uses: list[Use]) -> StoreText:
        op = uses[0].effect.op
        chosen = spread(uses, MOST)
        operands = []
        for position in range(len(chosen[0].effect.operands)):
            values = [u.effect.operands[position] for u in chosen]
            if isinstance(values[0], Scalar):
                found = [(value, use.sample(use.effect.around)) for value, use in zip(values, chosen)]
                operands.append(self._fitted(found, "where this is stored", op))
            else:
                operands.append(None if values[0] is None else self.node(values, chosen))
        return StoreText(chosen[0].effect.kind, tuple(operands), chosen[0].effect.attrs, op.place)

    # --- values

    def node(self, nodes: list[Node], uses: list[Use]) -> Node:
        """The expression that each of `nodes` is, for its use. Raises: NotLifted where they differ."""
        key = tuple((id(n), u.where) for n, u in zip(nodes, uses))
        if key in self.memo:
            return self.memo[key]
        nodes = self._alike(nodes, uses)
        first = nodes[0]
        sums = any(isinstance(n, Node) and n.op in PRODUCTS for n in nodes)
        for other in nodes:
            if (
                not isinstance(other, Node)
                or other.type.shape != first.type.shape
                or (other.op != first.op and not sums)
            ):
                raise Differs(first, other)
        if first.op == "loop" and not sums:
            made = self._carrying(nodes, uses)
        else:
            made = self._sum(nodes, uses) if sums else self._plain(nodes, uses)
        self.memo[key] = made
        return made

    @staticmethod
    def _alike(nodes: list[Node], uses: list[Use]) -> list[Node]:
        """`x` as `0 + x` where others are a number and `x`: the first tile of an unrolled prologue has no offset."""
        sums = [n for n in nodes if unmoved(n)[0] is not n]
        if not sums or len(sums) == len(nodes) or any(n.type.shape != sums[0].type.shape for n in nodes):
            return nodes
        return [moved_by(u.run.graph, n, number(0), n) if unmoved(n)[0] is n else n for n, u in zip(nodes, uses)]

    def _plain(self, nodes: list[Node], uses: list[Use], args: int | None = None) -> Node:
        first = nodes[0]
        if first.op == "carried":
            return self._carried(nodes, uses)
        if any(n.attrs != first.attrs or len(n.args) != len(first.args) for n in nodes):
            raise Differs(first, next(n for n in nodes if n.attrs != first.attrs or len(n.args) != len(first.args)))
        made = []
        for position in range(len(first.args) if args is None else args):
            values = [n.args[position] for n in nodes]
            if isinstance(values[0], Scalar):
                found = [(v, u.sample(n.context)) for v, n, u in zip(values, nodes, uses) if isinstance(v, Scalar)]
                expr = fit(found) if len(found) == len(nodes) else None
                if expr is None:
                    raise Differs(first, nodes[-1])
                made.append(expr)
            else:
                made.append(self.node(values, uses))
        return self.graph.node(first.op, made, first.type, first.attrs, first.name, first.place)

    def _carried(self, nodes: list[Node], uses: list[Use]) -> Node:
        """What a loop carries to the iteration in which it is used. Raises: Differs for that of another iteration."""
        first = nodes[0]
        for n, use in zip(nodes, uses):
            _, _, key, iteration = n.attrs
            if n.attrs[:2] != first.attrs[:2] or use.values.get(use.own.get(key)) != iteration:
                raise Differs(first, n, "what a loop carries is used in another iteration than its own")
        where = first.attrs[:2]
        if where not in self.carried:
            raise Differs(first, first, "what a loop carries is stored in it")
        return self.graph.node("carried", (self.carried[where],), first.type, where, first.name, first.place)

    def _carrying(self, nodes: list[Node], uses: list[Use]) -> Node:
        """A loop that carries tensors, once for all of them."""
        records, position = [n.attrs[0] for n in nodes], nodes[0].attrs[1]
        if any(n.attrs[1] != position or n.attrs[0].loop.op is not records[0].loop.op for n in nodes):
            raise Differs(nodes[0], nodes[-1], "loops that carry tensors")
        key = tuple((id(r), u.where) for r, u in zip(records, uses))
        held = self.held.get(key)
        if held is None:
            held = self.held[key] = self._one_loop(records, uses)
        if (id(held), position) not in self.results:
            node = Node("held", (held, position), (), nodes[0].type, nodes[0].name, nodes[0].place)
            self.results[id(held), position] = node
        return self.results[id(held), position]

    def _one_loop(self, records: list[Carrying], uses: list[Use]) -> Held:
        op, variable = records[0].loop.op, self.variable()

        def common(which: str) -> Expr:
            found = [(getattr(r.loop, which), u.sample(r.loop.around)) for r, u in zip(records, uses)]
            return self._fitted(found, f"the {which} of a loop", op)

        held = Held(variable, common("low"), common("step"), common("trips"), loop_name(op), op.line)
        steps = [(r, u, i) for r, u in zip(records, uses) for i in spread(range(len(r.bodies)), 12)]
        if not steps:
            raise NotLifted("no size that was tried runs this loop", op)
        inner = [u.inside(variable, i, len(r.bodies), r.loop.key) for r, u, i in steps]
        for k in records[0].positions:
            self.carried[op.line, k] = variable
            held.first[k] = self.node([r.first[k] for r in records], uses)
        for k in records[0].positions:
            held.next[k] = self.node([r.bodies[i][k] for r, _, i in steps], inner)
        return held

    def _sum(self, nodes: list[Node], uses: list[Use]) -> Node:
        chains = [chain_of(n) for n in nodes]
        if all(len(c.products) == 1 for c in chains) or not any(varying(c) for c in chains):
            other = next((n for n in nodes if n.op != nodes[0].op), None)
            if other is not None:
                raise Differs(nodes[0], other)
            return self._plain(nodes, uses)
        base = None
        if any(c.base is not None for c in chains):
            if any(c.base is None for c in chains):
                raise Differs(nodes[0], nodes[-1])
            base = self.node([c.base for c in chains], uses)
        parts = [fold_parts(c) for c in chains]
        reason: NotLifted | None = None
        for period in (1, 2, 3, 4, 6, 8):
            if any(len(c.products) % period for c in chains):
                continue
            try:
                return self._fold(chains, parts, period, base, uses)
            except NotLifted as error:
                reason = reason or error
        assert reason is not None
        raise reason

    def _fold(self, chains: list[Chain], parts: list, period: int, base: Node | None, uses: list[Use]) -> Node:
        counts = []
        for chain, part, use in zip(chains, parts, uses):
            count = Scalar(len(chain.products) // period, apply("div", part.count, const(period)))
            counts.append((count, use.sample(chain.products[0].context if chain.products else ())))
        last = next(chain.products[-1] for chain in chains if chain.products)
        trips = fit(counts) or whole_size(counts, last)
        if trips is None:
            raise Differs(last, last, "how many products are summed")
        low, step, name = self._index(parts, uses)
        # Sums of the same steps in one place share their variable, so that what they load is loaded once.
        depth = sum(x[0] == "var" for x in uses[0].values)
        variable = atom("var", ("sum", depth, trips, low, step))
        products = []
        for slot in range(period):
            nodes, inner = [], []
            for chain, part, use in zip(chains, parts, uses):
                steps = len(chain.products) // period
                for i in spread(range(steps), 24):
                    nodes.append(chain.products[i * period + slot])
                    inner.append(use.inside(variable, i, steps))
            products.append(self._product(nodes, inner))
        trips = without_fill(trips, variable, products)
        fold = Fold(variable, low, step, trips, name, base, tuple(products))
        return Node("fold", (fold,), (), last.type, last.name, last.place)

    def _product(self, nodes: list[Node], uses: list[Use]) -> Node:
        """One product of a step; what it adds to stands for itself."""
        first = nodes[0]
        count = len(first.args) - (1 if first.attrs[0] else 0)
        nodes = [replace(n, attrs=(True, *n.attrs[1:]), args=n.args[:count]) for n in nodes]
        return self._plain(nodes, uses)

    def _index(self, parts: list, uses: list[Use]) -> tuple[Expr, Expr, str]:
        """The author's index of the loop that sums, where it is one of plain steps."""
        loops = [(p.loop, u) for p, u in zip(parts, uses) if p.loop is not None]
        if len(loops) == sum(p.count != const(0) for p in parts):
            low = fit([(loop.low, use.sample(loop.around)) for loop, use in loops])
            step = fit([(loop.step, use.sample(loop.around)) for loop, use in loops])
            if low is not None and step is not None and step.is_const:
                return low, step, loop_name(loops[0][0].op) if loops[0][0].op.name == "scf.for" else ""
        return const(0), const(1), ""


class Differs(NotLifted):
    """Two iterations do not compute the same; at the operation of the first."""

    def __init__(self, one: Node, other: Node, what: str = ""):
        said = (
            what or f"{one.op} here, {other.op} at {other.place} there"
            if one.op != other.op or what
            else f"{one.op} of different operands"
        )
        super().__init__(f"iterations, programs or sizes do not do the same: {said}")
        self.place = one.place


def known_values(run: Run) -> dict[Expr, int]:
    """Arguments and program numbers of a run."""
    values = {x.expr: x.value for x in run.arguments if isinstance(x, Scalar)}
    values |= {atom("pid", i): n for i, n in enumerate((*run.program, 0, 0, 0)[:3])}
    return values | {atom("np", i): n for i, n in enumerate((*run.grid, 1, 1, 1)[:3])}


def spread(items: Sequence, most: int) -> list:
    """At most so many, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]
