"""Tensors and integers of a kernel as expressions, and the memory that they pass through."""
