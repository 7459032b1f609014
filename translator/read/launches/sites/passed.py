"""What a launch passes by position and by name: the kernel's arguments, and the options of the launch."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable


def passed(
    call: ast.Call, positional: Iterable[str], every: Container[str]
) -> tuple[dict[str, ast.expr], dict[str, ast.expr]]:
    """(arguments, options) of a call by name; positional: the parameters in order, every: with those that only names give.

    What is spread (`*rest`, `**options`) and what stands behind it is left out.
    """
    arguments: dict[str, ast.expr] = {}
    for name, value in zip(positional, call.args):
        if isinstance(value, ast.Starred):
            break
        arguments[name] = value
    keywords = {k.arg: k.value for k in call.keywords if k.arg is not None}
    arguments |= {name: value for name, value in keywords.items() if name in every}
    return arguments, {name: value for name, value in keywords.items() if name not in every}
