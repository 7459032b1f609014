"""Assemble the output of one kernel: layout constants into each function, helpers named and ordered, long lines wrapped."""

from __future__ import annotations

import ast
import functools
from typing import Any

import black

from translator.facts.definitions import definition_node
from translator.pipeline.loop import PipelinedLoop
from translator.pipeline.prefetch import FEWEST_BUFFERS
from translator.rewrite.emitted import LINE_LENGTH, EmittedFunction, EmittedKernel, LaidOut
from translator.rewrite.function import FunctionRewriter
from translator.rewrite.layout_constants import with_constants
from translator.rewrite.loop_split import CannotSplit, PartitionFunction, Split
from translator.rewrite.partitions import take_apart
from translator.rewrite.shared_texts import HELPER
from translator.rewrite.unit import Record, Unit


def assemble(unit: Unit, rewriter: FunctionRewriter, text: str) -> EmittedKernel:
    """Resolve placeholders in the kernel and in every helper version it reaches."""
    record = Record()
    _merge(record, rewriter.record)
    record.reads = rewriter.record.reads  # parameters of helpers are others
    reached: list[int] = []

    def reach(source: str) -> None:
        for m in HELPER.finditer(source):
            index = int(m.group(1))
            if index not in reached:
                inner, inner_text = unit.helper_versions[index]
                for member in (inner, *(unit.helper_versions[i][0] for i in unit.made_of.get(index, ()))):
                    _merge(record, member.record)
                reach(inner_text)
                reached.append(index)

    reach(text)
    taken = {rewriter.facts.frame.fn.__name__, *record.globals_needed}
    names: dict[int, str] = {}
    helpers: list[EmittedFunction] = []
    by_text: dict[tuple[Any, str], str] = {}

    def named(source: str) -> str:
        return HELPER.sub(lambda m: names[int(m.group(1))], source)

    for index in reached:  # callees before callers
        inner, inner_text = unit.helper_versions[index]
        final = with_constants(laid_out_function(inner, named(inner_text)))
        fn = inner.facts.frame.fn
        final, partitions = split_loops(inner, final)
        if (fn, final) not in by_text:
            base = fn.__name__
            name, n = base, 2
            while name in taken:
                name, n = f"{base}_{n}", n + 1
            taken.add(name)
            by_text[fn, final] = name
            helpers += partitions
            helpers.append(
                EmittedFunction(name, final.replace(f"def {base}(", f"def {name}(", 1), fn, bool(fn.noinline))
            )
        names[index] = by_text[fn, final]
    laid_out = laid_out_function(rewriter, named(text))
    kernel_text, partitions = split_loops(rewriter, with_constants(laid_out))
    helpers += partitions
    fn = rewriter.facts.frame.fn
    for used in record.globals_needed:
        if used in {h.name for h in helpers}:
            record.globals_needed = {k: v for k, v in record.globals_needed.items() if k != used}
    kernel = EmittedFunction(fn.__name__, kernel_text, fn, bool(fn.noinline), None if partitions else laid_out)
    return EmittedKernel(kernel, helpers, record, unit.moving)


def split_loops(rw: FunctionRewriter, text: str) -> tuple[str, list[EmittedFunction]]:
    """`text` without its warp-specialized loops, and the functions of their partitions. Raises: CannotSplit."""
    loops = [
        rw.pipelined_loops[n] for n in ast.walk(rw.facts.tree) if isinstance(n, ast.For) and n in rw.pipelined_loops
    ]
    loops = sorted((loop for loop in loops if loop.specialized), key=lambda loop: loop.plan.loop.lineno)
    made: list[EmittedFunction] = []
    for number, loop in enumerate(loops, 1):
        suffix = "" if number == 1 else f"_{number}"
        try:
            text, functions = take_apart(text, split_of(rw, loop), rw.facts.frame.fn.__name__, suffix)
        except CannotSplit as found:
            found.key = (rw.facts.path, loop.plan.loop.lineno)
            raise
        for name, function in functions:
            wrapped = _wrap_long_statements(function, "")
            made.append(EmittedFunction(name, wrapped, PartitionFunction(name, rw.facts.frame.fn.file_name or "")))
    return text, made


def split_of(rw: FunctionRewriter, loop: PipelinedLoop) -> Split:
    """What taking a loop apart has to know of it."""
    groups = loop.plan.schedule.groups
    rings = tuple(tuple(r.smem for r in loop.rings if r.load.name in group) for group in groups)
    twins = []
    for s, made in loop.ahead_of.items():
        own, twin = ((x.targets[0] if isinstance(x, ast.Assign) else x.target).id for x in (s, made))
        twins += [(twin, own)] if twin != own else []
    tensors = {
        d.name
        for web in rw.facts.webs.all
        for d in web.definitions
        if (node := definition_node(d)) is not None and rw.facts.tensor(node) is not None
    }
    tensors -= {d.name for web in rw.facts.webs.all if rw.state(web).split is not None for d in web.definitions}
    warps = loop.plan.schedule.producer_warps
    return Split(
        loop.plan.index,
        loop.counter,
        rings,
        tuple(loop.barriers),
        loop.slot,
        loop.phase,
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
    for text in other.explained:
        into.explain(text)


def laid_out_function(rw: FunctionRewriter, text: str) -> LaidOut:
    """`text` with placeholders resolved, its layout constants, and what is asserted of the depths of its rings."""
    taken = rw.locals | {n.id for n in ast.walk(rw.facts.tree) if isinstance(n, ast.Name)}
    text, constants = rw.names.resolve(text, taken)
    text = _wrap_long_statements(text, rw.facts.source.text)
    added: list[str] = []
    copying = {loop.buffers for loop in rw.pipelined_loops.values() if loop.copies}
    reading_ahead = {loop.buffers for loop in rw.pipelined_loops.values() if loop.prefetched is not None}
    for name in rw.added_parameters:
        if name in reading_ahead:
            why = "one tile is copied, one has landed, one is read"
            added.append(f'gl.static_assert({name} >= {FEWEST_BUFFERS}, "{name}: {why}")')
        elif name in copying:
            added.append(f'gl.static_assert({name} >= 2, "{name}: one tile is copied while another is read")')
    return LaidOut(text, tuple(constants), tuple(added))


def _wrap_long_statements(text: str, original: str) -> str:
    """Black on each synthesized statement that is too long; the author's own lines stay as they are."""
    lines = text.splitlines(keepends=True)
    kept = {line.rstrip("\n") for line in original.splitlines()}
    long = {
        i for i, line in enumerate(lines, 1) if len(line.rstrip("\n")) > LINE_LENGTH and line.rstrip("\n") not in kept
    }
    if not long:
        return text
    simple = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Assert)
    found = [
        n for n in ast.walk(ast.parse(text)) if isinstance(n, simple) and long & {*range(n.lineno, n.end_lineno + 1)}
    ]
    for node in sorted(found, key=lambda n: n.lineno, reverse=True):
        own = lines[node.lineno - 1 : node.end_lineno]
        indent = own[0][: node.col_offset]
        body = "".join(line.removeprefix(indent) for line in own)
        formatted = None if indent.strip() else _formatted(body, LINE_LENGTH - len(indent))
        if formatted is not None:
            new = "".join(indent + x if x.strip() else x for x in formatted.splitlines(keepends=True))
            lines[node.lineno - 1 : node.end_lineno] = [new if own[-1].endswith("\n") else new.rstrip("\n")]
    return "".join(lines)


@functools.lru_cache(maxsize=4096)
def _formatted(text: str, line_length: int) -> str | None:
    """What black makes of statements; None where they are no module of their own."""
    try:
        return black.format_str(text, mode=black.Mode(line_length=line_length))
    except black.InvalidInput:
        return None
