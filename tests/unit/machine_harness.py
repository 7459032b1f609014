"""Run a jit function on the reference machine with numpy arrays, for tests."""

from __future__ import annotations

import numpy as np

from gluonize.judge.inputs.bind import bind, place_tensors
from gluonize.judge.inputs.inputs import SIGNATURE, Inputs, Tensor, scalar
from gluonize.judge.machine.dtypes import decode, encode, held, rounded, stored
from gluonize.judge.machine.engine import Machine
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.stages import lower_until
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.parse import parse_module


def run_kernel(
    fn, types: dict[str, str], values: dict, grid=(1,), target="gfx950", warps=4, constexprs=None, flags="DS"
):
    """-> (arrays after the run by name, machine). `types` are signature types; arrays may hold float values of any width."""
    constexprs = constexprs or {}
    signature = {name: types.get(name, "constexpr") for name in fn.arg_names}
    attrs = {name: flags for name, kind in types.items() if kind.startswith("*")}
    spec = LaunchSpec("test", fn.__name__, "", signature, constexprs, attrs, {"num_warps": warps}, tuple(grid))
    text = lower_until(fn, spec, target, "ttgir" if fn.is_gluon() else "ttir", placed=fn.is_gluon())
    arguments = {}
    for name, kind in types.items():
        if not kind.startswith("*"):
            arguments[name] = scalar(values[name], kind)
            continue
        element = SIGNATURE[kind[1:]]
        array = np.asarray(values[name])
        wide = (
            array.astype(held(element)) if element[0] == "i" else np.asarray(rounded(array.astype(np.float32), element))
        )
        bits = np.asarray(encode(wide, element)).astype(stored(element), copy=False).reshape(-1)
        arguments[name] = Tensor(name, element, bits, 0, array.shape, ())
    inputs = Inputs(arguments)
    memory = Memory()
    addresses = place_tensors(memory, inputs)
    module = parse_module(text)
    machine = Machine(module, memory, tuple(grid))
    machine.run(bind(module, list(fn.arg_names), inputs, addresses), range(machine.programs))
    arrays = {
        b.name: np.asarray(decode(b.data.view(stored(b.element)), b.element)).reshape(arguments[b.name].shape)
        for b in memory.buffers
    }
    return arrays, machine
