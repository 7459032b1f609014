"""The MLIR bindings. Their passes are run by `translator/trace/passes/triton_passes.py` and `gluon_source.py` alone."""

from __future__ import annotations

from gluonize.triton_api.row import Row, names_of

_LIB = "triton._C.libtriton"
ROWS = (
    Row("ir", f"{_LIB}:ir", "contexts, modules and builders"),
    Row("passes", f"{_LIB}:passes", "the passes of all backends"),
    Row("amd", f"{_LIB}:amd", "the AMD backend's passes and dialects"),
    Row("nvidia", f"{_LIB}:nvidia", "dialects that Triton's own pipeline of passes loads"),
    Row("gluon_ir", f"{_LIB}:gluon_ir", "the builder that knows Gluon's layouts"),
)
__getattr__ = names_of(__name__, ROWS)
