"""Gluon kernels for NVIDIA GPUs operation by operation, where the target has the same machine: the kernel keeps its structure."""
