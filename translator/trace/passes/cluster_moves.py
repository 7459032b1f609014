"""What the CTAs of a cluster would have to tell each other: Triton 3.9 has no way to do that on AMD targets.

The LDS of a CTA is its own: a value that another CTA holds does not come over (its backend stops with `AMDGPU does not support
cross-CTA shared memory transfers`), and the barrier of a program is one of each CTA for itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.text.moved_lines import file_line
from gluonize.trace.front.trace import Trace
from gluonize.trace.model.cta_parts import ATOMICS, along_shared_axis, ctas_of, moved, of_one_cta, stays
from gluonize.trace.model.layouts import Bases, DotOperand, Wmma, part_of
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type
from gluonize.trace.passes.anchors import Path, path_of

OWN_LDS = "each CTA reads its own LDS alone, and Triton 3.9 has nothing that moves values between CTAs"
_ROWS = ("tt.descriptor_gather", "tt.descriptor_scatter", "tt.descriptor_reduce")
_PRODUCTS = ("tt.dot", "tt.dot_scaled")
_STORES = ("tt.store", "tt.descriptor_store")
_READS = ("tt.load", "tt.descriptor_load")
_NO_FENCE = "each CTA goes on at a pace of its own, and Triton 3.9 has no fence that shows one CTA's stores to another"
_BARRIERS = ("ttg.barrier", "gpu.barrier", "tt.debug_barrier")


@dataclass(frozen=True)
class Obstacle:
    """path: of the visit that asks for it."""

    path: Path
    what: str
    why: str


def cluster_obstacles(module: Module) -> tuple[Obstacle, ...]:
    """What of a module with layouts cannot be done by several CTAs, in order."""
    used = {operand for op in module.walk() for operand in op.operands}
    found = []
    for op in module.walk():
        what, why = _obstacle(module, op, used)
        if what and (path := path_of(op)):
            found.append(Obstacle(path, what, why))
    return tuple(found)


def _obstacle(module: Module, op: Op, used: set[str]) -> tuple[str, str]:
    if along := along_shared_axis(module, op):
        return along, OWN_LDS
    if old := of_one_cta(module, op, bool(used.intersection(op.results))):
        return old, f"one CTA makes it for all; {OWN_LDS}"
    if op.name == "tt.cat" and any(map(any, ctas_of(module, op.operand_types[0]))):
        return "a concatenation of tensors that CTAs share", OWN_LDS
    if op.name in _BARRIERS:
        return "a barrier", "it would be one of each CTA for itself, so another CTA may not have written yet"
    if op.name in _ROWS:
        return (
            "rows of a tensor descriptor",
            "the data mover would fetch them for each CTA, which none of its layouts says",
        )
    if op.name in _PRODUCTS and isinstance(layout := module.layout(op.type), Wmma):
        part = part_of(op.type.shape, layout.ctas)
        if part != op.type.shape and any(own < size for own, size in zip(part[-2:], layout.instr_shape)):
            sizes = (" x ".join(map(str, size)) for size in (part[-2:], layout.instr_shape[:2]))
            return (
                "a product too small for so many CTAs",
                "each would have {} of it, and a matrix instruction makes {}".format(*sizes),
            )
    if op.name == "ttg.convert_layout" and not stays(*moved(module, op)):
        if isinstance(module.layout(op.type), DotOperand):
            return "an operand of a product of which a CTA has a part only", OWN_LDS
        return "a value that a CTA needs and another one has", OWN_LDS
    return "", ""


def tiles_in_two_ways(module: Module) -> tuple[Obstacle, ...]:
    """Tiles of a tensor descriptor that CTAs would have to share in another way than the first one of it: its layout is one for all."""
    origins = _Origins(module, "tt.make_tensor_descriptor")
    first: dict[str, Bases] = {}
    found = []
    for op in module.walk():
        if op.name in ("tt.descriptor_load", "tt.descriptor_store"):
            ctas = ctas_of(module, _accessed(op))
            if any(first.setdefault(name, ctas) != ctas for name in sorted(origins.of(op.operands[0]))):
                found.append(Obstacle(path_of(op), "a tensor descriptor whose tiles CTAs share in two ways", OWN_LDS))
    return tuple(found)


def memory_in_two_ways(module: Module) -> tuple[Obstacle, ...]:
    """Reads of an argument that the kernel stores to as well, of what another CTA may store: nothing says which one is first."""
    origins = _Origins(module)
    stored: dict[str, set[Bases]] = {}
    for op in module.walk():
        if op.name in _STORES:
            for name in origins.of(op.operands[0]):
                stored.setdefault(name, set()).add(ctas_of(module, _accessed(op)))
    found = []
    for op in module.walk():
        if op.name in _READS and (written := [stored[name] for name in origins.of(op.operands[0]) if name in stored]):
            ctas = ctas_of(module, _accessed(op))
            if not ctas or not all(map(any, ctas)) or any(ways != {ctas} for ways in written):
                found.append(Obstacle(path_of(op), "memory that one CTA reads and another one stores to", _NO_FENCE))
    return tuple(found)


def _accessed(op: Op) -> Type:
    """The type of what an access reads or stores, or of the pointers to it."""
    if op.results:
        return op.type
    return op.operand_types[1 if op.name == "tt.descriptor_store" else 0]


class _Origins:
    """Where pointers and descriptors of a module come from: arguments, and the operations `made` that make them. What comes from memory is
    known of none.
    """

    def __init__(self, module: Module, made: str = "") -> None:
        self._known = {name: frozenset({name}) for name, kind in module.entry.arguments if kind.kind in ("ptr", "desc")}
        self._from: dict[str, list[str]] = {}
        for op in module.walk():
            inner = [name for region in op.regions for block in region.blocks for name in block.ops[-1].operands]
            for result in op.results:
                if op.name == made:
                    self._known[result] = frozenset({result})
                elif op.name not in (*_READS, *ATOMICS):
                    self._from[result] = [*op.operands, *inner]
            for name, init in (
                op.for_loop.bindings if op.name == "scf.for" else op.bindings if op.name == "scf.while" else ()
            ):
                self._from[name] = [init, *inner]

    def of(self, name: str) -> frozenset[str]:
        """The arguments and operations that a value may come from."""
        seen, asked, out = set(), [name], frozenset()
        while asked:
            name = asked.pop()
            out |= self._known.get(name, frozenset())
            if name not in seen and name not in self._known:
                seen.add(name)
                asked += self._from.get(name, [])
        return out


def refusal(trace: Trace, num_ctas: int, obstacles: tuple[Obstacle, ...]) -> TranslationError:
    """What to raise for obstacles: a diagnostic for each expression of the kernel that asks for one."""
    own = [frame for frame in trace.frames if not frame.fn.__module__.startswith("triton.")]
    places = {v.ident: (frame.fn, *key[1:3]) for frame in own for key, visits in frame.visits.items() for v in visits}
    found = []
    for obstacle in obstacles:
        known = [places[ident] for ident in obstacle.path if ident in places]
        fn, line, column = known[-1] if known else (trace.frames[0].fn, 1, -1)
        found.append(
            Diagnostic(
                "clusters",
                f"num_ctas={num_ctas}: {obstacle.what}",
                fn.file_name or "",
                file_line(fn, line),
                column + 1,
                obstacle.why,
                "launch with num_ctas=1",
            )
        )
    return TranslationError(*dict.fromkeys(found))


__all__ = ["Obstacle", "cluster_obstacles", "memory_in_two_ways", "refusal", "tiles_in_two_ways"]
