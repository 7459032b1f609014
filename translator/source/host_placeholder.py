"""What stands in a jit function's module for a module of the host's that it mentions."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Any

from translator.source.host_values import HostName
from translator.source.reached import dotted_parts


def host_placeholder(value: HostName, chains: list[ast.Attribute], before: Any) -> Any:
    """What stands for `torch` where an annotation says `torch.Tensor`, or a kernel `OUT == torch.bfloat16`.

    before: what stands for it already, for another function of the file.
    """
    module = before if isinstance(before, ModuleType) else ModuleType(value.dotted)
    for node in chains:
        name = dotted_parts(node)[1]
        dtype = HostName.of_dtype(name) if value.dotted == "torch" else None
        setattr(module, name, dtype or HostName(".".join([value.dotted, *dotted_parts(node)[1:]])))
    return module


def only_dtypes(value: HostName, chains: list[ast.Attribute]) -> bool:
    """Whether all that is asked of torch is element types."""
    names = [dotted_parts(node)[1:] for node in chains]
    return value.dotted == "torch" and bool(names) and all(len(n) == 1 and HostName.of_dtype(n[0]) for n in names)


__all__ = ["host_placeholder", "only_dtypes"]
