"""Whether a program can do the work of several numbers of the grid, one after another, and do what as many programs would.

for tile in range(pid, tiles, programs):     the body of the kernel, with `tile` for its number along the first axis
    kernel_tile(tile, tiles, ...)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gluonize.facts.integers.operations import operation_of
from gluonize.facts.kernel import KernelFacts
from gluonize.facts.programs.numbers import may_wait
from gluonize.trace.front.trace import ConstFact, Frame, node_key


@dataclass(frozen=True)
class Obstacle:
    """What keeps a program to one number: where, why, and what to do."""

    node: ast.AST
    why: str
    help: str


_LEAVE = "leave the choice out: each number has a program of its own"


def single_tile(kernel: KernelFacts) -> Obstacle | None:
    """What keeps the programs of a kernel to one number along the first axis each, None where nothing does."""
    trees = [(frame, ast.parse(frame.fn.src).body[0]) for frame in kernel.trace.frames]
    for frame, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.While) and any(may_wait(frame, n) for n in ast.walk(node)):
                why = "a loop may wait for another program, whose number may be one that this program has later"
                return Obstacle(node, why, _LEAVE)
    (frame, tree), *helpers = trees
    for helper, inner in helpers:
        for node, axis in _asked(helper, inner):
            if axis != 1 and axis != 2:
                why = f"`{helper.fn.__name__}` asks for the number of the program itself"
                return Obstacle(tree, why, "give it the number as an argument")
    return _own_obstacle(frame, tree)


def _own_obstacle(frame: Frame, tree: ast.FunctionDef) -> Obstacle | None:
    """What of the kernel itself is in the way."""
    asked = list(_asked(frame, tree))
    for node, axis in asked:
        if axis is None:
            return Obstacle(node, "the axis is not one number", _LEAVE)
        if axis == 0 and operation_of(node, frame.fact(node.func)).name == "num_programs":
            return Obstacle(
                node, "the kernel deals with any number of programs itself", "launch it with as many as fit"
            )
    numbers = {node for node, axis in asked if axis == 0}
    if not numbers:
        return Obstacle(tree, "it does not ask for its number along the first axis of the grid", _LEAVE)
    for loop in (n for n in ast.walk(tree) if isinstance(n, ast.For)):
        if _begins_at(loop, tree, numbers):
            return Obstacle(loop, "the kernel goes from tile to tile already", "launch it with as many programs as fit")
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and not _ends_a_branch(node, tree):
            why = "the program would end here, with tiles left to do"
            return Obstacle(node, why, "put what follows into a branch instead")
    return None


def _ends_a_branch(node: ast.Return, tree: ast.FunctionDef) -> bool:
    """Whether a return ends the function, or a branch of its block behind which the rest can be the other branch."""
    alone = (s for s in tree.body if isinstance(s, ast.If) and not s.orelse)
    return node is tree.body[-1] or any(node is s.body[-1] for s in alone)


def _asked(frame: Frame, tree: ast.AST) -> Iterator[tuple[ast.Call, int | None]]:
    """The calls that ask for a number or a count of programs, each with its axis; None where that is not one number."""
    for node in ast.walk(tree):
        operation = operation_of(node, frame.fact(node.func)) if isinstance(node, ast.Call) else None
        if operation is None or operation.name not in ("program_id", "num_programs"):
            continue
        facts = {visit.fact for visit in frame.visits[node_key(operation.first)]} if operation.first else set()
        axis = facts.pop() if len(facts) == 1 else None
        yield node, axis.value if isinstance(axis, ConstFact) and isinstance(axis.value, int) else None


def _begins_at(loop: ast.For, tree: ast.AST, numbers: set[ast.Call]) -> bool:
    """Whether a loop over a range begins at the number of the program, and ends elsewhere."""
    if not isinstance(loop.iter, ast.Call) or len(loop.iter.args) < 3:
        return False
    names = {
        target.id
        for s in ast.walk(tree)
        if isinstance(s, ast.Assign) and s.value in numbers
        for target in s.targets
        if isinstance(target, ast.Name)
    }
    first = loop.iter.args[0]
    return first in numbers or isinstance(first, ast.Name) and first.id in names


__all__ = ["Obstacle", "single_tile"]
