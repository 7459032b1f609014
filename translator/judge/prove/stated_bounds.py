"""What a launch promises, as bounds of a kernel's arguments: read from the lines of a header, `assumes K >= 0`, and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gluonize.judge.prove.terms.elements import Monomial, Term, Terms

LIMIT = 1 << 40
_AT_LEAST = re.compile(r"^([\w., ]+) >= (-?\d+)$")
_FROM = re.compile(r"^(-?\d+) <= ([\w.\[\]]+)(?= <= )")
_POSITIVE = re.compile(r"^([\w., ]+) positive, from 2\*\*-30 to 2\*\*30$")
_STORED = re.compile(r"^storage of ([\w., ]+) within 2 GiB$")


@dataclass(frozen=True)
class Contract:
    """least: of arguments by name. most: (expression, what it is at most) of arguments, compile-time numbers and counts of programs.
    near: pointers whose storage the launch check holds within 2 GiB; None in a file without a header, where the launch's word counts.
    copies_end: whether the target's programs wait for their copies to LDS when they end. tiles: the argument of the kernel with the source's
    number of programs along the first axis, where its own programs, however many there are, go from one of these to another. positive: floats
    from 2**-30 to 2**30.
    """

    least: Mapping[str, int] = field(default_factory=dict)
    most: tuple[tuple[str, int], ...] = ()
    near: frozenset[str] | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)
    copies_end: bool = False
    tiles: str = ""
    positive: frozenset[str] = frozenset()


def read_contract(text: str, kernel: str, constants: Mapping[str, Any]) -> Contract:
    """The contract that the header of a generated file states for a kernel; an empty one of another file."""
    lines: list[str] = []
    own = stated = goes_on = False
    for line in text.splitlines():
        if not line.startswith("#"):
            if lines and not line.startswith("#") and line.strip():
                break
            continue
        body = line[1:]
        if body.startswith("     "):
            if goes_on:
                lines[-1] += " " + body.strip()
            continue
        goes_on = own and body.startswith("   assumes ")
        if goes_on:
            lines.append(body.strip().removeprefix("assumes "))
        elif re.match(r" [\w.]+: ", body):
            own = body.split(":")[0].strip().rpartition(".")[2] == kernel.rpartition(".")[2]
            stated |= own
    contract = contract_of(lines, constants)
    return contract if stated else replace(contract, near=None)


def contract_of(lines: Sequence[str], constants: Mapping[str, Any]) -> Contract:
    """The contract of `assumes` lines; a line of another kind says nothing that a proof uses."""
    least: dict[str, int] = {}
    most: list[tuple[str, int]] = []
    near: list[str] = []
    positive: list[str] = []
    for line in lines:
        if found := _STORED.match(line):
            near += (name.strip() for name in found.group(1).split(","))
        elif found := _POSITIVE.match(line):
            positive += (name.strip() for name in found.group(1).split(","))
        elif found := _AT_LEAST.match(line):
            for name in found.group(1).split(","):
                least[name.strip()] = max(int(found.group(2)), least.get(name.strip(), -LIMIT))
        elif " <= " in line:
            if found := _FROM.match(line):  # 0 <= K <= 4096
                least[found.group(2)] = max(int(found.group(1)), least.get(found.group(2), -LIMIT))
                line = line[found.start(2) :]
            left, _, right = line.rpartition(" <= ")
            limit = value_of(right, {})
            if limit is not None:
                most.append((left, limit))
    known = {k: v for k, v in constants.items() if type(v) is int} | least
    every = tuple((part, limit) for text, limit in most for part in parts(text, constants, known))
    return Contract(least, every, frozenset(near), dict(constants), positive=frozenset(positive))


MOST_PARTS = 16


def parts(text: str, constants: Mapping[str, Any], least: Mapping[str, int] = {}) -> list[str]:
    """An expression, and what it is not less than: what does not become less where names in it become more, with each of what it takes the
    greatest of. least: what arguments and constants are no less than."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return []
    found, todo = [text], [tree]
    while todo and len(found) < MOST_PARTS:
        node = todo.pop(0)
        call = _greatest(node, constants, least)
        for number in range(len(call.args) if call is not None else 0):
            again = ast.parse(ast.unparse(node), mode="eval").body
            its = _greatest(again, constants, least)
            assert its is not None
            again = _Put(its, its.args[number]).visit(again)
            found.append(ast.unparse(again))
            todo.append(again)
    return found


def _greatest(node: ast.expr, constants: Mapping[str, Any], least: Mapping[str, int]) -> ast.Call | None:
    """The first `max(...)` with which an expression rises."""
    calls = (n for n in rising(node, constants, least) if isinstance(n, ast.Call))
    return next((n for n in calls if ast.unparse(n.func) == "max"), None)


def rising(node: ast.expr, constants: Mapping[str, Any], least: Mapping[str, int] = {}) -> list[ast.expr]:
    """The parts of an expression, itself first, that make it no less where they become more."""
    found = [node]
    if isinstance(node, ast.BinOp):
        positive = {k: v for k, v in constants.items() if type(v) is int and v > 0}
        kind = type(node.op)
        if kind is ast.Add:
            found += [*rising(node.left, constants, least), *rising(node.right, constants, least)]
        elif kind is ast.Sub:
            found += rising(node.left, constants, least)
        elif kind is ast.Mult and (low := _lowest(node.left, least)) is not None and low >= 0:
            found += rising(node.right, constants, least)
        elif kind in (ast.Mult, ast.FloorDiv) and (by := _evaluate(node.right, positive)) is not None and by > 0:
            found += rising(node.left, constants, least)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("max", "min"):
        found += [x for arg in node.args for x in rising(arg, constants, least)]
    return found


def _lowest(node: ast.expr, least: Mapping[str, int]) -> int | None:
    """What an expression is no less than in a launch that runs any program; None where that is not known."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "grid":
        return 1
    if isinstance(node, ast.Name):
        return least.get(node.id)
    if not isinstance(node, ast.BinOp) or (low := _lowest(node.left, least)) is None:
        return None
    if isinstance(node.op, ast.Sub):
        taken = _evaluate(node.right, {})
        return None if taken is None else low - taken
    other = _lowest(node.right, least)
    if other is None or not isinstance(node.op, (ast.Add, ast.Mult)):
        return None
    if isinstance(node.op, ast.Add):
        return low + other
    return low * other if low >= 0 and other >= 0 else None


class _Put(ast.NodeTransformer):
    """One expression in the place of another one."""

    def __init__(self, old: ast.expr, new: ast.expr):
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def value_of(text: str, values: Mapping[str, int]) -> int | None:
    """The number that an expression of a header is with these values of names; None where it is none."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    return _evaluate(tree, values)


def _evaluate(node: ast.expr, values: Mapping[str, int]) -> int | None:
    """The number that an expression of a header is; None where it is none."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    name = ast.unparse(node)
    if name in values:
        return values[name]
    if isinstance(node, ast.BinOp):
        a, b = _evaluate(node.left, values), _evaluate(node.right, values)
        if a is None or b is None:
            return None
        kind = type(node.op)
        if kind is ast.FloorDiv:
            return a // b if b else None
        if kind is ast.Pow:
            return a**b if 0 <= b < 128 else None
        known = {ast.Add: a + b, ast.Sub: a - b, ast.Mult: a * b}
        return known.get(kind)  # type: ignore[call-overload]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
        parts = [_evaluate(x, values) for x in node.args]
        return None if None in parts else {"max": max, "min": min}[node.func.id](parts)  # type: ignore[type-var]
    return None


def _grows(node: ast.expr, constants: Mapping[str, Any]) -> bool:
    """Whether an expression does not become less where a name in it becomes more, all of them not negative."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, (ast.Name, ast.Subscript, ast.Attribute)):
        return True
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Add):
            return _grows(node.left, constants) and _grows(node.right, constants)
        if isinstance(node.op, ast.Sub):
            return _grows(node.left, constants) and _evaluate(node.right, constants) is not None
        if isinstance(node.op, ast.Mult):
            return _grows(node.left, constants) and _grows(node.right, constants)
        if isinstance(node.op, ast.FloorDiv):
            by = _evaluate(node.right, constants)
            return _grows(node.left, constants) and by is not None and by > 0
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
        return all(_grows(x, constants) for x in node.args)
    return False


def _factors_are_not_negative(tree: ast.expr, least: Mapping[str, int]) -> bool:
    """Whether what is multiplied in an expression is not negative, nor any number in it, where none is less than this."""
    if any(number < 0 for number in least.values()):
        return False
    products = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)]
    lows = [_lowest(factor, least) for node in products for factor in (node.left, node.right)]
    return all(low is not None and low >= 0 for low in lows)


def ranges_of(contract: Contract, widths: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """The interval of each integer argument; widths: their bits."""
    out = {}
    for name, width in widths.items():
        half = 1 << (width - 1)
        out[name] = (max(-half, contract.least.get(name, -half)), half - 1) if "[" not in name else (1, half - 1)
    for text, limit in contract.most:
        try:
            tree = ast.parse(text, mode="eval").body
        except SyntaxError:
            continue
        constants = {k: v for k, v in contract.constants.items() if type(v) is int}
        names = {ast.unparse(n) for n in ast.walk(tree) if isinstance(n, (ast.Name, ast.Subscript))}
        if len(names) > 1 and any("grid[" in n for n in names):
            names.discard("grid")
        free = [n for n in names if n in widths]
        others = [n for n in names if n not in widths and n not in constants and n not in ("max", "min", "grid")]
        if others or not _grows(tree, constants):
            continue
        least = {**constants, **{name: out[name][0] for name in free}}
        if len(free) > 1 and not _factors_are_not_negative(tree, least):
            continue
        for name in free:
            # The others are no less than what they are at least, and what does not become less with them is no less than there.
            low, high = out[name]
            at = lambda x: _evaluate(tree, {**least, name: x})  # noqa: B023, E731
            begin = max(low, 0)
            if any(at(x) is None for x in (begin, high)) or at(high) <= limit:
                continue
            # The greatest number that the launch may have: it grows from 0 on.
            while begin < high:
                middle = (begin + high + 1) // 2
                begin, high = (middle, high) if at(middle) <= limit else (begin, middle - 1)
            out[name] = (low, begin)
    return out


def bounds_of(contract: Contract, terms: Terms, arguments: Mapping[str, Term], programs: Mapping[int, Term]) -> list:
    """What products of arguments and numbers of programs are at most, as polynomials: `grid[0]` is at least one more than a program's number."""
    out: list[tuple[dict[Monomial, int], int]] = []
    for text, limit in contract.most:
        try:
            tree = ast.parse(text, mode="eval").body
        except SyntaxError:
            continue
        term = _polynomial(tree, contract, terms, arguments, programs)
        if term is not None and len(term.poly) > 1 and term.constant is None:
            if all(n > 0 or not m for m, n in term.poly.items()) and all(x.low >= 0 for m in term.poly for x in m):
                out.append((dict(term.poly), limit))
    return out


def _polynomial(
    node: ast.expr, contract: Contract, t: Terms, arguments: Mapping[str, Term], programs: Mapping[int, Term]
) -> Term | None:
    name = ast.unparse(node)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return t.integer(node.value)
    if name in arguments:
        return arguments[name]
    if type(contract.constants.get(name)) is int:
        return t.integer(contract.constants[name])
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "min" and len(node.args) == 2:
        return _no_more_than_least(node.args, contract, t, arguments, programs)
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "grid" and isinstance(node.slice, ast.Constant):
        number = programs.get(node.slice.value)
        return None if number is None else t.add(number, t.integer(1))
    if isinstance(node, ast.BinOp):
        a = _polynomial(node.left, contract, t, arguments, programs)
        b = _polynomial(node.right, contract, t, arguments, programs)
        if a is None or b is None:
            return None
        if isinstance(node.op, ast.Add):
            return t.add(a, b)
        if isinstance(node.op, ast.Sub):
            return t.add(a, b, -1)
        if isinstance(node.op, ast.Mult):
            return t.multiply(a, b)
    return None


def _no_more_than_least(
    parts: Sequence[ast.expr], contract: Contract, t: Terms, arguments: Mapping[str, Term], programs: Mapping[int, Term]
) -> Term | None:
    """What is no more than the lesser of an expression that is not negative and a number: the remainder by the number after that."""
    known = {k: v for k, v in contract.constants.items() if type(v) is int}
    for part, other in (parts, parts[::-1]):
        most, whole = _evaluate(other, known), _polynomial(part, contract, t, arguments, programs)
        if most is not None and most >= 0 and whole is not None and whole.low >= 0:
            return t.rem(whole, t.integer(most + 1))
    return None
