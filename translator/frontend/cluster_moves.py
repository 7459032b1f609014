"""What the CTAs of a cluster would have to tell each other: Triton 3.9 has no way to do that on AMD targets.

The LDS of a CTA is its own: a value that another CTA holds does not come over (its backend stops with `AMDGPU does not support
cross-CTA shared memory transfers`), and the barrier of a program is one of each CTA for itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from translator.diagnostics import Diagnostic, TranslationError
from translator.frontend.anchors import Path, path_of
from translator.frontend.trace import Trace
from translator.source.moved_lines import file_line
from translator.ttgir.layouts import Bases, DotOperand
from translator.ttgir.module import Module, Op

OWN_LDS = "each CTA reads its own LDS alone, and Triton 3.9 has nothing that moves values between CTAs"
_ALONG_AXIS = {
    "tt.reduce": "a reduction along a dimension that CTAs share",
    "tt.scan": "a scan along a dimension that CTAs share",
    "tt.gather": "a gather along a dimension that CTAs share",
}
_ATOMICS = ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_poll")
_ROWS = ("tt.descriptor_gather", "tt.descriptor_scatter", "tt.descriptor_reduce")
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
    if op.name in _ALONG_AXIS and any(basis[op.attribute("axis")] for basis in _ctas(module, op)):
        return _ALONG_AXIS[op.name], OWN_LDS
    if op.name == "tt.histogram" and any(map(any, _ctas(module, op))):
        return "a histogram of a tensor that CTAs share", OWN_LDS
    if op.name in _ATOMICS and used.intersection(op.results) and not all(map(any, _result_ctas(module, op) or ((),))):
        return "the old value of an atomic operation", f"one CTA makes it for all; {OWN_LDS}"
    if op.name in _BARRIERS:
        return "a barrier", "it would be one of each CTA for itself, so another CTA may not have written yet"
    if op.name in _ROWS:
        return (
            "rows of a tensor descriptor",
            "the data mover would fetch them for each CTA, which none of its layouts says",
        )
    if op.name == "ttg.convert_layout" and not stays(_ctas(module, op), _result_ctas(module, op)):
        if isinstance(module.layout(op.type), DotOperand):
            return "an operand of a product of which a CTA has a part only", OWN_LDS
        if not _through_descriptor(module, op):
            return "a value that a CTA needs and another one has", OWN_LDS
    return "", ""


def _through_descriptor(module: Module, op: Op) -> bool:
    """Whether what is converted comes from a tensor descriptor or goes to one: such tiles are read and written as they are needed."""
    comes = any(op.operands[0] in other.results for other in module.walk() if other.name == "tt.descriptor_load")
    users = [other.name for other in module.walk() if set(op.results) & set(other.operands)]
    return comes or bool(users) and set(users) == {"tt.descriptor_store"}


def _ctas(module: Module, op: Op) -> Bases:
    """How CTAs share the first tensor operand."""
    return module.layout(op.operand_types[0]).ctas


def _result_ctas(module: Module, op: Op) -> Bases:
    return module.layout(op.type).ctas if op.type.is_tensor else ()


def vectors_in_place(module: Module) -> tuple[Obstacle, ...]:
    """Vectors that every CTA reads whole from an argument that the kernel writes too: one CTA may write before another has read."""
    source = {result: op.operands[0] for op in module.walk() if op.operands for result in op.results}
    for op in module.walk():
        if op.name == "scf.for":
            source.update(op.for_loop.bindings)
        elif op.name == "scf.while":
            source.update(op.bindings)

    def argument(name: str) -> str:
        while name in source:
            name = source[name]
        return name

    written = {argument(op.operands[0]) for op in module.walk() if op.name in ("tt.store", *_ATOMICS)}
    found = []
    for op in module.walk():
        if op.name == "tt.load" and op.type.is_tensor and len(op.type.shape) == 1:
            if not all(map(any, _result_ctas(module, op))) and argument(op.operands[0]) in written:
                found.append(Obstacle(path_of(op), "a vector that is read by every CTA and written by one", OWN_LDS))
    return tuple(found)


def stays(held: Bases, wanted: Bases) -> bool:
    """Whether every CTA that holds its part of a tensor by `held` has all of its part by `wanted`."""
    for d in range(len((*held, *wanted, ())[0])):
        finer = sum(bool(basis[d]) for basis in wanted) - sum(bool(basis[d]) for basis in held)
        if any(own[d] and finer < 0 or other[d] >> max(0, finer) != own[d] for own, other in zip(held, wanted)):
            return False
    return True


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


__all__ = ["Obstacle", "cluster_obstacles", "refusal", "stays", "vectors_in_place"]
