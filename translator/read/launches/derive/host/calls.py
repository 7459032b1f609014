"""Methods of tensors and functions of torch on models: what type and shape the result has."""

from __future__ import annotations

import math
from typing import Any

from gluonize.read.evaluate.host_values import HostName
from gluonize.read.launches.derive.host.model import (
    TRITON_TYPE,
    Descriptor,
    Dtype,
    Method,
    Model,
    Shape,
    as_number,
    has_model,
)
from gluonize.read.spec.torch_types import CASTS

_CASTS = CASTS | {"short": "i16", "byte": "u8", "char": "i8"}
_MAKERS = frozenset(
    {"empty", "zeros", "ones", "full", "rand", "randn", "tensor", "arange", "randint", "empty_strided", "as_tensor"}
)
_SAME_SHAPE = frozenset(
    "contiguous clone detach requires_grad_ to cuda cpu fill_ zero_ copy_ abs neg exp log sigmoid relu clamp masked_fill".split()
)
_INTEGER_RESULTS = {
    "argmax": "i64",
    "argmin": "i64",
    "argsort": "i64",
    "nonzero": "i64",
    "bincount": "i64",
    "multinomial": "i64",
}

# What gives values and where they were.
_WITH_INDICES = frozenset({"sort", "topk", "kthvalue", "mode", "cummax", "cummin"})


def dtype_of(value: Any) -> str | Model | None:
    """The element type that a `dtype=` argument asks for: a name, the tensor that it is the type of, or nothing."""
    if isinstance(value, HostName) and value.torch_dtype:
        return TRITON_TYPE.get(value.torch_dtype, "")
    if isinstance(value, Dtype):
        return value.owner
    return None


def made(name: str, kind: str | Model | None, dims: list | None, why: str) -> Model:
    out = Model(name, is_tensor=True, dims=dims, why=why)
    if isinstance(kind, Model):
        out.like = kind
    elif kind:
        out.element = kind
    return out


def call_method(method: Method, args: list[Any], named: dict[str, Any], name: str) -> Any:
    """`owner.method(...)`."""
    owner, what = method.owner, method.name
    if isinstance(owner, Shape):
        return owner.owner.numel() if what == "numel" else Model(name)
    if isinstance(owner, Dtype):
        return Model(name)
    if not isinstance(owner, Model):
        return _plain_method(owner, what, args, named, name)
    if what in ("size", "stride"):
        owner.is_tensor = True
        if not args:
            return Shape(owner) if what == "size" else tuple(owner.strides())
        index = as_number(args[0])
        if not isinstance(index, int):
            return Model(name)
        if what == "size":
            return owner.dim(index, name)
        owner.with_rank(len(owner.dims) if owner.dims is not None else max(2, index + 1 if index >= 0 else -index))
        strides = owner.strides()
        return strides[index] if -len(strides) <= index < len(strides) else 1
    if what in ("numel", "nelement"):
        return owner.numel()
    if what == "dim":
        return owner.rank() or Method(owner, "ndim")
    if what == "is_contiguous":
        return True
    if what == "element_size":
        return 2
    if what in ("is_floating_point", "item", "is_cuda", "data_ptr", "get_device"):
        return Model(name if what != "item" else owner.name)
    return _derived(owner, what, args, named, name)


def _derived(owner: Model, what: str, args: list[Any], named: dict[str, Any], name: str) -> Any:
    """A tensor made of another one."""
    if what.startswith("new_"):
        dims = _dims(args)
        kind = dtype_of(named.get("dtype"))
        untold = named.get("dtype") is not None and kind is None
        return made(name, None if untold else kind or owner, dims, "the host allocates it so")
    if what in _CASTS and not args:
        return made(name, _CASTS[what], owner.dims, "the host converts it")
    if what == "to" or what == "type":
        kinds = [kind for value in (*args, *named.values()) if (kind := dtype_of(value)) is not None]
        return made(name, kinds[0], owner.dims, "the host converts it") if kinds else owner.same(name, owner.dims)
    if what in _INTEGER_RESULTS:
        return made(name, _INTEGER_RESULTS[what], None, "indices")
    if what in _WITH_INDICES:
        return owner.same(name), made(name, "i64", None, "indices")
    if (
        not owner.is_tensor
        and what not in _SAME_SHAPE
        and what not in ("view", "reshape", "flatten", "transpose", "unsqueeze")
    ):
        return Model(name)
    if what in ("view", "reshape", "expand"):
        dims = _dims(args)
        if dims is None or -1 in dims and what == "expand":
            return owner.same(name, None)
        return owner.same(name, _without_minus_one(dims, owner))
    if what == "t":
        return owner.turned(name, None)
    if what in ("transpose", "swapaxes", "permute"):
        return owner.turned(name, order) if (order := _order(owner, what, args)) is not None else owner.same(name)
    if what == "unsqueeze" and owner.dims is not None:
        return owner.same(name, [*owner.dims, 1])
    return owner.same(name, owner.dims if what in _SAME_SHAPE else None)


def _without_minus_one(dims: list[int | None], owner: Model) -> list[int | None]:
    """The sizes of a view: in the place of -1 what is left of the tensor's elements, None where that is not known."""
    known = [size for size in owner.dims or () if size is not None]
    others = [size for size in dims if size != -1]
    left: int | None = None
    if known and len(known) == owner.rank() and None not in others and (per := math.prod(others)):  # type: ignore[arg-type]
        left = math.prod(known) // per
    return [left if size == -1 else size for size in dims]


def _order(owner: Model, what: str, args: list[Any]) -> list[int] | None:
    """The axes of a tensor in the order of a view of it; None where that is not told."""
    given = list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    axes = [as_number(axis) for axis in given]
    if not axes or not all(type(axis) is int for axis in axes):
        return None
    if what == "permute":
        return axes
    rank = len(owner.with_rank(max(2, *(axis + 1 if axis >= 0 else -axis for axis in axes))))
    order = list(range(rank))
    if len(axes) != 2 or not all(-rank <= axis < rank for axis in axes):
        return None
    first, second = axes
    order[first], order[second] = order[second], order[first]
    return order


def describes(function: Any) -> bool:
    """Whether a function makes a tensor descriptor: `TensorDescriptor(x, shape, strides, tile)`, `TensorDescriptor.from_tensor(x, tile)`."""
    name = function.dotted if isinstance(function, HostName) else getattr(function, "__qualname__", "")
    return name.removesuffix(".from_tensor").rpartition(".")[2] == "TensorDescriptor"


def described(args: list[Any], named: dict[str, Any], name: str) -> Any:
    """What a function that `describes` gives."""
    owner = args[0] if args else named.get("tensor", named.get("base"))
    if not isinstance(owner, Model):
        return Model(name)
    owner.is_tensor = True
    tile = named.get("block_shape", args[-1] if len(args) in (2, 4) else None)
    return Descriptor(owner, tile)


def call_torch(function: HostName, args: list[Any], named: dict[str, Any], name: str, where: str) -> Any:
    """`torch.empty(...)` and its like; anything else is not known."""
    module, _, what = function.dotted.rpartition(".")
    if function.dotted.startswith("torch.") and (what in _MAKERS or what.endswith("_like")):
        kind = dtype_of(named.get("dtype"))
        like = args[0] if what.endswith("_like") and args and isinstance(args[0], Model) else None
        untold = named.get("dtype") is not None and kind is None
        if like is not None:
            return made(name, None if untold else kind or like, like.dims, f"the host allocates it so, {where}")
        default = {"arange": "i64", "randint": "i64", "tensor": "", "as_tensor": ""}.get(what, "fp32")
        default = "" if "dtype" in named else default  # one that cannot be told
        return made(name, kind if kind is not None else default, _dims(args), f"the host allocates it so, {where}")
    if what in ("Parameter", "Buffer") and module.startswith("torch.nn") and args:
        return args[0]
    if module in ("torch", "torch.nn.functional"):
        if what in _INTEGER_RESULTS:
            return made(name, _INTEGER_RESULTS[what], None, "indices")
        if what in _WITH_INDICES and args and isinstance(args[0], Model):
            return args[0].same(name), made(name, "i64", None, "indices")
        if what in ("searchsorted", "bucketize"):
            return made(name, "i32" if named.get("out_int32") is True else "i64", None, "indices")
        tensors = [x for x in (args[1:] if what == "where" else args) if isinstance(x, Model) and x.is_tensor]
        if tensors:
            return tensors[0].same(name)
    from gluonize.read.evaluate.host_values import CALL_FACTS

    return CALL_FACTS.get(function.dotted, Model(name))


def _dims(args: list[Any]) -> list | None:
    if len(args) == 1 and isinstance(args[0], Shape):
        return list(args[0].owner.sizes())
    sizes = list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    numbers = [as_number(size) for size in sizes]
    return list(numbers) if numbers and all(isinstance(n, int) and not isinstance(n, bool) for n in numbers) else None


def _plain_method(owner: Any, what: str, args: list[Any], named: dict[str, Any], name: str) -> Any:
    """Methods of dicts, strings and numbers, whose arguments are known."""
    if isinstance(owner, dict) and what == "get" and args and isinstance(args[0], str):
        return owner.get(args[0], args[1] if len(args) > 1 else None)
    if (
        isinstance(owner, (str, int))
        and not has_model(args)
        and what in ("lower", "upper", "startswith", "endswith", "bit_length")
    ):
        return getattr(owner, what)(*args) if not isinstance(owner, bool) and hasattr(owner, what) else Model(name)
    return Model(name)
