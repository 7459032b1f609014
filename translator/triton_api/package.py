"""The public package: `triton.cdiv`, `triton.Config`, `triton.compile`, and the identities of what sources mean by `triton.NAME`."""

from __future__ import annotations

from gluonize.triton_api.row import Row, names_of

ROWS = (Row("triton", "triton", "what sources mean by `triton.NAME`, and compiling"),)
__getattr__ = names_of(__name__, ROWS)
