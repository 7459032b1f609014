"""Addresses and masks of a loop as polynomials: over values that stay the same, the loop index and one variable per axis."""

from __future__ import annotations

import ast

from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.operations import operation_of
from gluonize.facts.integers.polynomials import INDEX, OPERATORS, Polynomial, add, fixed, moving, operated, quotient
from gluonize.facts.loops.loop_range import every_iteration, is_index, loop_bounds, varies
from gluonize.facts.numbers.signs import Signs
from gluonize.facts.numbers.taken import never_reached
from gluonize.facts.numbers.values import Question
from gluonize.facts.obligations import Obligation
from gluonize.facts.syntax import index_parts, is_new_axis, is_whole_axis, less_than, unparsed
from gluonize.facts.variables.same_value import value_key
from gluonize.facts.webs import Web
from gluonize.loops.plan.tiles.terms import NotATile, axis_atom, axis_of, short, times
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.write.state.statements import holds, statements_after

_SAME = ("multiple_of", "max_contiguous", "max_constancy")
_INTEGERS = ("int32", "int64", "uint32")


class AddressReader:
    """Integer expressions of one loop as polynomials; what was met on the way.

    names: atoms and the expressions they stand for; extents: by dimension, the end of its `arange`; wide: 64-bit
    arithmetic was met; narrow: what is added to pointers as 32-bit numbers, which may have wrapped around.
    """

    def __init__(self, facts: FunctionFacts, loop: ast.For, low: ast.expr | None, step: ast.expr | None, shape):
        self.facts, self.loop, self.low, self.step, self.shape = facts, loop, low, step, shape
        self.names: dict[str, ast.expr] = {}
        self.extents: dict[int, ast.expr] = {}
        self.wide = False
        self.narrow: Polynomial = {}
        self.moved_bases: set[ast.Name] = set()
        self.assumed: set[Obligation] = set()
        # By dimension: (start, M) of `(start + arange) % M`.
        self.wrapped: dict[int, tuple[Polynomial, Polynomial]] = {}
        self.rows: dict[int, ast.expr] = {}  # by dimension: what is wrapped there
        self._numbers: dict[ast.expr, int | None] = {}
        loops = [n for n in facts.nodes if isinstance(n, (ast.For, ast.While))]
        self.around = {n for n in loops if any(inner is loop for inner in ast.walk(n))}

    # Addresses and masks.

    def pointer(self, node: ast.expr, axes: tuple[int, ...]) -> tuple[ast.expr, Polynomial]:
        """(scalar base, elements from it) of a pointer expression whose dimensions are `axes` of the tile."""
        facts, fact = self.facts, self.facts.fact(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            left, right = facts.fact(node.left), facts.fact(node.right)
            pointer, integer = (node.left, node.right)
            if not (isinstance(left, TensorFact) and left.is_pointer):
                pointer, integer = integer, pointer
            if isinstance(node.op, ast.Sub) and pointer is not node.left or (left is None or right is None):
                raise NotATile("its address is not affine")
            base, address = self.pointer(pointer, self._lower(pointer, axes))
            offset, sign = self.affine(integer, self._lower(integer, axes)), -1 if isinstance(node.op, ast.Sub) else 1
            if isinstance(added := facts.fact(integer), TensorFact) and added.dtype == "int32":
                self.narrow = add(self.narrow, offset, sign)
            return base, add(address, offset, sign)
        if isinstance(node, ast.Subscript) and (inner := self._expanded(node, axes)) is not None:
            return self.pointer(node.value, inner)
        if isinstance(node, ast.Call) and (inner_node := self._passed(node)) is not None:
            return self.pointer(inner_node, axes)
        if isinstance(node, ast.Name):
            moved = self._moves(node)
            if moved is not None:
                first, by = moved
                if not (isinstance(fact, TensorFact) and fact.shape):
                    return self._unmoved(node), by
                base, address = self.pointer(first, axes)
                return base, add(address, by, 1)
            if isinstance(fact, TensorFact) and fact.shape:
                if (found := self._stands_for(node)) is not None:
                    value, by = found
                    base, address = self.pointer(value, axes)
                    return base, add(address, by, 1)
            elif varies(self.facts, self.loop, node) and (value := self.facts.webs.value_of(node)) is not None:
                return self.pointer(value, axes)
        if not isinstance(fact, TensorFact) or fact.shape or not fact.is_pointer or varies(self.facts, self.loop, node):
            raise NotATile("its address is not a base and offsets")
        return node, {}

    def _stands_for(self, node: ast.Name) -> tuple[ast.expr, Polynomial] | None:
        """(expression, what statements `x += c` before here added to it) of a name that has one value here, whatever branches
        that are never taken would make of it."""
        definitions = [d for d in self.facts.webs.reaching.get(node, []) if not never_reached(self.facts, d.node)]
        if len(definitions) != 1:
            return None
        (found,) = definitions
        if not found.augmented:
            plain = isinstance(found.node, (ast.Assign, ast.AnnAssign)) and found.value is not None
            return (found.value, {}) if plain else None
        by, before = self._added(found.node, found.name), self._stands_for(found.node.target)
        if by is None or before is None or varies(self.facts, self.loop, by):
            return None
        # It is added on its own, in 64 bits, to a pointer that has been moved: as a number of its own type, it may have wrapped around.
        self.wide = True
        moved = self._atom(by) if isinstance(self.facts.fact(by), TensorFact) else self.affine(by, ())
        return before[0], add(before[1], moved, 1)

    def _unmoved(self, node: ast.Name) -> ast.expr:
        """The name of a scalar pointer, which the loop starts with."""
        self.moved_bases.add(node)
        return node

    def conjuncts(self, node: ast.expr, axes: tuple[int, ...] | None = None) -> list[tuple[ast.expr, tuple[int, ...]]]:
        axes = self._lower(node, tuple(range(len(self.shape)))) if axes is None else axes
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            return [c for side in (node.left, node.right) for c in self.conjuncts(side, self._lower(side, axes))]
        if isinstance(node, ast.Subscript) and (inner := self._expanded(node, axes)) is not None:
            return self.conjuncts(node.value, inner)
        if (value := self.facts.webs.value_of(node)) is not None:
            return self.conjuncts(value, axes)
        return [(node, axes)]

    def bound(self, conjunct: tuple[ast.expr, tuple[int, ...]]) -> tuple[int, Polynomial, Polynomial]:
        """(dimension, start, limit) of `start + axis < limit`."""
        node, axes = conjunct
        if (sides := less_than(node)) is None:
            raise NotATile(f"its mask has `{unparsed(node)}`")
        left, right = (self.affine(side, self._lower(side, axes)) for side in sides)
        margin = add(right, left, -1)
        on_axis = [(m, c) for m, c in margin.items() if any(axis_of(a) is not None for a in m)]
        if len(on_axis) != 1 or len(on_axis[0][0]) != 1 or on_axis[0][1] != -1:
            raise NotATile(f"its mask `{unparsed(node)}` is no bound of one dimension")
        (axis,) = on_axis[0][0]
        margin.pop((axis,))
        start = fixed({m: c for m, c in left.items() if m != (axis,)})
        start = add(start, moving(margin), -1)
        if any(m.count(INDEX) > 1 for m in start):
            raise NotATile(f"its mask `{unparsed(node)}` is not affine")
        return axis_of(axis), start, add(margin, start, 1)

    # Polynomials.

    def affine(self, node: ast.expr, axes: tuple[int, ...]) -> Polynomial:
        facts, fact = self.facts, self.facts.fact(node)
        if isinstance(fact, ConstFact):
            return self._constant(node, fact.value)
        if not isinstance(fact, TensorFact) or fact.dtype not in _INTEGERS:
            raise NotATile(f"`{unparsed(node)}` is not an integer")
        self.wide |= fact.dtype == "int64"
        if isinstance(node, ast.BinOp) and isinstance(node.op, OPERATORS):
            try:
                a, b = (self._widened(side, self._lower(side, axes), fact) for side in (node.left, node.right))
            except NotATile:
                if fact.shape or varies(self.facts, self.loop, node):
                    raise
                return self._atom(node)
            return short(operated(node.op, a, b))
        if isinstance(node, ast.Call) and (inner := self._passed(node)) is not None:
            return self._widened(inner, axes, fact)
        if not fact.shape:
            return self._scalar(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and len(axes) == 1:
            return self._wrapped(node, axes)
        if isinstance(node, ast.Subscript) and (lower := self._expanded(node, axes)) is not None:
            return self.affine(node.value, lower)
        if isinstance(node, ast.Name):
            if (moved := self._moves(node)) is not None:
                return add(self.affine(moved[0], axes), moved[1], 1)
            if (value := self.facts.webs.value_of(node)) is not None:
                return self.affine(value, axes)
        if isinstance(node, ast.Call) and len(node.args) == 2 and self._operation(node) == "arange":
            start, end = (facts.fact(a) for a in node.args)
            if (
                isinstance(start, ConstFact)
                and isinstance(end, ConstFact)
                and end.value - start.value == self.shape[axes[0]]
            ):
                extent = node.args[1] if start.value == 0 else ast.Constant(end.value - start.value)
                self.extents.setdefault(axes[0], extent)
                return add({(axis_atom(axes[0]),): 1}, {(): start.value} if start.value else {}, 1)
        raise NotATile(f"`{unparsed(node)}` is not a sum of an arange and values that stay the same")

    def _widened(self, node: ast.expr, axes: tuple[int, ...], into: TensorFact) -> Polynomial:
        """A part of an integer that may have more bits: a product of sizes has wrapped around by then, and is one value."""
        found, fact = self.affine(node, axes), self.facts.fact(node)
        if into.dtype != "int64" or not isinstance(fact, TensorFact) or fact.shape or fact.dtype != "int32":
            return found
        sizes = (
            sum(not isinstance(self.facts.fact(self.names[a]), ConstFact) for a in m if a in self.names) for m in found
        )
        return self._atom(node) if max(sizes, default=0) > 1 and not varies(self.facts, self.loop, node) else found

    def _wrapped(self, node: ast.BinOp, axes: tuple[int, ...]) -> Polynomial:
        """`(start + arange) % M`, as if it were not wrapped: whoever reads `wrapped` has to see to the rows from M on."""
        row, limit = self.affine(node.left, axes), self.affine(node.right, ())
        start = dict(row)
        if start.pop((axis_atom(axes[0]),), 0) != 1 or any(axis_of(a) is not None for m in start for a in m):
            raise NotATile(f"`{unparsed(node)}` is not a sum of an arange and values that stay the same")
        if self.wrapped.setdefault(axes[0], (start, limit)) != (start, limit):
            raise NotATile(f"dimension {axes[0]} is wrapped in two ways")
        self.rows[axes[0]] = node.left
        return row

    def _constant(self, node: ast.expr, value) -> Polynomial:
        """A compile-time integer, by name where it has one: another launch may have another value."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise NotATile(f"`{unparsed(node)}` is not an integer")
        if isinstance(node, ast.Constant) or varies(self.facts, self.loop, node):  # `a.shape[0]` of what the loop loads
            return {(): value} if value else {}
        if isinstance(node, ast.BinOp) and isinstance(node.op, OPERATORS):
            facts = [self.facts.fact(side) for side in (node.left, node.right)]
            if all(isinstance(f, ConstFact) for f in facts):
                a, b = (self._constant(side, f.value) for side, f in zip((node.left, node.right), facts))
                return short(operated(node.op, a, b))
        return self._atom(node)

    def numeric(self, polynomial: Polynomial) -> Polynomial:
        """`polynomial` with the values of its compile-time constants, and of variables that are one number."""
        out: Polynomial = {}
        for monomial, coefficient in polynomial.items():
            left = []
            for atom in monomial:
                number = self._number(self.names[atom]) if atom in self.names else None
                if number is None:
                    left.append(atom)
                else:
                    coefficient *= number
            out = add(out, {tuple(left): coefficient}, 1)
        return {m: c for m, c in out.items() if c}

    def _number(self, node: ast.expr) -> int | None:
        """The one number that an integer is: `stride = stride_in` of a `stride_in` that is a compile-time constant."""
        fact = self.facts.fact(node)
        if isinstance(fact, ConstFact):
            return fact.value
        if node not in self._numbers:
            found = Question(self.facts).value(node).range if isinstance(fact, TensorFact) and not fact.shape else None
            self._numbers[node] = found.lo if found is not None and found.lo == found.hi else None
        return self._numbers[node]

    def _scalar(self, node: ast.expr) -> Polynomial:
        if isinstance(node, ast.Name):
            if is_index(self.facts, self.loop, node):
                return {(INDEX,): 1}
            if (moved := self._moves(node)) is not None:
                return add(self.affine(moved[0], ()), moved[1], 1)
            if varies(self.facts, self.loop, node) and (value := self.facts.webs.value_of(node)) is not None:
                return self.affine(value, ())
        if varies(self.facts, self.loop, node):
            raise NotATile(f"`{unparsed(node)}` changes from tile to tile in no regular way")
        return self._atom(node)

    def _atom(self, node: ast.expr) -> Polynomial:
        key = value_key(self.facts, node, self.loop)
        self.names.setdefault(key, node)
        return {(key,): 1}

    # What names stand for.

    def _operation(self, node: ast.Call) -> str:
        """The operation that is called, by the object that is: a helper of the user's may have any name."""
        called = operation_of(node, self.facts.fact(node.func))
        return "" if called is None else called.name

    def _passed(self, node: ast.Call) -> ast.expr | None:
        """`x` of `tl.multiple_of(x, n)`, `x.to(tl.int64)` and the like, which is the same integer or pointer."""
        name = self._operation(node)
        method = isinstance(node.func, ast.Attribute) and hasattr(self.facts.fact(node.func), "owner")
        inner = node.func.value if method else node.args[0] if node.args else None
        before, after = (self.facts.fact(inner) if inner is not None else None), self.facts.fact(node)
        if name == "cast" and isinstance(before, ConstFact) and isinstance(before.value, int):
            fits = isinstance(after, TensorFact) and after.dtype == "int64" and not isinstance(before.value, bool)
            self.wide |= fits
            return inner if fits else None
        if not isinstance(before, TensorFact):
            return None
        if name in _SAME and before == after:
            return inner
        if name in ("to", "cast") and isinstance(after, TensorFact) and before.shape == after.shape:
            kinds = (before.dtype, after.dtype)
            if kinds in (("int32", "int64"), ("int32", "int32"), ("int64", "int64")):
                self.wide |= after.dtype == "int64"
                return inner
        return None

    def _expanded(self, node: ast.Subscript, axes: tuple[int, ...]) -> tuple[int, ...] | None:
        parts = index_parts(node)
        new = [is_new_axis(p) for p in parts]
        plain = all(n or is_whole_axis(p) for n, p in zip(new, parts))
        fact = self.facts.fact(node.value)
        if not plain or not isinstance(fact, TensorFact) or not fact.shape or len(parts) != len(axes):
            return None
        return tuple(a for a, n in zip(axes, new) if not n)

    def _lower(self, node: ast.expr, axes: tuple[int, ...]) -> tuple[int, ...]:
        """The axes of an operand: the last ones, where it has fewer dimensions than the result."""
        fact = self.facts.fact(node)
        rank = fact.rank if isinstance(fact, TensorFact) else 0
        return axes[len(axes) - rank :]

    def _moves(self, node: ast.Name) -> tuple[ast.expr, Polynomial] | None:
        """(first value, what was added to it since) of a name that every iteration moves by the same amounts."""
        web = self.facts.webs.of_use.get(node)
        if web is None or not any(use is node and self.loop in loops for use, loops in web.uses):
            return None
        moves = self._moves_in(self.loop, web)
        each = self._per_index(moves, self.step) if moves else None
        if each is None:
            return None
        tiles: Polynomial = {(INDEX,): 1}
        if self.low is not None:
            tiles = add(tiles, self.affine(self.low, ()), -1)
        total = times(each, tiles)
        for move, amount in moves.items():
            if (move.end_lineno, move.end_col_offset) <= (node.lineno, node.col_offset):
                total = add(total, amount, 1)  # it has moved in this iteration already
        fact = self.facts.fact(node)
        if isinstance(fact, TensorFact) and fact.is_pointer and not fact.shape:
            return node, total  # its name is what the loop starts with
        return self._started(web, total)

    def _started(self, web: Web, total: Polynomial) -> tuple[ast.expr, Polynomial] | None:
        """(first value, `total` and what loops before this one added to it) of a name that this loop moves by `total`."""
        entering = [d for d in self.facts.webs.entering[self.loop] if d in web.definitions]
        around = next(d.in_loop for d in web.definitions if self.loop in d.in_loop)
        before = around[: around.index(self.loop)]
        first = [d for d in entering if d.in_loop == before]
        if len(first) != 1 or first[0].augmented or first[0].value is None:
            return None
        others = [d for d in entering if d is not first[0]]
        if any(d.in_loop[:-1] != before for d in others):
            return None
        for loop in dict.fromkeys(d.in_loop[-1] for d in others):
            moved = self._moved_by(loop, web)
            if moved is None:
                return None
            total = add(total, moved, 1)
        return first[0].value, total

    def _moved_by(self, loop: ast.AST, web: Web) -> Polynomial | None:
        """What a loop before this one added to `web` in all, where it walks from 0 to a multiple of its step."""
        if not isinstance(loop, ast.For) or not self._runs_before(loop):
            return None
        bounds, moves = loop_bounds(self.facts, loop), self._moves_in(loop, web)
        if bounds is None or bounds[0] is not None or not moves:
            return None
        _, high, step = bounds
        proof = Signs(self.facts, "a tile of the data mover that goes on where another loop ended", exactly=True)
        if not self._multiple(high, step) or not proof.holds(high):
            return None
        each = self._per_index(moves, step)
        if each is None:
            return None
        self.assumed |= proof.assumed
        return times(each, self.affine(high, ()))

    def _runs_before(self, loop: ast.For) -> bool:
        """Whether `loop` is over whenever this one starts: it stands before it, and no branch of its own leaves it out."""
        if any(holds(s, self.loop) for s in statements_after(self.facts.tree, loop)):
            return True
        outer = [n for n in self.around if n is not self.loop and holds(n, loop)]
        block = min(outer, key=lambda n: n.end_lineno - n.lineno).body if outer else self.facts.tree.body
        return loop.end_lineno < self.loop.lineno and loop in every_iteration(self.facts, block)

    def _moves_in(self, loop: ast.For, web: Web) -> dict[ast.stmt, Polynomial]:
        """The statements of `loop` that move `web`, with what each adds in every iteration; empty where one does otherwise."""
        inside = [d for d in web.definitions if loop in d.in_loop]
        atoms = every_iteration(self.facts, loop.body)
        if any(d.in_loop[-1] is not loop or d.node not in atoms for d in inside):
            return {}
        amounts = {d.node: self._amount(d.node, web.name, loop) for d in inside}
        return {} if None in amounts.values() else amounts

    def _multiple(self, node: ast.expr, of: ast.expr | None) -> bool:
        """Whether an integer is a multiple of the step `of`."""
        if of is None or value_key(self.facts, node, self.loop) == value_key(self.facts, of, self.loop):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self._multiple(node.left, of) or self._multiple(node.right, of)
        value = self.facts.webs.value_of(node)
        return value is not None and self._multiple(value, of)

    def _amount(self, s: ast.stmt, name: str, loop: ast.For) -> Polynomial | None:
        """What `x += c` adds, the same in each iteration of its loop and of this one."""
        by = self._added(s, name)
        if by is None or varies(self.facts, loop, by) or varies(self.facts, self.loop, by):
            return None
        return self.affine(by, ())

    def _per_index(self, moves: dict[ast.stmt, Polynomial], step: ast.expr | None) -> Polynomial | None:
        """What the moves of an iteration add while the index grows by 1."""
        amount: Polynomial = {}
        for one in moves.values():
            amount = add(amount, one, 1)
        return amount if step is None else quotient(amount, self.affine(step, ()))

    def _added(self, s: ast.stmt, name: str) -> ast.expr | None:
        """`c` of `x += c` and `x = x + c`, a scalar."""
        by = None
        if isinstance(s, ast.AugAssign) and isinstance(s.op, ast.Add):
            by = s.value
        elif isinstance(s, ast.Assign) and isinstance(s.value, ast.BinOp) and isinstance(s.value.op, ast.Add):
            if isinstance(s.value.left, ast.Name) and s.value.left.id == name:
                by = s.value.right
        fact = self.facts.fact(by) if by is not None else None
        scalar = isinstance(fact, ConstFact) or (isinstance(fact, TensorFact) and not fact.shape)
        return by if scalar else None

    def settled(self, node: ast.expr) -> None:
        """Raises: NotATile unless `node` has the same value right before the loop as where it was met."""
        for name in ast.walk(node):
            if not isinstance(name, ast.Name) or (web := self.facts.webs.of_use.get(name)) is None:
                continue
            if name in self.moved_bases:
                continue
            around = next((loops for use, loops in web.uses if use is name), ())
            for d in (d for w in self.facts.webs.all if w.name == name.id for d in w.definitions):
                after = name.lineno <= getattr(d.node, "lineno", 0) <= self.loop.lineno and not isinstance(
                    d.node, ast.arg
                )
                if after or any(loop in self.around and loop not in around for loop in d.in_loop):
                    raise NotATile(f"`{name.id}` is not the same everywhere")
