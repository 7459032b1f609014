"""Host descriptors whose tiles are pixels of images (im2col), and the tuple that a lifted kernel takes for one.

`TensorDescriptorIm2Col(base, shape, strides, ...)` -> `(base, shape, strides, pixel_box_lower_corner, pixel_box_upper_corner, steps)`:
the steps are the element strides of the spatial dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gluonize.read.spec.compile_arguments import descriptor_tuple
from gluonize.read.spec.descriptors import DescriptorType, descriptor_type


@dataclass(frozen=True)
class ImageBox:
    """Per spatial dimension: where pixels are taken from, by what the last one is moved, and every how many-th is taken."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    steps: tuple[int, ...]
    fills_nan: bool = False


def is_of_images(kind: Any) -> bool:
    """Whether an argument's type in a launch is that of a descriptor of images."""
    return isinstance(kind, str) and kind.startswith("tensordesc_im2col<")


def image_box(value: Any) -> ImageBox | None:
    """What the launch says of a descriptor of images; None where it does not say it."""
    held = value.get("descriptor", {}) if isinstance(value, dict) else {}
    lower, upper = held.get("pixel_box_lower_corner"), held.get("pixel_box_upper_corner")
    if lower is None or upper is None:
        return None
    steps = (held.get("element_strides") or [1] * (len(lower) + 2))[1:-1]
    return ImageBox(tuple(lower), tuple(upper), tuple(steps), held.get("padding") == "nan")


def image_tuple(kind: str, value: Any) -> tuple[list, list, list, Any]:
    """Types, compile-time values, flags and the value of the tuple for a descriptor of the type `kind`.

    value: what the launch says that the argument held. The value is None where that does not say where pixels are taken.
    """
    found = descriptor_type(kind)
    assert found is not None and found.image_rank, f"{kind} is no descriptor of images"
    rank = found.image_rank
    kinds, constants, flags = descriptor_tuple(DescriptorType(found.dtype, (1,) * rank).text, value)
    kinds += [["i32"] * (rank - 2) for _ in range(3)]
    constants += [[None] * (rank - 2) for _ in range(3)]
    flags += [[""] * (rank - 2) for _ in range(3)]
    box = image_box(value)
    if box is None:
        return kinds, constants, flags, None
    held = value["descriptor"]
    parts = [held["shape"], held["strides"], box.lower, box.upper, box.steps]
    base = held["base"]
    items = [base if "tensor" in base else {"tensor": base}, *({"$tuple": list(part)} for part in parts)]
    return kinds, constants, flags, {"$tuple": items}
