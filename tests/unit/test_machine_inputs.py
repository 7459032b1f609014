"""Launch specs -> what the arguments hold, with tensors in much larger storage and tensors that are too large."""

from __future__ import annotations

import numpy as np
import pytest

from translator.source.launch_spec import LaunchSpec
from translator.validate.bind import place_tensors
from translator.validate.hazards import Hazard, NotRunnable
from translator.validate.inputs import BEHIND, MOST_BYTES, make_inputs
from translator.validate.memory import Memory


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
    with pytest.raises(NotRunnable, match="its tensors take 8.0 GiB and the reference machine holds 2 GiB"):
        make_inputs(launch([2 * MOST_BYTES], 2 * MOST_BYTES + 4))
