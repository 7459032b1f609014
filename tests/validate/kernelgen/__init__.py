"""Kernels with their launches made from a number: `kernelgen.kernels.kernel_of(seed)`; the same number gives the same kernel for ever."""
