"""The layouts of a function as named constants at the top of its body."""

from __future__ import annotations

import ast

import black

from translator.layout.names import definition
from translator.layout.parametric import Entry, EntryBases
from translator.rewrite.emitted import LINE_LENGTH, LaidOut
from translator.ttgir.layouts import Blocked, DotOperand, Layout, Linear, Mfma, SharedLayout, Wmma


def with_constants(function: LaidOut) -> str:
    """The text with the layout constants at the top of the body."""
    text, constants = function.text, function.constants
    if not constants:
        return text
    names = {layout: name for name, layout in constants}
    tree = ast.parse(text).body[0]
    lines = text.splitlines(keepends=True)
    at = _body_start(tree, lines)
    indent = " " * tree.body[0].col_offset
    block: list[str] = []
    for name, layout in constants:
        comment = describe(layout)
        if comment:
            block.append(f"# {comment}\n")
        block.append(definition(name, layout, names) + "\n")
    block += [f"{line}\n" for line in function.added]
    formatted = black.format_str("".join(block), mode=black.Mode(line_length=LINE_LENGTH - len(indent)))
    inserted = "".join(indent + line if line.strip() else line for line in formatted.splitlines(keepends=True))
    following = "".join(lines[at:])
    gap = "" if following.startswith("\n") else "\n"
    return "".join(lines[:at]) + inserted + gap + following


def _body_start(tree: ast.FunctionDef, lines: list[str]) -> int:
    """Index of the line before which constants go: after the signature and the docstring."""
    first = tree.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.end_lineno
    at = first.lineno - 1
    while at > 0 and (not lines[at - 1].strip() or lines[at - 1].lstrip().startswith("#")):
        at -= 1
    return at


def describe(layout: Layout) -> str:
    """One line for the reader: what the layout spreads over what."""
    if isinstance(layout, SharedLayout):
        return layout.described()
    if isinstance(layout, Mfma):
        shape, warps = "x".join(map(str, layout.instr_shape)), " x ".join(map(str, layout.warps_per_cta))
        return f"Matrix cores: {shape} MFMA, warps {warps} over the tile."
    if isinstance(layout, Wmma):
        return f"Matrix cores: {'x'.join(map(str, layout.instr_shape))} WMMA."
    if isinstance(layout, DotOperand):
        return ""
    if isinstance(layout, Blocked):
        fastest = layout.order[0]
        n = layout.size_per_thread[fastest]
        where = f" along dimension {fastest}" if layout.rank > 1 else ""
        if isinstance(n, Entry):
            return f"Consecutive elements per lane{where}, as many as there are and a load takes."
        return f"{n} consecutive element{'s' if n > 1 else ''} per lane{where}."
    if isinstance(layout, Linear):
        if isinstance(layout.register, EntryBases):
            return ""
        n = 1
        fastest = next((i for i, x in enumerate(layout.register[0]) if x), 0) if layout.register else 0
        for basis in layout.register:
            if basis[fastest] == n and sum(basis) == n:
                n *= 2
        where = f" along dimension {fastest}" if layout.rank > 1 else ""
        return f"{n} consecutive element{'s' if n > 1 else ''} per lane{where}."
    return ""
