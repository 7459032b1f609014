"""What a host function shows of its parameters: tensors, their types, and which may be None."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

_TENSOR_USES = frozenset(
    "shape stride dtype device contiguous view reshape is_contiguous numel size ndim dim new_empty new_zeros element_size to "
    "is_cuda data_ptr clone transpose flatten unsqueeze squeeze T permute expand untyped_storage".split()
)


def is_tensor(arg: ast.arg, function: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a parameter is annotated as a tensor, or used as one."""
    if arg.annotation is not None and "Tensor" in ast.unparse(arg.annotation):
        return True
    return arg.arg in _used(function)[0]


def may_be_none(arg: ast.arg, function: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a parameter's annotation allows None, or the function asks for it."""
    text = ast.unparse(arg.annotation) if arg.annotation is not None else ""
    return "None" in text or "Optional" in text or arg.arg in _used(function)[1]


@functools.lru_cache(maxsize=1024)
def _used(function: ast.FunctionDef | ast.Lambda) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a function uses as tensors, and those that it compares with None. Runs ask for every parameter, hundreds of times."""
    tensors, compared = set(), set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr in _TENSOR_USES and isinstance(node.value, ast.Name):
            tensors.add(node.value.id)
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            other = node.comparators[0]
            if isinstance(other, ast.Constant) and other.value is None:
                compared.add(node.left.id)
    return frozenset(tensors), frozenset(compared)


def annotated_type(arg: ast.arg) -> str:
    """The element type that an annotation names; "" where it names none."""
    text = ast.unparse(arg.annotation) if arg.annotation is not None else ""
    kinds = {
        "LongTensor": "i64",
        "IntTensor": "i32",
        "BoolTensor": "u1",
        "ByteTensor": "u8",
        "FloatTensor": "fp32",
        "HalfTensor": "fp16",
    }
    return next((kind for word, kind in kinds.items() if word in text), "")


def none_by_default(function: ast.FunctionDef) -> Iterator[str]:
    """The parameters that are None where nobody passes them."""
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    given = [
        *zip(positional[len(positional) - len(spec.defaults) :], spec.defaults),
        *zip(spec.kwonlyargs, spec.kw_defaults),
    ]
    for arg, default in given:
        if isinstance(default, ast.Constant) and default.value is None:
            yield arg.arg
