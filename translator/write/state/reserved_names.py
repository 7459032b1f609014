"""Names of the source that the output calls Gluon's modules by.

Variables give way: `gl = p * scale` becomes `gl_ = p * scale`, so that the output keeps `gl.` as everybody writes it. Parameters and what
the file defines keep their names, which callers use; the output's imports give way (`gluonize.output.file.import_aliases`), so
here such names are told apart from those of modules.
"""

from __future__ import annotations

import ast
import types
from typing import TYPE_CHECKING

from gluonize.gluon.names import MODULES, spelled_apart
from gluonize.numbered import numbered
from gluonize.read.text.source_text import SourceText, edit_function
from gluonize.triton_api.jit_functions import JITFunction

if TYPE_CHECKING:
    from gluonize.read.kernels.load import LoadedKernel


def free_module_names(loaded: "LoadedKernel") -> None:
    """Rename such variables in the kernel and in the functions that it reaches, and spell other such names apart, in place."""
    for fn in (loaded.fn, *(helper.value for helper in loaded.helpers)):
        if isinstance(fn, JITFunction) and any(name in fn.src for name in MODULES):
            _free(fn)


def _free(fn: JITFunction) -> None:
    tree = ast.parse(fn.src).body[0]
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    parameters = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    own = {n.id for n in names if isinstance(n.ctx, ast.Store)} & MODULES - parameters
    taken = {n.id for n in names} | parameters
    named = {name: f"{name}_" if f"{name}_" not in taken else numbered(name, taken.__contains__) for name in own}
    others = MODULES.intersection(n.id for n in names) - own
    named |= {n: spelled_apart(n) for n in others if n in parameters or not _is_of_triton(fn.__globals__.get(n))}
    source = SourceText(fn.src)
    edits = [(*source.span(n), named[n.id]) for n in names if n.id in named]
    edits = [(start, end, new) for start, end, new in edits if source.text[start:end].isascii()]
    if edits:
        edit_function(fn, source, edits)


def _is_of_triton(value: object) -> bool:
    """Whether a name of the file means Triton's language, as in `import triton.language as gl`, which the output does without."""
    return isinstance(value, types.ModuleType) and value.__name__.startswith("triton.")
