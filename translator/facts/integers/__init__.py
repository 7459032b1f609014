"""Integers without a kernel: ranges, operations, polynomials, and bounds that the host works out."""
