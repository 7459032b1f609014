"""`triton.language` and what is behind it."""

from __future__ import annotations

from gluonize.triton_api.row import Row, names_of

_CORE = "triton.language.core"
ROWS = (
    Row("tl", "triton.language", "builtins by identity, element types"),
    Row("core", _CORE, "types of the language, aggregates, the mark of builtins"),
    Row("base_value", f"{_CORE}:base_value", "what the code generator gives an expression that is no constant"),
    Row("constexpr", f"{_CORE}:constexpr", "compile-time values"),
)
__getattr__ = names_of(__name__, ROWS)
