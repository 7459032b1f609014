"""Statements that nothing needs once the tensor data mover fetches a loop's tiles: pointers, masks, and what only they used."""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping

from translator.facts.syntax import arguments_of, target_of
from translator.facts.function import FunctionFacts
from translator.pipeline.ahead import is_pure
from translator.pipeline.loop import PipelinedLoop
from translator.pipeline.strided_tiles import StridedTile
from translator.facts.webs import UnrolledLoop, Web


def unneeded(
    facts: FunctionFacts, pipelined_loops: Mapping[ast.For, PipelinedLoop], pipelined_statements: Container[ast.stmt]
) -> frozenset[ast.stmt]:
    """Assignments whose values were only used for addresses and masks that are not computed any more."""
    gone: set[ast.Name] = set()
    kept: set[int] = set()
    for loop in pipelined_loops.values():
        for load in loop.plan.loads:
            if isinstance(load.tile, StridedTile):
                gone |= {n for a in arguments_of(load.call) for n in ast.walk(a) if isinstance(n, ast.Name)}
                names = [n for node in load.tile.nodes for n in ast.walk(node) if isinstance(n, ast.Name)]
                kept |= {web.index for n in names if (web := facts.webs.of_use.get(n)) is not None}
    if not gone:
        return frozenset()
    blocks = _blocks(facts.tree)
    # A web may go when its definitions do nothing else; it goes when no use is left.
    candidates = {
        w.index: w for w in facts.webs.all if w.index not in kept and _plain(facts, pipelined_statements, w, blocks)
    }
    touched = {web.index for n in gone if (web := facts.webs.of_use.get(n)) is not None}
    grew = True
    while grew:
        inner = {
            i for w in candidates.values() if w.index in touched for d in w.definitions for i in _uses(facts, d.value)
        }
        grew = not inner <= touched
        touched |= inner
    candidates = {i: w for i, w in candidates.items() if i in touched}
    shrank = True
    while shrank:
        statements = {d.node for w in candidates.values() for d in w.definitions}
        within = gone | {n for s in statements for n in ast.walk(s) if isinstance(n, ast.Name)}
        full = [b for b in blocks.values() if all(s in statements for s in b)]
        stay = {
            i
            for i, w in candidates.items()
            if any(n not in within for n, _ in w.uses) or any(d.node in b for d in w.definitions for b in full)
        }
        shrank = bool(stay)
        candidates = {i: w for i, w in candidates.items() if i not in stay}
    return frozenset(d.node for w in candidates.values() for d in w.definitions)


def _uses(facts: FunctionFacts, value: ast.expr | None) -> set[int]:
    names = [n for n in ast.walk(value) if isinstance(n, ast.Name)] if value is not None else []
    return {web.index for n in names if (web := facts.webs.of_use.get(n)) is not None}


def _plain(
    facts: FunctionFacts, pipelined_statements: Container[ast.stmt], web: Web, blocks: dict[ast.stmt, list[ast.stmt]]
) -> bool:
    """Whether all definitions are assignments to this name alone, on lines of their own, without effects."""
    for d in web.definitions:
        s = d.node
        if not isinstance(s, (ast.Assign, ast.AugAssign)) or s not in blocks or s in pipelined_statements:
            return False
        target = target_of(s)
        if not isinstance(target, ast.Name) or not is_pure(facts, s.value) or getattr(s, "iteration", None) is not None:
            return False
        before = facts.source.lines[s.lineno - 1][: s.col_offset].strip()
        after = facts.source.lines[s.end_lineno - 1].encode()[s.end_col_offset :].decode().strip()
        if before or (after and not after.startswith("#")):
            return False
    return bool(web.uses)


def _blocks(tree: ast.AST) -> dict[ast.stmt, list[ast.stmt]]:
    """Each statement with the block it stands in; loops that are written out are left out."""
    out: dict[ast.stmt, list[ast.stmt]] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, UnrolledLoop):
            return
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                for s in block:
                    out[s] = block
                    visit(s)

    visit(tree)
    return out
