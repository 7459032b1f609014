"""When the padding of tiles goes because LDS has no room for it, beside what else the kernel keeps there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gluonize.decide.readback.staging import Staged
from gluonize.loops.planner.depth import padded
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.shared_layouts import Padded, Swizzled

PADDED, EXCHANGED = Padded(((512, 8),), (), (1, 0), (64, 64)), Swizzled(8, 1, 8, (1, 0))
TILE = Staged((64, 64), PADDED, 2, None, None, "registers", EXCHANGED)
EXCHANGED_TILE = Staged((64, 64), EXCHANGED, 2, None, None, "registers", EXCHANGED)
TWO_SLOTS = 2 * 64 * 64 * 2  # bytes without padding
PADDING = (2 * 64 * 64 - 1) // 512 * 8 * 2


def kernel(lds: int, limit: int) -> SimpleNamespace:
    """One whose whole LDS is `lds` bytes as Triton has it, on a target of `limit` bytes."""
    kernel = SimpleNamespace(lds_bytes=lds, target=SimpleNamespace(lds_bytes=limit))
    return SimpleNamespace(kernel=kernel, tensor=lambda call: TensorFact((64, 64), "fp16"))


@pytest.mark.parametrize(
    "lds, limit, shared",
    [
        (0, TWO_SLOTS + PADDING, PADDED),
        (0, TWO_SLOTS + PADDING - 1, EXCHANGED),
        (TWO_SLOTS, TWO_SLOTS + PADDING, PADDED),
        (TWO_SLOTS + 4096, TWO_SLOTS + PADDING + 4096, PADDED),
        (TWO_SLOTS + 4096, TWO_SLOTS + PADDING + 4095, EXCHANGED),  # no room beside what else Triton's kernel has
    ],
)
def test_padding_goes_where_there_is_no_room_for_it(lds, limit, shared):
    assert padded(kernel(lds, limit), {"call": TILE}, 2) == {"call": TILE if shared is PADDED else EXCHANGED_TILE}
