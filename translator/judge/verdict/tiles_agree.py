"""Whether a source gives the same results with another tile: both launches run on the same inputs, all programs of either."""

from __future__ import annotations

import math

from gluonize.judge.inputs.bind import bind, place_tensors
from gluonize.judge.inputs.inputs import Inputs, make_inputs
from gluonize.judge.machine.engine import Machine
from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.stages import source_stage
from gluonize.judge.verdict.compare import compare
from gluonize.judge.verdict.pair import narrowest
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.module import Module
from gluonize.trace.model.parse import ParseError, parse_module

MOST_PROGRAMS = 256  # of a launch that is run as a whole


def why_tiles_differ(
    source: str, own: LaunchSpec, other: LaunchSpec, target: str, search_path: tuple[str, ...], import_hosts: bool
) -> str:
    """What speaks against `other`, a launch of the same kernel with another tile; "" where its results are those of `own`.

    Call it in a child. Raises: TranslationError where the source does not compile for one of them.
    """
    if max(math.prod(own.grid), math.prod(other.grid)) > MOST_PROGRAMS:
        return f"a launch of more than {MOST_PROGRAMS} programs is not run; one with less data finds the same"
    inputs = make_inputs(own)
    try:
        (mine, machine, module), (theirs, second, _) = (
            _ran(source, spec, inputs, target, search_path, import_hosts) for spec in (own, other)
        )
    except Hazard as hazard:
        return str(hazard)
    except (NotRunnable, ParseError) as error:
        return str(error)
    found = compare(mine, theirs, max(machine.reduction, second.reduction), narrowest(module))
    return next((str(tensor) for tensor in found if tensor.wrong), "" if found else "it stores nothing")


def _ran(
    source: str, spec: LaunchSpec, inputs: Inputs, target: str, search_path: tuple[str, ...], import_hosts: bool
) -> tuple[Memory, Machine, Module]:
    """Raises: Hazard, NotRunnable, ParseError, TranslationError."""
    stage = source_stage(source, spec, target, search_path, import_hosts)
    module, memory = parse_module(stage.text, stage.file), Memory(recording=True)
    addresses = place_tensors(memory, inputs)
    machine = Machine(module, memory, spec.grid)
    machine.run(bind(module, stage.names, inputs, addresses), range(math.prod(spec.grid)))
    return memory, machine, module


__all__ = ["why_tiles_differ"]
