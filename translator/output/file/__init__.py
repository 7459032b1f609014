"""The author's file with its translated kernels in place."""
