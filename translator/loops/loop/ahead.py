"""What of a loop's body has to run ahead with its loads: the statements that addresses and masks are computed by."""

from __future__ import annotations

import ast

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.loop_range import is_index, varies
from gluonize.facts.refusals import line_of
from gluonize.facts.syntax import arguments_of
from gluonize.facts.variables.definitions import names_read
from gluonize.facts.webs import Web
from gluonize.loops.loop.index_loads import unguarded, why_not_ahead
from gluonize.loops.loop.moved_twice import can_start
from gluonize.loops.plan.plan import RunsAhead
from gluonize.loops.plan.tiles.tail import TailProof
from gluonize.trace.front.trace import TensorFact


class NotAhead(Exception):
    """Why what a load depends on cannot run ahead of its iteration."""


def what_runs_ahead(
    facts: FunctionFacts, loop: ast.For, tail: TailProof, atoms: list[ast.stmt], found: list[ast.Call], plain: list
) -> RunsAhead:
    """The statements that the loads in `plain` depend on; found: all loads that run ahead.

    Raises: NotAhead, with the reason.
    """
    arguments = [a for c in plain for a in arguments_of(c) if not callees.is_none(facts, a)]
    needed = {w.index for a in arguments for w in _used(facts, loop, a)}
    producer: list[ast.stmt] = []
    grew = True
    while grew:
        grew = False
        for atom in atoms:
            defined = _defined(facts, atom)
            if atom in producer or not any(w.index in needed for w in defined):
                continue
            if not isinstance(atom, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or len(defined) != 1:
                raise NotAhead(f"an address depends on the statement in line {line_of(facts.frame, atom)}")
            if any(call in ast.walk(atom) for call in found):
                raise NotAhead(f"an address depends on the load in line {line_of(facts.frame, atom)}")
            if not is_pure(facts, atom.value) and (what := why_not_ahead(facts, loop, atom.value)):
                raise NotAhead(f"an address depends on {what} in line {line_of(facts.frame, atom)}")
            producer.append(atom)
            needed |= {w.index for w in _used(facts, loop, atom)}
            grew = True
    producer.sort(key=atoms.index)

    # What the consumer needs of it, also for those who read it when the loop is over. Only a move that can be undone is left
    # to the producer alone: it ends where the tiles ahead are.
    webs = {web.index: web for atom in producer for web in _defined(facts, atom)}
    moving = [web for web in webs.values() if _carried(facts, loop, web, atoms)]
    undone = [
        web for web in moving if all(_invertible(facts, p, loop) for p in producer if _defined(facts, p)[0] is web)
    ]
    behind = [web for web in webs.values() if facts.webs.read_behind(loop, web)]
    lives_on = behind + [web for web in moving if web not in behind and facts.webs.goes_on(loop, web)]
    inside = {n for c in found for a in arguments_of(c) for n in ast.walk(a)}
    consumed = {
        w.index
        for atom in atoms
        if atom not in producer
        for n in names_read(facts, atom)
        if n not in inside and (w := facts.webs.of_use.get(n)) is not None
    }
    consumed |= {web.index for web in lives_on if web not in undone}
    # A value that both sides compute needs its inputs on both sides.
    for _ in producer:
        for atom in producer:
            if _defined(facts, atom)[0].index in consumed:
                consumed |= {w.index for w in _used(facts, loop, atom)}
    shared = [web for web in webs.values() if web not in moving and web.index in consumed]
    doubled = [web for web in moving if web.index in consumed]
    for web in doubled:
        if not can_start(facts, loop, web):
            raise NotAhead(f"`{web.name}` moves and is used by what consumes the tiles")
    alone = [web for web in lives_on if web.index not in consumed]
    rolled_back = [atom for web in alone for atom in producer if _defined(facts, atom)[0] is web]
    guarded = [call for atom in producer for call in unguarded(facts, tail, atom)]
    return RunsAhead(tuple(producer), tuple(shared), tuple(moving), tuple(rolled_back), tuple(guarded), tuple(doubled))


def is_pure(facts: FunctionFacts, value: ast.expr | None) -> bool:
    """Whether computing `value` again, or not at all, makes no difference to memory."""
    for n in ast.walk(value) if value is not None else ():
        if isinstance(n, ast.Call) and isinstance(facts.fact(n), TensorFact):
            callee = callees.callee_of(facts, n)
            if callee is None or callee.row is None or callee.row.kind not in callees.PURE_KINDS:
                return False
        if isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield)):
            return False
    return True


def _used(facts: FunctionFacts, loop: ast.For, node: ast.AST) -> list[Web]:
    """The variables that `node` reads; the index of `loop` has a value of its own ahead."""
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name) and not is_index(facts, loop, n)]
    webs = [w for n in names if (w := facts.webs.of_use.get(n)) is not None]
    return webs + (_defined(facts, node) if isinstance(node, ast.AugAssign) else [])


def _defined(facts: FunctionFacts, node: ast.AST) -> list[Web]:
    out = []
    for s in (n for n in ast.walk(node) if isinstance(n, (ast.stmt, ast.NamedExpr))):
        stored = [n.id for n in ast.walk(s) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
        for name in dict.fromkeys(stored):
            if (web := facts.webs.of_definition.get((s, name))) is not None and web not in out:
                out.append(web)
    return out


def _carried(facts: FunctionFacts, loop: ast.For, web: Web, atoms: list[ast.stmt]) -> bool:
    """Whether an iteration starts with the value that the one before left in `web`."""
    for atom in atoms:
        if web in _used(facts, loop, atom):
            return True
        if web in _defined(facts, atom):
            return not isinstance(atom, (ast.Assign, ast.AnnAssign))
    return False


def _invertible(facts: FunctionFacts, s: ast.stmt, loop: ast.For) -> bool:
    """Whether the move can be undone: an unconditional `x += c` or `x -= c` of an integer or a pointer, `c` the same in every
    iteration. Sums of floats are rounded."""
    if not (isinstance(s, ast.AugAssign) and isinstance(s.op, (ast.Add, ast.Sub)) and s in loop.body):
        return False
    if isinstance(fact := facts.fact(s.value), TensorFact) and not fact.dtype.startswith(("int", "uint")):
        return False
    return not varies(facts, loop, s.value)
