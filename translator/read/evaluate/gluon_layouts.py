"""Gluon layouts from their `repr`, as launch specs write them; read as data, never evaluated."""

from __future__ import annotations

import ast
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.text.parsed import parsed_text


def layout_of(text: str) -> Any:
    """The layout that prints as `text`. Raises: TranslationError `spec-value`."""
    try:
        return _built(parsed_text(text, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, AssertionError) as error:
        raise TranslationError(Diagnostic("spec-value", f"{text!r} is not a Gluon layout", why=str(error))) from None


def _classes() -> dict[str, Any]:
    """The layout classes of Gluon by name, those of every vendor."""
    from gluonize.triton_api.gluon_language import _layouts, amd, amd_layouts, blackwell, mbarrier

    found: dict[str, Any] = {}
    for module in (_layouts, amd, amd_layouts, blackwell, mbarrier):
        found |= {name: value for name, value in vars(module).items() if isinstance(value, type) and "Layout" in name}
    return found


def _built(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        made = _classes().get(node.func.id)
        if made is None:
            raise ValueError(f"there is no layout {node.func.id}")
        return made(*map(_built, node.args), **{k.arg: _built(k.value) for k in node.keywords if k.arg})
    if isinstance(node, (ast.List, ast.Tuple)):
        items = [_built(item) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    return ast.literal_eval(node)
