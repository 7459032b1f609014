"""Variables of the source that are called what the output calls Gluon's modules: `gl = p * scale` becomes `gl_ = p * scale`.

The output keeps `gl.` as everybody writes it. Parameters and functions keep their names, which callers use: those are refused.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from triton.runtime.jit import JITFunction

from translator.diagnostics import Diagnostic, TranslationError
from translator.numbered import numbered
from translator.facts.source_text import SourceText, replace_spans
from translator.source.moved_lines import file_line

if TYPE_CHECKING:
    from translator.source.load import LoadedKernel

# What output files import (translator.rewrite.prelude, translator.rewrite.unit).
MODULES = frozenset(
    ("gl", "gluon", "cdna3", "cdna4", "cdna5", "rdna3", "rdna4", "async_copy", "tdm", "mbarrier", "hint")
)
# Imported by every output file.
ALWAYS = ("gl", "gluon")


def free_module_names(loaded: "LoadedKernel") -> None:
    """Rename such variables in the kernel and in the functions that it reaches, in place.

    Raises: TranslationError for a parameter or a function of such a name.
    """
    for fn in (loaded.fn, *(helper.value for helper in loaded.helpers)):
        if isinstance(fn, JITFunction) and any(name in fn.src for name in MODULES):
            _free(fn, loaded.path)


def _free(fn: JITFunction, path: str) -> None:
    tree = ast.parse(fn.src).body[0]
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    parameters = [n for n in ast.walk(tree) if isinstance(n, ast.arg)]
    for parameter in parameters:
        if parameter.arg in ALWAYS:
            raise _refused(fn, parameter, path, f"parameter `{parameter.arg}`")
    own = {n.id for n in names if isinstance(n.ctx, ast.Store)} & MODULES - {a.arg for a in parameters}
    for name in names:
        if name.id in ALWAYS and name.id not in own and isinstance(fn.__globals__.get(name.id), JITFunction):
            raise _refused(fn, name, path, f"function `{name.id}`")
    if not own:
        return
    source, taken = SourceText(fn.src), {n.id for n in names} | {a.arg for a in parameters}
    renamed = {name: f"{name}_" if f"{name}_" not in taken else numbered(name, taken.__contains__) for name in own}
    edits = [(*source.span(n), renamed[n.id]) for n in names if n.id in renamed]
    fn._unsafe_update_src(replace_spans(source.text, 0, len(source.text), edits))


def _refused(fn: Any, node: ast.AST, path: str, what: str) -> TranslationError:
    name = what.split("`")[1]
    return TranslationError(
        Diagnostic(
            "name-taken",
            f"the {what} has the name of a module of Gluon",
            fn.file_name if hasattr(fn, "file_name") and fn.file_name else path,
            file_line(fn, node.lineno),
            node.col_offset + 1,
            f"every output file imports `{name}`",
            "give it another name",
        )
    )
