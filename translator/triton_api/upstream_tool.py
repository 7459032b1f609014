"""Triton's own translator to Gluon, which outputs are compared with."""

from __future__ import annotations

from gluonize.triton_api.row import Row, names_of

_TOOL = "triton.tools.triton_to_gluon_translator"
ROWS = (
    Row("TranslatorTarget", f"{_TOOL}.target:TranslatorTarget", "the targets that it knows"),
    Row("convert_triton_to_gluon", f"{_TOOL}.translator:convert_triton_to_gluon", "its translation"),
)
__getattr__ = names_of(__name__, ROWS)
