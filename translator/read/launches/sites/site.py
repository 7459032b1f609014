"""Launches in host code, `kernel[grid](a, b, BLOCK=64)`, read and never run: what each argument is, as far as it shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gluonize.read.evaluate.host_values import HostName
from gluonize.read.evaluate.program import Program
from gluonize.read.kernels.listing import names_of
from gluonize.read.launches.sites.passed import passed
from gluonize.read.names.scope import Scope
from gluonize.read.spec.torch_types import CASTS, TRITON_TYPE
from gluonize.read.unresolved import NoValue

_MAKERS = ("empty", "zeros", "ones", "full", "rand", "randn", "arange", "tensor", "randint")
_LIKE = (
    "empty_like",
    "zeros_like",
    "ones_like",
    "full_like",
    "rand_like",
    "randn_like",
    "new_empty",
    "new_zeros",
    "clone",
    "contiguous",
    "detach",
)


@dataclass(frozen=True)
class LaunchSite:
    """One launch: the expression of every argument by name, options such as `num_warps`, and the grid expression."""

    line: int
    arguments: dict[str, ast.expr]
    keywords: dict[str, ast.expr]
    grid: ast.expr
    scope: Scope
    program: Program
    body: list[ast.stmt] = field(default_factory=list)

    def value(self, node: ast.expr) -> Any:
        """The static value of an expression at this site. Raises: Undetermined, Raised."""
        return self.program.evaluate(node, self.scope)

    def tensor_type(self, node: ast.expr, depth: int = 0) -> str:
        """The element type of a tensor expression (`fp16`), as far as host code shows it; else empty."""
        if depth > 8:
            return ""
        if isinstance(node, ast.Name):
            for value in self._assigned(node.id):
                if found := self.tensor_type(value, depth + 1):
                    return found
            return ""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            for keyword in node.keywords:
                if keyword.arg == "dtype":
                    return self._dtype(keyword.value, depth)
            if name == "to" and node.args:
                return self._dtype(node.args[0], depth) or self.tensor_type(node.func.value, depth + 1)
            if name in CASTS and not node.args:
                return CASTS[name]
            if name in _MAKERS and _is_torch(node.func.value):
                return {"arange": "i64", "randint": "i64"}.get(name, "fp32" if name != "tensor" else "")
            if name.endswith("_like") and node.args:
                return self.tensor_type(node.args[0], depth + 1)
            if name in (
                *_LIKE,
                "view",
                "reshape",
                "t",
                "transpose",
                "permute",
                "flatten",
                "squeeze",
                "unsqueeze",
                "expand",
            ):
                return self.tensor_type(node.func.value, depth + 1)
        if isinstance(node, ast.Subscript):
            return self.tensor_type(node.value, depth + 1)
        return ""

    def _dtype(self, node: ast.expr, depth: int) -> str:
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            return self.tensor_type(node.value, depth + 1)
        try:
            value = self.value(node)
        except NoValue:
            return ""
        return TRITON_TYPE.get(value.torch_dtype, "") if isinstance(value, HostName) else ""

    def stride_is_one(self, node: ast.expr) -> bool:
        """Whether `x.stride(k)` is shown to be 1: the last dimension of a tensor that is contiguous here."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "stride"):
            return False
        tensor = node.func.value
        if len(node.args) != 1 or not isinstance(tensor, ast.Name) or not self._is_contiguous(tensor.id):
            return False
        try:
            dimension = self.value(node.args[0])
        except NoValue:
            return False
        rank = self._rank(tensor.id)
        return dimension == -1 or (rank is not None and dimension == rank - 1)

    def _is_contiguous(self, name: str) -> bool:
        text = f"{name}.is_contiguous()"
        for statement in self.body:
            for inner in ast.walk(statement):
                if isinstance(inner, ast.Assert) and text in _conjuncts(inner.test):
                    return True
        values = self._assigned(name)
        return bool(values) and all(_makes_contiguous(value) for value in values)

    def _rank(self, name: str) -> int | None:
        """The rank that `M, N = x.shape` or `torch.empty((M, N))` shows."""
        for statement in self.body:
            for inner in ast.walk(statement):
                if isinstance(inner, ast.Assign) and ast.unparse(inner.value) in (f"{name}.shape", f"{name}.size()"):
                    target = inner.targets[0]
                    if isinstance(target, ast.Tuple) and not any(isinstance(t, ast.Starred) for t in target.elts):
                        return len(target.elts)
        for value in self._assigned(name):
            if isinstance(value, ast.Call) and value.args and isinstance(value.args[0], (ast.Tuple, ast.List)):
                return len(value.args[0].elts)
        return None

    def _assigned(self, name: str) -> list[ast.expr]:
        found = self.scope.bindings.by_name.get(name, [])
        return [b.value for b in found if b.kind == "assign" and b.value is not None and not b.path]

    def annotation(self, node: ast.expr) -> str:
        """The annotation of the host function's argument that is passed on, as text."""
        if isinstance(node, ast.Name):
            for binding in self.scope.bindings.by_name.get(node.id, []):
                if (
                    binding.kind == "parameter"
                    and isinstance(binding.node, ast.arg)
                    and binding.node.annotation is not None
                ):
                    return ast.unparse(binding.node.annotation)
        return ""


def launch_sites(program: Program, module: Scope, kernel: ast.FunctionDef) -> list[LaunchSite]:
    """The launches of a kernel in its own file, in source order."""
    names = [arg.arg for arg in (*kernel.args.posonlyargs, *kernel.args.args)]
    every = [*names, *(arg.arg for arg in kernel.args.kwonlyargs)]
    out: list[LaunchSite] = []

    def visit(body: list[ast.stmt], scope: Scope) -> None:
        for statement in body:
            for node in without_definitions(statement):
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    visit(node.body, scope.inside(node))
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
                    target = node.func.value
                    called = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
                    if called in names_of(kernel, module):
                        out.append(_site(node, names, every, scope, program, body))

    visit(module.body, module)
    return sorted(out, key=lambda site: site.line)


def _site(
    node: ast.Call, names: list[str], every: list[str], scope: Scope, program: Program, body: list[ast.stmt]
) -> LaunchSite:
    arguments, options = passed(node, names, every)
    assert isinstance(node.func, ast.Subscript)
    return LaunchSite(node.lineno, arguments, options, node.func.slice, scope, program, body)


def without_definitions(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement and what is in it, stopping at definitions (which are yielded themselves)."""
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop(0)
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            stack.extend(ast.iter_child_nodes(node))


def _conjuncts(test: ast.expr) -> list[str]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [text for value in test.values for text in _conjuncts(value)]
    return [ast.unparse(test)]


def _is_torch(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "torch"


def _makes_contiguous(value: ast.expr) -> bool:
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return False
    return value.func.attr == "contiguous" or (value.func.attr in _MAKERS and _is_torch(value.func.value))
