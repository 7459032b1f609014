"""Tensor descriptors that host code makes: their types, from the tensor and the tile, which the hook of a configuration may set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gluonize.read.evaluate.host_objects import UserFunction
from gluonize.read.launches.derive.evidence import Evidence
from gluonize.read.launches.derive.host.model import Descriptor, Method, Model, as_number
from gluonize.read.launches.derive.host.run import HostRun
from gluonize.read.launches.derive.proposal.guess import Guess
from gluonize.read.spec.descriptors import descriptor_type
from gluonize.triton_api.package import triton


def with_sizes(made: Descriptor, passed: Mapping[str, Any], arguments: Mapping[str, Guess]) -> Descriptor:
    """A descriptor with a tile of numbers: where its size is not known, but passed as an argument too, it is what is guessed for that.

    passed: what host code passes for each argument.
    """
    if not isinstance(made.tile, (list, tuple)):
        return made
    same = {
        n: arguments[n].value
        for n, value in passed.items()
        if isinstance(value, (Method, Model)) and arguments[n].is_constant
    }
    tile = [next((number for n, number in same.items() if passed[n] == size), size) for size in made.tile]
    return replace(made, tile=tile)


def described(
    evidence: Evidence, made: Mapping[str, Descriptor], arguments: Mapping[str, Guess], config: triton.Config | None
) -> dict[str, Guess]:
    """The descriptors among the arguments of a launch with `config`; those of which the tile is not known are left out.

    arguments: the guess for each, of a descriptor that of a pointer to its tensor.
    """
    own = {name: replace(descriptor) for name, descriptor in made.items()}
    if config is not None and isinstance(config.pre_hook, UserFunction):
        given: dict[str, Any] = {n: g.value if g.is_constant else g.number for n, g in arguments.items()}
        run = HostRun(evidence.program, None, evidence.uses.pointers)
        run.user_call(config.pre_hook, [given | own | config.kwargs], {}, evidence.node, evidence.home, "?")
    out: dict[str, Guess] = {}
    for name, descriptor in own.items():
        guess, tile = arguments[name], descriptor.tile
        sizes = [as_number(size) for size in tile] if isinstance(tile, (list, tuple)) else []
        element = known.dtype if (known := descriptor_type(guess.kind)) is not None else guess.kind.removeprefix("*")
        if sizes and all(type(size) is int for size in sizes) and guess.confidence != "given":
            kind = f"tensordesc<{element}{sizes}>"
            out[name] = Guess(
                kind, why=f"the host describes {descriptor.owner.name} so; {guess.why}", confidence="computed"
            )
    return out
