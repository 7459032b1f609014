"""Autotuning hooks that give a descriptor its block shape, in a file whose kernel takes `(base, shape, strides)` instead.

    nargs["a_desc"].block_shape = [block_m, block_k]
    -> if not isinstance(nargs["a_desc"], tuple):
           nargs["a_desc"].block_shape = [block_m, block_k]

A tuple has no block shape: the translated kernel has it from its own constants. The guard keeps the hook right for kernels
of the file that stay Triton.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from translator.rewrite.kernel_family import KernelVersion
from translator.rewrite.file_text import FileText


def hook_edits(file: FileText, versions: Sequence[KernelVersion]) -> list[tuple[int, int, str]]:
    """Edits that guard the assignments to `block_shape` in the file's `pre_hook` functions."""
    tuples = {name for version in versions for name in version.emitted.record.descriptor_tuples}
    if not tuples:
        return []
    edits = []
    for function in _hooks(file.tree):
        for body in _bodies(function):
            for statement in body:
                target = _described(statement, tuples)
                if target is not None:
                    edits += _guarded(file, statement, target)
    return edits


def _hooks(tree: ast.Module) -> list[ast.FunctionDef]:
    """Functions that are mentioned as a `pre_hook`, or whose result is."""
    mentioned = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "pre_hook"
        for name in ast.walk(node.value)
        if isinstance(name, ast.Name)
    }
    found: dict[int, ast.FunctionDef] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in mentioned:
            found |= {inner.lineno: inner for inner in ast.walk(node) if isinstance(inner, ast.FunctionDef)}
    return [found[line] for line in sorted(found)]


def _bodies(function: ast.FunctionDef) -> list[list[ast.stmt]]:
    """The blocks of a function, without those of functions in it."""
    out, todo = [], [function.body]
    while todo:
        body = todo.pop()
        out.append(body)
        for statement in body:
            if not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                inner = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
                todo += [*inner, *(handler.body for handler in getattr(statement, "handlers", []))]
    return out


def _described(statement: ast.stmt, tuples: set[str]) -> ast.expr | None:
    """The descriptor of `nargs["name"].block_shape = ...`; of `nargs[name]` with any name that is not a constant."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    target = target.value if isinstance(target, ast.Subscript) else target  # `.block_shape[0] = ...`
    if not isinstance(target, ast.Attribute) or target.attr != "block_shape":
        return None
    key = target.value.slice if isinstance(target.value, ast.Subscript) else None
    return target.value if not isinstance(key, ast.Constant) or key.value in tuples else None


def _guarded(file: FileText, statement: ast.stmt, target: ast.expr) -> list[tuple[int, int, str]]:
    start, _ = file.span(statement)
    indent = file.text[file.starts[statement.lineno - 1] : start]
    if indent.strip():  # after a colon or a semicolon there is no place for a block
        return []
    first, last = file.span(target)
    guard = f"if not isinstance({file.text[first:last]}, tuple):\n{indent}    "
    inner = [(file.starts[n], file.starts[n], "    ") for n in range(statement.lineno, statement.end_lineno or 0)]
    return [(start, start, guard), *inner]
