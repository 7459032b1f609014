"""`triton.language` and what is behind it."""

from __future__ import annotations

from gluonize.triton_api.row import Row, names_of

_CORE = "triton.language.core"
ROWS = (
    Row("tl", "triton.language", "builtins by identity, element types"),
    Row("core", _CORE, "types of the language, aggregates, the mark of builtins"),
    Row("base_value", f"{_CORE}:base_value", "what the code generator gives an expression that is no constant"),
    Row("constexpr", f"{_CORE}:constexpr", "compile-time values"),
    Row(
        "tensor_descriptor_base",
        f"{_CORE}:tensor_descriptor_base",
        "methods of descriptors, which its functions are called for",
    ),
    Row("libdevice", "triton.language.extra.libdevice", "functions of the device library, by identity"),
    Row("of_amd", "triton.language.extra.hip.libdevice", "which of them AMD's library has"),
)
__getattr__ = names_of(__name__, ROWS)
