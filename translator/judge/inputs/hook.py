"""A user's own inputs: a Python file with `make_inputs(launch) -> {name: array or number}`.

`launch` is the launch spec as JSON. What the function leaves out is made up as always.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import numpy as np

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.inputs.inputs import Inputs, Tensor, scalar
from gluonize.judge.machine.dtypes import encode, held, rounded
from gluonize.judge.machine.memory.large import MOST_WHOLE
from gluonize.read.spec.launch import LaunchSpec


def apply_hook(path: str, spec: LaunchSpec, inputs: Inputs) -> Inputs:
    """`inputs` with what the user's file gives. Raises: TranslationError `inputs-hook`."""
    try:
        module_spec = importlib.util.spec_from_file_location("gluonize_inputs", path)
        module = importlib.util.module_from_spec(module_spec)
        module_spec.loader.exec_module(module)
        given = module.make_inputs(spec.as_json())
    except Exception as error:  # the user's code: whatever it raises is the answer
        why = f"{type(error).__name__}: {error}"
        raise TranslationError(Diagnostic("inputs-hook", f"make_inputs of {path} fails", path, why=why)) from error
    arguments = dict(inputs.arguments)
    for name, value in given.items():
        if name not in arguments:
            raise TranslationError(
                Diagnostic("inputs-hook", f"make_inputs gives {name}, which the launch does not have", path)
            )
        old = arguments[name]
        arguments[name] = _filled(old, value, path) if isinstance(old, Tensor) else scalar(value, spec.signature[name])
    return Inputs(arguments, inputs.variant)


def _filled(tensor: Tensor, value, path: str) -> Tensor:
    array = np.asarray(value)
    if array.shape != tensor.shape:
        message = f"make_inputs gives {tensor.name} the shape {array.shape}; the launch says {tensor.shape}"
        raise TranslationError(Diagnostic("inputs-hook", message, path))
    if tensor.pages is not None and tensor.storage > MOST_WHOLE:
        message = (
            f"make_inputs gives {tensor.name}, whose storage of {tensor.storage / 2**30:.1f} GiB cannot be held whole"
        )
        raise TranslationError(
            Diagnostic("inputs-hook", message, path, help="leave it out, or give the launch a smaller tensor")
        )
    data = np.resize(tensor.data, tensor.items)
    strides = [s * data.itemsize for s in tensor.strides]
    view = np.lib.stride_tricks.as_strided(data[tensor.offset :], tensor.shape, strides)
    wide = (
        array.astype(held(tensor.element))
        if tensor.element[0] == "i"
        else np.asarray(rounded(array.astype(np.float64), tensor.element))
    )
    view[...] = np.asarray(encode(wide, tensor.element)).astype(data.dtype, copy=False)
    return replace(tensor, data=data, pages=None)
