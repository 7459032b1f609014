"""Values of host code while it is run on a model of its inputs: tensors that have a shape and a type, and no numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gluonize.read.evaluate.host_objects import UserClass
from gluonize.read.evaluate.host_values import HostName
from gluonize.read.launches.derive.kernel.roles import size_role
from gluonize.read.launches.derive.supposed import supposed_size
from gluonize.read.spec import torch_types

# Numbers of torch, the exponents of scales among them, as signatures write their types.
TRITON_TYPE = {**torch_types.TRITON_TYPE, "float8_e8m0fnu": "u8"}
_DEFAULT_SIZE = 256


@dataclass(eq=False)
class Model:
    """Something that host code computes with. A tensor, where it is used as one: `element` is its type when host code shows
    it, `like` the tensor that it has its type from; `dims` its sizes, once they are known or were asked for;
    `axes` which of the axes that were allocated each one is, where they were exchanged. An object that holds others has them in
    `held`, and its class, where that is known, as `kind`."""

    name: str
    element: str = ""
    like: Model | None = None
    dims: list[int | None] | None = None
    at_least: bool = False  # there may be more dimensions than `dims`, which were only asked for one by one
    is_tensor: bool = False
    number: int | None = None
    why: str = ""
    confidence: str = "read"  # in its type
    agreed: bool = False  # every call that is seen passes this type
    optional: bool = False  # its annotation allows None
    axes: tuple[int, ...] = ()
    scalar: str = ""  # `int`, `float`, `bool`: what its annotation says, of a number
    held: dict[str, Any] = field(default_factory=dict)
    kind: UserClass | None = None

    def root(self) -> Model:
        return self.like.root() if self.like is not None and not self.element else self

    @property
    def told(self) -> str:
        """The element type where host code says it, or every call that is seen."""
        found = self.root()
        return found.element if found.confidence == "read" or found.agreed else ""

    def shown(self) -> tuple[str, str]:
        """The element type that host code shows, and where."""
        found = self.root()
        return found.element, found.why

    def size(self) -> int:
        """This as a number: its role's, and the same each time."""
        if self.number is None:
            role = size_role(self.name)
            self.number = supposed_size(role.value if role is not None else _DEFAULT_SIZE)
        return self.number

    def rank(self) -> int | None:
        """The number of dimensions; None where it is not known."""
        return len(self.dims) if self.dims is not None and not self.at_least else None

    def with_rank(self, rank: int) -> list[int | None]:
        if self.dims is None:
            self.dims = [None] * rank
        elif len(self.dims) < rank:
            self.dims += [None] * (rank - len(self.dims))
        return self.dims

    def dim(self, index: int, name: str = "") -> int:
        """The size of one dimension; one that is not known yet gets that of its name's role."""
        self.is_tensor = True
        self.at_least |= self.dims is None
        dims = self.with_rank(index + 1 if index >= 0 else max(-index, 2 if self.dims is None else len(self.dims)))
        if dims[index] is None:
            role = size_role(name) if name else None
            last = index == -1 or index == len(dims) - 1 > 1
            dims[index] = supposed_size(role.value if role is not None else 64 if last else _DEFAULT_SIZE)
        return dims[index]  # type: ignore[return-value]

    def sizes(self) -> list[int]:
        dims = self.with_rank(2 if self.dims is None else len(self.dims))
        return [self.dim(index) for index in range(len(dims))]

    def strides(self) -> list[int]:
        sizes = self.sizes()
        axes = self.axes if len(self.axes) == len(sizes) else tuple(range(len(sizes)))
        allocated = [sizes[axes.index(axis)] for axis in range(len(sizes))]
        return [math.prod(allocated[axis + 1 :]) for axis in axes]

    def turned(self, name: str, order: Sequence[int] | None) -> Model:
        """A view of the axes in another order; None: of the last two exchanged."""
        rank = len(self.with_rank(2 if self.dims is None else len(self.dims)))
        if order is None:
            order = (*range(rank - 2), rank - 1, rank - 2)
        order = tuple(axis % rank for axis in order if -rank <= axis < rank)
        if sorted(order) != list(range(rank)):
            return self.same(name)
        sizes, axes = self.dims or [], self.axes if len(self.axes) == rank else tuple(range(rank))
        out = self.same(name, [sizes[axis] for axis in order])
        out.axes = tuple(axes[axis] for axis in order)
        return out

    def numel(self) -> int:
        count = 1
        for size in self.sizes():
            count *= size
        return count

    def same(self, name: str = "", dims: list | None = None) -> Model:
        """A tensor of the same element type."""
        self.is_tensor = True
        return Model(name or self.name, like=self, dims=dims, is_tensor=True)


@dataclass(frozen=True)
class Shape:
    """`x.shape`, of which nothing was asked yet."""

    owner: Model


@dataclass(frozen=True)
class Dtype:
    """`x.dtype`."""

    owner: Model

    @property
    def known(self) -> HostName | None:
        """torch's name of it where it is told; None where it is not."""
        told = self.owner.told
        return next((HostName.of_dtype(torch) for torch, kind in TRITON_TYPE.items() if kind == told), None)


@dataclass(frozen=True)
class Method:
    owner: Any
    name: str


@dataclass(frozen=True)
class Saved:
    """`ctx.saved_tensors`: what each `save_for_backward` of the forward function saves."""

    alternatives: tuple[tuple[Any, ...], ...]

    def of_length(self, count: int) -> tuple[Any, ...]:
        """The one with that many tensors."""
        return next((found for found in self.alternatives if len(found) == count), self.alternatives[0])


@dataclass(eq=False)
class Descriptor:
    """A tensor descriptor: of which tensor, and its tile as host code has it. The hook of a configuration may set that anew."""

    owner: Model
    tile: Any


def tensor_of(value: Any) -> Model | None:
    """The tensor that a value is, or that it describes."""
    return value.owner if isinstance(value, Descriptor) else value if isinstance(value, Model) else None


def fresh(value: Any, made: dict[int, Any] | None = None) -> Any:
    """A value of its own for each run: sizes and attributes that one asks for are not known in another."""
    made = {} if made is None else made
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(fresh(item, made) for item in value)
    if isinstance(value, dict):
        return {key: fresh(item, made) for key, item in value.items()}
    if not isinstance(value, Model):
        return value
    made[id(value)] = out = replace(value, dims=None if value.dims is None else list(value.dims))
    out.like, out.held = fresh(value.like, made), fresh(value.held, made)
    return out


def rests_on_made_up_sizes(value: Any, other: Any) -> bool:
    """Whether a value of one run and that of a run in `other_sizes` differ, or are numbers that nothing gives."""
    if isinstance(value, (tuple, list)):
        pairs = zip(value, other) if isinstance(other, (tuple, list)) and len(value) == len(other) else [(0, 1)]
        return any(rests_on_made_up_sizes(*pair) for pair in pairs)
    if isinstance(value, Model) and isinstance(other, Model) and not value.is_tensor:
        return value.number is None or value.number != other.number
    plain = isinstance(value, (bool, int, float, str)) or isinstance(other, (bool, int, float, str))
    return plain and (type(value) is not type(other) or value != other)


def known_sizes(tensor: Model, other: Any) -> tuple[int | None, ...] | None:
    """The sizes of a tensor that rest on none that is made up, None for each other one; None where its rank is not known."""
    if tensor.rank() is None or not isinstance(other, Model) or other.rank() != tensor.rank():
        return None
    pairs = zip(tensor.dims or (), other.dims or ())
    return tuple(size if size == again else None for size, again in pairs)


def has_model(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(has_model, value))
    if isinstance(value, dict):
        return any(map(has_model, value.values()))
    return isinstance(value, (Model, Shape, Dtype, Method, Saved, Descriptor))


def as_number(value: Any) -> Any:
    """A value to compute with: models that are no tensors count as their sizes."""
    return value.size() if isinstance(value, Model) and not value.is_tensor else value
