"""Changes to a function's syntax tree before it is rewritten: sums that are new variables, and loops written out."""

from __future__ import annotations

import ast
import copy
from typing import Any

from gluonize.facts.callees import function_of, is_dot, needs_texts
from gluonize.facts.function import FunctionFacts
from gluonize.facts.syntax import augmented_binop
from gluonize.facts.webs import UnrolledLoop
from gluonize.trace.front.trace import TensorFact, Visit, node_key
from gluonize.triton_api.jit_functions import JITFunction


class Promotion(ast.BinOp):
    """The sum of `x += t` as a variable of its own; it has the statement's span and no text of its own."""


def expand_promotions(facts: FunctionFacts) -> None:
    """`x += t` that makes a new variable, `x = x + t`: where a scalar becomes a tensor, and the sum with a product.

    Outside of loops each product may have its own layout, so the sums before and after it are different variables.
    """

    def expand(body: list[ast.stmt], looped: bool) -> None:
        for i, s in enumerate(body):
            for inner in ("body", "orelse"):
                expand(getattr(s, inner, []) or [], looped or isinstance(s, (ast.For, ast.While)))
            if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
                left = ast.copy_location(ast.Name(s.target.id, ast.Load()), s.target)
                before, after = facts.fact(left), facts.fact(augmented_binop(s))
                if not (isinstance(before, TensorFact) and isinstance(after, TensorFact)):
                    continue
                product = not looped and isinstance(s.op, (ast.Add, ast.Sub)) and is_dot(facts, s.value)
                if before.shape != after.shape or product:
                    value = Promotion(left, s.op, s.value)
                    body[i] = ast.copy_location(ast.Assign([s.target], ast.copy_location(value, s)), s)

    expand(facts.tree.body, False)


def _carried_by(loop: ast.For) -> dict[str, list[ast.expr]]:
    """Names that the body reads before it assigns them, with what it reads and what it assigns."""
    made: set[str] = set()
    nodes: dict[str, list[ast.expr]] = {}
    for s in loop.body:
        for n in ast.walk(s):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in made:
                nodes.setdefault(n.id, []).append(n)
        made |= {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for s in (s for s in ast.walk(loop) if isinstance(s, ast.Assign)):
        for target in s.targets:
            if isinstance(target, ast.Name) and target.id in nodes:
                nodes[target.id].append(s.value)
    return {name: found for name, found in nodes.items() if name in made}


def unroll_loops(facts: FunctionFacts) -> None:
    """Write out `static_range` loops in which a tensor changes its shape, or another function is called, here or in a helper: from one
    iteration to the next, or in the only one. Loops in a loop that is written out are looked at in each of its iterations.
    """

    def unroll(body: list[ast.stmt], around: tuple[int, ...], depth: int) -> None:
        """around: the iterations of the loops around that are written out; depth: how many loops around are static."""
        for i, s in enumerate(body):
            static = isinstance(s, ast.For) and facts.unrolled(s)
            alone = static and depth == len(around) and isinstance(s.target, ast.Name)
            if alone and (why := _changes(facts, s)):
                body[i] = _written_out(facts, s, around, why)
                for copies, number in zip(body[i].bodies, body[i].rounds):
                    unroll(copies, (*around, number), depth + 1)
                continue
            for inner in ("body", "orelse"):
                unroll(getattr(s, inner, []) or [], around, depth + static)

    if not facts.frame.joined:
        unroll(facts.tree.body, (), 0)


def _written_out(facts: FunctionFacts, s: ast.For, around: tuple[int, ...], why: str) -> UnrolledLoop:
    visits = [v for b in s.body for v in _visits(facts, b)]
    values = _static_values(facts, s)
    loop = UnrolledLoop(s.target, s.iter, s.body, s.orelse)
    loop.why = why
    loop.rounds = sorted({v.iterations[len(around)] for v in visits if len(v.iterations) > len(around)})
    loop.bodies, loop.values = [], [values[r] for r in loop.rounds]
    for r in loop.rounds:
        copies = copy.deepcopy(s.body)
        for n in (n for statement in copies for n in ast.walk(statement)):
            n.iteration = (*around, r)
        loop.bodies.append(copies)
    return ast.copy_location(loop, s)


def _static_values(facts: FunctionFacts, loop: ast.For) -> range:
    """The values of the variable of a `static_range` loop."""
    assert isinstance(loop.iter, ast.Call)
    given = [facts.fact(a).value for a in loop.iter.args]
    named = {k.arg: facts.fact(k.value).value for k in loop.iter.keywords}
    given += [named[name] for name in ("arg1", "arg2")[len(given) :] if named.get(name) is not None]
    start, end = (0, *given) if len(given) == 1 else given[:2]
    return range(start, end, given[2] if len(given) > 2 else named.get("step") or 1)


def _visits(facts: FunctionFacts, n: ast.AST) -> list[Visit]:
    if not isinstance(n, ast.expr | ast.stmt) or not hasattr(n, "lineno"):
        return []
    around = getattr(n, "iteration", None)
    return facts.frame.visits.get(node_key(n), []) if around is None else facts.iteration_visits(n, around)


def _shapes(facts: FunctionFacts, n: ast.AST) -> set[tuple[int, ...]]:
    return {fact.shape for fact in _known(facts, n) if isinstance(fact, TensorFact)}


def _functions(facts: FunctionFacts, n: ast.AST) -> set[JITFunction]:
    return {function for fact in _known(facts, n) if (function := function_of(fact)) is not None}


def _known(facts: FunctionFacts, n: ast.AST) -> list[Any]:
    """What an expression was in each of its visits."""
    return [v.fact for v in _visits(facts, n)] if isinstance(n, ast.expr) else []


def _changes(facts: FunctionFacts, loop: ast.For) -> str:
    """What is not the same in all iterations of a loop, so that no one body serves them; "" for nothing."""
    nodes = list(ast.walk(loop))
    if any(len(_functions(facts, n)) > 1 for n in nodes):
        return "functions change"
    if any(len(_shapes(facts, n)) > 1 for n in nodes):
        return "shapes change"
    if any(isinstance(n, ast.Call) and needs_texts(facts, n) for n in nodes):
        return "shapes change"
    inner = [n for n in nodes if isinstance(n, ast.For) and facts.unrolled(n)]
    carried = [found for n in inner for found in _carried_by(n).values()]
    changes = any(len(set().union(*(_shapes(facts, n) for n in found))) > 1 for found in carried)
    return "shapes change" if changes else ""
