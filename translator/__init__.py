"""gluonize: Triton kernels to explicit Gluon for AMD GPUs."""

__version__ = "0.1.0"
