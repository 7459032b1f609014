"""Names of the author's that Gluon's modules have too: `gl.to(tl.float32)` of a parameter `gl`, beside `gl.load(...)` of the output's.

While a function is text, such a name of the author's stands in letters that Python reads as the same name (PEP 3131: identifiers are compared
in the normal form NFKC), so what asks its syntax, its launch or its trace sees no difference. Concrete trees have other means
(`gluonize.gluon.trees.author_names`).

    x = gl.to(tl.float32)    ->    x = ｇｌ.to(gl.float32)    ->    x = gl.to(gl_.float32)
"""

from __future__ import annotations

import unicodedata

from gluonize.rules import gluon

# What output files import (gluonize.write.contracts.prelude, gluonize.write.state.unit), but for those whose name kernels have for something else.
MODULES = frozenset(gluon.MODULES) - {"amd", "cluster"}
_WIDE = {ord(c): ord(c) + 0xFEE0 for c in "abcdefghijklmnopqrstuvwxyz0123456789"}  # full-width forms
_SPELLED = {name: name.translate(_WIDE) for name in MODULES}


def spelled_apart(name: str) -> str:
    """A variable, parameter or function of the author's for the text of a function: the same to Python, but no module's name."""
    return _SPELLED.get(name, name)


def plain(name: str) -> str:
    """A name in the letters in which Python compares it."""
    return name if name.isascii() else unicodedata.normalize("NFKC", name)


__all__ = ["MODULES", "plain", "spelled_apart"]
