"""Pointers of which nothing is known but what is stored there: they have the type of these values, as the front end found it."""

from __future__ import annotations

import ast
from dataclasses import replace

from gluonize.read.launches.derive.evidence import Evidence
from gluonize.read.launches.derive.proposal.guess import Guess, Proposal
from gluonize.read.launches.derive.proposal.revise import asked
from gluonize.read.launches.derive.proposal.verdict import Judge, Verdict

_SIGNATURE = {"int1": "u1"} | {f"{u}int{bits}": f"{u or 'i'}{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)}


def with_stored_types(
    evidence: Evidence, proposal: Proposal, verdict: Verdict, judge: Judge
) -> tuple[Proposal, Verdict]:
    """An accepted launch whose results have the types that are stored, where that is accepted too; else as it is."""
    types = _stored_types(evidence, verdict)
    changed: dict[str, Guess] = {}
    for name, guess in proposal.arguments.items():
        found = types.get(name, set())
        if guess.stored and len(found) == 1 and guess.kind != f"*{(kind := next(iter(found)))}":
            why = f"{kind} values are stored as they are"
            changed[name] = replace(Guess.pointer(kind, why, guess.confidence), stored=True)
    if not changed:
        return proposal, verdict
    other = proposal.with_guesses(changed)
    again = asked(evidence, other, judge)
    return (other, again) if again.accepted else (proposal, verdict)


def _stored_types(evidence: Evidence, verdict: Verdict) -> dict[str, set[str]]:
    """The element types of what is stored to each pointer, as signatures have them."""
    places = {(source, place): kind for source, place, kind in verdict.stored}
    out: dict[str, set[str]] = {}
    for source, function in evidence.flow.functions.items():
        for node in ast.walk(function.node):
            if isinstance(node, ast.Call) and (key := (source, _key(node))) in places:
                for base in evidence.flow.of(node.args[0] if node.args else None).bases:
                    if not base.loaded:
                        out.setdefault(base.name, set()).add(_SIGNATURE.get(places[key], places[key]))
    return out


def _key(node: ast.Call) -> tuple[str, int, int, int, int]:
    return "Call", node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0
