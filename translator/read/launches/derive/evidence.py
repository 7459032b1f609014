"""All that is known of a kernel before a launch is proposed."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gluonize.diagnostics import TranslationError
from gluonize.read.evaluate.bodies.changes import decorator_name
from gluonize.read.evaluate.host_objects import UserFunction
from gluonize.read.evaluate.program import Program
from gluonize.read.kernels.listing import list_kernels
from gluonize.read.kernels.load import LoadedKernel, load_kernel
from gluonize.read.launches.derive.host.address_terms import Terms, address_terms
from gluonize.read.launches.derive.host.callers import history_of
from gluonize.read.launches.derive.host.configs import (
    autotune_configs,
    configs_by_name,
    covering_configs,
    heuristics,
)
from gluonize.read.launches.derive.host.history import History
from gluonize.read.launches.derive.host.sites import Site, find_sites
from gluonize.read.launches.derive.kernel.documented import documented_types
from gluonize.read.launches.derive.kernel.origins import Flow, trace_origins
from gluonize.read.launches.derive.kernel.roles import is_flag
from gluonize.read.launches.derive.kernel.uses import Uses, read_uses
from gluonize.read.names.scope import Scope
from gluonize.triton_api.package import triton


@dataclass(frozen=True)
class Evidence:
    """One kernel: `parameters` by name as Triton has them, its launches in host code, the configurations to translate for, all of its
    configurations and its heuristics, and what it does with each argument. `unread`: what the decorators say that could not be read;
    `fp8`: the target's type of that size; `tuned`: the configurations of kernels that the module makes of this one, by name.
    """

    source: str
    name: str
    loaded: LoadedKernel
    program: Program
    home: Scope
    node: ast.FunctionDef
    parameters: dict[str, Any]
    sites: tuple[Site, ...]
    configs: tuple[triton.Config, ...]
    every_config: tuple[triton.Config, ...]
    heuristics: dict[str, Any]
    flow: Flow
    uses: Uses
    settings: dict[str, Any]
    unread: tuple[str, ...]
    fp8: str = "fp8e4nv"
    tuned: Mapping[str, Sequence[triton.Config]] = field(default_factory=dict)

    def history(self, site: Site) -> History:
        """What the callers of the function around a launch tell of it."""
        if id(site) not in self._histories:
            self._histories[id(site)] = history_of(self.program, site, self.uses.pointers)
        return self._histories[id(site)]

    @functools.cached_property
    def _histories(self) -> dict[int, History]:
        return {}

    @functools.cached_property
    def others(self) -> tuple[Evidence, ...]:
        """What is known of the first kernels of the file beside this one."""
        found: list[Evidence] = []
        for info in list_kernels(self.source, self.program.search_path):
            if not info.is_kernel or info.name == self.name or len(found) == _OTHERS:
                continue
            try:
                loaded = load_kernel(self.source, info.name, globals={}, search_path=self.program.search_path)
            except TranslationError:
                continue  # its own translation says why
            if loaded.node is not None and loaded.program is not None and not loaded.fn.is_gluon():
                found.append(gather_evidence(self.source, info.name, loaded, {}, fp8=self.fp8))
        return tuple(found)

    @functools.cached_property
    def strides(self) -> dict[str, list[str]]:
        """The strides of each pointer, in the order of the arguments."""
        out: dict[str, list[str]] = {}
        for base, found in _strides(self.flow).items():
            out[base] = [name for name in self.parameters if name in found]
        return out

    @functools.cached_property
    def terms(self) -> dict[str, Terms]:
        """The terms of the addresses of each pointer."""
        return address_terms(self.flow)

    @functools.cached_property
    def documented(self) -> dict[str, str]:
        """The element types that comments and the docstring name, by argument."""
        return documented_types(self.node, self.loaded.text)

    @functools.cached_property
    def converts(self) -> bool:
        """Whether the kernel converts to or from the type of some tensor: it is meant for types narrower than it computes in."""
        loads = any(use.any("cast:fp32") for use in self.uses.loads.values())
        return loads or any(found["cast"] for found in self.uses.stores.values())

    @functools.cached_property
    def is_fp8(self) -> bool:
        """Whether the kernel is named for 8-bit floating-point numbers, or has arguments that are; flags only ask for them."""
        flags = {
            n
            for n, p in self.parameters.items()
            if p.is_constexpr and (is_flag(n) or self.uses.arguments[n].any("tested"))
        }
        names = (self.name, *(n for n in self.parameters if n not in flags))
        return any(word in text.lower() for text in names for word in ("fp8", "float8", "f8e"))

    @functools.cached_property
    def is_quantized(self) -> bool:
        """Whether the kernel or its file is named for operands of 8 bits, whose scales are kept apart from them."""
        text = f"{self.name} {os.path.basename(self.loaded.path)}".lower()
        return any(word in text for word in ("fp8", "float8", "int8", "a8w8", "w8a8", "8bit", "scaled_mm"))

    @functools.cached_property
    def optional(self) -> frozenset[str]:
        """Arguments that a heuristic or the kernel compares with None."""
        found = {n for n, use in self.uses.arguments.items() if use.any("is-none")}
        for function in self.heuristics.values():
            for node in ast.walk(function.node) if isinstance(function, UserFunction) else ():
                if isinstance(node, ast.Compare) and isinstance(node.left, ast.Subscript):
                    index, other = node.left.slice, node.comparators[0]
                    if isinstance(index, ast.Constant) and isinstance(other, ast.Constant) and other.value is None:
                        found.add(index.value)
        return frozenset(found)

    def functions_for(self, name: str) -> list[str]:
        """The jit functions of the file that can be called as the kernel calls its argument `name`: they return something, and take as
        many arguments."""
        counts = {
            len(node.args)
            for function in self.flow.functions.values()
            for node in ast.walk(function.node)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        }
        out = []
        for node in self.home.body:
            if (
                isinstance(node, ast.FunctionDef)
                and node is not self.node
                and any(decorator_name(d) == "jit" for d in node.decorator_list)
            ):
                least = len(node.args.args) - len(node.args.defaults)
                returns = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node))
                if returns and any(least <= count <= len(node.args.args) for count in counts):
                    out.append(node.name)
        return out

    def function(self, name: str) -> Any:
        """The jit function of that name in the kernel's file. Raises: TranslationError where there is none."""
        return self.loaded.load_jit(f"{self.loaded.fn.__module__}:{name}")

    @functools.cached_property
    def tiles(self) -> list[str]:
        """The constants that are sizes of tiles, in the order of the arguments."""
        return [n for n, p in self.parameters.items() if p.is_constexpr and self.uses.arguments[n].any("tile")]

    @functools.cached_property
    def is_flat(self) -> bool:
        """Whether no tile of the kernel has two dimensions: nothing is indexed with None, and no block is made."""
        nodes = [node for function in self.flow.functions.values() for node in ast.walk(function.node)]
        subscripts = [node.slice for node in nodes if isinstance(node, ast.Subscript)]
        parts = [p for s in subscripts for p in (s.elts if isinstance(s, ast.Tuple) else [s])]
        return (
            not self.has_dot
            and not any(isinstance(p, ast.Constant) and p.value is None for p in parts)
            and not any(
                isinstance(n, ast.Attribute) and n.attr in ("make_block_ptr", "expand_dims", "make_tensor_descriptor")
                for n in nodes
            )
        )

    def items_of(self, name: str) -> int:
        """How many items of an argument the kernel uses by their numbers, `strides[2]`; 0 where it is no tuple."""
        found = [
            node.slice.value
            for node in ast.walk(self.flow.kernel.node)
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name
            if isinstance(node.slice, ast.Constant) and type(node.slice.value) is int
        ]
        return max(found) + 1 if found else 0

    @functools.cached_property
    def has_dot(self) -> bool:
        return any(
            isinstance(node, ast.Call) and self.flow.callee(function, node) in ("dot", "dot_scaled")
            for function in self.flow.functions.values()
            for node in ast.walk(function.node)
        )


# Every config is compiled twice and validated.
_CONFIGS = 8
# Kernels of one file that are asked for the types of tensors which they share.
_OTHERS = 8


def gather_evidence(
    source: str,
    name: str,
    loaded: LoadedKernel,
    settings: dict[str, Any],
    all_configs: bool = False,
    fp8: str = "fp8e4nv",
) -> Evidence:
    """Read everything about one kernel; nothing is executed. fp8: the target's 8-bit floating-point type."""
    assert loaded.node is not None and loaded.program is not None
    program = loaded.program
    home = program.import_known(loaded.module)
    flow = trace_origins(loaded)
    every, unread = autotune_configs(loaded, program, home)
    tuned, problems = configs_by_name(loaded.node.name, program, home) if not every else ({}, [])
    unread += problems
    every = every or [config for configs in tuned.values() for config in configs]
    configs = every if all_configs else covering_configs(every, _CONFIGS)
    if len(configs) < len(every):
        unread.append(
            f"{len(every) - len(configs)} of {len(every)} autotune configs are left out, every value of theirs is in another one; "
            "--all-configs takes all"
        )
    return Evidence(
        source, name, loaded, program, home, loaded.node, {param.name: param for param in loaded.fn.params},
        tuple(find_sites(program, home, loaded.node)), tuple(configs), tuple(every), heuristics(loaded, program, home), flow,
        read_uses(flow), settings, tuple(unread), fp8, tuned,
    )  # fmt: skip


def _strides(flow: Flow) -> dict[str, set[str]]:
    """Arguments that are factors in the offsets of each pointer."""
    out: dict[str, set[str]] = {}
    for function in flow.functions.values():
        for node in ast.walk(function.node):
            sides: list[tuple[ast.AST, ast.AST]] = []
            if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
                sides = [(node.left, node.right), (node.right, node.left)]
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
                sides = [(node.target, node.value)]
            for address, offset in sides:
                value = flow.of(address)
                if not flow.is_address(value):
                    continue
                factors = {
                    o.name
                    for inner in ast.walk(offset)
                    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult)
                    for side in (inner.left, inner.right)
                    if isinstance(side, ast.Name)
                    for o in flow.of(side).origins
                    if not o.loaded and "stride" in o.name.lower()
                }
                for base in value.bases:
                    if not base.loaded:
                        out.setdefault(base.name, set()).update(factors)
    return out
