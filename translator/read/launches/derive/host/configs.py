"""What decorators say of a launch: the configurations of `autotune`, and the values of `heuristics`."""

from __future__ import annotations

import ast
from typing import Any

from gluonize.read.evaluate.program import Program
from gluonize.read.kernels.load import LoadedKernel
from gluonize.read.launches.derive.host.heuristics import heuristic_tables
from gluonize.read.names.scope import Scope
from gluonize.read.unresolved import NoValue
from gluonize.triton_api.package import triton


def autotune_configs(loaded: LoadedKernel, program: Program, home: Scope) -> tuple[list[triton.Config], list[str]]:
    """The distinct configurations of a kernel, in their order, and what cannot be read of them.

    Decorators of other names count too where they take `configs=`: packages have autotuners of their own.
    """
    problems: list[str] = []
    for decorator in loaded.decorators:
        if not isinstance(decorator.node, ast.Call) or decorator.kind not in ("autotune", "other"):
            continue
        keyword = [k.value for k in decorator.node.keywords if k.arg == "configs"]
        if decorator.kind == "autotune":
            keyword = keyword or decorator.node.args[:1]
        if not keyword:
            continue
        try:
            value = program.evaluate(keyword[0], home)
            items = program.evaluator.iterate(value, home.place(keyword[0]))
        except NoValue as error:
            problems.append(f"the autotune configs at line {decorator.line} cannot be read statically ({error.reason})")
            continue
        distinct: dict[str, triton.Config] = {}
        for config in items:
            if isinstance(config, triton.Config):
                key = repr((sorted(config.kwargs.items(), key=str), config.num_warps, config.num_stages))
                distinct.setdefault(key, config)
        if distinct:
            return list(distinct.values()), problems
    return [], problems


def heuristics(loaded: LoadedKernel, program: Program, home: Scope) -> dict[str, Any]:
    """The function of every argument that `heuristics` computes."""
    tables = heuristic_tables(loaded.decorators, program, home)
    return {name: function for table in tables for name, function in table.functions.items() if isinstance(name, str)}


def covering_configs(configs: list[triton.Config], most: int) -> list[triton.Config]:
    """At most `most` configs as they are; of more, those that have every value of every parameter at least once, in their order."""
    if len(configs) <= most:
        return configs
    known: set[tuple[str, str]] = set()
    out = []
    for config in configs:
        values = {*((n, repr(v)) for n, v in config.kwargs.items()), ("num_warps", str(config.num_warps))}
        values.add(("num_stages", str(config.num_stages)))
        if values - known:
            known |= values
            out.append(config)
    return out
