"""What the integers of a kernel are, for every argument at once: its statements run in types of few bits, with their wrap-around.

Written from what Triton's operations do, and not from the rules that are compared with it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from narrow_rounds import Rounds
from narrow_numbers import COMPARED, Number, Unknown, aligned, common, folded, is_wide, kind_of, operated, wrapped
from triton.runtime.jit import JITFunction

from gluonize.facts.function import FunctionFacts
from gluonize.facts.webs import UnrolledLoop
from gluonize.trace.front.trace import ConstFact, MethodFact, TensorFact, node_key

ROUNDS = 40  # more than an index of the narrow types can take
_FAR = 1 << 40
_FOLDED = {"cdiv": lambda x, by: -(-x // by), "builtin_min": min, "builtin_max": max}
_SAME = frozenset("multiple_of max_contiguous max_constancy to_tensor".split())


@dataclass
class Seen:
    """What a node was in each launch: the least and the greatest, of all lanes, of those that `fits` and of those that are `whole`.

    off: likewise the launches in which not all lanes are that.
    """

    least: dict[str, np.ndarray] = field(default_factory=dict)
    most: dict[str, np.ndarray] = field(default_factory=dict)
    reached: np.ndarray | None = None
    off: dict[str, np.ndarray] = field(default_factory=dict)

    def take(self, number: Number, active: np.ndarray) -> None:
        rows = len(active)
        if self.reached is None:
            self.reached = np.zeros(rows, bool)
            self.off = {name: np.zeros(rows, bool) for name in ("fits", "whole")}
            for name in ("all", "fits", "whole"):
                self.least[name], self.most[name] = np.full(rows, _FAR), np.full(rows, -_FAR)
        flat = [
            np.broadcast_to(x, (rows, *x.shape[1:])).reshape(rows, -1)
            for x in (number.value, number.fits, number.whole)
        ]
        value, sure = flat[0], {"all": np.ones_like(flat[1]), "fits": flat[1], "whole": flat[2]}
        for name, where in sure.items():
            where = where & active[:, None]
            self.least[name] = np.minimum(self.least[name], np.where(where, value, _FAR).min(axis=1))
            self.most[name] = np.maximum(self.most[name], np.where(where, value, -_FAR).max(axis=1))
        self.reached |= active
        self.off["fits"] |= active & ~flat[1].all(axis=1)
        self.off["whole"] |= active & ~flat[2].all(axis=1)


class Machine:
    """Runs a function for launches side by side. seen: by node, what it was. dead: the launches that do what has no result, such as
    dividing by 0."""

    def __init__(self, rows: int, grid: np.ndarray, programs: np.ndarray, rng: np.random.Generator):
        self.rows, self.grid, self.programs, self.rng = rows, grid, programs, rng
        self.seen: dict[ast.AST, Seen] = {}
        self.owner: dict[ast.AST, FunctionFacts] = {}
        self.dead = np.zeros(rows, bool)
        self.rounds: Rounds | None = None
        self.checks: dict[ast.AST, Callable[[_Run, Number, np.ndarray], None]] = {}  # of what a node is, where it is

    def run(self, facts: FunctionFacts, names: Mapping[str, Any], active: np.ndarray | None = None) -> Any:
        call = _Run(self, facts, dict(names))
        call.block(facts.tree.body, np.ones(self.rows, bool) if active is None else active)
        return call.result


class _Run:
    """One call of a function."""

    def __init__(self, machine: Machine, facts: FunctionFacts, names: dict[str, Any]):
        self.machine, self.facts, self.names = machine, facts, names
        self.result: Any = None
        self.returned = np.zeros(machine.rows, bool)

    # Statements ------------------------------------------------------------------------------------------------------

    def block(self, statements: Iterable[ast.stmt], active: np.ndarray) -> None:
        for s in statements:
            if (left := active & ~self.returned).any() or not active.any():
                self.statement(s, left)

    def statement(self, s: ast.stmt, active: np.ndarray) -> None:
        if self.machine.rounds is not None:
            self.machine.rounds.runs(s, active)
        if isinstance(s, ast.Assign):
            self.bind(s.targets[0], self.value(s.value, active), active)
        elif isinstance(s, ast.AnnAssign):
            self.bind(s.target, self.value(s.value, active), active)
        elif isinstance(s, ast.AugAssign):
            sum_ = ast.copy_location(ast.BinOp(s.target, s.op, s.value), s)
            if hasattr(s, "iteration"):
                sum_.iteration = s.iteration
            before = self.names[s.target.id]
            self.bind(s.target, self.operated(sum_, before, self.value(s.value, active), active), active)
        elif isinstance(s, ast.If):
            self.branch(s, active)
        elif isinstance(s, UnrolledLoop):
            for body, value in zip(s.bodies, s.values):
                self.names[s.target.id] = value
                self.block(body, active)
        elif isinstance(s, ast.For):
            self.loop(s, active)
        elif isinstance(s, ast.While):
            self.repeat(s, active)
        elif isinstance(s, ast.Return):
            found = self.value(s.value, active) if s.value is not None else None
            self.result = self.merged(found, self.result, active)
            self.returned |= active
        elif isinstance(s, ast.Expr):
            self.value(s.value, active)
        elif not isinstance(s, ast.Pass):
            raise Unknown(ast.unparse(s))

    def bind(self, target: ast.expr, value: Any, active: np.ndarray) -> None:
        if isinstance(target, ast.Tuple):
            for part, found in zip(target.elts, value, strict=True):
                self.bind(part, found, active)
            return
        self.names[target.id] = self.merged(value, self.names.get(target.id), active)

    def merged(self, new: Any, old: Any, active: np.ndarray) -> Any:
        """`new` in the launches that are active, else `old`."""
        if old is None or active.all() or isinstance(new, (tuple, list)):
            return new
        if not isinstance(new, Number) and not isinstance(old, Number) and new == old:
            return new
        dtype = next(x.dtype for x in (new, old, Number.of("int32", np.zeros(1))) if isinstance(x, Number))
        new, old = self.number(new, dtype), self.number(old, dtype)
        if new.dtype != old.dtype or new.value.ndim != old.value.ndim:
            return new  # another variable of the same name
        where = active.reshape(-1, *[1] * (new.value.ndim - 1))
        pairs = zip((new.value, new.fits, new.whole), (old.value, old.fits, old.whole))
        return Number(new.dtype, *(np.where(where, x, y) for x, y in pairs))

    def branch(self, s: ast.If, active: np.ndarray) -> None:
        test = self.value(s.test, active)
        if not isinstance(test, Number):
            return self.block(s.body if test else s.orelse, active)
        true = np.broadcast_to(test.value, (self.machine.rows,)) != 0
        self.block(s.body, active & true)
        self.block(s.orelse, active & ~true)

    def loop(self, s: ast.For, active: np.ndarray) -> None:
        given = {k.arg: k.value for k in s.iter.keywords} | dict(zip(("arg1", "arg2", "step"), s.iter.args))
        if "arg2" not in given:
            given["arg1"], given["arg2"] = None, given["arg1"]
        found = [self.value(given[x], active) if given.get(x) is not None else n for x, n in (("arg1", 0), ("arg2", 0), ("step", 1))]  # fmt: skip
        if self.facts.unrolled(s):
            for i in range(*found):
                self.names[s.target.id] = i
                self.block(s.body, active)
            return
        kinds = [x.dtype if isinstance(x, Number) else "int32" for x in found]
        dtype = common(common(kinds[0], kinds[1]), kinds[2])
        low, high, step = (self.number(x, dtype).to(dtype) for x in found)
        fits, whole = low.fits & high.fits & step.fits, low.whole & high.whole & step.whole
        index = np.broadcast_to(low.value, (self.machine.rows,)).copy()
        rounds = self.machine.rounds
        if rounds is not None:
            rounds.starts(s, active, dtype, (low, high, step))
        for turn in range(ROUNDS + 1):
            going = active & np.where(step.value > 0, index < high.value, (step.value < 0) & (index > high.value))
            if not going.any():
                break
            if turn == ROUNDS:
                self.machine.dead |= going  # goes on for longer than is waited for
                break
            if rounds is not None:
                rounds.goes(index, going)
            self.bind(s.target, Number(dtype, index.copy(), fits, whole), going)
            self.seen_at(s.target, self.names[s.target.id], going)
            self.block(s.body, going)
            index = index + step.value
        if rounds is not None:
            rounds.ends()

    def repeat(self, s: ast.While, active: np.ndarray) -> None:
        for _ in range(ROUNDS):
            test = self.value(s.test, active)
            active = active & (np.broadcast_to(test.value, (self.machine.rows,)) != 0)
            if not active.any():
                return
            self.block(s.body, active)
        self.machine.dead |= active  # goes on for longer than is waited for

    # Expressions -----------------------------------------------------------------------------------------------------

    def value(self, node: ast.AST, active: np.ndarray) -> Any:
        found = self.evaluated(node, active)
        if isinstance(found, Number):
            self.seen_at(node, found, active)
        if self.machine.rounds is not None and isinstance(found, Number | int):
            self.machine.rounds.sees(node, found, active)
        return found

    def seen_at(self, node: ast.AST, number: Number, active: np.ndarray) -> None:
        self.machine.owner[node] = self.facts
        if node in self.machine.checks:
            self.machine.checks[node](self, number, active)
        self.machine.seen.setdefault(node, Seen()).take(number, active)

    def dtype(self, node: ast.AST) -> str:
        visits = self.facts.frame.visits.get(node_key(node), [])
        kinds = {v.fact.dtype for v in visits if isinstance(v.fact, TensorFact)}
        if len(kinds) != 1 or not (kinds == {"fp32"} or next(iter(kinds)).lstrip("uint").isdigit()):
            raise Unknown(ast.unparse(node))
        return kinds.pop()

    def number(self, value: Any, dtype: str) -> Number:
        if isinstance(value, Number):
            return value
        return Number.of(dtype, np.full(self.machine.rows, int(wrapped(int(value), dtype))))

    def evaluated(self, node: ast.AST, active: np.ndarray) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return self.names[node.id]
            fact = self.facts.fact(node)
            return fact.value if isinstance(fact, ConstFact) else None
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(self.value(e, active) for e in node.elts)
        if isinstance(node, ast.BinOp):
            return self.operated(node, self.value(node.left, active), self.value(node.right, active), active)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node, self.value(node.operand, active))
        if isinstance(node, ast.Compare):
            return self.compared(node, active)
        if isinstance(node, ast.BoolOp):
            return self.both(node, active)
        if isinstance(node, ast.IfExp):
            return self.chosen(node, active)
        if isinstance(node, ast.Subscript):
            rows = isinstance(node.slice, ast.Tuple) and ast.unparse(node.slice.elts[0]) != "None"
            return self.value(node.value, active).each(lambda x: x[:, :, None] if rows else x[:, None])
        if isinstance(node, ast.Attribute) and node.attr == "T":
            return self.value(node.value, active).each(lambda x: np.swapaxes(x, 1, 2))
        if isinstance(node, ast.Call):
            return self.called(node, active)
        fact = self.facts.fact(node)
        if isinstance(fact, ConstFact):
            return fact.value
        raise Unknown(ast.unparse(node))

    def operated(self, node: ast.BinOp, a: Any, b: Any, active: np.ndarray) -> Any:
        if not isinstance(a, Number) and not isinstance(b, Number):
            return folded(node.op, a, b)
        if getattr(self.facts.fact(node), "is_pointer", False):
            return a if isinstance(a, Number) and a.value.ndim > 1 else b  # where it points to does not matter
        dtype = self.dtype(node)
        return self.made(type(node.op), dtype, self.number(a, dtype), self.number(b, dtype), active)

    def made(self, op: type, dtype: str, a: Number, b: Number, active: np.ndarray) -> Number:
        found, wrong = operated(op, dtype, a, b)
        self.ends(wrong, active)
        return found

    def ends(self, wrong: np.ndarray, active: np.ndarray) -> None:
        self.machine.dead |= active & wrong.reshape(len(wrong), -1).any(axis=1)

    def unary(self, node: ast.UnaryOp, a: Any) -> Any:
        if not isinstance(a, Number):
            return {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.inv, ast.Not: operator.not_}[
                type(node.op)
            ](a)
        dtype = self.dtype(node)
        if isinstance(node.op, ast.USub):
            everywhere = np.ones(self.machine.rows, bool)
            return self.made(ast.Sub, dtype, self.number(0, dtype), a, everywhere)
        if isinstance(node.op, ast.Invert):
            return Number(dtype, wrapped(~a.to(dtype).value, dtype), np.ones(a.value.shape, bool), a.whole)
        if isinstance(node.op, ast.UAdd):
            return a
        if isinstance(node.op, ast.Not):
            return Number("int1", (a.value == 0).astype(np.int64), np.ones(a.value.shape, bool), a.whole)
        raise Unknown(ast.unparse(node))

    def compared(self, node: ast.Compare, active: np.ndarray) -> Any:
        parts = [self.value(x, active) for x in (node.left, *node.comparators)]
        found = None
        for left, op, right in zip(parts, node.ops, parts[1:]):
            if not isinstance(left, Number) and not isinstance(right, Number):
                return COMPARED[type(op)](left, right)
            dtype = common(*(x.dtype if isinstance(x, Number) else "" for x in (left, right)))
            a, b = aligned(self.number(left, dtype).to(dtype), self.number(right, dtype).to(dtype))
            value = COMPARED[type(op)](a.value, b.value).astype(np.int64)
            one = Number("int1", value, np.ones(value.shape, bool), np.broadcast_to(a.whole & b.whole, value.shape))
            found = one if found is None else self.made(ast.BitAnd, "int1", found, one, active)
        return found

    def both(self, node: ast.BoolOp, active: np.ndarray) -> Number:
        parts = [self.number(self.value(x, active), "int1") for x in node.values]
        assert all(x.dtype == "int1" for x in parts), ast.unparse(node)
        found = parts[0]
        for part in parts[1:]:
            found = self.made(ast.BitAnd if isinstance(node.op, ast.And) else ast.BitOr, "int1", found, part, active)
        return found

    def chosen(self, node: ast.IfExp, active: np.ndarray) -> Any:
        test = self.value(node.test, active)
        if not isinstance(test, Number):
            return self.value(node.body if test else node.orelse, active)
        true = np.broadcast_to(test.value, (self.machine.rows,)) != 0
        dtype = self.dtype(node)
        a, b = self.value(node.body, active & true), self.value(node.orelse, active & ~true)
        return self.merged(self.number(a, dtype).to(dtype), self.number(b, dtype).to(dtype), true)

    # Calls -----------------------------------------------------------------------------------------------------------

    def called(self, node: ast.Call, active: np.ndarray) -> Any:
        fact = self.facts.fact(node.func)
        method = isinstance(fact, MethodFact)
        function = fact.function if method else fact.value if isinstance(fact, ConstFact) else None
        given = [self.value(a, active) for a in node.args]
        if method:
            given = [self.value(node.func.value, active), *given]
        named = {k.arg: self.value(k.value, active) for k in node.keywords}
        if isinstance(function, JITFunction) and not function.__module__.startswith("triton.language"):
            return self.helper(node, function, given, named, active)
        return self.builtin(node, getattr(function, "__name__", ""), function, given, named, active)

    def helper(self, node: ast.Call, function: JITFunction, given: list, named: dict, active: np.ndarray) -> Any:
        inner, _ = self.facts.callee(node)
        if inner is None or inner.frame.fn is not function:
            raise Unknown(ast.unparse(node))
        defaults = {p.name: p.default for p in function.params if p.has_default}
        return self.machine.run(inner, defaults | dict(zip(function.arg_names, given)) | named, active)

    def builtin(self, node: ast.Call, name: str, function: Any, given: list, named: dict, active: np.ndarray) -> Any:
        if not any(isinstance(x, Number) for x in (*given, *named.values())) and name in _FOLDED:
            return _FOLDED[name](*given)
        if name in ("program_id", "num_programs"):
            axis = [*given, *named.values()][0]
            table = self.machine.programs if name == "program_id" else self.machine.grid
            return Number.of("int32", table[:, axis])
        if name == "arange":
            start, end = (*given, *(named[n] for n in ("start", "end") if n in named))
            return Number.of("int32", np.broadcast_to(np.arange(start, end), (self.machine.rows, end - start)))
        if name == "load":
            dtype = self.dtype(node)
            bits, signed = kind_of(dtype)
            ends = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
            return Number.of(dtype, self.machine.rng.integers(*ends, given[0].value.shape))
        if name in ("zeros", "full", "zeros_like"):
            dtype, shape = self.dtype(node), () if name == "zeros_like" else tuple(given[0])
            value = self.number(given[1], dtype).to(dtype) if name == "full" else self.number(0, dtype)
            return value.each(
                lambda x: x if x.ndim > 1 else np.broadcast_to(x[:, *[None] * len(shape)], (len(x), *shape))
            )
        return self.elementwise(node, name, function, given, named, active)

    def elementwise(self, node: ast.Call, name: str, function: Any, given: list, named: dict, active) -> Any:
        dtype = self.dtype(node)
        first = self.number(given[0] if given else next(iter(named.values())), dtype)
        if name in ("to", "cast"):
            if first.dtype == "fp32":
                self.ends(first.value != wrapped(first.value, dtype), active)  # it has no such number
            return first.to(dtype)
        if name in _SAME:
            return first
        if name in ("max", "min"):
            return Number(dtype, getattr(np, name)(first.value, axis=1), first.fits.all(1), first.whole.all(1))
        if name in ("argmax", "argmin"):
            at = getattr(np, name)(first.value, axis=1)
            return Number(dtype, at, *(np.ones(at.shape, bool) for _ in range(2)))
        if name in ("minimum", "maximum", "builtin_min", "builtin_max"):
            a, b = aligned(first.to(dtype), self.number([*given, *named.values()][1], dtype).to(dtype))
            value = (np.minimum if name in ("minimum", "builtin_min") else np.maximum)(a.value, b.value)
            return Number(dtype, value, np.ones(value.shape, bool), np.broadcast_to(a.whole & b.whole, value.shape))
        if name == "where":
            parts = [first, *(self.number(x, dtype).to(dtype) for x in [*given, *named.values()][1:])]
            test, a, b = aligned(*parts)
            each = [np.where(test.value != 0, x, y) for x, y in ((a.value, b.value), (a.fits, b.fits), (a.whole, b.whole))]  # fmt: skip
            return Number(dtype, *each)
        if name == "cdiv":
            return self.ceiling(dtype, given[0], [*given, *named.values()][1], active)
        if name == "abs":
            value = wrapped(np.abs(first.value), dtype)
            return Number(dtype, value, np.ones(value.shape, bool), first.whole & (value >= 0))
        if name == "flip":
            return first.each(lambda x: x[:, ::-1])
        if name in ("sum", "cumsum"):
            a = first.to(dtype)
            free = np.cumsum(a.value, axis=1)
            here = (wrapped(free, dtype) == free) if is_wide(dtype) else np.ones(free.shape, bool)
            fits, whole = (np.logical_and.accumulate(x, axis=1) & here for x in (a.fits, a.whole))
            found = Number(dtype, wrapped(free, dtype), fits, whole)
            return found if name == "cumsum" else found.each(lambda x: x[:, -1])
        raise Unknown(ast.unparse(node))

    def ceiling(self, dtype: str, x: Any, by: Any, active: np.ndarray) -> Number:
        """`(x + (by - 1)) // by`, each step in its type."""
        of_x, of_by = (n.dtype if isinstance(n, Number) else "" for n in (x, by))
        by_type = of_by or of_x
        divisor = self.number(by, by_type)
        less = self.made(ast.Sub, by_type, divisor, self.number(1, by_type), active) if of_by else self.number(by - 1, by_type)  # fmt: skip
        sum_type = common(of_x, of_by)
        top = self.made(ast.Add, sum_type, self.number(x, sum_type), less, active)
        return self.made(ast.FloorDiv, dtype, top, divisor, active)


__all__ = ["Machine", "Seen"]
