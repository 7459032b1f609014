"""Descriptors of tensors that host code makes."""

from __future__ import annotations

from gluonize.triton_api.row import Row, names_of

ROWS = (
    Row("TensorDescriptor", "triton.tools.tensor_descriptor:TensorDescriptor", "descriptors of Triton kernels"),
    Row("cdna5", "triton.experimental.gluon.amd.cdna5", "descriptors of Gluon kernels for AMD GPUs"),
    Row("hopper", "triton.experimental.gluon.nvidia.hopper", "descriptors of Gluon kernels for NVIDIA GPUs"),
)
__getattr__ = names_of(__name__, ROWS)
