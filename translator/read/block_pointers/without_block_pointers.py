"""Block pointers as what Triton has in their place, before a kernel is traced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gluonize.read.block_pointers.block_webs import Functions, has_block_pointers
from gluonize.read.block_pointers.function_edits import write
from gluonize.read.block_pointers.needs import find_needs
from gluonize.triton_api.jit_functions import JITFunction


def desugar_block_pointers(kernel: JITFunction, constants: Mapping[str, Any] | None = None) -> None:
    """Write the block pointers of a kernel, and of the functions that it calls, as tensors of pointers with masks, in place.

    constants: compile-time values that the launch gives parameters of the kernel. Lines of the new text are those of the file
    that they stand for. Raises: TranslationError `block-pointer` for what cannot be written so.
    """
    if not has_block_pointers(kernel):
        return
    functions = Functions(kernel, constants or {})
    find_needs(functions)
    write(functions)


__all__ = ["desugar_block_pointers"]
