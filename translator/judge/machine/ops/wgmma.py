"""Rows for the matrix products of warp groups (sm_90): operands in shared memory, accumulators in registers.

An asynchronous product is computed where it stands, but until a wait covers it its result may go nowhere but into another product, and its
operands in shared memory must stay as they are.
"""

from __future__ import annotations

import numpy as np

from gluonize.judge.machine.hazards import Hazard
from gluonize.judge.machine.memory.lds import Copy
from gluonize.judge.machine.memory.ordering import PRODUCT
from gluonize.judge.machine.memory.views import MemDesc
from gluonize.judge.machine.ops.dot import product
from gluonize.judge.machine.table import row

# An accumulator may go through these before it is waited for.
TAKE_UNFINISHED = frozenset(
    "ttng.warp_group_dot ttng.warp_group_dot_wait scf.for scf.while scf.if ttg.warp_specialize tt.call arith.constant".split()
)


class Unfinished(np.ndarray):
    """The result of a product that has not been waited for. reads: an operand that it reads until then."""

    reads: Copy


@row("ttng.warp_group_dot")
def warp_group_dot(machine, op, a, b, c, use_c=True):
    lds = machine.lds
    order = lds.partitions
    views = [operand for operand in (a, b) if isinstance(operand, MemDesc)]
    for view in views:
        order.check_fence(lds.me, view, lds.report)
    agent = order.agent(lds.me, PRODUCT)
    values = [lds.load(x, by=agent) if isinstance(x, MemDesc) else np.asarray(x) for x in (a, b)]
    accumulator = np.asarray(c) if use_c else np.zeros_like(np.asarray(c))
    out = product(machine, op.type, *values, accumulator)
    if not op.attribute("isAsync", False):
        order.acquired(lds.me, order.released(agent))
        return out
    group = [Copy(op.place, op.name, view, finish=lambda: None, by=agent) for view in views]
    for copy in group:
        lds.start(copy)
        copy.clock = order.released(agent)
    lds.products.groups.append(group)
    result = np.asarray(out).view(Unfinished)
    result.reads = group[0]
    return result


@row("ttng.warp_group_dot_wait")
def warp_group_dot_wait(machine, op, *inputs):
    lds = machine.lds
    lds.wait(lds.products, op.attribute("pendings"), op.line, op.place)
    waited = tuple(_finished(x) for x in inputs)
    return waited if len(waited) > 1 else waited[0]


def _finished(x):
    return np.asarray(x) if isinstance(x, Unfinished) and x.reads.landed else x


def check_finished(machine, operands) -> None:
    """Reports an operand whose product has not been waited for."""
    for x in operands:
        reads = getattr(x, "reads", None)
        if isinstance(reads, Copy) and not reads.landed:
            what = f"uses the result of the product at line {reads.place.line}, which has not been waited for"
            machine.report(Hazard("wgmma-unwaited", what))
