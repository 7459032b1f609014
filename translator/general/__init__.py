"""Kernels for more launches than those given: layouts as functions of tile sizes and of the number of warps."""
