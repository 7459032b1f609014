"""The launch check of a generated file, asked without a launch: which arguments does the translation refuse?

Only the functions of the check are run, with a handful of harmless builtins and stand-ins for kernel and tensors.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from gluonize.judge.inputs.inputs import DescriptorArgument, Inputs, Tensor
from gluonize.judge.machine.dtypes import ELEMENTS, stored
from gluonize.read.spec.launch import LaunchSpec

PREFIX = "_check_"
_ALLOWED = (
    "abs all any bool callable dict enumerate float getattr hasattr int isinstance len list max min range set sorted str sum tuple zip "
    "ValueError TypeError"
).split()
_FLOATS = {element: name for name, element in ELEMENTS.items() if "float" in name}
NO_ANSWER = "its launch check cannot be asked"


class StandIn:
    """A tensor as a launch check sees it. storage in bytes."""

    def __init__(self, tensor: Tensor):
        size = stored(tensor.element).itemsize
        self.shape, self.strides, self.size_of_element = tensor.shape, tensor.strides, size
        self.bytes = tensor.storage
        self.offset = tensor.offset
        if tensor.element in _FLOATS:  # of whole numbers it is not known here whether they have a sign
            self.dtype = _FLOATS[tensor.element]

    def untyped_storage(self) -> SimpleNamespace:
        return SimpleNamespace(size=lambda: self.bytes, nbytes=lambda: self.bytes)

    def storage_offset(self) -> int:
        return self.offset

    def element_size(self) -> int:
        return self.size_of_element

    def numel(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def stride(self, axis: int | None = None):
        return self.strides if axis is None else self.strides[axis]


def launch_check(tree: ast.Module, kernel: str, spec: LaunchSpec, defaults: dict[str, int]) -> Callable[[Inputs], str]:
    """refusal(inputs) -> why the translation refuses them, "" where it takes them, as a file without a check takes all.

    spec: has the compile-time arguments, the number of warps, and the grid where inputs have no other. defaults: of the kernel's parameters.
    """
    constants = spec.constexprs
    options = {key: spec.options[key] for key in ("num_warps", "num_ctas") if key in spec.options}
    name = PREFIX + kernel.rpartition(".")[2].lstrip("_")
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        return lambda inputs: ""
    if not _harmless(functions[name]):
        return lambda inputs: NO_ANSWER
    plain = [node for node in _reached(functions, name) if node.name.startswith("_") and _harmless(node)]
    allowed = {word: getattr(builtins, word) for word in _ALLOWED}
    code = compile(ast.Module(plain, []), "<launch check>", "exec")

    def refusal(inputs: Inputs) -> str:
        given = options | constants | {key: _seen(value) for key, value in inputs.arguments.items()}
        for key in inputs.left_out:
            del given[key]
        params = [SimpleNamespace(name=key, default=value, has_default=True) for key, value in defaults.items()]
        stand_in = SimpleNamespace(arg_names=[*constants, *inputs.arguments], params=params)
        stand_in.fn = stand_in
        scope: dict[str, Any] = {"__builtins__": allowed, kernel.rpartition(".")[2]: stand_in}
        exec(code, scope)
        try:
            scope[name](grid=inputs.grid or tuple(spec.grid), **given)
        except (ValueError, TypeError, ArithmeticError) as refused:
            return str(refused)
        except (NameError, AttributeError, KeyError, IndexError) as error:
            return f"{NO_ANSWER}: {error}"
        return ""

    return refusal


def _reached(functions: dict[str, ast.FunctionDef], name: str) -> list[ast.FunctionDef]:
    """A function and those that it names, in turn: host code beside them may need more than is there."""
    found, todo = {name: functions[name]}, [name]
    while todo:
        named = {n.id for n in ast.walk(found[todo.pop()]) if isinstance(n, ast.Name)}
        todo += (new := [other for other in functions if other in named and other not in found])
        found |= {other: functions[other] for other in new}
    return list(found.values())


def _harmless(function: ast.FunctionDef) -> bool:
    """No decorator, import, loop without end or private attribute: a check reads arguments and raises."""
    nodes = list(ast.walk(function))
    hidden = any(isinstance(n, ast.Attribute) and n.attr.startswith("_") for n in nodes)
    other = any(isinstance(n, (ast.Import, ast.ImportFrom, ast.While, ast.With, ast.Global)) for n in nodes)
    return not (function.decorator_list or hidden or other)


def _seen(value: Any) -> Any:
    if isinstance(value, Tensor):
        return StandIn(value)
    if isinstance(value, DescriptorArgument):
        # What the translation takes for a descriptor.
        return (StandIn(value.base), tuple(value.shape), tuple(value.strides))
    if isinstance(value, list):
        return tuple(map(_seen, value))
    return value.item() if isinstance(value, np.generic) else value
