"""Tensor descriptors: as masked accesses, or by the tensor data mover."""
