"""The launch of a kernel that Inductor wrote: its decorator says all of it, and the call `kernel.run(...)` what sizes it has."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gluonize.read.evaluate.lookup import find_kernel
from gluonize.read.evaluate.spec_values import encode_value
from gluonize.read.files.modules import full_search_path, parse_file
from gluonize.read.inductor.block_sizes import Config, config_of
from gluonize.read.inductor.stated import Stated, stated
from gluonize.read.kernels.load import load_kernel, resolve_source
from gluonize.read.launches.bound.binding import BoundValue, LaunchBinding
from gluonize.read.launches.table import Derivation, Row
from gluonize.read.spec.launch import LaunchSpec


def stated_launch(
    source: str,
    name: str,
    lanes: int,
    units: int | None,
    *,
    settings: Mapping[str, Any],
    search_path: Iterable[str] = (),
) -> Derivation | None:
    """The launch of a kernel as its decorator states it; None for one that Inductor did not write.

    lanes: of a warp of the target; units: its compute units. settings: values that are given, by argument. Raises: what loading raises.
    """
    loaded = load_kernel(source, name, search_path=list(search_path))
    if loaded.program is None or loaded.node is None:
        return None
    file, _ = resolve_source(source, full_search_path(tuple(search_path)))
    _, node, home = find_kernel(loaded.program.evaluator.builder, loaded.program.module_of(file), name)
    found = stated(node, home)
    if found is None or not found.signature:
        return None
    derived = _launch(found, node, source, name, lanes, units or 64, settings, parse_file(home.path).tree)
    passed = [p.name for p in loaded.fn.params if not p.is_constexpr]
    calls = _calls(parse_file(home.path).tree, node.name)
    return replace(derived, bindings=tuple(_bound(c, passed, derived.launches[0], home.path) for c in calls))


def _launch(
    found: Stated, node: ast.FunctionDef, source: str, name: str, lanes: int, units: int, settings: Mapping[str, Any], tree: ast.Module
) -> Derivation:  # fmt: skip
    names = [arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)]
    body = _numbers(node)
    kinds = {n: "constexpr" if n in found.constants else found.signature.get(n, "constexpr") for n in names}
    kinds |= {n: value for n, value in settings.items() if isinstance(value, str) and n in kinds}
    given = {n: found.constants[n] for n in names if n in found.constants}
    given |= {n: value for n, value in settings.items() if not isinstance(value, str) and n in kinds}
    missing = [n for n in names if kinds[n] == "constexpr" and n not in given]
    config = config_of(found, missing, body, lanes, units)
    constants = {n: given[n] if n in given else config.values.get(n) for n in names if kinds[n] == "constexpr"}
    call = next(_calls(tree, node.name), None)
    flags = found.attributes(names)
    attrs = {n: flags[n] for n in names if n in flags and kinds[n] != "constexpr"}
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages, **(config.options or {})}
    constexprs = {n: encode_value(value) for n, value in constants.items()}
    stem = Path(source).stem if source.endswith(".py") else source
    spec = LaunchSpec(
        f"{stem}/{name}", name, source, kinds, constexprs, attrs, options, _grid(found, constants | body, call)
    )
    return Derivation(name, (spec,), tuple(_rows(kinds, constants, config, settings)))


def _rows(
    kinds: Mapping[str, str], constants: Mapping[str, Any], config: Config, settings: Mapping[str, Any]
) -> Iterator[Row]:
    for n, kind in kinds.items():
        value = str(constants[n]) if kind == "constexpr" else kind
        if n in settings:
            yield Row(n, value, "given", "given")
        elif n in config.values:
            yield Row(n, value, "Inductor's first choice for the sizes that the decorator states", "read")
        else:
            yield Row(n, value, "triton_meta of the decorator", "read")


def _numbers(node: ast.FunctionDef) -> dict[str, int]:
    """The integers that a kernel's own text gives its names (`xnumel = 64`, `R0_BLOCK: tl.constexpr = 512`)."""
    found: dict[str, int] = {}
    for s in node.body:
        target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else getattr(s, "target", None)
        value = getattr(s, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and type(value.value) is int:
            found[target.id] = value.value
    return found


def _calls(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    """The calls `kernel.run(...)` of a program."""
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == "run" and isinstance(called.value, ast.Name):
            if called.value.id == name:
                yield node  # type: ignore[misc]


def _bound(call: ast.Call, passed: Sequence[str], spec: LaunchSpec, path: str) -> LaunchBinding:
    """A call `kernel.run(...)`: the numbers in it, and of the rest what the decorator states. passed: the parameters that it is given."""
    arguments: dict[str, BoundValue] = {}
    for name, arg in zip(passed, call.args):
        kind, text = spec.signature[name], ast.unparse(arg)
        number = arg.value if isinstance(arg, ast.Constant) and type(arg.value) is int else None
        if kind == "constexpr":
            value = spec.constexprs.get(name) if number is None else number
            arguments[name] = BoundValue(kind, value, number=number, text=text)
        elif isinstance(kind, str):
            divisible = "D" in spec.attrs.get(name, "") if number is None else number % 16 == 0
            arguments[name] = BoundValue(kind, divisible=divisible, number=number, text=text)
    return LaunchBinding(spec.kernel, path, call.lineno, arguments=arguments)


def _grid(found: Stated, known: Mapping[str, Any], call: ast.Call | None) -> tuple[int, ...]:
    """The grid where it says which of a kernel's parts run: of kernels that were put into one, and of templates, whose call passes it.

    known: constants, and numbers that the kernel has in its text. () where any grid does the same.
    """
    kind, meta = found.inductor_meta.get("grid_type"), found.inductor_meta.get("combo_grid_meta") or {}
    if kind == "SequentialComboKernelGrid":
        blocks = []
        for number in range(meta.get("num_kernels", 0)):
            size, block = meta.get(f"xnumel_{number}"), known.get(f"XBLOCK_{number}", known.get("XBLOCK", 1))
            if not isinstance(size, int) or not isinstance(block, int):
                return ()
            blocks.append(-(-size // (1 if meta.get(f"no_x_dim_{number}") else block)))
        return (sum(blocks),) if blocks else ()
    if kind == "FixedGrid" and call is not None:
        extents = [a.value if isinstance(a, ast.Constant) else None for a in call.args[-3:]]
        if all(type(extent) is int for extent in extents):
            return tuple(extents)  # type: ignore[arg-type]
    return ()


__all__ = ["stated_launch"]
