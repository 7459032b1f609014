"""A request as it is given: files, names, constants, kernels and launches. Nothing of a file is executed."""
