"""The machine has a row for every op that can stand in the IR it reads, or the reason why it has none is here."""

from __future__ import annotations

import pytest
from child_process import run_child

from gluonize.judge.machine import engine
from gluonize.judge.machine.control import CONTROL, TERMINATORS
from gluonize.judge.machine.table import TABLE

assert engine.Machine  # its modules fill the table

# Ops without a row, by reason.
WITHOUT = {
    "a container: the parser reads what is in it": "tt.func ttg.warp_specialize.partitions",
    "made behind the stage that is run": (
        "amdg.masked_load amdg.masked_store ttg.warp_id ttg.mask ttg.mask.return ttg.predicate_stage ttng.tmem_wait"
    ),
    "of MLIR, but made by no builder and no pass of Triton's before that stage": (
        "arith.ceildivui arith.convertf arith.flush_denormals arith.scaling_extf arith.scaling_truncf arith.subui_extended cf.assert "
        "cf.switch math.clampf math.isnormal math.sincos scf.forall scf.forall.in_parallel scf.parallel scf.reduce scf.reduce.return"
    ),
    "of no builder that Gluon has": "ttng.clc_try_cancel_sync",
    "how the hardware saturates is not documented, and no translation has it": "amdg.scaled_downcast_fp4 amdg.scaled_downcast_fp8",
}


@pytest.fixture(scope="module")
def registered() -> set[str]:
    names = set(run_child("registered_ops.py"))
    assert len(names) > 200 and {"tt.load", "ttg.local_alloc", "amdg.buffer_load", "arith.addi", "math.exp"} <= names
    return names


def test_every_op_has_a_row_or_a_reason(registered: set[str]):
    modelled = {*TABLE, *CONTROL, *TERMINATORS}
    reasons = [name for names in WITHOUT.values() for name in names.split()]
    assert registered - modelled == set(reasons)
    assert len(reasons) == len(set(reasons))


def test_every_row_is_of_an_op_that_exists(registered: set[str]):
    """Of other dialects than these the names are not looked for."""
    rows = {
        name for name in (*TABLE, *CONTROL, *TERMINATORS) if name.split(".")[0] not in ("llvm", "rocdl", "gpu", "ub")
    }
    assert rows <= registered
