"""Kernels that are Gluon already, as the Triton kernels that they compute: what they do, without how."""
