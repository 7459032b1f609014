"""Cycles of a compiled kernel, predicted from its assembly: all waves of a compute unit walk their instruction streams."""
