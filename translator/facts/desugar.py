"""Changes to a function's syntax tree before it is rewritten: sums that are new variables, and loops written out."""

from __future__ import annotations

import ast
import copy

from translator.facts.callees import is_dot
from translator.facts.function import FunctionFacts
from translator.facts.syntax import augmented_binop
from translator.facts.webs import UnrolledLoop
from translator.frontend.trace import TensorFact, node_key


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
    """Write out `static_range` loops in which a tensor changes its shape, from one iteration to the next or in the only one."""

    def shapes(n: ast.AST) -> set[tuple[int, ...]]:
        seen = facts.frame.visits.get(node_key(n), []) if isinstance(n, ast.expr) and hasattr(n, "lineno") else []
        return {v.fact.shape for v in seen if isinstance(v.fact, TensorFact)}

    def changes_shape(loop: ast.For) -> bool:
        if any(len(shapes(n)) > 1 for n in ast.walk(loop)):
            return True
        return any(len(set().union(*map(shapes, nodes))) > 1 for nodes in _carried_by(loop).values())

    def unroll(body: list[ast.stmt], depth: int) -> None:
        for i, s in enumerate(body):
            static = isinstance(s, ast.For) and facts.unrolled(s)
            if static and not depth and isinstance(s.target, ast.Name) and changes_shape(s):
                visits = [v for b in s.body for v in facts.frame.visits.get(node_key(b), [])]
                rounds = sorted({v.iterations[0] for v in visits if v.iterations})
                bounds = [facts.fact(a).value for a in s.iter.args]
                values = list(range(*bounds))
                loop = UnrolledLoop(s.target, s.iter, s.body, s.orelse)
                loop.bodies, loop.values = [], [values[r] for r in rounds]
                for r in rounds:
                    copies = copy.deepcopy(s.body)
                    for statement in copies:
                        for n in ast.walk(statement):
                            n.iteration = r
                    loop.bodies.append(copies)
                body[i] = ast.copy_location(loop, s)
                continue
            for inner in ("body", "orelse"):
                unroll(getattr(s, inner, []) or [], depth + static)

    if not facts.frame.joined:
        unroll(facts.tree.body, 0)
