"""Inputs with offsets near 2^31, and near and beyond 2^32: large strides, large grids, indices far apart.

    stride = 4194304 for a kernel that reads rows 0 to 511 at `row * stride`, of float: the last row begins at byte 2^31 - 2^22

The tensors stand in storage of which only what is touched is held. How far a launch may go is found by running the source: an offset is a
sum of products, so two runs say how much of a storage each unit of a scalar takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gluonize.judge.inputs.enlarged import Knob
from gluonize.judge.inputs.inputs import PATTERN, Inputs, Tensor, changed_tensors, size_arguments, with_values
from gluonize.judge.machine.hazards import NotRunnable
from gluonize.judge.machine.memory.large import FARTHEST
from gluonize.judge.machine.memory.sparse import Pages
from gluonize.judge.verdict.pair import Pair, SourceFault
from gluonize.read.spec.launch import LaunchSpec

PROMISED = (1 << 31) - 1  # bytes of a storage that is specialized as within 2 GiB
BEYOND = 1 << 32  # of one that is larger than was promised
FIRST = 1 << 12  # what a scalar is raised to in the first run that asks how far it goes
MOST = 4  # scalars, sizes and index tensors that are made large


def far(spec: LaunchSpec, inputs: Inputs, pair: Pair, knobs: Sequence[Knob], judged: Sequence[str]) -> Iterator[Inputs]:
    """For each knob: as far as its storages go, one step too far for a promised one, and as far as they go with small sizes.

    judged: the variants that both sides have run so far. Where a source has no offsets beyond 2^32, those below 2^31 are tried.
    """
    small = small_sizes(spec)
    starts: dict[frozenset, dict[str, int]] = {}  # how far the source reaches with these sizes
    for knob in knobs[:MOST]:
        few = frozenset((name, size) for name, size in small.items() if name != knob.name)
        for limits in limits_of(spec, inputs):
            variant = ""
            for sizes in [frozenset(), few] if few else [few]:
                chosen = with_values(inputs, spec, dict(sizes), "small sizes" if sizes else "")
                if sizes not in starts:
                    starts[sizes] = reach(pair, replace(chosen, brief=True))
                value = furthest(spec, chosen, pair, knob, limits, starts[sizes])
                if value is not None:
                    last = stood(spec, knob, chosen, value, limits)
                    variant = last.variant
                    yield last
                if value is not None and not sizes and PROMISED in limits.values():
                    yield stood(spec, knob, chosen, value + knob.step, dict.fromkeys(limits, BEYOND))
            if variant in judged:
                break


def stood(spec: LaunchSpec, knob: Knob, inputs: Inputs, value: int, limits: Mapping[str, int]) -> Inputs:
    """The inputs with a knob turned, in storages of so many bytes."""
    turned, what = knob.turned(inputs, value)
    where = [what, inputs.variant, "in storage of gibibytes"]
    return replace(in_large_storage(turned, limits), variant=", ".join(filter(None, where)), brief=True)


def in_large_storage(inputs: Inputs, limits: Mapping[str, int]) -> Inputs:
    """The inputs with every tensor in storage of so many bytes, which repeats its values."""

    def change(tensor: Tensor) -> Tensor:
        limit = limits.get(tensor.name, 0) // tensor.data.itemsize * tensor.data.itemsize
        if limit <= tensor.storage or not tensor.data.size:
            return tensor
        return replace(tensor, pages=Pages(limit, _values(tensor)), unheld=0)

    return changed_tensors(inputs, change)


def _values(tensor: Tensor) -> np.ndarray:
    """What the shape of a tensor reaches, or the first of it."""
    if tensor.pages is not None:
        return tensor.pages.pattern
    strides = [stride * tensor.data.itemsize for stride in tensor.strides]
    view = np.lib.stride_tricks.as_strided(tensor.data[tensor.offset :], tensor.shape, strides)
    values = view.reshape(-1)[:PATTERN]
    return values.copy() if values.size else tensor.data[:PATTERN]


def limits_of(spec: LaunchSpec, inputs: Inputs) -> list[dict[str, int]]:
    """Bytes that the storage of each tensor may have: what is promised; else more than 32 bits count items, or as many as 31 bits do."""
    plain = {name for name, kind in spec.signature.items() if str(kind).startswith("*")}
    found = []
    for items in (1 << 32) + (1 << 18), (1 << 31) - 1:
        limits = {}
        for tensor in inputs.tensors():
            promised = tensor.name not in plain or "S" in str(spec.attrs.get(tensor.name, ""))
            limits[tensor.name] = PROMISED if promised else min(items * tensor.data.itemsize, FARTHEST)
        found += [limits] if limits not in found else []
    return found


def small_sizes(spec: LaunchSpec) -> dict[str, int]:
    """Sizes that leave a few rows of a tile."""
    small = {name: 16 if "D" in str(spec.attrs.get(name, "")) else 5 for name in size_arguments(spec)}
    return {name: value for name, value in small.items() if value < spec.values[name]}


def furthest(
    spec: LaunchSpec, inputs: Inputs, pair: Pair, knob: Knob, limits: Mapping[str, int], low: Mapping[str, int]
) -> int | None:
    """The largest value of a knob with which the source stays in storages of these limits; None where it says nothing.

    low: how far the source reaches with the inputs as they are; {} where it cannot be run with them.
    """
    if not low:
        return None
    first = min(knob.now + -(-FIRST // knob.step) * knob.step, knob.most // knob.step * knob.step)
    if first <= knob.now:
        return None
    high = reach(pair, stood(spec, knob, inputs, first, dict.fromkeys(limits, FARTHEST)))
    values = []
    for name, limit in limits.items():
        each = high.get(name, 0) - low.get(name, 0)
        if each > 0:
            values.append(knob.now + (limit - low.get(name, 0)) * (first - knob.now) // each)
    value = min([*values, knob.most]) // knob.step * knob.step
    return value if values and value > knob.now else None


def reach(pair: Pair, inputs: Inputs) -> dict[str, int]:
    """Bytes of each storage that the source uses; {} where it cannot be run."""
    try:
        return pair.reach(inputs)
    except (SourceFault, NotRunnable):
        return {}


__all__ = ["far", "limits_of", "small_sizes", "stood"]
