"""Host code that launches a kernel which was chosen to be a cluster: each launch says how many workgroups a program has.

kernel[grid](a, b, num_warps=4)       ->  kernel[grid](a, b, num_warps=4, num_ctas=2)
triton.Config({"B": 64}, num_warps=8) ->  triton.Config({"B": 64}, num_warps=8, num_ctas=2)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from translator.rewrite.file_text import FileText

_OPTION = "num_ctas"
Edit = tuple[int, int, str]


def launch_edits(file: FileText, clusters: Mapping[str, int]) -> tuple[list[Edit], list[str]]:
    """Edits of the launches of kernels, by name with their workgroups, and notes on those of which the file shows no launch.

    An autotuned kernel has the number in its configurations, whatever its launches say.
    """
    edits: list[Edit] = []
    notes: list[str] = []
    for name, count in clusters.items():
        calls = list(_configurations(file.tree, name)) or list(_launches(file.tree, name))
        edits += [edit for call in calls for edit in _with_count(file, call, count)]
        if not calls:
            notes.append(f"launch {name} with {_OPTION}={count}: this file shows none of its launches")
    return edits, notes


def _launches(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    """`name[grid](...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            if isinstance(node.func.value, ast.Name) and node.func.value.id == name:
                yield node


def _configurations(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    """`Config(...)` in the decorators of the function `name`, or in the list or function that one of them names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            for decorator in node.decorator_list:
                yield from _configs_in(decorator)
                for word in (n.id for n in ast.walk(decorator) if isinstance(n, ast.Name)):
                    yield from (call for s in tree.body if _binds(s, word) for call in _configs_in(s))


def _configs_in(node: ast.AST) -> Iterator[ast.Call]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and ast.unparse(inner.func).rpartition(".")[2] == "Config":
            yield inner


def _binds(statement: ast.stmt, word: str) -> bool:
    if isinstance(statement, ast.FunctionDef):
        return statement.name == word
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == word for target in targets)


def _with_count(file: FileText, call: ast.Call, count: int) -> list[Edit]:
    given = next((k for k in call.keywords if k.arg == _OPTION), None)
    if given is not None:
        return [(*file.span(given.value), str(count))]
    arguments = [*call.args, *(k.value for k in call.keywords)]
    if not arguments:
        return []
    end = max(file.span(argument)[1] for argument in arguments)
    return [(end, end, f", {_OPTION}={count}")]


__all__ = ["launch_edits"]
