"""`ttg.warp_specialize`: the default region and the partitions run as coroutines on one shared memory.

A partition gives the turn away where it waits for an mbarrier. `SCHEDULES` orders are tried by the validation: each partition as far as
it gets, first to last and last to first, and a change at every arrival. When every live partition waits and nothing can change, the
program is deadlocked and the report says who waits for what.
"""

from __future__ import annotations

import threading

import numpy as np

from gluonize.judge.machine.control import handler
from gluonize.judge.machine.coroutines import Abandoned, Scheduler
from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.memory.ordering import Partitions
from gluonize.judge.machine.running import Running
from gluonize.trace.model.op import Op

SCHEDULES = ("forward", "backward", "alternating")


@handler("ttg.warp_specialize")
def run_partitions(program: Running, op: Op, env: dict):
    """Run all regions to their ends; -> the values that the default region yields. Raises: Hazard, NotRunnable."""
    captures = [env[v] for v in op.captures]
    regions = [r for r in op.regions if r.runs_beside]
    scheduler = Scheduler(len(regions), program.machine.schedule)
    kept = program.lds.partitions  # of a module whose operations are ordered everywhere
    order = kept or Partitions(len(regions))
    order.fork()
    if program.machine.in_program_order:
        program.lds.barrier()  # that wakes the workers; a translation does not rest on it
    results: list = [None] * len(regions)
    sides = [program if i == 0 else program.partition(r.warps or program.warps) for i, r in enumerate(regions)]

    def body(me: int) -> None:
        error: BaseException | None = None
        side, region = sides[me], regions[me]
        try:
            scheduler.start(me)
            side.take_turns(scheduler, me)
            side.lds.partitions, side.lds.me = order, me
            inner = env if me == 0 else {name: value for (name, _), value in zip(region.blocks[0].arguments, captures)}
            with np.errstate(all="ignore"):
                results[me] = side.run_region(region, inner)[1]
        except (Hazard, NotRunnable, Abandoned) as raised:
            error = raised
        except BaseException as raised:  # handed to the thread that called, which raises it
            error = raised
        finally:
            scheduler.finish(me, error)

    threads = [threading.Thread(target=body, args=(i,), daemon=True) for i in range(len(regions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    program.take_turns(None, 0)
    program.lds.partitions = kept
    order.join()
    for side in sides[1:]:
        program.absorb(side)
    if scheduler.error is not None:
        raise scheduler.error
    return results[0] or ()
