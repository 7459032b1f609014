"""Run the launches of one fixture in Triton's own interpreter and compare with the fixture's reference.

    TRITON_INTERPRET=1 python interpreted_fixture.py FOLDER

A process of its own, because the variable has to be set before Triton is imported and because a bad address ends the
process. Prints one JSON line {launch id: [mismatch, ...]}. bf16 and fp8 tensors are widened to fp32: the interpreter
computes bf16 on its raw bits, and numpy has neither type.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import fixture_set
from triton.runtime.interpreter import InterpretedFunction

# Relative and absolute error allowed per output type: four units in the last place of fp16 and half a unit of bf16 (which is
# widened here); for fp32 what an accumulation over a row of these sizes loses. Integers are exact.
TOLERANCE = {"float32": (2e-5, 2e-5), "float16": (4e-3, 4e-3), "bfloat16": (4e-3, 4e-3)}


class HostTensor:
    """What the interpreter asks of a tensor, over numpy memory."""

    def __init__(self, tensor: dict, values: np.ndarray):
        dtype = "float32" if tensor["dtype"] in fixture_set.NARROW_FLOATS else tensor["dtype"]
        self.dtype = np.dtype(dtype).name
        self._memory = np.zeros(tensor["storage"], dtype)
        stride = [step * self._memory.itemsize for step in tensor["stride"]]
        self.view = np.lib.stride_tricks.as_strided(self._memory[tensor["offset"] :], tensor["shape"], stride)
        self.view[...] = values

    def data_ptr(self) -> int:
        return self.view.__array_interface__["data"][0]

    # The interpreter copies tensors to the host and back by storage; here they are there already.
    def untyped_storage(self):
        return self

    def cpu(self):
        return self

    def new_empty(self, size, device):
        return self

    def set_(self, storage, offset, size, stride):
        pass

    def storage_offset(self):
        return 0

    def size(self):
        return ()

    def stride(self):
        return ()

    def copy_(self, other):
        pass


def run(fixture: fixture_set.Fixture, launch: dict) -> dict[str, np.ndarray]:
    """The tensors of the launch after the source kernel has run over the whole grid."""
    kernel = getattr(fixture.kernel_module(), launch["kernel"])
    while not isinstance(kernel, InterpretedFunction):
        kernel = kernel.fn
    inputs = fixture_set.make_inputs(launch)
    arguments = {
        name: HostTensor(launch["values"][name]["tensor"], value) if isinstance(value, np.ndarray) else value
        for name, value in inputs.items()
    }
    kernel[tuple(launch["grid"])](**arguments)
    return {name: value.view for name, value in arguments.items() if isinstance(value, HostTensor)}


def mismatches(fixture: fixture_set.Fixture, launch: dict) -> list[str]:
    """One line per tensor that is not what the reference says; tensors it does not name must be unchanged."""
    inputs = fixture_set.make_inputs(launch)
    found = run(fixture, launch)
    expected = {name: value for name, value in inputs.items() if isinstance(value, np.ndarray)}
    outputs = fixture.reference(inputs)
    unknown = sorted(set(outputs) - set(expected))
    wrong = [f"reference names {name}, which the launch lacks" for name in unknown]
    for name, value in (expected | outputs).items():
        if name in unknown:
            continue
        rtol, atol = TOLERANCE.get(launch["values"][name]["tensor"]["dtype"], (0, 0)) if name in outputs else (0, 0)
        if np.shape(value) != found[name].shape:
            wrong.append(f"{name}: shape {np.shape(value)} expected, {found[name].shape} found")
            continue
        bad = ~np.isclose(found[name].astype(np.float64), np.asarray(value, np.float64), rtol=rtol, atol=atol)
        if bad.any():
            first = tuple(int(i) for i in np.argwhere(bad)[0])
            wrong.append(
                f"{name}: {int(bad.sum())} of {bad.size} differ, first at {first}: "
                f"{np.asarray(value)[first]} expected, {found[name][first]} found"
            )
    return wrong


def main(folder: str) -> None:
    fixture = fixture_set.Fixture(Path(folder).resolve())
    print(json.dumps({launch["id"]: mismatches(fixture, launch) for launch in fixture.launches()}))


if __name__ == "__main__":
    main(sys.argv[1])
