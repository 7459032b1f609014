"""One program of a Gluon kernel, run with tensors as expressions."""
