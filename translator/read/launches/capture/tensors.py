"""What a tensor argument is, whatever library made it: torch, numpy, cupy, or anything with a dtype and a shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gluonize.read.spec.torch_types import TRITON_TYPE

# dtype name of torch and numpy -> signature type
TYPES = TRITON_TYPE | {"bool": "i1"}


@dataclass(frozen=True)
class TensorArgument:
    """Stands in for a tensor where Triton specializes a launch: it asks for `dtype`, `data_ptr` and `ptr_range`.

    shape, strides, storage, offset: in elements. `original` is the tensor itself.
    """

    original: Any
    name: str  # of the dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    storage: int
    offset: int
    address: int
    itemsize: int

    @property
    def dtype(self) -> Any:
        from gluonize.triton_api.language import tl

        return tl.str_to_ty(TYPES[self.name].replace("i1", "u1") if self.name == "bool" else TYPES[self.name], None)

    def data_ptr(self) -> int:
        return self.address

    def ptr_range(self) -> int:
        return self.storage * self.itemsize

    def values(self, whole: bool = False) -> dict:
        """The entry of a launch spec's `values`. whole: of few integers each, not only where they lie: they may be numbers of rows."""
        inside: dict[str, Any] = {
            "dtype": self.name,
            "shape": list(self.shape),
            "stride": list(self.strides),
            "storage": self.storage,
            "offset": self.offset,
        }
        if (found := value_range(self.original, self.name)) is not None:
            inside["range"] = found
        if whole and (integers := few_integers(self.original, self.name)) is not None:
            inside["data"] = integers
        return {"tensor": inside}


def tensor_argument(value: Any) -> TensorArgument | None:
    """The stand-in for a tensor, None for a value that is none, or has a dtype that Triton lacks."""
    if not hasattr(value, "dtype") or not hasattr(value, "shape") or isinstance(value, TensorArgument):
        return None
    name = str(value.dtype).rpartition(".")[2]
    if name not in TYPES:
        return None
    itemsize = int(getattr(value.dtype, "itemsize", 0) or value.element_size())
    shape = tuple(int(size) for size in value.shape)
    strides = _strides(value, shape, itemsize)
    reach = sum((size - 1) * stride for size, stride in zip(shape, strides) if stride > 0) + 1 if all(shape) else 0
    offset = int(value.storage_offset()) if callable(getattr(value, "storage_offset", None)) else 0
    storage = offset + reach
    if callable(getattr(value, "untyped_storage", None)):
        storage = int(value.untyped_storage().size()) // itemsize
    return TensorArgument(value, name, shape, strides, storage, offset, _address(value), itemsize)


def _strides(value: Any, shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in elements: torch says them so, numpy in bytes; a tensor that says nothing is contiguous."""
    if callable(getattr(value, "stride", None)):
        return tuple(int(stride) for stride in value.stride())
    if isinstance(getattr(value, "strides", None), tuple):
        return tuple(int(stride) // itemsize for stride in value.strides)
    # The last dimension varies fastest: each stride is the number of elements in one entry of its dimension.
    return tuple(math.prod(shape[dimension + 1 :]) for dimension in range(len(shape)))


def _address(value: Any) -> int:
    """Where the data starts, in bytes; 0, which is aligned, when nobody says (tensors without data)."""
    if callable(getattr(value, "data_ptr", None)):
        try:
            return int(value.data_ptr())
        except RuntimeError:  # a fake or meta tensor
            return 0
    found = getattr(value, "__array_interface__", None) or getattr(value, "__cuda_array_interface__", None)
    return int(found["data"][0]) if found else 0


def value_range(value: Any, name: str) -> list | None:
    """`[smallest, largest]` of the elements; None for no elements, or some that are not finite (memory nobody wrote)."""
    try:
        low, high = (getattr(value, what)() for what in ("min", "max"))
        low, high = (x.item() if hasattr(x, "item") else x for x in (low, high))
    except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return None
    if name == "bool" or isinstance(low, bool):
        return [int(low), int(high)]
    if isinstance(low, int) and isinstance(high, int):
        return [low, high]
    if not (isinstance(low, float) and math.isfinite(low) and math.isfinite(high)):
        return None
    return [_inward(low, math.ceil), _inward(high, math.floor)]


MOST_INTEGERS = 1024


def few_integers(value: Any, name: str) -> list[int] | None:
    """The elements of a tensor of `MOST_INTEGERS` integers at most, row after row; None for any other."""
    if "int" not in name or math.prod(value.shape) > MOST_INTEGERS:
        return None
    try:
        return [int(x) for x in value.reshape(-1).tolist()]
    except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return None


def _inward(number: float, direction: Any) -> float:
    """Three digits of a number, rounded towards the inside of the range: no value that the program could not have."""
    if number == 0.0:
        return 0.0
    scale = 10.0 ** (2 - math.floor(math.log10(abs(number))))
    return direction(number * scale) / scale
