"""Inputs made to break what a translation may rest on: negative offsets, full ranges of bytes, arguments that share memory.

The source decides whether such inputs make sense: where it leaves its tensors, or depends on the order of its own programs, they say
nothing about the translation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

import numpy as np

from gluonize.judge.inputs.control_slice import needed_values
from gluonize.judge.inputs.enlarged import index_knobs
from gluonize.judge.inputs.inputs import (
    LARGEST,
    Inputs,
    Tensor,
    changed_tensors,
    size_arguments,
    with_tensors,
    with_values,
)
from gluonize.judge.inputs.scalar_candidates import integer_arguments, modes
from gluonize.judge.machine.dtypes import held
from gluonize.judge.machine.memory.sparse import Pages
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.module import Module

GROWTH = 4  # factor on the storage of tensors
ROOM = 1 << 16  # elements of storage before a tensor, at most; a multiple of 16, so that alignment stays
SHIFTED = (-3, 5)  # values of an address argument
SHIFTED_BY_16 = (-16, 48)  # of one that is promised to be divisible by 16
MOST_SHIFTED = 4  # arguments
MOST_SHARED = 2  # pairs of arguments
MOST_MODES = 6  # values of one scalar
MOST_INDICES, MOST_LIMITS = 2, 3  # tensors of indices, and how far up they are tried
MEMORY = ("tt.load", "tt.store", "tt.atomic", "tt.descriptor")


def adversarial(
    module: Module, spec: LaunchSpec, inputs: Inputs, defaults: dict[str, int], read: Set[str], judged: Sequence[str]
) -> Iterator[Inputs]:
    """The variants of a launch, for the source's module. defaults: of its parameters. read: tensors that it reads. judged: the variants
    that both sides have run so far."""
    yield from with_defaults(spec, inputs, defaults)
    yield from shifted(module, spec, inputs)
    yield from with_modes(module, spec, inputs)
    yield from with_full_indices(inputs, read, judged)
    # Exponents of scaled products are bytes too: most overflow the narrow operands that a lowering scales.
    exponents = any(op.name == "tt.dot_scaled" for op in module.entry.walk())
    if not exponents:
        yield from with_full_bytes(inputs)
    yield from shared(inputs, bytes_too=not exponents)


def grown(inputs: Inputs) -> Inputs | None:
    """The inputs with four times the storage, filled with what is there; the smallest tensors where all would be too much, and
    None where one would.

    Strides stay, so rows may overlap; that makes no difference to what is compared.
    """
    room = LARGEST - sum(tensor.items for tensor in inputs.tensors())
    chosen = set()
    for views in sorted(inputs.storages(), key=lambda views: views[0].items):
        room -= views[0].items * (GROWTH - 1)
        if room >= 0:
            chosen.add(id(views[0].data))

    def change(t: Tensor) -> Tensor:
        return replace(t, data=np.resize(t.data, t.data.size * GROWTH), unheld=0) if id(t.data) in chosen else t

    return changed_tensors(inputs, change) if chosen else None


def in_the_middle(spec: LaunchSpec, inputs: Inputs) -> Inputs:
    """The inputs as views that end inside of larger storage, and begin there unless storage within 2 GiB is promised: relative to
    such a pointer Triton itself takes offsets as unsigned.
    """

    def promised(tensor: Tensor) -> bool:
        return spec.signature.get(tensor.name, "")[:1] != "*" or "S" in str(spec.attrs.get(tensor.name, ""))

    def change(tensor: Tensor) -> Tensor:
        if not tensor.data.size:
            return tensor
        if tensor.pages is not None:
            return _in_the_middle_of_pages(tensor, promised(tensor))
        room = min(ROOM, -(-max(tensor.data.size, 1024) // 16) * 16)
        around = np.resize(tensor.data, room)
        if promised(tensor):
            return replace(tensor, data=np.concatenate([tensor.data, around]), unheld=0)
        return replace(
            tensor, data=np.concatenate([around, tensor.data, around]), offset=tensor.offset + room, unheld=0
        )

    return changed_tensors(inputs, change)


def _in_the_middle_of_pages(tensor: Tensor, promised: bool) -> Tensor:
    """promised: it stays within its storage."""
    room = 0 if promised else ROOM
    pages = Pages(tensor.pages.extent + 2 * room * tensor.data.itemsize, tensor.pages.pattern)
    return replace(tensor, pages=pages, offset=tensor.offset + room, unheld=0)


def address_arguments(module: Module, spec: LaunchSpec) -> list[str]:
    """Integers that addresses are computed from, those first that are neither sizes of tensors nor strides."""
    entry = module.entry
    pointers = (op.operands[0] for op in entry.walk() if op.name.startswith(MEMORY) and op.operands)
    indices = (value for op in entry.walk() if op.name.startswith("tt.descriptor") for value in op.operands)
    needed = needed_values(entry, [*pointers, *indices])
    reached = {name for (value, _), name in zip(entry.arguments, entry.argument_names) if value in needed}
    sizes = size_arguments(spec)
    names = [name for name in integer_arguments(spec) if name in reached and name not in sizes]
    return sorted(names, key=lambda name: "stride" in name.lower())


def shifted(module: Module, spec: LaunchSpec, inputs: Inputs) -> Iterator[Inputs]:
    """Each address argument negative and odd, with room before and behind the tensors."""
    names = address_arguments(module, spec)[:MOST_SHIFTED]
    if not names or sum(tensor.data.size for tensor in inputs.tensors()) > LARGEST:
        return
    wide = in_the_middle(spec, inputs)
    for position in range(len(SHIFTED)):
        for name in names:
            value = (SHIFTED_BY_16 if "D" in str(spec.attrs.get(name, "")) else SHIFTED)[position]
            if value >= 0 or spec.signature[name][0] == "i":
                yield with_values(wide, spec, {name: value}, f"{name} = {value}, in larger storage")


def with_defaults(spec: LaunchSpec, inputs: Inputs, defaults: dict[str, int]) -> Iterator[Inputs]:
    """All arguments left out that the kernel has a default for, where that is another value than the launch's."""
    names = [name for name in integer_arguments(spec) if name in defaults]
    values = {name: defaults[name] for name in names if defaults[name] != spec.values[name]}
    if values and sum(tensor.data.size for tensor in inputs.tensors()) <= LARGEST:
        changed = with_values(in_the_middle(spec, inputs), spec, values, f"{', '.join(values)} left to the defaults")
        yield replace(changed, left_out=tuple(values))


def with_modes(module: Module, spec: LaunchSpec, inputs: Inputs) -> Iterator[Inputs]:
    """Each value that the kernel compares a scalar with, and one that it does not: what a comparison chooses may be no branch."""
    for name, values in modes(module).items():
        if name not in integer_arguments(spec):
            continue
        other = next(n for n in range(len(values) + 1) if n not in values)
        for value in [*values[:MOST_MODES], other]:
            changed = with_values(inputs, spec, {name: value}, f"{name} = {value}")
            if value != spec.values[name] and ("D" not in str(spec.attrs.get(name, "")) or value % 16 == 0):
                yield replace(changed, brief=True)


def with_full_indices(inputs: Inputs, read: Set[str], judged: Sequence[str]) -> Iterator[Inputs]:
    """Integers in memory up to the largest that is an index of some tensor, where the launch has them in a smaller range.

    They keep their order: they may be where segments begin. judged: the variants that both sides have run so far.
    """
    extents = {extent for tensor in inputs.tensors() for extent in (*tensor.shape, tensor.items)}
    for knob in index_knobs(inputs, read)[:MOST_INDICES]:
        for limit in sorted((extent for extent in extents if extent - 1 > knob.now), reverse=True)[:MOST_LIMITS]:
            changed, what = knob.turned(inputs, limit - 1)
            yield replace(changed, variant=what)
            if what in judged:
                break


def with_full_bytes(inputs: Inputs) -> Iterator[Inputs]:
    """Bytes over all they can hold, where the launch has them in a smaller range."""
    rng = np.random.default_rng(0)
    narrow = {
        id(t) for t in inputs.tensors() if t.element == "i8" and t.data.size and np.ptp(t.data.astype(np.int16)) < 255
    }
    if not narrow:
        return

    def change(tensor: Tensor) -> Tensor:
        if id(tensor) not in narrow:
            return tensor
        drawn = rng.integers(0, 256, tensor.data.size, dtype=np.uint8)
        return tensor.refilled(drawn.view(tensor.data.dtype))

    yield replace(changed_tensors(inputs, change), variant="bytes over their full range")


def shared(inputs: Inputs, bytes_too: bool = True) -> Iterator[Inputs]:
    """The same tensor given twice, for arguments that are alike, as in-place calls have it."""
    tensors = {name: value for name, value in inputs.arguments.items() if isinstance(value, Tensor)}
    names = list(tensors)
    pairs = [
        (one, other)
        for number, one in enumerate(names)
        for other in names[number + 1 :]
        if _alike(tensors[one], tensors[other]) and (bytes_too or tensors[one].element != "i8")
    ]
    for one, other in pairs[-MOST_SHARED:]:  # outputs stand last in most signatures
        arguments = inputs.arguments | {other: tensors[one]}
        yield replace(inputs, arguments=arguments, variant=f"{other} is {one}", shares=True)


def _alike(one: Tensor, other: Tensor) -> bool:
    keys = ("element", "shape", "strides", "offset")
    return all(getattr(one, key) == getattr(other, key) for key in keys) and one.items == other.items


def alternatives(inputs: Inputs, made_up: Set[str] = frozenset()) -> Iterator[Inputs]:
    """Other contents for integer tensors that hold one value throughout, as a captured launch has them where nothing ran, and for those
    called `made_up`, of whose values nothing is known.

    Each is filled with an even walk from 0 to some limit (starts of segments, permutations, gather indices); the limits tried are the
    extents of the other tensors.
    """
    integers = [t for t in inputs.tensors() if held(t.element).kind == "i" and t.data.size > 1]
    small = sum(t.items for t in inputs.tensors()) <= LARGEST
    chosen = [t for t in integers if small and t.name in made_up or (t.data == t.data[0]).all()]
    limits = {extent for t in inputs.tensors() for extent in t.shape if extent > 1}
    for limit in sorted(limits, reverse=True)[:6] if chosen else ():
        yield Inputs(with_tensors(inputs, {id(t): _walk(t, limit) for t in chosen}).arguments, inputs.variant)


def _walk(tensor: Tensor, limit: int) -> Tensor:
    count = tensor.data.size
    index = np.arange(count, dtype=np.int64)
    values = index * limit // (count - 1) if count <= limit else index % limit
    return tensor.refilled(values.astype(tensor.data.dtype))
