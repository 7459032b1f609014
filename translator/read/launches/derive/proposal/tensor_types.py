"""The element type of tensors: from the kernel's own words and uses, else from other kernels of the file that are given the same tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gluonize.read.launches.derive.evidence import Evidence
from gluonize.read.launches.derive.host.history import History
from gluonize.read.launches.derive.host.model import Model, tensor_of
from gluonize.read.launches.derive.host.run import HostRun, HostState
from gluonize.read.launches.derive.host.sites import Site
from gluonize.read.launches.derive.kernel.element_types import Element, element_of

# Launches of one kernel that are looked at.
_SITES = 2


def state_at(
    evidence: Evidence, site: Site, given: Mapping[str, Any], history: History | None = None
) -> HostState | None:
    """The state of host code at a launch; None where it is not reached. given: values for names of the host function; history: what is known
    before, if not what callers tell."""
    tuned = {name for config in evidence.configs for name in config.kwargs}
    by_default = {n for n, p in evidence.parameters.items() if p.has_default}
    return HostRun(
        evidence.program, site, evidence.uses.pointers, dict(given), history=history or evidence.history(site),
        terms=evidence.terms, left_out=frozenset(tuned | by_default | evidence.heuristics.keys()),
    ).run()  # fmt: skip


def own_element(evidence: Evidence, names: list[str], state: HostState | None) -> Element:
    """The type of pointers that share one: the source's own words for one of them, else what is done with their values."""
    said = next((n for n in names if n in evidence.documented), None)
    if said is not None:
        return Element(evidence.documented[said], f"what the source says of {said}", "use")
    return element_of(
        names,
        evidence.uses,
        evidence.converts,
        fp8=evidence.fp8 if evidence.is_fp8 else "",
        quantized=evidence.is_quantized,
        like=_made_like(names, state),
    )


def roots(state: HostState | None) -> dict[str, str]:
    """For every argument that is a tensor at the launch, the name of the tensor that it has its type from."""
    arguments = state.arguments if state is not None else {}
    return {
        n: model.root().name
        for n, value in arguments.items()
        if (model := tensor_of(value)) is not None and not model.shown()[0]
    }


def is_weak(element: Element) -> bool:
    """Whether a type rests on no more than a name, or on what happens to be stored."""
    return element.stored or element.confidence == "name"


def shared_element(evidence: Evidence, site: Site, tensor: str) -> Element | None:
    """What other kernels of the file say of a tensor that the host function calls `tensor`: those that are launched beside this one, then
    those that are launched elsewhere with one of that name. None where none says more than its name."""
    beside, elsewhere = [], []
    for other, launch in _other_launches(evidence):
        same = [function.lineno for function in launch.functions] == [function.lineno for function in site.functions]
        (beside if same and launch.path == site.path else elsewhere).append((other, launch))
    for other, launch in beside:
        state = state_at(other, launch, {}, evidence.history(site))
        names = [n for n, root in roots(state).items() if root == tensor and n in other.uses.pointers]
        if names and not is_weak(element := own_element(other, names, state)):
            why = f"as {names[0]} of {other.name}, which is the same tensor: {element.why}"
            return Element(element.kind, why, "use")
    for other, launch in elsewhere:
        if (found := _of_that_name(other, launch, tensor)) is not None:
            return found
    return None


def _of_that_name(other: Evidence, launch: Site, tensor: str) -> Element | None:
    """What another kernel tells of the tensor that host code around its launch calls so."""
    state = state_at(other, launch, {}, History())
    given = state.arguments if state is not None else {}
    models = {n: model for n, value in given.items() if (model := tensor_of(value)) is not None}
    where = f"line {launch.line}"
    for name, model in models.items():
        kind, why = model.shown()
        if model.name == tensor and kind and model.root().confidence == "read":
            return Element(kind, f"as {tensor} at {where}: {why}", "name")
    names = [n for n, root in roots(state).items() if root == tensor and n in other.uses.pointers]
    if not names or is_weak(element := own_element(other, names, state)):
        return None
    return Element(element.kind, f"as {tensor} at {where}, {names[0]} of {other.name}: {element.why}", "name")


def _other_launches(evidence: Evidence) -> Iterator[tuple[Evidence, Site]]:
    """The launches of the file's other kernels in host code."""
    for other in evidence.others:
        for site in other.sites[:_SITES]:
            if site.functions:
                yield other, site


def _made_like(names: list[str], state: HostState | None) -> str:
    """The tensor of the host that `names` have their type from, where none of them is that tensor."""
    given = state.arguments if state is not None else {}
    models: list[Model] = [model for n in names if (model := tensor_of(given.get(n))) is not None]
    origins = {model.root().name for model in models if model.root() is not model}
    return origins.pop() if len(models) == len(origins) * len(names) and len(origins) == 1 else ""
