"""Host tensor descriptors of kernels for NVIDIA GPUs: what the driver encodes them from, beside each descriptor argument."""

from __future__ import annotations

from collections.abc import Sequence

from gluonize.judge.device.refusal import Refused

MAP_BYTES = 128  # CUtensorMap, CUDA Driver API
# Element types as kernels count them -> CUtensorMapDataType of the host; those that are left out are the same
# (TMA_DTYPE_DEVICE_TO_HOST in triton/backends/nvidia/driver.py).
_HOST_TYPES = {8: 10, 9: 8, 10: 9}


def with_maps(arguments: Sequence[dict], described: Sequence[dict | None]) -> list[dict]:
    """The arguments, each descriptor with a `map`. described: the compiler's metadata of the descriptors, in their order.

    A map has the block, swizzle, element type and size of the layout, and the tensor's shape and strides in elements, as
    cuTensorMapEncodeTiled wants them. Raises: Refused for descriptors of images (im2col).
    """
    left = list(described)
    out = []
    for argument in arguments:
        if not argument.get("descriptor"):
            out.append(argument)
            continue
        found = left.pop(0)
        if found is None or found.get("is_im2col"):
            raise Refused("tensor descriptor argument", "it is of an image, or has no layout of the GPU", "not-bundled")
        shape = list(argument["shape"])
        if found["fp4_padded"]:
            shape[-1] *= 2
        made = {"block": list(found["block_size"]), "swizzle": found["swizzle"], "element_bytes": found["elem_size"]}
        made |= {"type": _HOST_TYPES.get(found["elem_type"], found["elem_type"]), "shape": shape}
        made |= {"strides": list(argument["strides"]), "nan": argument["padding"] != 0.0}
        out.append(argument | {"map": made, "size": MAP_BYTES})
    return out


__all__ = ["MAP_BYTES", "with_maps"]
