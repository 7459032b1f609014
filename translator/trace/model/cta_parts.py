"""Which part of a tensor each CTA of a cluster has, and what would have to come from another one.

The LDS of a CTA is its own, and the lanes of one CTA see registers of no other: Triton 3.9 has nothing on AMD targets that moves a
value from CTA to CTA (its backend stops with `AMDGPU does not support cross-CTA shared memory transfers`).
"""

from __future__ import annotations

from gluonize.trace.model.layouts import Bases, part_of
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type

_ALONG_AXIS = {
    "tt.reduce": "a reduction along a dimension that CTAs share",
    "tt.scan": "a scan along a dimension that CTAs share",
    "tt.gather": "a gather along a dimension that CTAs share",
}
ATOMICS = ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_poll", "amdg.buffer_atomic_rmw", "amdg.buffer_atomic_cas")
# Each takes a tensor or a tile, and puts it into one with another layout: the types before and behind the arrow.
_MOVES = (
    "ttg.convert_layout",
    "ttg.local_load",
    "ttg.local_alloc",
    "ttg.local_store",
    "ttg.async_copy_global_to_local",
)


def stays(held: Bases, wanted: Bases) -> bool:
    """Whether every CTA that holds its part of a tensor by `held` has all of its part by `wanted`."""
    for d in range(len((*held, *wanted, ())[0])):
        finer = sum(bool(basis[d]) for basis in wanted) - sum(bool(basis[d]) for basis in held)
        if any(own[d] and finer < 0 or other[d] >> max(0, finer) != own[d] for own, other in zip(held, wanted)):
            return False
    return True


def ctas_of(module: Module, kind: Type) -> Bases:
    """How CTAs share a tensor or a tile in LDS; () where no layout says it."""
    if kind.is_tensor:
        return module.layout(kind).ctas if kind.layout else ()
    shared = module.shared(kind, kind.shape[-2:]) if kind.kind == "memdesc" else None
    return shared.ctas if shared is not None else ()


def shares_tensors(module: Module) -> bool:
    """Whether the CTAs of a program have different parts of any tensor."""
    return any(any(map(any, ctas_of(module, op.type))) for op in module.walk() if op.results and op.type.is_tensor)


def along_shared_axis(module: Module, op: Op) -> str:
    """What `op` is where it goes along a dimension of a tensor that CTAs share, or counts all of it; "" where not."""
    if op.name in _ALONG_AXIS and any(basis[op.attribute("axis")] for basis in ctas_of(module, op.operand_types[0])):
        return _ALONG_AXIS[op.name]
    if op.name == "tt.histogram" and any(map(any, ctas_of(module, op.operand_types[0]))):
        return "a histogram of a tensor that CTAs share"
    return ""


def of_one_cta(module: Module, op: Op, used: bool) -> str:
    """What `op` is where one CTA makes a value that several use; used: whether anything reads the result."""
    if op.name not in ATOMICS or not used:
        return ""
    ctas = ctas_of(module, op.type)
    return "" if ctas and all(map(any, ctas)) else "the old value of an atomic operation"


def within(ctas: Bases, shape: tuple[int, ...]) -> Bases:
    """How CTAs share a tensor of `shape`, of which a layout that shares more of them may say less: one row is split by nobody."""
    part = part_of(shape, ctas)
    return tuple(tuple(s if s * own < n else 0 for s, own, n in zip(basis, part, shape)) for basis in ctas)


def moved(module: Module, op: Op) -> tuple[Bases, Bases]:
    """How CTAs share what `op` takes, and what it puts it into; nothing of an operation that does not move a tensor."""
    if op.name not in _MOVES or not op.operand_types:
        return (), ()
    kinds = (op.operand_types[0], op.target)
    before, after = (within(ctas_of(module, kind), (kind.shape or ())[-_rank(module, kind) :]) for kind in kinds)
    return before, after


def _rank(module: Module, kind: Type) -> int:
    """Dimensions that CTAs may share: those of a slot of a ring, not the ring's."""
    ctas = ctas_of(module, kind)
    return len(ctas[0]) if ctas else 0


__all__ = [
    "ATOMICS",
    "along_shared_axis",
    "ctas_of",
    "moved",
    "of_one_cta",
    "shares_tensors",
    "stays",
    "within",
]
