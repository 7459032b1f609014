"""Which operations see what programs that run at the same time do."""

from __future__ import annotations

from collections.abc import Iterator

from gluonize.trace.model.op import Op


def looks_at_memory(loop: Op) -> bool:
    """Whether another program can end a `while`: it reads memory."""
    if "looks" not in loop.memo:
        names = ("tt.load", "tt.atomic", "amdg.buffer", "tt.call")
        loop.memo["looks"] = any(op.name.startswith(names) for op in inside(loop))
    return loop.memo["looks"]


def inside(op: Op) -> Iterator[Op]:
    """All operations in the regions of one."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield inner
                yield from inside(inner)


def is_shared(op: Op) -> bool:
    """Whether programs that run at the same time see what an operation does at once: an atomic one, or a volatile load."""
    volatile = op.name == "tt.load" and (op.attribute("isVolatile") or op.attribute("cacheModifier") == "cv")
    return volatile or op.name.startswith(("tt.atomic", "amdg.buffer_atomic"))
