"""What an integer expression of a kernel may be: its range, from the types of the trace and the operations that are called.

A variable is what all its assignments may give it; loops are gone round until nothing grows. A launch's arguments are any
value of their type, or what the question says that they are.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from gluonize.facts.function import Function
from gluonize.facts.integers.known import ENDLESS, UNKNOWN, Known, cast, is_linear, joined, near, operated, widened
from gluonize.facts.integers.operations import SAME_ELEMENTS, Operation, operation_of, range_of_loop
from gluonize.facts.integers.ranges import TRANSFER, IntType, Range, absolute, counted, exact_mul, int_type, summed
from gluonize.facts.numbers import guards
from gluonize.trace.front.trace import ConstFact, TensorFact, node_key
from gluonize.triton_api.jit_functions import JITFunction

MOST_PROGRAMS = 2**31 - 1  # along one axis of a grid
# A dispatch packet counts the work-items of a grid along x in 32 bits (HSA Platform System Architecture 1.2, 2.9.6, grid_size_x),
# and HIP refuses a launch of more.
MOST_ITEMS = 2**32 - 1
_ROUNDS = 3  # before what still grows is taken to the end of its type
_NOT_LINEAR = ("floordiv", "mod", "minimum", "maximum", "cdiv")
BINARY: dict[type, str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}


@dataclass(frozen=True, eq=False)
class _Context:
    """A function, and for one that is read at a call of it: what that gives it, and where."""

    function: Function
    arguments: Mapping[str, ast.expr] = field(default_factory=dict)
    caller: _Context | None = None


@dataclass
class Question:
    """One question about a function. given: ranges of the kernel's arguments; exactly: `Known.exact` takes nothing to overflow on
    its way through quotients and comparisons either (`facts/numbers/overflow.py` has that checked). used: the arguments that
    were met; by_caller: whether what the rewritten helper is called with was."""

    function: Function
    given: Mapping[str, Range] | None = None
    exactly: bool = False
    used: set[str] = field(default_factory=set)
    by_caller: bool = False
    _variables: dict[tuple[int, int], Known | None] = field(default_factory=dict)
    _values: dict[tuple[int, ast.AST], Known | None] = field(
        default_factory=dict
    )  # by what is known of the variables now
    _places: dict[tuple[int, int], tuple[_Context, Any]] = field(default_factory=dict)
    _settled: int = 0  # how many variables were met when none grew any more
    _contexts: dict[tuple[int, ast.AST | None], _Context] = field(default_factory=dict)

    def of(self, function: Function) -> Question:
        """The same question about another function: that which calls this one."""
        return self if function is self.function else Question(function, self.given, self.exactly)

    def value(self, node: ast.AST) -> Known:
        """What `node` may be; `UNKNOWN` for what is no integer."""
        context = self._context(self.function, None, {}, None)
        rounds = 0
        while True:
            found = self._value(context, node)
            met = len(self._places)
            if met == self._settled or not self._grow(rounds):
                self._settled = met  # until a variable is met that was not asked about before
                return found or UNKNOWN  # nothing reaches it: nothing is known of it
            rounds += 1

    def _grow(self, rounds: int) -> bool:
        """Take in what assignments give to the variables that were met; whether that is more than before."""
        grew = False
        for key in list(self._places):
            context, web = self._places[key]
            before, found = self._variables[key], self._assigned(context, web)
            if found is None or before is not None and found | before == before:
                continue
            found = found if before is None else found | before
            self._variables[key] = widened(before, found) if rounds >= _ROUNDS else found
            self._values.clear()
            grew = True
        return grew

    def _context(self, function: Function, call: ast.AST | None, arguments, caller: _Context | None) -> _Context:
        key = id(function), call
        if key not in self._contexts:
            self._contexts[key] = _Context(function, arguments, caller)
        return self._contexts[key]

    # Expressions -----------------------------------------------------------------------------------------------------

    def _value(self, c: _Context, node: ast.AST) -> Known | None:
        """None where, as far as is known yet, nothing gives the value."""
        key = id(c), node
        if key not in self._values:
            self._values[key] = self._value_now(c, node)
        return self._values[key]

    def _value_now(self, c: _Context, node: ast.AST) -> Known | None:
        facts = _facts(c.function, node)
        if facts and all(isinstance(f, ConstFact) for f in facts):
            return _constants(facts)
        if (type := _type_of(facts)) is None:
            return UNKNOWN
        found = self._typed(c, node, type)
        return found if found is None else cast(found, type)

    def _typed(self, c: _Context, node: ast.AST, type: IntType) -> Known | None:
        if isinstance(node, ast.Name):
            return self._name(c, node)
        if isinstance(node, ast.BinOp):
            found = self._binary(c, node.op, node.left, node.right, type)
            if found is not None and isinstance(node.op, ast.Sub):
                return guards.difference(c.function, node, found, lambda n: self._value(c, n) or UNKNOWN)
            return found
        if isinstance(node, ast.UnaryOp):
            inner = self._value(c, node.operand)
            if isinstance(node.op, ast.UAdd) or inner is None:
                return inner
            minus = isinstance(node.op, ast.USub)
            return operated("sub", type, Known.of(Range(0, 0)), cast(inner, type)) if minus else Known.of(type.whole)
        if isinstance(node, ast.IfExp):
            return self._either(c, node)
        if isinstance(node, ast.Subscript) and isinstance(c.function.fact(node.value), TensorFact):
            return self._value(c, node.value)
        if isinstance(node, ast.Attribute) and node.attr == "T":
            return self._value(c, node.value)
        if isinstance(node, ast.Call):
            return self._call(c, node, type)
        return Known.of(type.whole)

    def _binary(self, c: _Context, op: ast.operator, left: ast.AST, right: ast.AST, type: IntType) -> Known | None:
        return self._operated(c, op, self._value(c, left), self._value(c, right), type)

    def _operated(self, c: _Context, op: ast.operator, a: Known | None, b: Known | None, type: IntType) -> Known | None:
        if a is None or b is None:
            return None
        name = BINARY.get(op.__class__)
        if name is None:
            return Known.of(type.whole)
        a, b = cast(a, type), cast(b, type)
        return self._made(name, type, a, b)

    def _made(self, name: str, type: IntType, a: Known, b: Known) -> Known:
        found = operated(name, type, a, b)
        if self.exactly and is_linear(type) and name in _NOT_LINEAR:
            return Known(found.range, near(TRANSFER[name](ENDLESS, a.exact, b.exact)))
        return found

    def _either(self, c: _Context, node: ast.IfExp) -> Known | None:
        test = c.function.settled(node.test)
        if isinstance(test, ConstFact):
            return self._value(c, node.body if test.value else node.orelse)
        return joined([self._value(c, node.body), self._value(c, node.orelse)])

    def _name(self, c: _Context, node: ast.Name) -> Known | None:
        web = c.function.webs.of_use.get(node)
        if web is None:
            return UNKNOWN
        found = self._variable(c, web)
        return guards.refined(c.function, node, web, found) if found is not None else None

    def _variable(self, c: _Context, web: Any) -> Known | None:
        key = id(c), web.index
        if key not in self._places:
            self._places[key], self._variables[key] = (c, web), None  # what it is made of may come back to it
            if (found := self._assigned(c, web)) is not None:
                self._variables[key] = found
                self._values.clear()
        return self._variables[key]

    def _assigned(self, c: _Context, web: Any) -> Known | None:
        return joined([self._definition(c, web, d) for d in web.definitions])

    def _call(self, c: _Context, node: ast.Call, type: IntType) -> Known | None:
        operation = operation_of(node, c.function.fact(node.func))
        if operation is not None:
            return self._operation(c, node, operation, type)
        return self._returned(c, node, None)

    def _operation(self, c: _Context, node: ast.Call, operation: Operation, type: IntType) -> Known | None:
        name, first = operation.name, operation.first
        whole = Known.of(type.whole)
        if name in ("program_id", "num_programs"):
            most = _most_programs(c.function, operation)
            return Known.of(Range(0, most - 1) if name == "program_id" else Range(1, most))
        if name == "load":
            return whole
        if name in ("zeros", "zeros_like"):
            return Known.of(Range(0, 0))
        if name in ("maximum", "minimum", "cdiv"):
            pair = [self._argument(c, operation, n) for n in ("x", "div" if name == "cdiv" else "y")]
            kinds = {getattr(c.function.fact(x), "dtype", None) for x in (*operation.operands.values(), node)}
            if name == "cdiv" and len(kinds - {None}) != 1:  # its steps have several types
                return whole
            return None if None in pair else self._made(name, type, *(cast(x, type) for x in pair))
        if name == "where":
            return joined(
                [x if x is None else cast(x, type) for x in (self._argument(c, operation, n) for n in ("x", "y"))]
            )
        if name == "full":
            return self._argument(c, operation, "value")
        if name == "arange":
            ends = [self._argument(c, operation, n) for n in ("start", "end")]
            return (
                None if None in ends else Known.of(Range(ends[0].range.lo, max(ends[1].range.hi - 1, ends[0].range.lo)))
            )
        inner = self._value(c, first) if first is not None else UNKNOWN
        if inner is None:
            return None
        fact, made = c.function.fact(first) if first is not None else None, c.function.fact(node)
        if not isinstance(fact, TensorFact):
            return inner if isinstance(fact, ConstFact) and name in ("to_tensor", "cast") else whole
        source = int_type(fact.dtype)
        if name in ("to", "cast"):
            return whole if source is None else inner
        if name in SAME_ELEMENTS or name in ("max", "min"):
            return inner
        if name == "abs":
            return Known.of(absolute(type, cast(inner, type).range))
        if name in ("argmax", "argmin"):
            return Known.of(Range(0, max(prod(fact.shape) - 1, 0)))
        if name in ("sum", "cumsum"):
            count = prod(fact.shape) // (prod(made.shape) if name == "sum" else 1)
            inner = cast(inner, type)
            exact = (
                near(exact_mul(inner.exact, Range(1, count))) if is_linear(type) else summed(type, inner.range, count)
            )
            return Known(summed(type, inner.range, count), exact)
        return whole

    def _argument(self, c: _Context, operation: Operation, name: str) -> Known | None:
        node = operation.operands.get(name)
        return UNKNOWN if node is None else self._value(c, node)

    def _returned(self, c: _Context, node: ast.Call, part: int | None) -> Known | None:
        """What a helper returns, or a part of the tuple that it returns."""
        callee = c.function.fact(node.func)
        function = getattr(callee, "value", None) or getattr(callee, "function", None)
        inner, arguments = c.function.callee(node) if isinstance(function, JITFunction) else (None, {})
        if inner is None:
            return UNKNOWN
        context = self._context(inner, node, arguments, c)
        values = list(inner.returned)
        if part is not None:
            values = [v.elts[part] if isinstance(v, ast.Tuple) and part < len(v.elts) else None for v in values]
        if not values or None in values:
            return UNKNOWN
        return joined([self._value(context, v) for v in values])

    # Assignments -----------------------------------------------------------------------------------------------------

    def _definition(self, c: _Context, web: Any, d: Any) -> Known | None:
        if isinstance(d.node, ast.arg):
            return self._parameter(c, d.name)
        if isinstance(d.node, ast.For):
            return self._index(c, d.node) if isinstance(d.node.target, ast.Name) else UNKNOWN
        if d.augmented:
            return self._moved(c, web, d)
        if d.value is None and isinstance(d.node, ast.Assign) and isinstance(d.node.value, ast.Call):
            names = [getattr(part, "id", "") for part in getattr(d.node.targets[0], "elts", [])]
            return self._returned(c, d.node.value, names.index(d.name)) if names.count(d.name) == 1 else UNKNOWN
        return UNKNOWN if d.value is None else self._value(c, d.value)

    def _moved(self, c: _Context, web: Any, d: Any) -> Known | None:
        """`x += c`, whose type Triton sees as that of `x + c` in its place."""
        sum_ = ast.copy_location(ast.BinOp(d.node.target, d.node.op, d.node.value), d.node)
        if hasattr(d.node, "iteration"):
            sum_.iteration = d.node.iteration
        if (type := _type_of(_facts(c.function, sum_))) is None:
            return UNKNOWN
        return self._operated(c, d.node.op, self._variable(c, web), self._value(c, d.node.value), type)

    def _parameter(self, c: _Context, name: str) -> Known | None:
        fact = c.function.frame.args.get(name)
        type = int_type(fact.dtype) if isinstance(fact, TensorFact) else None
        if type is None or fact.is_pointer:
            return UNKNOWN
        if c.caller is not None:
            found = self._value(c.caller, c.arguments[name]) if name in c.arguments else UNKNOWN
            return found if found is None else cast(found, type)
        if c.function.path:
            return self._given_by_caller(c, name, type)
        if fact.shape or not type.signed:
            return Known.of(type.whole)
        self.used.add(name)
        return Known.of(type.whole if self.given is None else self.given.get(name, type.whole))

    def _given_by_caller(self, c: _Context, name: str, type: IntType) -> Known | None:
        """What a helper that is being rewritten is called with."""
        outer, arguments = c.function.called or (None, {})
        if outer is None or name not in arguments:
            return Known.of(type.whole)
        self.by_caller = True
        found = self._value(self._context(outer, None, {}, None), arguments[name])
        return found if found is None else cast(found, type)

    def _index(self, c: _Context, loop: ast.For) -> Known | None:
        call = loop.iter
        bounds = range_of_loop(call, c.function.fact(call.func) if isinstance(call, ast.Call) else None)
        if bounds is None:
            return UNKNOWN
        ends = [Known.of(Range(n, n)) if x is None else self._value(c, x) for x, n in zip(bounds, (0, None, 1))]
        facts = [c.function.fact(x) for x in bounds if x is not None]
        if any(isinstance(f, TensorFact) and not getattr(int_type(f.dtype), "signed", False) for f in facts):
            return UNKNOWN
        if None in ends:
            return None
        low, high, step = ends
        found = counted(IntType(64), low.range, high.range, step.range)
        if found is None:
            return None
        exact = counted(ENDLESS, low.exact, high.exact, step.exact)
        return Known(found, near(exact) if exact is not None else found)


# Steps that need no function -----------------------------------------------------------------------------------------------


def _facts(function: Function, node: ast.AST) -> list[Any]:
    """What a node was in each visit: in unrolled loops, and for each call of a helper whose calls share one text."""
    iteration = getattr(node, "iteration", None)
    if iteration is None:
        visits = function.frame.visits.get(node_key(node), []) if hasattr(node, "lineno") else []
    else:
        visits = function.iteration_visits(node, iteration)
    return [visit.fact for visit in visits]


def _most_programs(function: Function, operation: Operation) -> int:
    """How many programs a grid may have along the axis that is asked for."""
    axis = function.settled(operation.first) if operation.first is not None else None
    along_x = isinstance(axis, ConstFact) and axis.value == 0
    return MOST_ITEMS // (function.kernel.num_warps * function.kernel.target.warp_size) if along_x else MOST_PROGRAMS


def _type_of(facts: list[Any]) -> IntType | None:
    """The one integer type that a node has wherever it is computed."""
    kinds = {f.dtype if isinstance(f, TensorFact) else None for f in facts}
    return int_type(next(iter(kinds)) or "") if len(kinds) == 1 else None


def _constants(facts: list[ConstFact]) -> Known:
    values = [f.value for f in facts]
    if not all(type(v) in (int, bool) for v in values):
        return UNKNOWN
    return Known.of(Range(int(min(values)), int(max(values))))


__all__ = ["BINARY", "MOST_PROGRAMS", "Question"]
