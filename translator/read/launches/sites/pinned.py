"""What a generated file has its kernels launched with where a launch does not say otherwise: `kernel.run = functools.partial(kernel.run,
enable_fp_fusion=True)`, in `_checked_kernel(...)` where a decorator does it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from gluonize.read.files.generated_names import checked_name
from gluonize.read.files.modules import parse_file
from gluonize.read.kernels.load import LoadedKernel
from gluonize.read.spec.launch import LaunchSpec
from gluonize.triton_api.differences import FP_FUSION


def as_pinned(loaded: LoadedKernel, spec: LaunchSpec) -> LaunchSpec:
    """A launch with the options that the file of its kernel gives it."""
    if not loaded.fn.is_gluon():
        return spec
    name = loaded.qualname.rpartition(".")[2]
    tree = parse_file(loaded.path).tree
    given = [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and n.args and re.search(r"\bpartial$", ast.unparse(n.func))
    ]
    if not given:
        return spec
    decorators = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == checked_name(name))
    inside = {id(n) for decorator in decorators for n in ast.walk(decorator)}
    for node in given:
        if id(node) in inside or re.fullmatch(rf"{name}(\.fn)*\.run", ast.unparse(node.args[0])):
            constants = {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}
            if FP_FUSION in constants:
                return replace(spec, options={FP_FUSION: constants[FP_FUSION]} | spec.options)
    return spec
