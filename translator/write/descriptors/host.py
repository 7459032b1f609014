"""Descriptors that the host makes: the kernel takes `(base, shape, strides)`.

A kernel cannot read the pointer out of a descriptor, so the argument that had one takes the tuple that a descriptor made in
the kernel becomes too (`descriptors.py`), and the hook before each launch asks for it. Where the target has a tensor data
mover, the kernel starts by making its descriptor of the tuple: launches then look the same for every target, and need to
know no LDS layout.
"""

from __future__ import annotations

import ast

from gluonize.facts.callees import is_descriptor
from gluonize.facts.function import FunctionFacts
from gluonize.facts.made_descriptors import Origin
from gluonize.read.spec.compile_arguments import descriptor_tuple
from gluonize.read.spec.launch import LaunchSpec
from gluonize.write.descriptors import descriptors, tdm
from gluonize.write.state.writing import Writing


def take_tuples(writing: Writing) -> list[str]:
    """Note which arguments of the kernel take a tuple, and make descriptors of them for the tensor data mover; -> the lines for these."""
    facts = writing.facts
    lines: list[str] = []
    if facts.path:
        return lines
    for argument in [*facts.tree.args.posonlyargs, *facts.tree.args.args, *facts.tree.args.kwonlyargs]:
        fact = facts.frame.args.get(argument.arg)
        if not is_descriptor(fact):
            continue
        writing.record.descriptor_tuples.add(argument.arg)
        if tdm.uses_data_mover(facts, writing.decided, Origin(facts, argument)):
            name = descriptors.stem(argument.arg)
            lines.append(
                tdm.argument_text(
                    facts, writing.names, writing.record, argument, descriptors.block_of(fact).shape, name
                )
            )
    return lines


def first_line(facts: FunctionFacts) -> int:
    """The line of the first statement after the docstring, or of the comments above it."""
    body = facts.tree.body
    first = body[1] if len(body) > 1 and isinstance(getattr(body[0], "value", None), ast.Constant) else body[0]
    line = first.lineno
    above = body[0].end_lineno if first is not body[0] else facts.tree.lineno
    while line - 1 > above and facts.source.lines[line - 2].lstrip().startswith("#"):
        line -= 1
    return line


def small_descriptors(spec: LaunchSpec) -> frozenset[str]:
    """Arguments that are descriptors of tensors whose storage is known to be within 2 GiB."""
    found = set()
    for name, kind in spec.signature.items():
        if isinstance(kind, str) and kind.startswith("tensordesc"):
            _, _, (base, *_) = descriptor_tuple(kind, spec.values.get(name))
            if "S" in base:
                found.add(name)
    return frozenset(found)


def divisible_strides(spec: LaunchSpec) -> frozenset[str]:
    """`desc.strides.0`: strides of descriptors that Triton finds to be multiples of 16 in the launch."""
    found = set()
    for name, kind in spec.signature.items():
        if isinstance(kind, str) and kind.startswith("tensordesc"):
            _, _, (_, _, strides) = descriptor_tuple(kind, spec.values.get(name))
            found |= {f"{name}.strides.{d}" for d, flag in enumerate(strides) if "D" in flag}
    return frozenset(found)
