"""What the modules of a launch are apart from sizes: launches of which it is the same go the same ways through one text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from gluonize.read.kernels.gluon_kernels import plain_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.op import Op, Region
from gluonize.trace.model.parse import parse_module

_NUMBER = re.compile(r"\d+")
# Values that the compiler makes once where sizes are equal, and conversions that are none where layouts are: no way of a program.
_MERGED = ("arith.constant", "tt.make_range", "ttg.convert_layout")
_COUNTING = ("wait", "barrier", "group", "fence")  # operations whose numbers are no sizes


def structure_of(
    source: str,
    output: str,
    spec: LaunchSpec,
    target: str,
    search_path: Iterable[str] = (),
    import_hosts: bool = False,
) -> str:
    """A digest of the operations of both sides with what they take, and of the types of elements; call it in a child.

    Raises: TranslationError where a side does not compile.
    """
    from gluonize.judge.machine.stages import source_stage, translated_stage

    mine = source_stage(source, spec, target, tuple(search_path), import_hosts)
    if mine.is_gluon and spec.target:
        spec = plain_launch(spec)
    theirs = translated_stage(output, spec, target, tuple(search_path), import_hosts)
    digest = hashlib.sha256()
    for module in map(parse_module, (mine.text, theirs.text)):
        digest.update(" ".join(sorted(module.elements)).encode())
        for function in module.functions.values():
            for line in _lines(function.region):
                digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def _lines(region: Region) -> Iterator[str]:
    yield f"{{{_NUMBER.sub('', region.head)}"
    for block in region.blocks:
        yield f"^{len(block.arguments)}"
        for op in block.ops:
            if op.name not in _MERGED:
                yield _line(op)
            for inner in op.regions:
                yield from _lines(inner)
    yield "}"


def _line(op: Op) -> str:
    numbers = _NUMBER.findall(op.body) if any(word in op.name for word in _COUNTING) else ()
    return f"{op.name} {len(op.operands)} {len(op.results)} {' '.join(numbers)}"
