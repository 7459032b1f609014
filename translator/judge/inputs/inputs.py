"""What the arguments of a launch hold: from the launch spec's `values`, the same numbers every time.

Floats are standard normal, or uniform within `range`; integers are uniform within `range` (both ends included) or the `data`
listed. Storage that a tensor's shape does not reach is filled too, with NaN for floats, as far as `BEHIND` items; a tensor in pages
(`large`) repeats `PATTERN` such values everywhere. Variants of a launch have other sizes: runtime integers that are the extent of some tensor are shrunk, so that masks cut and loops make other
trip counts.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gluonize.judge.machine.dtypes import ELEMENTS, FLOAT8, SIGNATURE, decode, encode, held, rounded, stored
from gluonize.judge.machine.hazards import NotRunnable
from gluonize.judge.machine.memory.large import FARTHEST, base_of, in_pages, items_held, items_of, storage_of
from gluonize.judge.machine.memory.sparse import Pages
from gluonize.judge.machine.memory.tensor_descriptors import PixelBox
from gluonize.read.spec.launch import LaunchSpec


@dataclass(frozen=True)
class Tensor:
    """A tensor argument: `data` is its storage in stored form, less the last `unheld` items; the pointer is at element `offset`.

    pages: the storage, where it is larger than what can be held; `data` are then some of its values.
    """

    name: str
    element: str
    data: np.ndarray
    offset: int = 0
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    unheld: int = 0
    pages: Pages | None = None

    @property
    def items(self) -> int:
        """Items of the storage, less those that are not held."""
        return self.data.size if self.pages is None else self.pages.extent // self.data.itemsize

    @property
    def storage(self) -> int:
        """Bytes of the storage."""
        return (self.items + self.unheld) * self.data.itemsize

    def refilled(self, data: np.ndarray) -> Tensor:
        """The tensor with other values, as many as `data` has."""
        return replace(self, data=data, pages=None if self.pages is None else Pages(self.pages.extent, data))


@dataclass(frozen=True)
class DescriptorArgument:
    """A host-side tensor descriptor."""

    base: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]
    padding: float = 0.0
    box: PixelBox | None = None


@dataclass(frozen=True)
class Inputs:
    """All arguments by name; `variant` says how they differ from the launch, "" for the launch itself.

    grid: () for that of the launch. programs: some that have to be run, whichever others are. shares: two arguments are one
    tensor or views of one storage, which says something only where the source does not depend on the order of its accesses.
    left_out: arguments that the launch leaves to the defaults of the kernel, which are their values here. brief: the first and
    the last program are enough, and the source may not take many more operations than in the launch as given.
    """

    arguments: dict[str, Any] = field(hash=False)
    variant: str = ""
    grid: tuple[int, ...] = ()
    programs: tuple[int, ...] = ()
    shares: bool = False
    left_out: tuple[str, ...] = ()
    brief: bool = False

    def tensors(self) -> list[Tensor]:
        """Each tensor once, though several arguments may be one tensor."""
        out = []
        for value in _leaves(list(self.arguments.values())):
            if isinstance(value, Tensor):
                out.append(value)
            elif isinstance(value, DescriptorArgument):
                out.append(value.base)
        return list({id(tensor): tensor for tensor in out}.values())

    def storages(self) -> list[list[Tensor]]:
        """The tensors, those together that are views of one storage: that have one array as their data."""
        out: dict[int, list[Tensor]] = {}
        for tensor in self.tensors():
            out.setdefault(id(tensor.data), []).append(tensor)
        return list(out.values())


def _leaves(value):
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


PATTERN = 1 << 16  # values that a tensor in pages repeats


@dataclass(frozen=True)
class _Maker:
    """What makes the values of a launch. scale: of random floats. large: ids of the tensors that are held in pages."""

    rng: np.random.Generator
    scale: float
    large: set[int]


def make_inputs(spec: LaunchSpec, scale: float = 1.0, paged: bool = True) -> Inputs:
    """Arguments of the launch. `scale` multiplies random floats. paged: whether large tensors may be held in pages.

    Raises: NotRunnable when a value is not given, or tensors are too large.
    """
    maker = _Maker(np.random.default_rng(zlib.crc32(spec.id.encode())), scale, in_pages(spec, paged))
    arguments = {}
    for name, kind in spec.signature.items():
        if kind == "constexpr":
            continue
        if name not in spec.values:
            raise NotRunnable("launch", f"the launch spec has no value for {name}")
        arguments[name] = _argument(name, spec.values[name], kind, maker)
    return Inputs(arguments)


def _pixel_box(descriptor: dict) -> PixelBox | None:
    """Where a descriptor of images takes its pixels, None of one of tiles."""
    if "pixel_box_lower_corner" not in descriptor:
        return None
    steps = descriptor.get("element_strides") or [1] * len(descriptor["shape"])
    corners = (tuple(descriptor[f"pixel_box_{name}_corner"]) for name in ("lower", "upper"))
    return PixelBox(*corners, tuple(steps[1:-1]))


def _argument(name: str, value, kind, maker: _Maker):
    if isinstance(kind, (list, tuple)):
        items = items_of(value) if isinstance(value, dict) else value
        return [
            None if k == "constexpr" else _argument(f"{name}[{i}]", v, k, maker)
            for i, (v, k) in enumerate(zip(items, kind))
        ]
    if isinstance(value, dict) and "tensor" in value:
        return _tensor(name, value["tensor"], kind, maker)
    if isinstance(value, dict) and "descriptor" in value:
        inside = value["descriptor"]
        element = kind[kind.index("<") + 1 : kind.index("[")]
        base = _tensor(name, base_of(inside), f"*{element}", maker)
        block = inside.get("block_shape") or kind[kind.index("[") + 1 : kind.index("]")].split(",")
        sizes = (tuple(map(int, x)) for x in (inside["shape"], inside["strides"], block))
        return DescriptorArgument(base, *sizes, np.nan if inside.get("padding") == "nan" else 0.0, _pixel_box(inside))
    if isinstance(value, dict) and "$float" in value:
        value = float(value["$float"])
    if value is None or isinstance(value, (dict, str)):
        raise NotRunnable("launch", f"the launch spec has no usable value for {name}: {value!r}")
    if str(kind).startswith("*"):
        raise NotRunnable("launch", f"{name} is a pointer, but its value is {value!r}")
    return scalar(value, kind)


def scalar(value, kind: str):
    """A numpy scalar of the signature's type."""
    element = SIGNATURE[kind]
    if element[0] == "i" and element != "i1":
        bits = 8 * held(element).itemsize
        value = int(value) & ((1 << bits) - 1)
        return held(element).type(value - (1 << bits) if value >> (bits - 1) else value)
    if element == "i1":
        return np.bool_(value)
    return rounded(np.asarray(float(value)), element)[()]


def _tensor(name: str, tensor: dict, kind: str, maker: _Maker) -> Tensor:
    pointee = kind.lstrip("*").removeprefix("k")
    element = ELEMENTS.get(tensor["dtype"]) or SIGNATURE[pointee]
    if id(tensor) in maker.large:
        return _in_pages(name, tensor, SIGNATURE.get(pointee, element), element, maker)
    shape = tuple(tensor["shape"])
    count = items_held(tensor)
    data = np.zeros(count, stored(element))
    if held(element).kind == "f":
        data[:] = encode(np.full(count, np.nan, held(element)), element)
    strides = tuple(tensor["stride"])
    itemsize = data.itemsize
    offset = int(tensor["offset"])
    view = np.lib.stride_tricks.as_strided(data[offset:], shape, [s * itemsize for s in strides])
    values = _values(tensor, element, shape, maker)
    view[...] = np.asarray(encode(values, element)).astype(data.dtype, copy=False)
    unheld = storage_of(tensor) - count
    return Tensor(name, SIGNATURE.get(pointee, element), data, offset, shape, strides, unheld)


def _in_pages(name: str, tensor: dict, seen_as: str, element: str, maker: _Maker) -> Tensor:
    """A tensor of which only what is touched is there."""
    values = np.asarray(encode(_values(tensor, element, (PATTERN,), maker), element))
    data = values.astype(stored(element), copy=False)
    count = min(storage_of(tensor), FARTHEST // data.itemsize)
    shape, strides = tuple(tensor["shape"]), tuple(tensor["stride"])
    pages = Pages(count * data.itemsize, data)
    return Tensor(name, seen_as, data, int(tensor["offset"]), shape, strides, storage_of(tensor) - count, pages)


def _values(tensor: dict, element: str, shape, maker: _Maker) -> np.ndarray:
    low, high = tensor.get("range") or (None, None)
    if "data" in tensor:
        wide = np.array(tensor["data"], np.int64 if element[0] == "i" else np.float64)
        return wide.astype(held(element)).reshape(shape)
    if element[0] == "i":
        if low is None:
            low, high = 0, 1
        drawn = maker.rng.integers(int(low), int(high), size=shape, endpoint=True, dtype=np.int64)
        return drawn.astype(held(element))
    drawn = maker.rng.uniform(float(low), float(high), shape) if low is not None else maker.rng.standard_normal(shape)
    drawn = drawn * maker.scale if low is None else drawn
    wide = np.asarray(drawn, np.float32 if element in FLOAT8 or element == "bf16" else held(element))
    return np.asarray(rounded(wide, element))


def size_arguments(spec: LaunchSpec) -> list[str]:
    """Runtime integers that are the extent of a tensor and, by name, no stride."""
    extents = {extent for value in spec.values.values() if isinstance(value, dict) for extent in _shape(value)}
    return [
        name
        for name, kind in spec.signature.items()
        if kind in ("i32", "i64", "u32", "u64")
        and isinstance(spec.values.get(name), int)
        and "stride" not in name.lower()
        and spec.values[name] > 1
        and (spec.values[name] in extents or spec.values[name] in _products(spec))
    ]


def _shape(value: dict) -> tuple[int, ...]:
    inside = value.get("tensor") or value.get("descriptor", {})
    return tuple(inside.get("shape", ()))


def _products(spec: LaunchSpec) -> set[int]:
    return {int(np.prod(_shape(v))) for v in spec.values.values() if isinstance(v, dict) and _shape(v)}


MOST = 11  # variants of one launch
RAGGED = 64  # blocks of 32 and more cut such a size 16 elements into the last one
LONGER = 4  # factor on sizes of loops that make few trips
LARGEST = 1 << 23  # elements of all tensors together in such a variant


def variants(spec: LaunchSpec, loops: list[str] = ()) -> list[tuple[str, dict[str, int]]]:
    """(what, changed values) of the launches to try beside the given one: all sizes ragged, and each alone at 0 and small.

    Sizes that decide trip counts (`loops`) come first, since only `MOST` variants are run.

    What the specialization promises stays true: an argument marked divisible by 16 stays so, and none becomes 1, which Triton
    compiles apart.
    """
    sizes = sorted(size_arguments(spec), key=lambda name: name not in loops)
    out = []
    ragged = {name: shrunk(spec.values[name], "D" in str(spec.attrs.get(name, ""))) for name in sizes}
    ragged = {name: value for name, value in ragged.items() if value is not None}
    if ragged:
        out.append(("ragged sizes", ragged))
    for name in sizes:
        out.append((f"{name} = 0", {name: 0}))
        small = 16 if "D" in str(spec.attrs.get(name, "")) else 5
        if small < spec.values[name]:
            out.append((f"{name} = {small}", {name: small}))
    return out[:MOST]


def shrunk(value: int, by_16: bool) -> int | None:
    """A smaller size that no block divides; where it has to be divisible by 16, 16 more than a multiple of `RAGGED`."""
    if by_16:
        return (value - 17) // RAGGED * RAGGED + 16 if value > 16 else None
    return value - 3 if value > 5 else None


def longer(spec: LaunchSpec, inputs: Inputs, loops: list[str]) -> list[Inputs]:
    """The inputs with each size that decides a trip count four times as large, and storage to match.

    Strides stay, so rows overlap; that makes no difference to what is compared.
    """
    out = []
    for name in size_arguments(spec):
        value = spec.values[name] * LONGER
        if name not in loops or sum(t.items for t in inputs.tensors()) > LARGEST // LONGER:
            continue
        more = {id(t): replace(t, data=np.resize(t.data, t.data.size * LONGER)) for t in inputs.tensors()}
        arguments = {key: _replaced(argument, more) for key, argument in inputs.arguments.items()}
        out.append(with_values(Inputs(arguments), spec, {name: value}, f"{name} = {value}"))
    return out


def with_ties(spec: LaunchSpec, inputs: Inputs) -> Inputs:
    """Floats rounded to multiples of a half, so that zeros and equal values are among them; none above 0 in the second half of a tensor,
    so that a maximum may be 0 or less.
    """
    whole = {id(t): _tied(t) for t in inputs.tensors() if held(t.element).kind == "f"}
    arguments = {name: _replaced(value, whole) for name, value in inputs.arguments.items()}
    return Inputs(arguments, "values with ties")


def _tied(tensor: Tensor) -> Tensor:
    values = np.round(np.asarray(decode(tensor.data, tensor.element)) * 2) / 2
    if (values < 0).any():  # else the launch may ask for what is not negative
        late = values[values.size // 2 :]
        late[late > 0] *= -1
    return tensor.refilled(np.asarray(encode(values, tensor.element)).astype(tensor.data.dtype, copy=False))


def _replaced(value, chosen: dict[int, Tensor]):
    if isinstance(value, list):
        return [_replaced(item, chosen) for item in value]
    if isinstance(value, DescriptorArgument):
        return replace(value, base=chosen.get(id(value.base), value.base))
    return chosen.get(id(value), value)


def changed_tensors(inputs: Inputs, change: Callable[[Tensor], Tensor]) -> Inputs:
    """The inputs with each tensor changed; views of one storage stay views of one, which may be longer at its end."""
    chosen = {}
    for views in inputs.storages():
        first = change(views[0])
        chosen |= {id(v): replace(v, data=first.data, unheld=first.unheld, pages=first.pages) for v in views}
        chosen[id(views[0])] = first
    return with_tensors(inputs, chosen)


def with_tensors(inputs: Inputs, chosen: dict[int, Tensor]) -> Inputs:
    """The inputs with other tensors in the place of those whose ids are given."""
    return replace(inputs, arguments={name: _replaced(value, chosen) for name, value in inputs.arguments.items()})


def with_values(inputs: Inputs, spec: LaunchSpec, changed: dict[str, int], variant: str) -> Inputs:
    """The same tensors with other scalars."""
    arguments = dict(inputs.arguments)
    for name, value in changed.items():
        arguments[name] = scalar(value, spec.signature[name])
    return replace(inputs, arguments=arguments, variant=variant)
