"""The launch check of a generated file, asked without a launch: which arguments does the translation refuse?

Only the functions of the check are run, with a handful of harmless builtins and stand-ins for kernel and tensors. Where a file lists
conditions (`_assume(kernel, "K % 16 == 0")`), its function is asked about one after another: of arguments that are not known none is broken.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np

from gluonize.judge.inputs.inputs import DescriptorArgument, Inputs, Tensor
from gluonize.judge.machine.dtypes import ELEMENTS, stored
from gluonize.read.spec.launch import LaunchSpec

PREFIX = "_check_"
FITS = "_fits_"  # of a kernel beside which the author's own stays: whether the translated one runs
_INSTALLERS = ("_checked_", "_run_checked_")  # functions that put a check before launches
_ASSUME = re.compile(r"_assume(_\d+)?$")  # the function that has conditions checked
_ALLOWED = (
    "abs all any bool callable dict enumerate float getattr hasattr int isinstance len list locals map max min range set sorted str sum "
    "tuple zip ValueError TypeError"
).split()
_READ = ("__name__",)  # attributes of the kernel
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
    name = PREFIX + kernel.rpartition(".")[2].lstrip("_")
    if (conditions := _conditions(tree, kernel.rpartition(".")[2])) is not None:
        return _listed(tree, *conditions, kernel, spec, defaults)
    asked = _asked(tree, name, kernel, spec, defaults)
    if asked is None:
        return lambda inputs: ""

    def refusal(inputs: Inputs) -> str:
        try:
            asked(inputs, lambda check, grid, given: check(grid=grid, **given))
        except (ValueError, TypeError, ArithmeticError) as refused:
            return str(refused)
        except _Unanswered as error:
            return str(error)
        return ""

    return refusal


def _listed(
    tree: ast.Module, name: str, conditions: Sequence[str], kernel: str, spec: LaunchSpec, defaults: dict[str, int]
) -> Callable[[Inputs], str]:
    """The answer of a file whose function `name` is given conditions."""
    asked = _asked(tree, name, kernel, spec, defaults)
    if asked is None:
        return lambda inputs: NO_ANSWER
    own = kernel.rpartition(".")[2]
    parameters = [
        a.arg
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef) and n.name == own
        for a in (*n.args.args, *n.args.kwonlyargs)
    ]

    def refusal(inputs: Inputs) -> str:
        for condition in conditions:

            def launch(assume: Any, grid: Any, given: dict, condition: str = condition) -> None:
                found = _Launched([*parameters, *spec.constexprs, *inputs.arguments], defaults, kernel)
                assume(found, condition)
                found.run(grid=grid, warmup=False, **given)

            try:
                asked(inputs, launch)
            except SyntaxError as error:  # of an edited condition
                return str(_Unanswered(error))
            except TypeError:  # of an argument that is not known
                continue
            except (ValueError, ArithmeticError) as refused:
                return str(refused)
            except _Unanswered as error:
                return str(error)
        return ""

    return refusal


class _Launched:
    """A kernel whose launch does nothing but what stands before it."""

    def __init__(self, arguments: Iterable[str], defaults: dict[str, int], kernel: str):
        self.arg_names = list(dict.fromkeys([*arguments, *defaults]))
        self.params = [
            SimpleNamespace(name=name, has_default=name in defaults, default=defaults.get(name))
            for name in self.arg_names
        ]
        self.__name__ = kernel.rpartition(".")[2]
        self.hooks: list[Callable] = []
        self.run = self._run

    def add_pre_run_hook(self, hook: Callable) -> None:
        self.hooks.append(hook)

    def _run(self, *, grid: Any, warmup: bool, **kwargs: Any) -> None:
        for hook in self.hooks:
            hook(**kwargs)


def _conditions(tree: ast.Module, kernel: str) -> tuple[str, list[str]] | None:
    """(the function that a file calls with conditions of a kernel, those of them); None where none is."""
    checked = f"{_INSTALLERS[0]}{kernel.lstrip('_')}"
    decorators = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == checked]
    inside = {id(n) for d in decorators for n in ast.walk(d)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or len(node.args) < 2:
            continue
        first, *texts = node.args
        while isinstance(first, ast.Attribute) and first.attr == "fn":
            first = first.value
        named = isinstance(first, ast.Name) and (first.id == kernel or id(node) in inside)
        of_text = [t.value for t in texts if isinstance(t, ast.Constant) and isinstance(t.value, str)]
        if named and len(of_text) == len(texts) and _ASSUME.match(node.func.id):
            in_use = id(node) not in inside or _in_use(tree, f"{PREFIX}{kernel.lstrip('_')}")
            return (node.func.id, of_text) if in_use else None
    return None


def other_kernel(
    tree: ast.Module, kernel: str, spec: LaunchSpec, defaults: dict[str, int]
) -> Callable[[Inputs], str] | None:
    """answer(inputs) -> that the author's own kernel runs on them, "" where the translated one does; None in a file without that choice.

    spec, defaults: as `launch_check` takes them.
    """
    name = FITS + kernel.rpartition(".")[2].lstrip("_")
    asked = _asked(tree, name, kernel, spec, defaults)
    if asked is None:
        return None

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
    tree: ast.Module, name: str, kernel: str, spec: LaunchSpec, defaults: dict[str, int]
) -> Callable[[Inputs, Callable[..., Any]], Any] | None:
    """ask(inputs, call) -> what `call(function, grid, arguments)` gives for the function `name` of a file; None where there is none.

    `ask` raises `_Unanswered` where the function may not be run or needs more than is there, and else what the function raises.
    """
    constants = spec.constexprs
    options = {key: spec.options[key] for key in ("num_warps", "num_ctas") if key in spec.options}
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    if name not in functions or not _in_use(tree, name):
        return None
    harmless = _harmless(functions[name])
    plain = [node for node in _reached(functions, name) if node.name.startswith("_") and _harmless(node)]
    allowed = {word: getattr(builtins, word) for word in _ALLOWED}
    code = compile(ast.Module(plain, []), "<launch check>", "exec")

    def ask(inputs: Inputs, call: Callable[..., Any]) -> Any:
        if not harmless:
            raise _Unanswered
        kinds = spec.signature
        given = {key: _seen(value, str(kinds.get(key, ""))) for key, value in inputs.arguments.items()}
        given = options | constants | given
        for key in inputs.left_out:
            del given[key]
        params = [SimpleNamespace(name=key, default=value, has_default=True) for key, value in defaults.items()]
        stand_in = SimpleNamespace(arg_names=[*constants, *inputs.arguments], params=params)
        stand_in.fn = stand_in
        scope: dict[str, Any] = {"__builtins__": allowed | _READING, kernel.rpartition(".")[2]: stand_in}
        exec(code, scope)
        try:
            return call(scope[name], inputs.grid or tuple(spec.grid), given)
        except (NameError, AttributeError, KeyError, IndexError) as error:
            raise _Unanswered(error) from error

    return ask


def _evaluated(text: str, scope: dict[str, Any]) -> Any:
    """What an expression is that reads nothing but what it is given."""
    if (code := _expression(text)) is None:
        raise _Unanswered
    builtin = {word: getattr(builtins, word) for word in _ALLOWED}
    return eval(code, {**scope, "__builtins__": builtin})


@functools.lru_cache(maxsize=1024)  # the conditions of a kernel are asked for each of many inputs
def _expression(text: str) -> CodeType | None:
    """The code of an expression; None of one that reads what is not for others. Raises: SyntaxError."""
    tree = ast.parse(text, mode="eval")
    return None if _hidden(ast.walk(tree)) else compile(tree, "<condition>", "eval")


def _imported(name: str, *_: Any) -> SimpleNamespace:
    if name not in _MODULES:
        raise _Unanswered
    return _MODULES[name]


_MODULES = {
    "os": SimpleNamespace(environ={}),
    "functools": SimpleNamespace(partial=functools.partial),
}  # what a check may import
# What a check may use to read conditions: nothing that it makes is run, but expressions.
_READING = {"eval": _evaluated, "compile": compile, "__import__": _imported}


def _hidden(nodes: Iterable[ast.AST]) -> bool:
    """Whether something reads an attribute that is not for others."""
    return any(isinstance(n, ast.Attribute) and n.attr.startswith("_") and n.attr not in _READ for n in nodes)


def _reached(functions: dict[str, ast.FunctionDef], name: str) -> list[ast.FunctionDef]:
    """A function and those that it names, in turn: host code beside them may need more than is there."""
    found, todo = {name: functions[name]}, [name]
    while todo:
        named = {n.id for n in ast.walk(found[todo.pop()]) if isinstance(n, ast.Name)}
        todo += (new := [other for other in functions if other in named and other not in found])
        found |= {other: functions[other] for other in new}
    return list(found.values())


def _in_use(tree: ast.Module, name: str) -> bool:
    """Whether a file names a check outside of the check itself and of what would install it."""
    own = (name, *(f"{prefix}{name.removeprefix(PREFIX)}" for prefix in _INSTALLERS))
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and node.id in own:
            return True
        inside = isinstance(node, ast.FunctionDef) and node.name in own
        todo += node.decorator_list if inside else ast.iter_child_nodes(node)
    return False


def _harmless(function: ast.FunctionDef) -> bool:
    """No decorator, import of more than the environment and `partial`, loop without end or private attribute: a check reads arguments and raises."""
    nodes = list(ast.walk(function))
    other = any(isinstance(n, (ast.ImportFrom, ast.While, ast.With, ast.Global)) for n in nodes)
    imported = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    return not (function.decorator_list or _hidden(nodes) or other or imported - _MODULES.keys())


def _seen(value: Any, kind: str) -> Any:
    if isinstance(value, Tensor):
        return StandIn(value, kind)
    if isinstance(value, DescriptorArgument):
        # What the translation takes for a descriptor.
        return (StandIn(value.base), tuple(value.shape), tuple(value.strides))
    if isinstance(value, list):
        return tuple(_seen(item, "") for item in value)
    return value.item() if isinstance(value, np.generic) else value
