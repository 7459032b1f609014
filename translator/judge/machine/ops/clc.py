"""Rows for cluster launch control (sm_100): a program takes over one that has not begun.

Programs run one after another here, so the next one is there to be taken; each takes `MOST` at most, that others begin by themselves too.
"""

from __future__ import annotations

import numpy as np

from gluonize.judge.machine.ops.tensor import AXES
from gluonize.judge.machine.ops.tma import fill
from gluonize.judge.machine.table import row

MOST = 2
BYTES = 16  # of an answer: whether there is one, and its number


@row("ttng.clc_try_cancel")
def clc_try_cancel(machine, op, view, barrier):
    taken = machine.take_program(MOST)
    answer = np.array([taken is not None, taken or 0], np.int64)
    fill(machine, op, view, barrier, answer.reshape(view.shape), BYTES)


@row("ttng.clc_load_result")
def clc_load_result(machine, op, view):
    return machine.lds.load(view).reshape(-1)


@row("ttng.clc_is_canceled")
def clc_is_canceled(machine, op, answer):
    return np.bool_(answer[0])


@row("ttng.clc_get_program_id")
def clc_get_program_id(machine, op, answer):
    return np.int32(machine.number_of(int(answer[1]))[AXES[op.word]])
