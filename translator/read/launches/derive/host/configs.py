"""What decorators say of a launch: the configurations of `autotune`, and the values of `heuristics`."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from gluonize.read.evaluate.program import Program
from gluonize.read.kernels.decorators import decorator_of
from gluonize.read.kernels.load import LoadedKernel
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
        found, problem = _configs_of(keyword[0], decorator.line, program, home)
        problems += [problem] if problem else []
        if found:
            return found, problems
    return [], problems


def configs_by_name(name: str, program: Program, home: Scope) -> tuple[dict[str, list[triton.Config]], list[str]]:
    """The configurations of kernels that the module or a function of it makes of this one,
    `tuned = triton.autotune(configs=..., key=...)(kernel)`, by the names that they have; and what cannot be read of others.
    """
    problems: list[str] = []
    out: dict[str, list[triton.Config]] = {}
    for node in ast.walk(ast.Module(home.body, [])):
        call = node.value if isinstance(node, ast.Assign) else None
        made = call.func if isinstance(call, ast.Call) and isinstance(call.func, ast.Call) else None
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(call, ast.Call) or made is None or not isinstance(target, ast.Name):
            continue
        of_kernel = call.args and isinstance(call.args[0], ast.Name) and call.args[0].id == name
        if of_kernel and decorator_of(made, home).kind == "autotune":
            given = [k.value for k in made.keywords if k.arg == "configs"] or made.args[:1]
            found, problem = _configs_of(given[0], made.lineno, program, home) if given else ([], "")
            problems += [problem] if problem else []
            out[target.id] = _distinct([*out.get(target.id, ()), *found])
    return {made_as: configs for made_as, configs in out.items() if configs}, problems


def _configs_of(node: ast.expr, line: int, program: Program, home: Scope) -> tuple[list[triton.Config], str]:
    """The distinct configurations that an expression gives, those of both branches where it is not known which one is taken, and why
    they cannot be read."""
    try:
        items = program.evaluator.iterate(program.evaluate(node, home), home.place(node))
    except NoValue as error:
        if isinstance(node, ast.IfExp):
            (some, problem), (others, other) = [_configs_of(n, line, program, home) for n in (node.body, node.orelse)]
            return _distinct([*some, *others]), problem or other
        return [], f"the autotune configs at line {line} cannot be read statically ({error.reason})"
    return _distinct(items), ""


def _distinct(items: Iterable[Any]) -> list[triton.Config]:
    out: dict[str, triton.Config] = {}  # by what tells them apart
    for config in items:
        if isinstance(config, triton.Config):
            out.setdefault(repr((sorted(config.kwargs.items(), key=str), config.num_warps, config.num_stages)), config)
    return list(out.values())


def heuristics(loaded: LoadedKernel, program: Program, home: Scope) -> dict[str, Any]:
    """The function of every argument that `heuristics` computes, as far as their tables can be evaluated."""
    out: dict[str, Any] = {}
    for decorator in loaded.decorators:
        if decorator.kind != "heuristics" or not isinstance(decorator.node, ast.Call):
            continue
        tables = [k.value for k in decorator.node.keywords if k.arg == "values"] or decorator.node.args[:1]
        try:
            table = program.evaluate(tables[0], home) if tables else None
        except NoValue:
            continue
        if isinstance(table, dict):
            out |= {name: function for name, function in table.items() if isinstance(name, str)}
    return out


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
