"""Names of Gluon's modules that the file means something else by: the output's own import gives way.

gl = 3                                                        gl = 3
from triton.experimental.gluon import language as gl    ->    from triton.experimental.gluon import language as gl_
x = gl.arange(0, 16, layout=rows)                             x = gl_.arange(0, 16, layout=rows)

Gluon's modules are only ever asked for an attribute, so a bare `gl` in a kernel stays what the author means by it.
"""

from __future__ import annotations

import ast

from translator.numbered import numbered
from translator.rewrite.file_text import FileText

_GLUON = "triton.experimental"


def with_aliases(text: str, ours_alone: bool = False) -> str:
    """The text of a whole output file, in which each name of the top level and of a parameter means one thing.

    ours_alone: what stands outside of functions was written for the output: `limit = gl.constexpr(3)` asks Gluon's module.
    """
    file = FileText.of_output(text)
    ours = _imports(file)
    parameters = _parameters(file)
    taken = {name for name in ours if name in parameters or _bound_otherwise(file, name)}
    if not taken:
        return text
    every = file.bound_anywhere | {n.id for n in ast.walk(file.tree) if isinstance(n, ast.Name)}
    aliases = {name: numbered(f"{name}_", every.__contains__) for name in sorted(taken)}
    edits = []
    for name, (statement, alias) in ((name, ours[name]) for name in aliases):
        imported = f"from {statement.module} import {alias.name} as {aliases[name]}"
        edits.append((*file.span(statement), imported))
    edits += [(*file.span(base), aliases[base.id]) for base in _modules_used(file, ours_alone) if base.id in aliases]
    return file.edited(edits)


def _imports(file: FileText) -> dict[str, tuple[ast.ImportFrom, ast.alias]]:
    """What the output itself imports, one name a line, by name."""
    found = {}
    for s in file.tree.body:
        if isinstance(s, ast.ImportFrom) and (s.module or "").startswith(_GLUON) and len(s.names) == 1:
            found[s.names[0].asname or s.names[0].name] = (s, s.names[0])
    return found


def _bound_otherwise(file: FileText, name: str) -> bool:
    """Whether the file's top level gives `name` another meaning than the import does."""
    for node in file.top_level():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
            return True
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
            return True
        if isinstance(node, ast.Import) and any((a.asname or a.name.split(".")[0]) == name for a in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(_GLUON):
            if any((a.asname or a.name) == name for a in node.names):
                return True
    return False


def _gluon_functions(file: FileText) -> list[ast.FunctionDef]:
    return [
        n for n in ast.walk(file.tree) if isinstance(n, ast.FunctionDef) and any(_is_gluon(d) for d in n.decorator_list)
    ]


def _is_gluon(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "gluon"


def _parameters(file: FileText) -> set[str]:
    return {a.arg for f in _gluon_functions(file) for a in ast.walk(f.args) if isinstance(a, ast.arg)}


def _modules_used(file: FileText, ours_alone: bool) -> list[ast.Name]:
    """The names of Gluon's modules where functions of the output ask them for something, decorators included."""
    nodes = [n for function in _gluon_functions(file) for n in ast.walk(function)]
    if ours_alone:
        top = file.top_level()
        nodes += [*top, *(n for node in top for d in getattr(node, "decorator_list", ()) for n in ast.walk(d))]
    asked = (n.value for n in nodes if isinstance(n, ast.Attribute))
    return list(dict.fromkeys(n for n in asked if isinstance(n, ast.Name)))


__all__ = ["with_aliases"]
