"""The commands that run kernels."""
