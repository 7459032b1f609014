"""A launch of a kernel and of its source, given to the prover: their modules, and what the header of the file states.

{"status": "proved", "kernel": "matmul_kernel", "reason": "", "source": None, "output": None, "assumed": [...], ...}
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gluonize.judge.machine.stages import Stage
from gluonize.judge.prove.both_sides import NOT, Verdict, prove
from gluonize.judge.prove.stated_bounds import Contract, read_contract
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.targets import target as target_row
from gluonize.trace.model.op import Op
from gluonize.trace.model.parse import ParseError, parse_module

# Terms beside a validation: about two seconds. A launch of most kernels takes less than a tenth of that.
BRIEFLY = 120_000


def proof_beside(source: Stage, translated: Stage, spec: LaunchSpec, target: str) -> dict:
    """What is known of a launch that is being validated, of both its stages: in `BRIEFLY` steps, or `not proved`. A bug here is one of the
    job that validates, which reports it as such."""
    return as_json(proved(source, translated, spec, target, BRIEFLY), spec)


def proved(left: Stage, right: Stage, spec: LaunchSpec, target: str, most: int | None) -> Verdict:
    """What the prover says of both stages under what the header states, in so many steps at most."""
    contract = contract_of_file(right, spec, target)
    try:
        modules = parse_module(left.text, left.file), parse_module(right.text, right.file)
    except ParseError as error:
        return Verdict(NOT, f"cannot read the module: {error}")
    return prove(*modules, contract, most)


def contract_of_file(right: Stage, spec: LaunchSpec, target: str) -> Contract:
    """What the header of the kernel's file states, with what the target and its programs do anyway."""
    with open(right.file, encoding="utf-8") as file:
        stated = read_contract(file.read(), spec.kernel, spec.constexprs)
    ends = target_row(target).copies_end_with_program
    return replace(stated, copies_end=ends, tiles="" if right.shared else right.tiles)


def as_json(verdict: Verdict, spec: LaunchSpec) -> dict:
    """A verdict as a command prints and writes it."""
    return {
        "status": verdict.word,
        "kernel": spec.kernel,
        "reason": verdict.why,
        "source": _place(verdict.first),
        "output": _place(verdict.second),
        "assumed": list(verdict.assumed),
        "seconds": round(verdict.seconds, 3),
    }


def _place(op: Op | None) -> dict[str, Any] | None:
    if op is None:
        return None
    place = op.place
    return {"op": op.name, "file": place.file, "line": place.line, "column": place.column, "name": place.name}


__all__ = ["BRIEFLY", "as_json", "contract_of_file", "proof_beside", "proved"]
