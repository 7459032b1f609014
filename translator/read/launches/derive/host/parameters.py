"""What a host function shows of its parameters: tensors, their types, and which may be None."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_TENSOR_USES = frozenset(
    "shape stride dtype device contiguous view reshape is_contiguous numel size ndim dim new_empty new_zeros element_size to "
    "is_cuda data_ptr clone transpose flatten unsqueeze squeeze T permute expand untyped_storage".split()
)


def is_tensor(arg: ast.arg, function: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a parameter is annotated as a tensor, or used as one."""
    if arg.annotation is not None and "Tensor" in ast.unparse(arg.annotation):
        return True
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in _TENSOR_USES
        and isinstance(node.value, ast.Name)
        and node.value.id == arg.arg
        for node in ast.walk(function)
    )


def may_be_none(arg: ast.arg, function: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a parameter's annotation allows None, or the function asks for it."""
    text = ast.unparse(arg.annotation) if arg.annotation is not None else ""
    return (
        "None" in text
        or "Optional" in text
        or any(
            isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Name)
            and node.left.id == arg.arg
            and isinstance(node.comparators[0], ast.Constant)
            and node.comparators[0].value is None
            for node in ast.walk(function)
        )
    )


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
