"""Launches that code generators leave to a function that is given: they are read as the launches that they are.

    def matmul(x, y, *, _launcher=_default_launcher):          # from helion.runtime import default_launcher as _default_launcher
        _launcher(_helion_matmul, (grid,), x, y, num_warps=4)   ->   _helion_matmul[(grid,)](x, y, num_warps=4)

Only the tree that is read is changed: the text, and what becomes of it, have the author's call.
"""

from __future__ import annotations

import ast

# Functions that launch the kernel that is their first argument with the grid that is their second one.
LAUNCHERS = {"helion.runtime": frozenset({"default_launcher"})}


def with_launches(tree: ast.Module) -> ast.Module:
    """The tree of a file with its launchers' calls as launches, in place."""
    launchers = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
        if alias.name in LAUNCHERS.get(node.module or "", ())
    }
    if launchers:
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            known = launchers | _defaulting_to(function.args, launchers)
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                if isinstance(call.func, ast.Name) and call.func.id in known and _has_kernel(call):
                    kernel, grid, *call.args = call.args
                    call.func = ast.copy_location(ast.Subscript(kernel, grid, ast.Load()), call.func)
    return tree


def _defaulting_to(args: ast.arguments, names: set[str]) -> set[str]:
    """The parameters whose default is one of the names."""
    positional = [*args.posonlyargs, *args.args]
    pairs = [*zip(reversed(positional), reversed(args.defaults)), *zip(args.kwonlyargs, args.kw_defaults)]
    return {arg.arg for arg, default in pairs if isinstance(default, ast.Name) and default.id in names}


def _has_kernel(call: ast.Call) -> bool:
    return len(call.args) > 1 and isinstance(call.args[0], ast.Name) and not isinstance(call.args[1], ast.Starred)


__all__ = ["LAUNCHERS", "with_launches"]
