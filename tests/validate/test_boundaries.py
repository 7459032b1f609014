"""Both sides of what a launch check takes: the last value has to be right, the first that it refuses says nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.validate.test_adversarial import launch, run
from tests.validate.test_far import ROWS, STRIDED, TWO
from gluonize.judge.inputs.inputs import make_inputs
from gluonize.judge.verdict.boundaries import boundaries

LANES = replace(STRIDED, constexprs={"B": 32}, grid=(1,))
# Wrong where the product of some lane overflows, though no lane does that is on.
OVERFLOWS = "row * stride + (tl.min(row * stride, 0) < 0).to(tl.int32)"
GRIDS = ROWS.replace("tl.program_id(0) * B", "tl.program_id(1) % 2 * B")


def check(most: int):
    """The check of a translation: no stride below 0, and no product of 31 and a stride above `most`."""

    def refusal(inputs) -> str:
        stride = int(inputs.arguments["stride"])
        large = any(tensor.storage > 2**31 - 1 for tensor in inputs.tensors())
        return "negative" if stride < 0 else "storage" if large else "may overflow" if 31 * stride > most else ""

    return refusal


def test_a_check_that_takes_too_much_is_found_at_the_last_value_it_takes(tmp_path: Path):
    """The strides that storage has room for, with few rows or with all, are below that or far above it."""
    other = ROWS.replace("row * stride", OVERFLOWS)
    result = run(tmp_path, ROWS, other, LANES, refusal=check(3 * 2**30))
    assert result.status in ("mismatch", "hazard"), (result.variants, result.passed_over)
    assert result.variant == f"stride = {3 * 2**30 // 31}, small sizes, in storage of gibibytes, the last that is taken"
    result = run(tmp_path, ROWS, other, LANES, refusal=check(2**31 - 1))
    assert result.status == "validated", result
    last = (2**31 - 1) // 31
    assert f"stride = {last}, small sizes, in storage of gibibytes, the last that is taken" in result.variants
    refused = dict(result.passed_over)[f"stride = {last + 1}, in storage of gibibytes, the first that is refused"]
    assert refused == "the launch check of the translation refuses them: may overflow"


def test_a_check_that_takes_too_large_a_grid_is_found(tmp_path: Path):
    """Programs behind the first two do again what those do."""
    spec = launch(TWO, {"n": 30, "stride": 4}, (1, 2))
    other = GRIDS.replace("row, x,", "row, x + (tl.program_id(1) * B < 0),")
    assert other != GRIDS

    def refusal(most: int):
        return lambda inputs: "may overflow" if inputs.grid[1:] > (most,) else ""

    result = run(tmp_path, GRIDS, other, spec, refusal=refusal(2**27 + 1))
    assert result.status in ("mismatch", "hazard") and result.variant.startswith("a grid of 1 x 134217729"), result
    result = run(tmp_path, GRIDS, other, spec, refusal=refusal(2**27))
    assert result.status == "validated" and any(
        v.startswith("a grid of 1 x 134217728") for v in result.variants
    ), result


def test_a_grid_that_no_dispatch_has_room_for_is_not_tried():
    """Along x the hardware counts work-items in 32 bits."""
    spec = launch(TWO, {"n": 30, "stride": 4}, (2,))
    most = (2**32 - 1) // 64
    for taken, expected in ((most - 1, [(most - 1, most)]), (most, [])):
        found = boundaries(spec, make_inputs(spec), (2,), lambda i: "no" if (i.grid or (2,))[0] > taken else "")
        assert [(b.last, b.first) for b in found] == expected


@pytest.mark.parametrize("promised, step", [("", 1), ("D", 16)])
def test_boundaries_are_where_the_check_changes_its_mind(promised: str, step: int):
    spec = replace(launch(TWO, {"n": 32, "stride": 16}, (2,)), attrs={"n": "D", "stride": promised})
    inputs = make_inputs(spec)

    def refusal(inputs) -> str:
        n, stride, grid = inputs.arguments["n"], inputs.arguments["stride"], inputs.grid or (2,)
        return "no" if stride > 1000 or stride < -100 or n > 64 or grid[0] * 3 > 100 else ""

    found = [(b.knob.name, b.last, b.first) for b in boundaries(spec, inputs, (2,), refusal)]
    last, least = 1000 // step * step, -(100 // step * step)
    assert found == [("n", 64, 80), ("stride", last, last + step), ("", 33, 34), ("stride", least, least - step)]


def test_a_check_that_takes_everything_has_no_boundaries():
    spec = launch(TWO, {"n": 30, "stride": 4}, (2,))
    assert boundaries(spec, make_inputs(spec), (2,), lambda inputs: "") == []
