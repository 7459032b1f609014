"""The builtins of block pointers: their calls and what these are given."""

from __future__ import annotations

import ast
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.text.moved_lines import file_line
from gluonize.triton_api.jit_functions import JITFunction

PARAMETERS = {
    "make_block_ptr": ("base", "shape", "strides", "offsets", "block_shape", "order"),
    "advance": ("base", "offsets"),
    "load": ("pointer", "mask", "other", "boundary_check", "padding_option", "cache_modifier", "eviction_policy", "volatile"),
    "store": ("pointer", "value", "mask", "boundary_check", "cache_modifier", "eviction_policy"),
}  # fmt: skip


def name_of(node: ast.AST) -> str:
    """The last name of what is called, "" for anything else than a call of a name."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def is_made(node: ast.AST | None) -> bool:
    """Whether an expression makes a block pointer, of a tensor or of another block pointer."""
    return node is not None and name_of(node) in ("make_block_ptr", "advance")


def is_access(node: ast.AST) -> bool:
    return name_of(node) in ("load", "store")


def given(call: ast.Call) -> dict[str, ast.expr]:
    """The arguments of a call of one of these builtins by the names of its parameters; `p.advance(...)` is one of its function."""
    name = name_of(call)
    positional = list(call.args)
    if name == "advance" and len(positional) + len(call.keywords) == 1 and isinstance(call.func, ast.Attribute):
        positional.insert(0, call.func.value)
    return dict(zip(PARAMETERS[name], positional)) | {k.arg: k.value for k in call.keywords if k.arg}


def value_named(fn: JITFunction, node: ast.expr) -> Any:
    """The object that a name, or names with dots, stand for outside of the function; None where it is none."""
    if isinstance(node, ast.Name):
        return fn.__globals__.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(value_named(fn, node.value), node.attr, None)
    return None


def helper_of(fn: JITFunction, call: ast.Call) -> JITFunction | None:
    """The jit function that is called."""
    called = value_named(fn, call.func)
    return called if isinstance(called, JITFunction) else None


def arguments_of(helper: JITFunction, call: ast.Call) -> list[tuple[str, ast.expr]]:
    """The arguments of a call by parameter."""
    names = list(helper.arg_names)
    return [*zip(names, call.args), *((k.arg, k.value) for k in call.keywords if k.arg)]


def refuse(fn: JITFunction, node: ast.AST, message: str, why: str, help: str = "") -> TranslationError:
    """A refusal at a node of the function's text."""
    line, column = file_line(fn, getattr(node, "lineno", 1)), getattr(node, "col_offset", 0) + 1
    help = help or "write it with a tensor of pointers and a mask, or with a tensor descriptor"
    return TranslationError(Diagnostic("block-pointer", message, fn.file_name or "", line, column, why, help))
