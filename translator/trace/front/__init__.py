"""Triton's front end: the type of every expression of a kernel, and an identity for every operation."""
