"""Assemble the output of one kernel: layout constants into each function, helpers named and ordered, long lines wrapped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import libcst as cst
from gluonize.facts.function import FunctionFacts
from gluonize.facts.syntax import target_of
from gluonize.facts.variables.definitions import definition_node
from gluonize.gluon.trees.function import GluonFunction
from gluonize.gluon.trees.long_lines import with_long_lines_wrapped
from gluonize.gluon.trees.references import bound, named, references
from gluonize.gluon.trees.walk import inside, mapped
from gluonize.loops.forms.prologue import HEADS
from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.loops.passes.prefetch import FEWEST_BUFFERS
from gluonize.loops.plan.impossible import SPLIT, Impossible
from gluonize.loops.specialized.partitions import take_apart
from gluonize.loops.specialized.split import CannotSplit, PartitionFunction, Split
from gluonize.numbered import numbered
from gluonize.write.function.layout_constants import with_constants
from gluonize.write.function.rule_layouts import RuleLayouts
from gluonize.write.function.written import WrittenFunction
from gluonize.write.state.emitted import EmittedFunction, EmittedKernel, FewestBuffers, LaidOut
from gluonize.write.state.unit import Record, Synthesized, Unit, Version
from gluonize.write.state.writing import StateOf


def assemble(unit: Unit, kernel: WrittenFunction) -> EmittedKernel:
    """Name the layouts and helpers of the kernel and of every version of a helper that it reaches."""
    record = Record()
    _merge(record, kernel.record)
    record.reads = kernel.record.reads  # parameters of helpers are others
    reached: list[int] = []

    def reach(function: GluonFunction) -> None:
        for index in unit.called_by(function):
            if index not in reached:
                helper = unit.helper_versions[index]
                for member in (helper, *(unit.helper_versions[i] for i in unit.made_of.get(index, ()))):
                    _merge(record, member.record)
                reach(helper.function)
                reached.append(index)

    reach(kernel.function)
    taken = {kernel.facts.frame.fn.__name__, *record.globals_needed, *kernel.function.bound}
    taken = taken.union(*(unit.helper_versions[index].function.bound for index in reached))
    names: dict[Version, str] = {}
    helpers: list[EmittedFunction] = []
    by_text: dict[tuple[Any, str], str] = {}

    for index in reached:  # callees before callers
        helper = unit.helper_versions[index]
        final = _with_layouts(helper, laid_out_function(helper, names), record)
        fn = helper.facts.frame.fn
        final, partitions = split_loops(helper, final)
        if (fn, final.text) not in by_text:
            name = numbered(fn.__name__, taken.__contains__)
            taken.add(name)
            by_text[fn, final.text] = name
            helpers += partitions
            helpers.append(EmittedFunction(final.called(name), fn, bool(fn.noinline)))
        names[Version(index)] = by_text[fn, final.text]
    laid_out = laid_out_function(kernel, names)
    function, partitions = split_loops(kernel, _with_layouts(kernel, laid_out, record))
    helpers += partitions
    fn = kernel.facts.frame.fn
    for used in record.globals_needed:
        if used in {h.name for h in helpers}:
            record.globals_needed = {k: v for k, v in record.globals_needed.items() if k != used}
    emitted = EmittedFunction(function, fn, bool(fn.noinline), None if partitions else laid_out)
    return EmittedKernel(emitted, helpers, record, unit.moving)


def _with_layouts(written: WrittenFunction, laid_out: LaidOut, record: Record) -> GluonFunction:
    """The function with its layouts at the top, by the functions that give them where there are such."""
    facts = written.facts
    fn, launch = facts.frame.fn, facts.kernel
    rules = RuleLayouts(
        laid_out.constants,
        written.names.tiles,
        launch.target.warp_size,
        launch.num_warps,
        {p.name for p in fn.params},
        lambda: launch.words,
    )
    constants = rules.written()
    for name, rule in rules.called.items():
        if rule.module:
            record.amd(rule.module)
        else:
            record.need(Synthesized(rule.name, rule.text).called(name), fn)
    return with_constants(replace(laid_out, constants=constants))


def _said_once(node: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose loops have a comment at their heads only where none above says the same."""
    said: set[str] = set()

    def change(n: cst.CSTNode) -> cst.CSTNode:
        lines = getattr(n, "leading_lines", ())
        texts = [line.comment.value if line.comment is not None else "" for line in lines]
        kept = [line for line, text in zip(lines, texts) if text not in said or not text.startswith(HEADS)]
        said.update(texts)
        own = n if len(kept) == len(lines) else n.with_changes(leading_lines=kept)
        return own if isinstance(n, cst.SimpleStatementLine) else inside(own, change)

    return mapped(node, change)


def split_loops(written: WrittenFunction, function: GluonFunction) -> tuple[GluonFunction, list[EmittedFunction]]:
    """`function`, which has become of `written`, without its warp-specialized loops, and the functions of their partitions. Raises: Impossible."""
    facts, pipelined = written.facts, written.loops.pipelined
    loops = [pipelined[n] for n in facts.for_loops if n in pipelined]
    loops = sorted((loop for loop in loops if loop.form.splits), key=lambda loop: loop.plan.loop.lineno)
    made: list[EmittedFunction] = []
    for number, loop in enumerate(loops, 1):
        suffix = "" if number == 1 else f"_{number}"
        try:
            function, partitions = take_apart(
                function, split_of(facts, written.state, loop), facts.frame.fn.__name__, suffix
            )
        except CannotSplit as found:
            raise Impossible(facts, loop.plan.loop.lineno, SPLIT, str(found)) from found
        for partition in partitions:
            source = PartitionFunction(partition.name, facts.frame.fn.file_name or "")
            made.append(EmittedFunction(with_long_lines_wrapped(partition, ""), source))
    return function, made


def split_of(facts: FunctionFacts, state_of: StateOf, loop: PipelinedLoop) -> Split:
    """What taking a loop apart has to know of it."""
    form = loop.form
    rings = tuple(tuple(r.smem for r in loop.rings if r.load.name in group) for group in form.groups)
    twins = []
    for s, made in loop.ahead_of.items():
        own, twin = (target_of(x).id for x in (s, made))
        twins += [(twin, own)] if twin != own else []
    tensors = {
        d.name
        for web in facts.webs.all
        for d in web.definitions
        if (node := definition_node(d)) is not None and facts.tensor(node) is not None
    }
    tensors -= {d.name for web in facts.webs.all if state_of(web).split is not None for d in web.definitions}
    warps = loop.plan.schedule.producer_warps
    return Split(
        loop.plan.range.index,
        loop.counter,
        rings,
        form.barriers,
        loop.slot,
        form.phase,
        "mbarrier",
        warps,
        tuple(twins),
        frozenset(tensors),
    )


def _merge(into: Record, other: Record) -> None:
    into.imports |= other.imports
    into.globals_needed.update(other.globals_needed)
    into.obligations |= other.obligations
    into.descriptor_tuples |= other.descriptor_tuples
    for choice in other.choices:
        into.choose(choice)
    for kept in other.kept_loops:
        into.keep_loop(kept.line, kept.index, kept.reason)
    for text in other.explained:
        into.explain(text)


def laid_out_function(written: WrittenFunction, helpers: Mapping[Version, str]) -> LaidOut:
    """The function with all its names, its layout constants, and what is asserted of the depths of its rings.

    helpers: the names of the helpers that it calls.
    """
    function = named(written.function, helpers)
    body = function.node.body
    names, constants = written.names.named(references(body), written.taken, bound(body))
    function = with_long_lines_wrapped(named(function, names), written.facts.source.text)
    function = function.with_node(_said_once(function.node))
    depths: list[FewestBuffers] = []
    loops = written.loops.pipelined.values()
    copying = {loop.buffers for loop in loops if loop.copies}
    reading_ahead = {loop.buffers for loop in loops if loop.reads_ahead}
    for name in written.added_parameters:
        if name in reading_ahead:
            depths.append(FewestBuffers(name, FEWEST_BUFFERS, "one tile is copied, one has landed, one is read"))
        elif name in copying:
            depths.append(FewestBuffers(name, 2, "one tile is copied while another is read"))
    return LaidOut(function, tuple(constants), depths=tuple(depths))
