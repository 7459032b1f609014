"""Files as they are: kernels, constants, launches, host values. Nothing of them is executed."""
