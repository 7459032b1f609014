"""The machine runs every fixture's TTIR and agrees with the fixture's numpy reference.

Triton's own interpreter agrees with the same references (tests/test_fixtures.py), so the three check each other.
"""

from __future__ import annotations

import numpy as np
import pytest
from slow_rows import slow_but_every

import fixture_set
from gluonize.judge.inputs.bind import bind, place_tensors
from gluonize.judge.inputs.inputs import ELEMENTS, Inputs, Tensor, make_inputs
from gluonize.judge.machine.dtypes import decode, encode, stored
from gluonize.judge.machine.engine import Machine
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.verdict.run import validate_pair
from gluonize.read.spec.launch import read_launches
from gluonize.trace.model.parse import parse_module

CASES = [(fixture, spec) for fixture in fixture_set.fixtures() for spec in read_launches(str(fixture.launches_file))]
IDS = [spec.id for _, spec in CASES]
TOLERANCE = {"float32": (2e-5, 2e-5), "float16": (4e-3, 4e-3), "bfloat16": (2e-2, 2e-2), "float8_e4m3fn": (0.13, 2e-2)}


def as_array(tensor: Tensor, data: np.ndarray) -> np.ndarray:
    """The values of a tensor whose storage holds the bytes `data`."""
    flat = np.asarray(decode(data.view(stored(tensor.element)), tensor.element))
    strides = [s * flat.itemsize for s in tensor.strides]
    return np.lib.stride_tricks.as_strided(flat[tensor.offset :], tensor.shape, strides).copy()


def run_machine(fixture, spec, target: str) -> tuple[dict, dict[str, np.ndarray]]:
    """-> all arguments as the reference takes them, and every tensor after the launch."""
    stage = source_stage(str(fixture.kernel_file), spec, target)
    inputs = make_inputs(spec)
    memory = Memory()
    addresses = place_tensors(memory, inputs)
    module = parse_module(stage.text, stage.file)
    machine = Machine(module, memory, spec.grid)
    machine.run(bind(module, stage.names, inputs, addresses), range(machine.programs))
    assert not machine.findings and not memory.racing()
    tensors = {name: value for name, value in inputs.arguments.items() if isinstance(value, Tensor)}
    before = {name: value for name, value in spec.values.items() if name not in tensors}
    before |= {name: as_array(t, t.data.view(np.uint8)) for name, t in tensors.items()}
    after = {b.name: as_array(tensors[b.name], b.data) for b in memory.buffers}
    return before, after


@pytest.mark.one_of(3)
@pytest.mark.parametrize("fixture, spec", CASES, ids=IDS)
def test_source_computes_the_reference(fixture, spec):
    before, after = run_machine(fixture, spec, "gfx950")
    expected = {name: value for name, value in before.items() if isinstance(value, np.ndarray)}
    outputs = fixture.reference(before)
    for name, value in (expected | outputs).items():
        dtype = spec.values[name]["tensor"]["dtype"]
        rtol, atol = TOLERANCE.get(dtype, (0, 0)) if name in outputs else (0, 0)
        np.testing.assert_allclose(
            after[name].astype(np.float64),
            np.asarray(value, np.float64),
            rtol=rtol,
            atol=atol,
            err_msg=f"{spec.id}: {name}",
        )


@pytest.mark.one_of(3)
@pytest.mark.parametrize("fixture, spec", slow_but_every(CASES, 6), ids=IDS)
@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
def test_tritons_own_lowering_validates(fixture, spec, target: str):
    """TTIR against Triton's TTGIR: pipelined with asynchronous copies and buffer accesses, so a good stand-in for output."""
    left = source_stage(str(fixture.kernel_file), spec, target)
    right = translated_stage(str(fixture.kernel_file), spec, target)
    result = validate_pair(left.text, right.text, spec, source_names=left.names, translated_names=right.names)
    assert (result.status, result.reason) == ("validated", "")
    assert result.bitwise


def test_inputs_are_the_same_every_time():
    spec = CASES[0][1]
    a, b = make_inputs(spec), make_inputs(spec)
    assert isinstance(a, Inputs) and [t.name for t in a.tensors()] == [t.name for t in b.tensors()]
    assert all((x.data == y.data).all() for x, y in zip(a.tensors(), b.tensors()))


def test_every_dtype_of_a_launch_is_known():
    used = {
        v["tensor"]["dtype"] for _, spec in CASES for v in spec.values.values() if isinstance(v, dict) and "tensor" in v
    }
    assert used <= set(ELEMENTS)
    assert all(encode(np.zeros(1, np.float32), ELEMENTS[d]).itemsize for d in used if "float" in d)
