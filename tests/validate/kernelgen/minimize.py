"""Make a failing kernel smaller: statements, then masks and arguments go, as long as it still fails in the same way."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from dataclasses import replace

from kernelgen.draw import HEAD, RandomKernel

MOST = 150  # kernels tried


def minimized(kernel: RandomKernel, fails: Callable[[RandomKernel], bool]) -> RandomKernel:
    """The smallest kernel found. `fails` says whether one shows the same fault; it is true of `kernel`."""
    tried = 0
    progress = True
    while progress and tried < MOST:
        progress = False
        for change in _changes(kernel.text):
            tried += 1
            smaller = replace(kernel, text=change)
            if fails(smaller):
                kernel, progress = smaller, True
                break
            if tried >= MOST:
                break
    return kernel


def _changes(text: str):
    """Texts with one thing less, large things first."""
    tree = ast.parse(text)
    places = [(len(ast.unparse(s)), path) for path, s in _statements(tree)]
    for _, path in sorted(places, key=lambda place: -place[0]):
        for edit in (_dropped, _opened, _else_dropped):
            if (changed := edited(tree, path, edit)) is not None:
                yield changed
    for number in range(sum(isinstance(n, ast.Call) and bool(n.keywords) for n in ast.walk(tree))):
        yield _without_keywords(tree, number)


def _statements(tree: ast.Module):
    """((function, field, index, ...), statement) of every statement in the functions."""

    def inside(node, path):
        for name in ("body", "orelse"):
            for i, statement in enumerate(getattr(node, name, None) or []):
                yield (*path, name, i), statement
                yield from inside(statement, (*path, name, i))

    for i, function in enumerate(tree.body):
        if isinstance(function, ast.FunctionDef):
            yield from inside(function, (i,))


def edited(tree: ast.Module, path: tuple, edit: Callable) -> str | None:
    """The text after `edit(list of statements, index)` at the path; None where the edit does not apply."""
    tree = copy.deepcopy(tree)
    node = tree.body[path[0]]
    steps = list(zip(path[1::2], path[2::2]))
    for name, i in steps[:-1]:
        node = getattr(node, name)[i]
    name, i = steps[-1]
    statements = getattr(node, name)
    if not edit(statements, i):
        return None
    if not statements and name == "body":
        statements.append(ast.Pass())
    return _text(tree)


def _text(tree: ast.Module) -> str:
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    return HEAD + "\n\n".join(ast.unparse(ast.fix_missing_locations(n)) + "\n" for n in functions)


def _dropped(statements: list, i: int) -> bool:
    if isinstance(statements[i], (ast.Pass, ast.Return)):
        return False
    del statements[i]
    return True


def _opened(statements: list, i: int) -> bool:
    """A compound statement becomes its body."""
    if not isinstance(statements[i], (ast.If, ast.For, ast.While)):
        return False
    statements[i : i + 1] = statements[i].body
    return True


def _else_dropped(statements: list, i: int) -> bool:
    if not getattr(statements[i], "orelse", None):
        return False
    statements[i].orelse = []
    return True


def _without_keywords(tree: ast.Module, number: int) -> str:
    tree = copy.deepcopy(tree)
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.keywords]
    calls[number].keywords = []
    return _text(tree)
