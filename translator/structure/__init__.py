"""Gluon kernels for NVIDIA GPUs op by op, where the target has the same machine: the kernel keeps its structure."""
