"""Launch specs -> what the arguments hold, with tensors in much larger storage and tensors that are too large."""

from __future__ import annotations

import numpy as np
import pytest

from gluonize.judge.inputs.bind import place_tensors
from gluonize.judge.inputs.inputs import make_inputs
from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.memory.large import BEHIND, FARTHEST, MOST_WHOLE, WHOLE
from gluonize.read.spec.launch import LaunchSpec


def launch(shape: list[int], storage: int) -> LaunchSpec:
    tensor = {"dtype": "float16", "shape": shape, "stride": [1], "storage": storage, "offset": 4}
    signature = {"x_ptr": "*fp16"}
    return LaunchSpec("k", "k", "", signature, {}, {}, {"num_warps": 4}, (1,), {}, {"x_ptr": {"tensor": tensor}})


def placed(spec: LaunchSpec) -> tuple[Memory, int]:
    memory, inputs = Memory(), make_inputs(spec)
    (address,) = place_tensors(memory, inputs).values()
    return memory, address


def load(memory: Memory, address: int, element: int) -> float:
    return float(memory.load(np.array([address + 2 * element]), None, None, "f16", (1,))[0])


def test_storage_far_behind_the_tensor_is_not_held():
    memory, address = placed(launch([8], 1 << 31))
    assert len(memory.buffers[0].data) == 2 * (4 + 8 + BEHIND)
    assert np.isfinite(load(memory, address, 7)) and np.isnan(load(memory, address, 8))


def test_a_use_of_what_is_not_held_is_no_hazard_and_no_number():
    memory, address = placed(launch([8], 1 << 31))
    with pytest.raises(NotRunnable, match="x_ptr is accessed at element 2000004, so far behind"):
        load(memory, address, 2_000_000)
    with pytest.raises(Hazard, match=r"leave x_ptr \(2147483648 x f16\)"):
        load(memory, address, 1 << 31)
    with pytest.raises(Hazard, match="leave x_ptr"):
        load(memory, address, -5)


def test_storage_that_is_held_ends_where_it_ends():
    memory, address = placed(launch([8], 12))
    with pytest.raises(Hazard, match=r"leave x_ptr \(12 x f16\)"):
        load(memory, address, 8)


def test_tensors_that_are_too_large_are_refused_before_they_are_made():
    with pytest.raises(NotRunnable, match="a tensor takes 48.0 GiB and the reference machine holds 24 GiB"):
        make_inputs(launch([FARTHEST], FARTHEST + 4))
    with pytest.raises(NotRunnable, match="its tensors take 8.0 GiB and the reference machine holds 2 GiB"):
        make_inputs(launch([2 * MOST_WHOLE], 2 * MOST_WHOLE + 4), paged=False)


def test_a_tensor_of_gibibytes_is_there_where_it_is_touched():
    count = 5 << 30
    memory, address = placed(launch([count], count + 4))
    assert np.isfinite([load(memory, address, element) for element in (0, 7, 3 << 30, count - 1)]).all()
    assert 0 < len(memory.buffers[0].data) < 1 << 12
    with pytest.raises(Hazard, match=r"leave x_ptr \(5368709124 x f16\)"):
        load(memory, address, count)


def test_the_largest_tensors_are_held_in_pages_until_the_others_are_small_enough():
    large, small, listed = (
        {"dtype": "int8", "shape": [n], "stride": [1], "storage": n, "offset": 0} for n in (WHOLE, 64, 2)
    )
    tensors = {"x": large, "y": small, "z": listed | {"data": [5, 7]}}
    values = {name: {"tensor": tensor} for name, tensor in tensors.items()}
    inputs = make_inputs(LaunchSpec("k", "k", "", dict.fromkeys(tensors, "*i8"), {}, {}, {}, (1,), {}, values))
    assert [inputs.arguments[name].pages is not None for name in tensors] == [True, False, False]
    assert [inputs.arguments[name].items for name in tensors] == [WHOLE, 64, 2]
    assert inputs.arguments["z"].data.tolist() == [5, 7]
