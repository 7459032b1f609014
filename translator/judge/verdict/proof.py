"""A launch of a kernel and of its source, given to the prover: their modules, and what the header of the file states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.prove.both_sides import Verdict, prove
from gluonize.judge.prove.stated_bounds import read_contract
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.targets import target as target_row
from gluonize.trace.model.op import Op
from gluonize.trace.model.parse import parse_module


def prove_launch(
    source: str,
    output: str,
    spec: LaunchSpec,
    target: str,
    search_path: tuple[str, ...] = (),
    import_hosts: bool = False,
) -> dict:
    """What is known of `output` computing what `source` computes, in a worker process. Raises: TranslationError."""
    left = source_stage(source, spec, target, tuple(search_path), import_hosts)
    right = translated_stage(output, spec, target, tuple(search_path), import_hosts)
    with open(output, encoding="utf-8") as file:
        stated = read_contract(file.read(), spec.kernel, spec.constexprs)
    contract = replace(stated, copies_end=target_row(target).copies_end_with_program)
    return as_json(prove(parse_module(left.text, left.file), parse_module(right.text, right.file), contract))


def as_json(verdict: Verdict) -> dict:
    """A verdict as a command prints and writes it."""
    return {
        "status": verdict.word,
        "reason": verdict.why,
        "source": _place(verdict.first),
        "output": _place(verdict.second),
        "assumed": list(verdict.assumed),
        "cases": verdict.cases,
        "seconds": round(verdict.seconds, 3),
    }


def _place(op: Op | None) -> dict[str, Any] | None:
    if op is None:
        return None
    place = op.place
    return {"op": op.name, "file": place.file, "line": place.line, "column": place.column, "name": place.name}


__all__ = ["as_json", "prove_launch"]
