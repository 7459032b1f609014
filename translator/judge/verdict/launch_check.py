"""The launch check of a generated file, asked without a launch: which arguments does the translation refuse?

Only the functions of the check are run, with a handful of harmless builtins and stand-ins for tensors. Each statement of a check is asked by
itself: of arguments that are not known none is refused.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from gluonize.judge.inputs.inputs import DescriptorArgument, Inputs, Tensor
from gluonize.judge.machine.dtypes import ELEMENTS, stored
from gluonize.read.files.generated_names import checked_name
from gluonize.read.spec.launch import LaunchSpec

FITS = "_fits_"  # of a kernel beside which the author's own stays: whether the translated one runs
_ALLOWED = (
    "abs all any bool callable dict enumerate float getattr hasattr int isinstance len list locals map max min range set sorted str sum "
    "tuple zip ValueError TypeError"
).split()
_FLOATS = {element: name for name, element in ELEMENTS.items() if "float" in name}
_WHOLE = re.compile(r"\*k?(?P<sign>[iu])(?P<bits>\d+)")
NO_ANSWER = "its launch check cannot be asked"


class StandIn:
    """A tensor as a launch check sees it. storage in bytes. kind: its type in the signature of the launch."""

    def __init__(self, tensor: Tensor, kind: str = ""):
        size = stored(tensor.element).itemsize
        self.shape, self.strides, self.size_of_element = tensor.shape, tensor.strides, size
        self.bytes = tensor.storage
        self.offset = tensor.offset
        if tensor.element in _FLOATS:
            self.dtype = _FLOATS[tensor.element]
        elif (whole := _WHOLE.fullmatch(kind)) is not None:  # else it is not known whether it has a sign
            self.dtype = (
                "bool"
                if whole["bits"] == "1"
                else f"{whole['sign'].replace('i', 'int').replace('u', 'uint')}{whole['bits']}"
            )

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
    """refusal(inputs) -> why the translation refuses them, "" where it takes them, as a file without a check takes all, and one in which
    nothing calls it.

    spec: has the compile-time arguments, the number of warps, and the grid where inputs have no other. defaults: of the kernel's parameters.
    """
    name = _check_of(tree, kernel.rpartition(".")[2])
    asked = [_asked(part, name, spec, defaults) for part in _parts(tree, name)] if name else []

    def refusal(inputs: Inputs) -> str:
        for ask in asked:
            try:
                ask(inputs, _launched)
            except TypeError:  # of an argument that is not known
                continue
            except (ValueError, ArithmeticError) as refused:
                return str(refused)
            except _Unanswered as error:
                return str(error)
        return ""

    return refusal


def _launched(check: Callable[..., None], grid: Sequence[int], given: dict[str, Any]) -> None:
    """Has a check see a launch. Raises: what the check does."""
    if 0 in grid:
        return  # nothing is launched
    parameters = inspect.signature(check).parameters.values()
    named = {
        p.name: given.get(p.name) for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    }
    of_grid = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    check(**given | named, **dict.fromkeys(of_grid, [*grid, 1, 1, 1]))


def _check_of(tree: ast.Module, kernel: str) -> str:
    """The function that sees launches of a kernel: `kernel.add_pre_run_hook(function)`, or what is put around `kernel.run`; "" without one."""
    decorators = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == checked_name(kernel)]
    used = [d for d in decorators if _in_use(tree, d.name)]
    inside = {id(n) for d in used for n in ast.walk(d)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_pre_run_hook":
            owner, check = node.func.value, node.args[0] if node.args else None
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.value.args) == 2:
            owner, check = node.targets[0], node.value.args[1]
            if not (isinstance(owner, ast.Attribute) and owner.attr == "run"):
                continue
        else:
            continue
        if isinstance(check, ast.Lambda) and isinstance(check.body, ast.Call):  # that gives it arguments by their names
            check = check.body.func
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        named = isinstance(owner, ast.Name) and (owner.id == kernel or id(node) in inside)
        if named and isinstance(check, ast.Name):
            return check.id
    return ""


def _parts(tree: ast.Module, name: str) -> Iterator[ast.Module]:
    """Files in which the function `name` has one of its statements each, behind what is assigned before."""
    named = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    others = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n not in named]
    for function in named[-1:]:
        assigned: list[ast.stmt] = []
        for statement in function.body:
            if isinstance(statement, ast.Assign):
                assigned.append(statement)
                continue
            alone = ast.FunctionDef(**{**dict(ast.iter_fields(function)), "body": [*assigned, statement]})
            yield ast.Module([*others, ast.copy_location(alone, function)], [])


def other_kernel(
    tree: ast.Module, kernel: str, spec: LaunchSpec, defaults: dict[str, int]
) -> Callable[[Inputs], str] | None:
    """answer(inputs) -> that the author's own kernel runs on them, "" where the translated one does; None in a file without that choice.

    spec, defaults: as `launch_check` takes them.
    """
    name = FITS + kernel.rpartition(".")[2].lstrip("_")
    if not any(isinstance(n, ast.FunctionDef) and n.name == name for n in ast.walk(tree)) or not _in_use(tree, name):
        return None
    asked = _asked(tree, name, spec, defaults)

    def answer(inputs: Inputs) -> str:
        try:
            fits = asked(inputs, lambda check, grid, given: check(defaults | given | {"grid": grid}))
        except (ValueError, TypeError, ArithmeticError) as error:
            return f"{NO_ANSWER}: {error}"
        except _Unanswered as error:
            return str(error)
        return "" if fits else f"{kernel}: its launcher runs the general kernel on them"

    return answer


class _Unanswered(Exception):
    """Why a check cannot be asked."""

    def __init__(self, why: object = ""):
        super().__init__(f"{NO_ANSWER}: {why}" if why else NO_ANSWER)


def _asked(
    tree: ast.Module, name: str, spec: LaunchSpec, defaults: dict[str, int]
) -> Callable[[Inputs, Callable[..., Any]], Any]:
    """ask(inputs, call) -> what `call(function, grid, arguments)` gives for the function `name` of a file.

    `ask` raises `_Unanswered` where the function may not be run or needs more than is there, and else what the function raises.
    """
    constants = spec.constexprs
    options = {key: spec.options[key] for key in ("num_warps", "num_ctas") if key in spec.options}
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    harmless = _harmless(functions[name])
    plain = [node for node in _reached(functions, name) if node.name.startswith("_") and _harmless(node)]
    plain = [_with_defaults(node, defaults) for node in plain]
    code = compile(ast.fix_missing_locations(ast.Module(plain, [])), "<launch check>", "exec")
    allowed = {word: getattr(builtins, word) for word in _ALLOWED}

    def ask(inputs: Inputs, call: Callable[..., Any]) -> Any:
        if not harmless:
            raise _Unanswered
        kinds = spec.signature
        given = {key: _seen(value, str(kinds.get(key, ""))) for key, value in inputs.arguments.items()}
        given = options | constants | given
        for key in inputs.left_out:
            del given[key]
        scope: dict[str, Any] = {"__builtins__": allowed, "builtins": SimpleNamespace(**allowed)}
        exec(code, scope)
        try:
            return call(scope[name], inputs.grid or tuple(spec.grid), given)
        except (NameError, AttributeError, KeyError, IndexError) as error:
            raise _Unanswered(error) from error

    return ask


def _with_defaults(function: ast.FunctionDef, defaults: dict[str, int]) -> ast.FunctionDef:
    """A function whose defaults are values: names of the file are not there."""
    named = function.args.args[len(function.args.args) - len(function.args.defaults) :]
    values = [
        value if isinstance(value, ast.Constant) else ast.Constant(defaults.get(argument.arg))
        for argument, value in zip(named, function.args.defaults)
    ]
    arguments = ast.arguments(**{**dict(ast.iter_fields(function.args)), "defaults": values})
    return ast.FunctionDef(**{**dict(ast.iter_fields(function)), "args": arguments})


def _hidden(nodes: Iterable[ast.AST]) -> bool:
    """Whether something reads an attribute that is not for others."""
    return any(isinstance(n, ast.Attribute) and n.attr.startswith("_") for n in nodes)


def _reached(functions: dict[str, ast.FunctionDef], name: str) -> list[ast.FunctionDef]:
    """A function and those that it names, in turn: host code beside them may need more than is there."""
    found, todo = {name: functions[name]}, [name]
    while todo:
        named = {n.id for n in ast.walk(found[todo.pop()]) if isinstance(n, ast.Name)}
        todo += (new := [other for other in functions if other in named and other not in found])
        found |= {other: functions[other] for other in new}
    return list(found.values())


def _in_use(tree: ast.Module, name: str) -> bool:
    """Whether a file names a function outside of it."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and node.id == name:
            return True
        inside = isinstance(node, ast.FunctionDef) and node.name == name
        todo += node.decorator_list if inside else ast.iter_child_nodes(node)
    return False


def _harmless(function: ast.FunctionDef) -> bool:
    """No decorator, import, loop without end or private attribute: a check reads arguments and raises."""
    nodes = list(ast.walk(function))
    other = any(isinstance(n, (ast.Import, ast.ImportFrom, ast.While, ast.With, ast.Global)) for n in nodes)
    return not (function.decorator_list or _hidden(nodes) or other)


def _seen(value: Any, kind: str) -> Any:
    if isinstance(value, Tensor):
        return StandIn(value, kind)
    if isinstance(value, DescriptorArgument):
        # What the translation takes for a descriptor.
        return (StandIn(value.base), tuple(value.shape), tuple(value.strides))
    if isinstance(value, list):
        return tuple(_seen(item, "") for item in value)
    return value.item() if isinstance(value, np.generic) else value
