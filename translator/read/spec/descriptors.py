"""The type of a tensor descriptor in a launch: `tensordesc<bf16[128, 64]>`, or `tensordesc_im2col<fp16[64, 8],input_rank=4,...>` of images."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_TYPE = re.compile(r"tensordesc(_im2col)?<(\w+)\[\s*(\d+(?:\s*,\s*\d+)*)\s*\](?:,(.*))?>")
_RANK = re.compile(r"input_rank=(\d+)")


@dataclass(frozen=True)
class DescriptorType:
    """dtype: of elements. block: the shape of its blocks. image_rank: dimensions of the tensor whose pixels they are, 0 of other
    descriptors."""

    dtype: str
    block: tuple[int, ...]
    image_rank: int = 0

    @property
    def text(self) -> str:
        """The type as a launch has it that says nothing of images, layouts or padding."""
        return f"tensordesc<{self.dtype}{list(self.block)}>"


def descriptor_type(kind: Any) -> DescriptorType | None:
    """What the type of an argument says of a descriptor; None where it is none, or says it in another way."""
    found = _TYPE.fullmatch(kind) if isinstance(kind, str) else None
    if found is None:
        return None
    images, dtype, block, more = found.groups()
    rank = _RANK.search(more or "") if images else None
    shape = tuple(int(n) for n in block.split(","))
    return DescriptorType(dtype, shape, int(rank.group(1)) if rank else len(shape) if images else 0)


__all__ = ["DescriptorType", "descriptor_type"]
