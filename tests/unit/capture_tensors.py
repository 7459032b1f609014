"""A tensor as host code has it, where torch is not: what scripts of tests put into descriptors."""

import numpy as np

KINDS = {"float16": np.float16, "float32": np.float32, "int32": np.int32, "uint8": np.uint8, "float8_e4m3fn": np.uint8}


class Kind:
    """`torch.float16` and the like."""

    def __init__(self, name):
        self.name = name
        self.itemsize = np.dtype(KINDS[name]).itemsize
        self.is_floating_point = name.startswith("float")

    def __str__(self):
        return f"torch.{self.name}"


class Tensor:
    """Zeros, or `data`, as a contiguous tensor of a GPU."""

    def __init__(self, name, *shape, data=None):
        self.array = np.zeros(shape, KINDS[name]) if data is None else np.array(data, KINDS[name])
        self.dtype, self.shape = Kind(name), self.array.shape

    def stride(self):
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def data_ptr(self):
        return 4096

    def reshape(self, *shape):
        return self.array.reshape(*shape)

    def min(self):
        return self.array.min()

    def max(self):
        return self.array.max()
