"""Triton's own front end and passes: the typed trace of a kernel, and its modules at the stages that are read back."""
