"""Functions with other names: their own, and those of the globals that they use."""

from __future__ import annotations

import ast
import re

from translator.facts.source_text import SourceText, replace_spans


def rename(text: str, names: dict[str, str]) -> str:
    """The function with the given global names exchanged; a parameter or variable of the same name stays."""
    if all(old == new for old, new in names.items()):
        return text
    source = SourceText(text)
    nodes = list(ast.walk(ast.parse(text)))
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    edits = [
        (*source.span(node), names[node.id])
        for node in nodes
        if isinstance(node, ast.Name) and node.id not in own and names.get(node.id, node.id) != node.id
    ]
    return replace_spans(text, 0, len(text), edits)


def renamed_def(text: str, name: str) -> str:
    return re.sub(r"^def\s+\w+", f"def {name}", text, count=1)
