"""Launch specs: what a kernel is called with, in Triton's vocabulary."""
