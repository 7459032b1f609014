"""Triton's own front end and passes: the trace of a kernel, its anchors, its modules at the stages that are read back."""
