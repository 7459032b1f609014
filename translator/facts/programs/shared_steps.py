"""Kernels whose tiles can be cut between two steps of their loop: one program does the first steps of a tile, another one the rest.

for k in range(0, tl.cdiv(K, BLOCK_K)):     a bound that all tiles of a launch share
    acc = tl.dot(a, b, acc)                 a sum that begins at zero: those of the parts are added
    a_ptrs += BLOCK_K * stride_ak           moved by the same amount in each step: where it is at step `k` follows from where it begins
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass

from gluonize.diagnostics import TranslationError
from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.operations import operation_of, range_of_loop
from gluonize.facts.loops.loop_range import int_of, loop_bounds, varies
from gluonize.facts.programs.single_tiles import single_tile
from gluonize.facts.refusals import refuse
from gluonize.facts.syntax import loads, stores, unparsed
from gluonize.facts.webs import Definition
from gluonize.trace.front.trace import ConstFact, TensorFact

SUMMED = ("fp32", "int32")
_LEAVE = "leave the choice out: each program has whole tiles"
_NO_EFFECTS = (*callees.PURE_KINDS, "reduce", "scan", "load", "gather", "histogram", "dot", "dot_scaled", "descriptor")
# What a sum would not be one with: it binds less than `+` does.
_LOOSER = (ast.IfExp, ast.BoolOp, ast.Compare, ast.Lambda, ast.NamedExpr, ast.Tuple)
_OF_NUMBERS = frozenset({"cdiv", "minimum", "maximum", "to", "cast", "abs"})


@dataclass(frozen=True)
class Summed:
    """A tensor that a loop sums up. sides: its extents, as the source writes them; elements: how many it has."""

    name: str
    sides: tuple[str, ...]
    elements: int
    dtype: str


@dataclass(frozen=True)
class Moved:
    """A variable to which each step adds `by`, or takes it off. wide: it has 64 bits, as pointers have. made: the assignment before the loop
    to whose value steps can be added at once; None where something else reads the variable before the loop, or `by` is not known there.
    """

    name: str
    by: ast.expr
    sign: str
    wide: bool
    made: ast.Assign | None


@dataclass(frozen=True)
class SharedSteps:
    """A loop that can be cut. bound: its end, written with arguments and constants alone; step: of its index, None for 1; numbers: the calls
    that ask for the number of the program along the first axis."""

    loop: ast.For
    bound: str
    step: ast.expr | None
    sums: tuple[Summed, ...]
    moved: tuple[Moved, ...]
    numbers: tuple[ast.Call, ...]

    @property
    def elements(self) -> int:
        """Of all sums of one tile."""
        return sum(s.elements for s in self.sums)


def shared_steps(facts: FunctionFacts) -> SharedSteps:
    """The loop of a kernel whose steps several programs can share. Raises: TranslationError `stream-k` where there is none."""
    if (obstacle := single_tile(facts.kernel)) is not None:
        raise refused(facts, obstacle.node, obstacle.why, obstacle.help)
    loop = _only_loop(facts)
    _, high, step = loop_bounds(facts, loop)
    sums, moved = _carried(facts, loop)
    if not sums:
        raise refused(facts, loop, "the loop sums up nothing that begins at zero", _LEAVE)
    if len({s.dtype for s in sums}) > 1:
        raise refused(facts, loop, "the loop has sums of several types", _LEAVE)
    _check_effects(facts, loop)
    return SharedSteps(loop, _bound(facts, high, high), step, tuple(sums), tuple(moved), tuple(_numbers(facts)))


def refused(facts: FunctionFacts, node: ast.AST, why: str, help: str) -> TranslationError:
    """The error for a kernel whose tiles cannot be cut, at `node`."""
    message = f"tiles of `{facts.frame.fn.__name__}` cannot be cut between steps"
    return refuse(facts.frame, node, "stream-k", message, why, help)


def _only_loop(facts: FunctionFacts) -> ast.For:
    """The one loop of a kernel, over a range from 0, with something behind it. Raises: TranslationError."""
    tree = facts.tree
    loops = [n for n in facts.nodes if isinstance(n, ast.For | ast.While)]
    if not loops:
        raise refused(facts, tree, "it has no loop", _LEAVE)
    loop = loops[0]
    if len(loops) > 1:
        raise refused(facts, loops[1], "it has more than one loop", _LEAVE)
    if not isinstance(loop, ast.For) or not any(s is loop for s in tree.body):
        raise refused(facts, loop, "its loop is not one over a range in the block of the function", _LEAVE)
    bounds = loop_bounds(facts, loop)
    if bounds is None or bounds[0] is not None or not isinstance(loop.target, ast.Name):
        why = "the loop is not one over a range that begins at 0 and goes up by one constant"
        raise refused(facts, loop, why, "have it count from 0, and compute what it counts in it")
    for node in facts.nodes:
        if isinstance(node, ast.Return):
            raise refused(facts, node, "the program would end here, with parts of tiles left to do", _LEAVE)
    given = {n.arg for n in ast.walk(tree.args) if isinstance(n, ast.arg)}
    for node in facts.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in given:
            why = f"`{node.id}` is changed, and the next part of a tile needs the argument"
            raise refused(facts, node, why, "give what is computed from it another name")
    if loop is tree.body[-1]:
        raise refused(facts, loop, "nothing stands behind the loop, so nothing is done with its sums", _LEAVE)
    return loop


def _carried(facts: FunctionFacts, loop: ast.For) -> tuple[list[Summed], list[Moved]]:
    """The variables that go from one step to the next. Raises: TranslationError for one that is neither a sum nor moved."""
    sums: list[Summed] = []
    moved: list[Moved] = []
    for name in sorted(stores(loop)):
        inside = [s for s in ast.walk(loop) if isinstance(s, ast.stmt) and s is not loop]
        made = [s for s in inside if name in _bound_by(s) and facts.taken(s)]
        begins = {
            d.node: d
            for n in _reads(facts, loop, name)
            for d in facts.webs.reaching.get(n, ())
            if loop not in d.in_loop
        }
        begins = {node: d for node, d in begins.items() if node is not loop}
        behind = _read_behind(facts, loop, name)
        if not begins:
            if behind is not None:
                raise refused(facts, behind, f"`{name}` is what the last step has made of it", _LEAVE)
            continue
        statement = made[0] if made else loop
        if len(made) != 1 or not any(statement is s for s in _always(facts, loop.body)):
            raise refused(facts, statement, f"`{name}` is not changed once in each step", _LEAVE)
        begin = next(iter(begins.values())) if len(begins) == 1 else None
        if (found := _sum(facts, loop, statement, name, begin)) is not None:
            sums.append(found)
        elif behind is None and (move := _move(facts, loop, statement, name, begin)) is not None:
            moved.append(move)
        else:
            why = f"`{name}` is neither a sum that begins at zero nor moved by the same amount in each step"
            raise refused(facts, statement, f"{why}, or it is read besides", _LEAVE)
    return sums, moved


def _always(facts: FunctionFacts, body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block that always run, those under a compile-time condition that holds among them."""
    for s in body:
        yield s
        if isinstance(s, ast.If) and isinstance(facts.fact(s.test), ConstFact):
            yield from (inner for inner in _always(facts, [*s.body, *s.orelse]) if facts.taken(inner))


def _bound_by(s: ast.stmt) -> set[str]:
    """The names that a statement itself gives a value, not those inside it."""
    return set() if isinstance(s, ast.While | ast.If | ast.With) else stores(s)


def _reads(facts: FunctionFacts, node: ast.AST, name: str) -> list[ast.Name]:
    """Where a variable is read in code that runs, `x` of `x += y` among them."""
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name]
    moves = {s.target for s in ast.walk(node) if isinstance(s, ast.AugAssign)}
    return [n for n in names if (isinstance(n.ctx, ast.Load) or n in moves) and facts.taken(n)]


def _read_behind(facts: FunctionFacts, loop: ast.For, name: str) -> ast.Name | None:
    """Where a value that the loop gives a variable is read behind it."""
    inside = set(ast.walk(loop))
    others = [n for n in _reads(facts, facts.tree, name) if n not in inside]
    return next(
        (n for n in others if any(loop in d.in_loop or d.node is loop for d in facts.webs.reaching.get(n, ()))), None
    )


def _sum(facts: FunctionFacts, loop: ast.For, s: ast.stmt, name: str, begin: Definition | None) -> Summed | None:
    """`name` as a sum of its own: `x = tl.dot(a, b, x)`, `x += y` or `x = x + y`, from zeros."""
    fact = facts.tensor(begin.value) if begin is not None and begin.value is not None else None
    if fact is None or fact.dtype not in SUMMED or fact.rank > 2 or not _is_zero(facts, begin):
        return None
    if len(_reads(facts, loop, name)) != 1 or not (_added(s, name) is not None or _accumulated(facts, s, name)):
        return None
    if isinstance(s, ast.AugAssign) and not isinstance(s.op, ast.Add):
        return None
    return Summed(name, _sides_of(facts, begin.value, fact.rank, name), math.prod(fact.shape), fact.dtype)


def _is_zero(facts: FunctionFacts, begin: Definition) -> bool:
    """Whether a variable begins as zeros, by one assignment in the block of the function."""
    if begin.augmented or not any(begin.node is s for s in facts.tree.body) or not isinstance(begin.value, ast.Call):
        return False
    operation = operation_of(begin.value, facts.fact(begin.value.func))
    if operation is None or operation.name not in ("zeros", "full"):
        return False
    value = facts.settled(operation.operands["value"]) if operation.name == "full" else ConstFact(0)
    return isinstance(value, ConstFact) and value.value == 0


def _sides_of(facts: FunctionFacts, zeros: ast.Call, rank: int, name: str) -> tuple[str, ...]:
    """The extents of a tensor that a call makes."""
    shape = operation_of(zeros, facts.fact(zeros.func)).operands.get("shape")
    if not isinstance(shape, ast.Tuple | ast.List) or len(shape.elts) != rank:
        return tuple(f"{name}.shape[{n}]" for n in range(rank))
    plain = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript)
    return tuple(facts.source.of(n) if isinstance(n, plain) else f"({facts.source.of(n)})" for n in shape.elts)


def _added(s: ast.stmt, name: str) -> ast.expr | None:
    """What a statement adds to a variable, or takes off it."""
    if isinstance(s, ast.AugAssign) and isinstance(s.op, ast.Add | ast.Sub):
        return s.value
    value = s.value if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    sides = {isinstance(side, ast.Name) and side.id == name: other for side, other in _sides(value)}
    return sides.get(True)


def _sides(sum: ast.BinOp) -> tuple[tuple[ast.expr, ast.expr], ...]:
    return (sum.left, sum.right), (sum.right, sum.left)


def _accumulated(facts: FunctionFacts, s: ast.stmt, name: str) -> bool:
    """`x = tl.dot(a, b, x)`."""
    call = s.value if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    if not isinstance(call, ast.Call) or not isinstance(s.targets[0], ast.Name):
        return False
    callee = callees.callee_of(facts, call)
    if callee is None or callee.row is None or callee.row.kind not in ("dot", "dot_scaled"):
        return False
    acc = callees.bind(call, callee).get("acc")
    return isinstance(acc, ast.Name) and acc.id == name


def _move(facts: FunctionFacts, loop: ast.For, s: ast.stmt, name: str, begin: Definition | None) -> Moved | None:
    """`name` as a number, or pointers, to which each step adds the same."""
    by = _added(s, name)
    target = s.target if isinstance(s, ast.AugAssign) else s.targets[0] if isinstance(s, ast.Assign) else None
    if by is None or not isinstance(target, ast.Name) or varies(facts, loop, by):
        return None
    fact, added = facts.fact(s.value if isinstance(s, ast.Assign) else target), facts.fact(by)
    if isinstance(s, ast.AugAssign):
        fact = next((facts.fact(n) for n in _reads(facts, loop, name) if isinstance(n.ctx, ast.Load)), None)
    if not isinstance(fact, TensorFact) or not (fact.is_pointer or fact.dtype in ("int32", "int64")):
        return None
    if isinstance(added, TensorFact) and added.dtype not in ("int32", "int64"):
        return None
    sign = "-" if isinstance(s, ast.AugAssign) and isinstance(s.op, ast.Sub) else "+"
    wide = fact.is_pointer or fact.dtype == "int64" or isinstance(added, TensorFact) and added.dtype == "int64"
    return Moved(name, by, sign, wide, _made(facts, loop, begin, by))


def _made(facts: FunctionFacts, loop: ast.For, begin: Definition | None, by: ast.expr) -> ast.Assign | None:
    """The assignment that a variable begins with, where nothing else reads it, and where `by` is known already."""
    node = begin.node if begin is not None else None
    if not isinstance(node, ast.Assign) or len(node.targets) > 1 or not isinstance(node.targets[0], ast.Name):
        return None
    block = facts.tree.body
    if not any(node is s for s in block) or _is_looser(node.value):
        return None
    between = block[block.index(node) + 1 : block.index(loop)]
    name = node.targets[0].id
    if any(name in loads(s) | stores(s) or loads(by) & stores(s) for s in between):
        return None
    return node


def _is_looser(value: ast.expr) -> bool:
    """Whether an operand of `+` would need parentheses."""
    bits = (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)
    return isinstance(value, _LOOSER) or isinstance(value, ast.BinOp) and isinstance(value.op, bits)


def _bound(facts: FunctionFacts, node: ast.expr, whole: ast.expr) -> str:
    """An expression as arguments and constants make it. Raises: TranslationError where something else does."""
    spans = []
    for name in [n for n in ast.walk(node) if isinstance(n, ast.Name)]:
        reaching = facts.webs.reaching.get(name, [])
        if not reaching or isinstance(reaching[0].node, ast.arg):
            continue  # of the file, or an argument, which is never changed
        made = facts.webs.value_of(name)
        if made is None or not any(reaching[0].node is s for s in facts.tree.body):
            raise _refused_bound(facts, whole)
        spans.append((name, f"({_bound(facts, made, whole)})"))
    for call in [n for n in ast.walk(node) if isinstance(n, ast.Call)]:
        operation = operation_of(call, facts.fact(call.func))
        if operation is None or operation.name not in _OF_NUMBERS:
            raise _refused_bound(facts, whole)
    return facts.source.splice(node, spans)


def _refused_bound(facts: FunctionFacts, node: ast.expr) -> TranslationError:
    why = f"`{unparsed(node)}` may be another number of steps in another tile"
    return refused(facts, node, why, "compute it from arguments and constants alone")


def _check_effects(facts: FunctionFacts, loop: ast.For) -> None:
    """Raises: TranslationError where what stands before the end of the loop does more than compute: it is done once for each part of a tile."""
    for s in facts.tree.body[: facts.tree.body.index(loop) + 1]:
        for call in _effects(facts, s):
            why = "it would be done for each part of a tile, not once for the tile"
            raise refused(facts, call, why, "do it behind the loop")


def _effects(facts: FunctionFacts, node: ast.AST) -> Iterator[ast.Call]:
    """The calls that do more than compute, or may."""
    for call in [n for n in ast.walk(node) if isinstance(n, ast.Call)]:
        if not facts.taken(call) or range_of_loop(call, facts.fact(call.func)) is not None:
            continue
        callee, inner = callees.callee_of(facts, call), facts.callee(call)[0]
        if inner is not None:
            if any(True for _ in _effects(inner, inner.tree)):
                yield call
        elif callee is None or callee.row is None or callee.row.kind not in _NO_EFFECTS or _stores(callee):
            yield call


def _stores(callee: callees.Callee) -> bool:
    """Whether what is called is a method of a descriptor, or a function, that stores."""
    return callee.row.kind in ("load", "descriptor") and not callee.name.startswith(("load", "gather", "make"))


def _numbers(facts: FunctionFacts) -> Iterator[ast.Call]:
    """The calls that ask for the number of the program along the first axis."""
    for node in facts.nodes:
        operation = operation_of(node, facts.fact(node.func)) if isinstance(node, ast.Call) else None
        if operation is not None and operation.name == "program_id" and int_of(facts, operation.first) == 0:
            yield node


__all__ = ["Moved", "SharedSteps", "Summed", "refused", "shared_steps"]
