"""Descriptors that the host makes: the kernel takes `(base, shape, strides)`.

A kernel cannot read the pointer out of a descriptor, so the argument that had one takes the tuple that a descriptor made in
the kernel becomes too (`descriptors.py`), and the hook before each launch asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.rewrite import descriptors
from translator.rewrite.tdm import NotForTheDataMover
from translator.source.compile_arguments import descriptor_tuple
from translator.source.launch_spec import LaunchSpec

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter


def take_tuples(rw: "FunctionRewriter") -> None:
    """Note which arguments of the kernel take a tuple. Raises: NotForTheDataMover, for descriptors of all kinds."""
    if rw.path:
        return
    for argument in [*rw.tree.args.posonlyargs, *rw.tree.args.args, *rw.tree.args.kwonlyargs]:
        if not descriptors.is_descriptor(rw.frame.args.get(argument.arg)):
            continue
        if rw.unit.target.supports_tdm and () not in rw.unit.plain_descriptors:
            raise NotForTheDataMover(
                (), f"{argument.arg} is made by the host, with a layout that the launch does not give"
            )
        rw.record.descriptor_tuples.add(argument.arg)


def small_descriptors(spec: LaunchSpec) -> frozenset[str]:
    """Arguments that are descriptors of tensors whose storage is known to be within 2 GiB."""
    found = set()
    for name, kind in spec.signature.items():
        if isinstance(kind, str) and kind.startswith("tensordesc"):
            _, _, (base, *_) = descriptor_tuple(kind, spec.values.get(name))
            if "S" in base:
                found.add(name)
    return frozenset(found)
