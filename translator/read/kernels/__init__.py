"""The kernels of a file, ready to be traced."""
