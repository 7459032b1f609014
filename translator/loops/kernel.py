"""Translate one traced launch of one kernel into Gluon functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gluonize.decide.choices.chosen import Choices
from gluonize.decide.readback.traced_launch import TracedLaunch
from gluonize.diagnostics import TranslationError
from gluonize.facts.function import FunctionFacts
from gluonize.facts.kernel import KernelFacts
from gluonize.facts.reading import read_function
from gluonize.facts.refusals import refuse
from gluonize.facts.syntax import unparsed
from gluonize.loops.forms.assemble import assemble
from gluonize.loops.forms.pipelined import PipelinedFunction
from gluonize.loops.passes.refill import check_refills
from gluonize.loops.passes.stages import why_not_alternating
from gluonize.loops.plan.impossible import Impossible
from gluonize.loops.plan.plan import NotPipelined
from gluonize.loops.plan.strategies import PING_PONG, WARP_SPECIALIZED
from gluonize.loops.planner.loop_rules import packs_operands, ruled
from gluonize.loops.planner.plain_descriptors import plain_descriptors
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from gluonize.rules.builtins import BUILTINS
from gluonize.rules.rows import RuleSet
from gluonize.write.descriptors.host import divisible_strides, small_descriptors
from gluonize.write.function.rewriter import FunctionRewriter
from gluonize.write.function.written import WrittenFunction
from gluonize.write.programs.order import xcds_of
from gluonize.write.programs.persistent import tiles_of
from gluonize.write.state.emitted import EmittedKernel
from gluonize.write.state.unit import Decided, Unit


def kernel_facts(launch: TracedLaunch, rules: RuleSet = BUILTINS) -> KernelFacts:
    """What is known of the kernel before anything is decided."""
    small = frozenset(name for name, flags in launch.spec.attrs.items() if isinstance(flags, str) and "S" in flags)
    small |= small_descriptors(launch.spec)
    divisible = frozenset(name for name, flags in launch.spec.attrs.items() if isinstance(flags, str) and "D" in flags)
    divisible |= divisible_strides(launch.spec)
    return KernelFacts(
        trace=launch.trace,
        anchors=launch.anchors,
        target=launch.target,
        num_warps=launch.num_warps,
        small_pointers=small,
        rules=rules,
        divisible=divisible,
        num_ctas=launch.num_ctas,
        staging=launch.staging,
        buffer_atomics=launch.buffer_atomics,
        operands_in_lds=launch.operands_in_lds,
        descriptor_layouts=launch.descriptor_layouts,
        rows=launch.rows,
        loops=launch.loops,
        lds_bytes=launch.lds_bytes,
        loop_lds=launch.loop_lds,
        given=launch.given,
        loose=launch.loose,
        loads_once=launch.loads_once,
    )


def _planned(facts: FunctionFacts, choices: Choices, strategy: str | None) -> Decided:
    """What is decided of a kernel before its functions are looked at one by one."""
    decided = Decided(choices, strategy)
    return replace(decided, plain_descriptors=plain_descriptors(facts, decided))


def with_wide_operands(
    launch: TracedLaunch, choices: Choices, request: TranslateRequest, retrace: Callable[[LaunchSpec], TracedLaunch]
) -> TracedLaunch:
    """`launch`, traced once more so that a lane has its parts of an operand for two instructions side by side, where that suits its loop and
    the launch does not say."""
    if request.general or not launch.target.packs_operands or "kpack" in launch.options or launch.shared is not None:
        return launch
    facts = read_function(kernel_facts(launch), launch.trace.frames[0])
    if not packs_operands(facts, _planned(facts, choices, request.strategy)):
        return launch
    wide = replace(launch.spec, options={**launch.spec.options, "kpack": 2})
    return replace(retrace(wide), narrow=launch)


def rewrite_kernel(
    launch: TracedLaunch,
    choices: Choices = Choices(),
    strategy: str | None = None,
    moved: frozenset[tuple[str, str]] = frozenset(),
    rules: RuleSet = BUILTINS,
    rewriter_type: type[FunctionRewriter] = PipelinedFunction,
    by_rule: bool = True,
) -> EmittedKernel:
    """The kernel in Gluon, written as `choices` say.

    strategy: how its loops are written, None for what the source asks for.
    moved: the pointer variables whose base moves from tile to tile in any case, as (function, variable).
    rules: what becomes of calls.
    rewriter_type: what writes each function.
    by_rule: whether its loop is what suits its sizes best; else it is as Triton's passes have it, which is one form for many sizes.

    Raises TranslationError for what has no correct translation.
    """
    kernel = kernel_facts(launch, rules)
    facts = read_function(kernel, launch.trace.frames[0])
    decided = _planned(facts, choices, strategy)
    for found in ruled(facts, decided) if by_rule else ():
        if found.choices.asks("operand-width", "two") and launch.narrow is None:
            continue  # the launch itself says how wide operands are
        try:
            return _rewritten(launch, kernel, _planned(facts, found.choices, None), moved, rewriter_type, found.why)
        except TranslationError:
            continue  # a form that this loop cannot have: the next one
    if launch.narrow is not None:  # operands are wide for a form that the loop cannot have
        narrow = replace(launch.narrow, spec=launch.spec, given=launch.given)
        return rewrite_kernel(narrow, choices, strategy, moved, rules, rewriter_type, by_rule)
    return _rewritten(launch, kernel, decided, moved, rewriter_type)


def _rewritten(
    launch: TracedLaunch,
    kernel: KernelFacts,
    decided: Decided,
    moved: frozenset[tuple[str, str]],
    rewriter_type: type[FunctionRewriter],
    why: str = "",
) -> EmittedKernel:
    """`rewrite_kernel` for choices that hold as they are; why: what they follow from, "" where they were asked for."""
    xcds, why_one = xcds_of(kernel, decided.choices)
    tiles = tiles_of(kernel, decided.choices, decided.strategy)
    handed = launch.shared.sums if launch.shared is not None else ""
    decided = replace(decided, moved=moved, xcds=xcds, tiles=tiles, handed=handed)
    remarks = [
        f"tensor descriptors as bounds-masked accesses: {reason}" for reason in decided.plain_descriptors.values()
    ]
    remarks += [why] if why else []
    remarks += [f"programs keep their numbers: {why_one}"] if why_one else []
    while True:
        try:
            function = rewriter_type(Unit(kernel, decided), read_function(kernel, launch.trace.frames[0]))
            emitted = _written(launch, function, bool(why), remarks)
        except Impossible as found:
            assert found.key not in decided.cannot, f"bug in gluonize: {found}"
            decided = replace(decided, cannot={**decided.cannot, found.key: found.reason})
        else:
            return replace(emitted, tiles=tiles, shared=launch.shared)


def _written(launch: TracedLaunch, function: FunctionRewriter, by_rule: bool, remarks: list[str]) -> EmittedKernel:
    """The kernel that `function` writes. Raises: Impossible where a loop cannot have its form, which only its text shows."""
    unit, written = function.unit, function.rewrite()
    every, decided = [written, *unit.helper_versions], unit.decided
    turns = by_rule and decided.choices.asks("warp-groups", "alternating")
    if decided.strategy == WARP_SPECIALIZED.name:
        _check_split(every)
    if decided.strategy == PING_PONG.name or turns:
        _check_alternating(unit, every)
    if turns and decided.choices.asks("refill", "after-read"):
        _check_refilled(every)
    for remark in remarks:
        written.record.choose(remark)
    if launch.shared is not None:
        written.record.explain("programs share the steps of tiles: sums are made in another order than the source's")
    for function in every:
        _check_stages(function)
    check_refills(every)
    return assemble(unit, written)


_IN_CLUSTERS = "its program is a cluster, whose workgroups wait for each other with all of their warps"


def _check_alternating(unit: Unit, every: list[WrittenFunction]) -> None:
    """Raises: TranslationError where ping-pong is asked for and no loop of the kernel, the first of `every`, has it."""
    if any(loop.alternates for written in every for loop in written.loops.pipelined.values()):
        return
    help = "leave --strategy out: the loop is then pipelined if it can be"
    for written in every:
        facts = written.facts
        for loop in written.loops.pipelined.values():
            message = f"warps of `for {loop.plan.range.index}` cannot alternate between memory and compute"
            why = _IN_CLUSTERS if unit.kernel.num_ctas > 1 else why_not_alternating(loop.plan.schedule)
            raise refuse(facts.frame, loop.plan.loop, "strategy", message, why, help)
        for plan in written.loops.plans:
            if isinstance(plan, NotPipelined):
                loop = next(n for n in facts.for_loops if n.lineno == plan.line)
                message = f"warps of `for {unparsed(loop.target)}` cannot alternate between memory and compute"
                raise refuse(facts.frame, loop, "strategy", message, plan.reason, help)
    facts = every[0].facts
    message = f"`{facts.frame.fn.__name__}` has no loop whose warps could alternate"
    raise refuse(facts.frame, facts.tree, "strategy", message, help="leave --strategy out")


def _check_refilled(every: list[WrittenFunction]) -> None:
    """Raises: TranslationError where a rule has groups of warps alternate in a ring of two slots, and neither is filled again once it is read:
    a copy then has one stage of the other group to land in, and all wait for memory."""
    loops = [(written, loop) for written in every for loop in written.loops.pipelined.values() if loop.alternates]
    for written, loop in loops:
        if not any(one.refills_early for one in loop.passes):
            message = f"no slot of `for {loop.plan.range.index}` is filled again as soon as it is read"
            raise refuse(
                written.facts.frame, loop.plan.loop, "ping-pong", message, "it has no slices that would allow that"
            )


def _check_split(every: list[WrittenFunction]) -> None:
    """Raises: TranslationError where warp specialization is asked for and no loop of the kernel, the first of `every`, can have it."""
    if any(written.loops.partitioned for written in every):
        return
    for written in every:
        for loop, reason in written.loops.whole.items():
            message = f"`for {unparsed(loop.target)}` cannot be warp-specialized"
            help = "leave --strategy out: the loop is then pipelined if it can be"
            raise refuse(written.facts.frame, loop, "strategy", message, reason, help)
    facts = every[0].facts
    message = f"`{facts.frame.fn.__name__}` has no loop to warp-specialize"
    raise refuse(facts.frame, facts.tree, "strategy", message, help="leave --strategy out")


def _check_stages(written: WrittenFunction) -> None:
    """Raises: TranslationError for a loop whose stages exchange through LDS what they compute, or whose compute stages read it; asked
    when the text is final.
    """
    for loop in written.loops.pipelined.values():
        why = ""
        if late := written.loops.finished[loop.plan.loop].body.late_read:
            why = f"`{late}` is read from LDS where it is used, not where it is loaded"
        elif loop.alternates and loop.plan.loop in written.record.filled:
            why = "an operand goes through LDS between warps, for which all of them would have to be in one stage"
        if why:
            what = "this loop cannot alternate warps between memory and compute"
            raise refuse(written.facts.frame, loop.plan.loop, "ping-pong", what, why, "leave --strategy out")
