"""Control flow: `scf.for/while/if`, `cf` branches, calls, and regions that ops call.

A handler runs an op's regions through the engine. Blocks end in a terminator, whose name and operand values come back.
"""

from __future__ import annotations

import numpy as np

from gluonize.judge.machine.dtypes import unsigned
from gluonize.judge.machine.hazards import Hazard, NotRunnable, TooLong, WaitsForever
from gluonize.judge.machine.running import Running
from gluonize.judge.machine.shared_access import looks_at_memory
from gluonize.trace.model.op import Op

TERMINATORS = frozenset(
    "scf.yield scf.condition tt.return tt.reduce.return tt.scan.return tt.map_elementwise.return ttg.warp_yield "
    "ttg.warp_return cf.br cf.cond_br llvm.unreachable".split()
)

CONTROL = {}
MOST_TRIPS = 16  # of a loop that are told apart; no pipeline is deeper
WHILE_LIMIT = 10_000  # iterations of one `while`; no kernel that computes comes near


def handler(name: str):
    def register(function):
        CONTROL[name] = function
        return function

    return register


@handler("scf.for")
def run_for(program: Running, op: Op, env: dict):
    loop = op.for_loop
    low, high, step = env[loop.low], env[loop.high], env[loop.step]
    if step <= 0:
        raise Hazard("loop-step", f"a loop with step {int(step)}")
    convert = type(low)
    values = [env[init] for _, init in loop.bindings]
    names = [name for name, _ in loop.bindings]
    bounds = (
        (int(unsigned(low)), int(unsigned(high)), int(unsigned(step)))
        if loop.unsigned
        else (int(low), int(high), int(step))
    )
    block = op.regions[0].blocks[0]
    trips = program.ran.trips.setdefault(op.line, set())
    trips.add(min(len(range(*bounds)), MOST_TRIPS))
    pipelined = bool(op.attribute("triton.warp_pipeline.pipelined_for"))
    if pipelined:
        program.lds.stages.enter()
    for i in range(*bounds):
        env[loop.variable] = convert(i)
        for name, value in zip(names, values):
            env[name] = value
        program.check_steps(op)
        _, values = program.run_block(block, env)
    if pipelined:
        program.lds.stages.leave()
    return values


@handler("scf.execute_region")
def run_execute_region(program: Running, op: Op, env: dict):
    if op.attribute("triton.warp_pipeline.stage") is not None and program.lds.stages.inside:
        program.lds.stages.now += 1
        program.lds.barrier()
    return program.run_region(op.regions[0], env)[1]


@handler("scf.while")
def run_while(program: Running, op: Op, env: dict):
    before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
    bindings = op.bindings
    values = [env[init] for _, init in bindings]
    memory = program.memory
    for _ in range(WHILE_LIMIT):
        program.check_steps(op)
        changes, carried = memory.changes, values
        for (name, _), value in zip(bindings, values):
            env[name] = value
        for (name, _), value in zip(before.arguments, values):
            env[name] = value
        _, (go_on, *values) = program.run_block(before, env)
        if not go_on:
            if program.turns is not None:
                program.turns.gone_on()
            return values
        for (name, _), value in zip(after.arguments, values):
            env[name] = value
        _, values = program.run_block(after, env)
        if memory.changes == changes:
            _idle(program, op, _same(carried, values))
    what = f"more than {WHILE_LIMIT} iterations"
    if not looks_at_memory(op):
        raise TooLong(op.name, what)
    if program.turns is not None:
        raise Hazard("deadlock", f"{what} without a change that ends the loop")
    raise WaitsForever(op.name, f"{what}; the loop may wait for another program")


def _same(old: list, new: list) -> bool:
    return all(a is b or np.array_equal(a, b) for a, b in zip(old, new))


def _idle(program: Running, op: Op, again: bool) -> None:
    """An iteration left memory as it was; again: all it carries too, so that only another program can end the loop.

    Raises: Hazard, TooLong, WaitsForever.
    """
    if again and not looks_at_memory(op):
        raise TooLong(op.name, "an iteration of the loop changes nothing")
    if program.turns is None:
        if again:
            raise WaitsForever(op.name, "the loop waits for what no program that ran before has done")
    elif not again:
        program.turns.let_others()
    elif not program.turns.wait(f"the loop at {op.place}"):
        raise Hazard("deadlock", "every program that is left waits in a loop like this, and none can go on")


@handler("scf.if")
def run_if(program: Running, op: Op, env: dict):
    condition = env[op.condition]
    if np.ndim(condition):
        return _run_both(program, op, env, condition)
    chosen = 0 if condition else 1
    program.ran.sides.add((op.line, chosen))
    if chosen >= len(op.regions):
        return ()
    _, values = program.run_block(op.regions[chosen].blocks[0], env)
    return values


def _run_both(program: Running, op: Op, env: dict, condition):
    """An `if` inside a region that runs on whole tensors: both sides, then a choice per element."""
    if not op.results:
        raise NotRunnable("scf.if", "a branch without results on a per-element condition")
    _, yes = program.run_block(op.regions[0].blocks[0], env)
    _, no = program.run_block(op.regions[1].blocks[0], env)
    return [np.where(condition, a, b) for a, b in zip(yes, no)]


@handler("scf.index_switch")
def run_index_switch(program: Running, op: Op, env: dict):
    raise NotRunnable("scf.index_switch")


@handler("tt.call")
def run_call(program: Running, op: Op, env: dict):
    function = program.module.functions.get(op.callee)
    if function is None or not function.region.blocks:
        raise NotRunnable(f"tt.call @{op.callee}", "the function has no body")
    inner = type(env)((name, env[value]) for (name, _), value in zip(function.arguments, op.operands))
    program.frames += 1
    values = program.run_region(function.region, inner)[1]
    program.frames -= 1
    return values


def branch_target(program: Running, op: Op, env: dict) -> tuple[str, list]:
    """Label and arguments of the block that `cf.br` or `cf.cond_br` goes to."""
    which = 0
    if op.name == "cf.cond_br":
        which = 0 if env[op.condition] else 1
        program.ran.sides.add((op.line, which))
    label, names = op.branches[which]
    return label, [env[name] for name in names]
