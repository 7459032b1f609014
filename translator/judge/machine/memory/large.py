"""Which tensors of a launch are held whole, and which only where they are touched, as those of many mebibytes are.

    x: float16[65536, 65536]        8 GiB of storage, in pages that repeat one pattern; what programs touch of it is there

What is touched is little, since programs run only as long as their time lasts. Numbers that a launch lists are held whole.
"""

from __future__ import annotations

from typing import Any

from gluonize.judge.machine.dtypes import ELEMENTS, stored
from gluonize.judge.machine.hazards import NotRunnable
from gluonize.read.spec.launch import LaunchSpec

BEHIND = 1 << 20  # items of storage held behind what the shape of a tensor reaches
WHOLE = 1 << 28  # bytes of all tensors of a launch that are held whole; a run has several copies
MOST_WHOLE = 1 << 31  # of them, where none may be in pages
FARTHEST = 24 << 30  # bytes of one storage; the machine's addresses have room for 32 GiB


def in_pages(spec: LaunchSpec, paged: bool = True) -> set[int]:
    """Ids of the descriptions of tensors that are held where they are touched: the largest, until the others are small enough.

    paged: whether any may be. Raises: NotRunnable where tensors are too large.
    """
    found = [t for value in _dictionaries(list(spec.values.values())) if (t := value.get("tensor") or _base(value))]
    total = sum(map(_bytes_held, found))
    if not paged:
        if total > MOST_WHOLE:
            raise _too_large(f"its tensors take {total / 2**30:.1f} GiB", MOST_WHOLE)
        return set()
    out = set()
    for tensor in sorted(found, key=_bytes_held, reverse=True):
        if total <= WHOLE or "data" in tensor:
            continue
        out.add(id(tensor))
        total -= _bytes_held(tensor)
        if _bytes_held(tensor) > FARTHEST:
            raise _too_large(f"a tensor takes {_bytes_held(tensor) / 2**30:.1f} GiB", FARTHEST)
    return out


def _too_large(what: str, limit: int) -> NotRunnable:
    return NotRunnable(
        "launch",
        f"{what} and the reference machine holds {limit / 2**30:.0f} GiB; "
        "give it a launch of the same specialization with smaller tensors",
    )


def base_of(descriptor: dict) -> dict:
    """The tensor below a descriptor, which stands there by itself or as `{"tensor": ...}`."""
    base = descriptor.get("base", {})
    return base.get("tensor", base)


def _base(value: dict) -> dict:
    return base_of(value.get("descriptor", {}))


def items_of(value: dict) -> list:
    """The elements of an encoded tuple."""
    return value.get("$tuple", value.get("tuple", []))


def items_held(tensor: dict) -> int:
    """Items of its storage: all, or some behind the last that the shape reaches."""
    last = sum((extent - 1) * stride for extent, stride in zip(tensor["shape"], tensor["stride"]) if extent)
    return min(storage_of(tensor), int(tensor["offset"]) + last + 1 + BEHIND)


def storage_of(tensor: dict) -> int:
    """Items of its storage."""
    return max(int(tensor["storage"]), 0)


def _bytes_held(tensor: dict) -> int:
    element = ELEMENTS.get(tensor["dtype"])
    return items_held(tensor) * (stored(element).itemsize if element else 1)


def _dictionaries(value: Any):
    if isinstance(value, dict):
        yield value
        value = items_of(value)
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _dictionaries(item)


__all__ = ["BEHIND", "FARTHEST", "MOST_WHOLE", "WHOLE", "base_of", "in_pages", "items_held", "items_of", "storage_of"]
