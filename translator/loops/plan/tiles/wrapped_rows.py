"""Loads whose rows are wrapped into the tensor (`offs % M`), where the wrapped rows reach only masked stores.

    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M     # rows past M read other rows
    acc = tl.dot(tl.load(a_ptr + offs_am[:, None] * stride, ...), b, acc)
    tl.store(c_ptrs, acc, mask=(offs_cm[:, None] < M) & ...)    # and nothing of them is stored

Such rows may read as zeros, so the load is a tile with M as its bound. The proof follows the loaded value along the wrapped
dimension through products, elementwise operations and helpers to every store, whose mask must have the same bound.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.polynomials import INDEX, Polynomial, add
from gluonize.facts.refusals import line_of
from gluonize.facts.syntax import index_parts, is_new_axis, target_of, unparsed
from gluonize.loops.plan.tiles.address_reader import AddressReader
from gluonize.loops.plan.tiles.terms import NotATile, times
from gluonize.trace.front.trace import ConstFact, TensorFact

if TYPE_CHECKING:
    from gluonize.facts.webs import Definition, Web

# Of `elementwise` rows, those whose result at one place depends on other places, or is seen by somebody.
_NOT_ELEMENTWISE = ("swizzle2d", "device_print", "inline_asm_elementwise", "map_elementwise", "ravel_index")


def reaches_only_masked(
    facts: FunctionFacts, reader: AddressReader, call: ast.Call, dimension: int, start: Polynomial, limit: Polynomial
) -> None:
    """Raises: NotATile unless rows of `call` at `start + row >= limit` along `dimension` reach only masked stores."""
    found = plain(reader, start), plain(reader, limit)
    definitions = _definitions(facts, reader, [*found])
    flow = _Flow(facts, reader.loop, found, definitions)
    flow.follow(call, dimension)


def plain(reader: AddressReader, polynomial: Polynomial) -> Polynomial:
    """`polynomial` over values that are no sums and products of others."""
    out: Polynomial = {}
    for monomial, coefficient in polynomial.items():
        term: Polynomial = {(): coefficient}
        for atom in monomial:
            node = reader.names.get(atom)
            value = reader.facts.webs.value_of(node)
            fact = reader.facts.fact(value) if value is not None else None
            factor: Polynomial = {(atom,): 1}
            if isinstance(value, (ast.BinOp, ast.Name)) and isinstance(fact, TensorFact) and not fact.shape:
                inner = reader.affine(value, ())
                if inner != factor:
                    factor = plain(reader, inner)
            term = times(term, factor)
        out = add(out, term, 1)
    return out


def _definitions(facts: FunctionFacts, reader: AddressReader, of: list[Polynomial]) -> dict[str, "Definition"]:
    """The one definition of each name in the polynomials, by name. Raises: NotATile where there are several."""
    out = {}
    for atom in sorted({a for p in of for m in p for a in m}):
        if atom == INDEX:
            raise NotATile("its wrapped rows change from tile to tile")
        for name in ast.walk(reader.names[atom]):
            if not isinstance(name, ast.Name) or isinstance(facts.fact(name), ConstFact):
                continue
            if facts.webs.of_use.get(name) is None:
                continue
            definition = facts.webs.definition_of(name)
            if definition is None or out.setdefault(name.id, definition) is not definition:
                raise NotATile(f"`{name.id}`, which its rows are wrapped with, is assigned more than once")
    return out


class _Flow:
    """Where the rows of one load go. bound: (start, limit) that stores must be masked with; the values in it are those of
    `definitions`."""

    def __init__(self, facts: FunctionFacts, loop: ast.For, bound, definitions, result=None):
        self.facts, self.loop, self.bound, self.definitions = facts, loop, bound, definitions
        self.result = result  # of a helper: called with the dimension in which it returns the rows
        self.parents = facts.parents
        self.seen: set[tuple[int, int]] = set()
        around = [d.in_loop[-1] for d in definitions.values() if d.in_loop]
        # Values of the bound are the same throughout one iteration of the innermost loop that defines one.
        self.renewed = max(around, key=lambda loop: loop.lineno) if around else None

    def follow(self, node: ast.expr, d: int) -> None:
        """The value of `node`, whose rows lie along dimension `d`."""
        parent = self.parents[node]
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and parent.value is node:
            self.assigned(parent, node, d)
        elif isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            self.follow(parent, self.broadcast(node, parent, d))
        elif isinstance(parent, ast.IfExp) and parent.test is not node:
            self.follow(parent, d)
        elif isinstance(parent, ast.Subscript) and parent.value is node:
            self.follow(parent, self.expanded(parent, d))
        elif isinstance(parent, ast.Attribute):
            self.attribute(parent, d)
        elif isinstance(parent, ast.keyword):
            self.argument(self.parents[parent], node, d)
        elif isinstance(parent, ast.Call):
            self.argument(parent, node, d)
        elif isinstance(parent, ast.Return) and self.result is not None:
            self.result(d)
        else:
            raise self.leaves(node)

    def leaves(self, node: ast.expr) -> NotATile:
        return NotATile(f"its wrapped rows may reach `{unparsed(node)[:60]}`")

    def assigned(self, s: ast.stmt, value: ast.expr, d: int) -> None:
        target = target_of(s)
        if not isinstance(target, ast.Name) or isinstance(s, ast.Assign) and len(s.targets) > 1:
            raise self.leaves(value)
        web = self.facts.webs.of_definition[(s, target.id)]
        if isinstance(s, ast.AugAssign):
            whole = next((self.facts.tensor(use) for use, _ in web.uses if self.facts.tensor(use) is not None), None)
            if whole is None or whole.rank != self.facts.tensor(value).rank:
                raise self.leaves(value)
        self.variable(web, d)

    def variable(self, web: "Web", d: int) -> None:
        if (web.index, d) in self.seen:
            return
        self.seen.add((web.index, d))
        if self.renewed is not None and not self.fresh(web):
            raise NotATile(f"`{web.name}` keeps wrapped rows while their bound changes")
        for use, _ in web.uses:
            if self.facts.fact(use) is not None:
                self.follow(use, d)

    def fresh(self, web: "Web") -> bool:
        """Whether each iteration of the loop that renews the bound starts with a new value."""
        inside = [d for d in web.definitions if self.renewed in d.in_loop]
        if not inside:
            return False
        first = min(inside, key=lambda d: d.node.lineno)
        around = first.in_loop
        if first.node not in around[-1].body or not isinstance(first.node, ast.Assign):
            return False
        places = [*(d.in_loop for d in inside), *(loops for _, loops in web.uses)]
        return all(loops[: len(around)] == around for loops in places) and all(
            use.lineno > first.node.lineno for use, _ in web.uses
        )

    def broadcast(self, node: ast.expr, into: ast.expr, d: int) -> int:
        """The dimension of an elementwise result behind dimension `d` of its operand."""
        inner, outer = self.facts.tensor(node), self.facts.tensor(into)
        if inner is None or outer is None:
            raise self.leaves(into)
        d += outer.rank - inner.rank
        if outer.shape[d] != inner.shape[d - outer.rank + inner.rank]:
            raise self.leaves(into)
        return d

    def expanded(self, node: ast.Subscript, d: int) -> int:
        """The dimension of `x[:, None]` behind dimension `d` of `x`."""
        parts = index_parts(node)
        for i, part in enumerate(parts):
            if isinstance(part, ast.Slice):
                if d == 0:
                    return i
                d -= 1
            elif not is_new_axis(part):
                break
        raise self.leaves(node)

    def attribute(self, node: ast.Attribute, d: int) -> None:
        above = self.parents[node]
        if isinstance(above, ast.Call) and above.func is node:
            self.argument(above, node.value, d)
        elif node.attr == "T":
            self.follow(node, self.facts.tensor(node).rank - 1 - d)
        elif node.attr not in ("dtype", "shape", "type"):
            raise self.leaves(node)

    def argument(self, call: ast.Call, node: ast.expr, d: int) -> None:
        facts = self.facts
        callee = callees.callee_of(facts, call)
        if callee is None:
            raise self.leaves(call)
        if callees.is_helper(facts, call):
            return self.helper(call, node, d)
        given = callees.bind(call, callee)
        names = [name for name, value in given.items() if value is node]
        kind, name = (callee.row.kind if callee.row is not None else ""), callee.name
        if kind == "elementwise" and name not in _NOT_ELEMENTWISE:
            self.follow(call, self.broadcast(node, call, d))
        elif kind == "dot":
            rank = facts.tensor(call).rank
            free = {"input": rank - 2, "other": rank - 1}
            if not names or (names[0] != "acc" and free.get(names[0]) != d and d >= rank - 2):
                raise self.leaves(call)
            self.follow(call, d)
        elif name == "trans" and len(given) == 1 and facts.tensor(call).rank == 2:
            self.follow(call, 1 - d)
        elif kind in ("store", "atomic") and names in (["value"], ["val"]):
            self.stored(call, given, d)
        else:
            raise self.leaves(call)

    def helper(self, call: ast.Call, node: ast.expr, d: int) -> None:
        inner, arguments = self.facts.callee(call)
        names = [name for name, value in arguments.items() if value is node]
        if inner is None or len(names) != 1:
            raise self.leaves(call)

        def returned(dimension: int) -> None:
            result = self.facts.tensor(call)
            if result is None or result.rank <= dimension:
                raise self.leaves(call)
            self.follow(call, dimension)

        flow = _Flow(inner, self.loop, None, {}, returned)
        for web in inner.webs.all:
            if web.name == names[0] and web.is_parameter:
                flow.variable(web, d)

    def stored(self, call: ast.Call, given: dict[str, ast.expr], d: int) -> None:
        """A store is no use of the rows where its mask excludes them."""
        mask, value = given.get("mask"), self.facts.tensor(given.get("value", given.get("val")))
        if self.bound is None or mask is None or self.facts.tensor(mask) is None or value is None:
            raise self.leaves(call)
        reader = AddressReader(self.facts, self.loop, None, None, value.shape)
        for conjunct in reader.conjuncts(mask):
            try:
                at, start, limit = reader.bound(conjunct)
                found = plain(reader, start), plain(reader, limit)
                same = at == d and not reader.wrapped and found == self.bound
                if same and _definitions(self.facts, reader, [*found]) == self.definitions:
                    return
            except NotATile:
                continue
        raise NotATile(f"its wrapped rows are stored in line {line_of(self.facts.frame, call)}")
