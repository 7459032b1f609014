"""Assemble the output of one kernel: layout constants into each function, helpers named and ordered, long lines wrapped."""

from __future__ import annotations

import ast
import functools
import re
from typing import Any

import black

from translator.facts.definitions import definition_node
from translator.layout.names import definition
from translator.pipeline.loop import PipelinedLoop
from translator.pipeline.prefetch import FEWEST_BUFFERS
from translator.rewrite.emitted import LINE_LENGTH, EmittedFunction, EmittedKernel
from translator.rewrite.function import FunctionRewriter
from translator.rewrite.loop_split import CannotSplit, PartitionFunction, Split
from translator.rewrite.partitions import take_apart
from translator.rewrite.unit import Record, Unit
from translator.ttgir.layouts import Blocked, DotOperand, Layout, Linear, Mfma, SharedLayout, Wmma

_HELPER = re.compile(r"__helper_(\d+)__")


def assemble(unit: Unit, rewriter: FunctionRewriter, text: str) -> EmittedKernel:
    """Resolve placeholders in the kernel and in every helper version it reaches."""
    record = Record()
    _merge(record, rewriter.record)
    record.reads = rewriter.record.reads  # parameters of helpers are others
    reached: list[int] = []

    def reach(source: str) -> None:
        for m in _HELPER.finditer(source):
            index = int(m.group(1))
            if index not in reached:
                inner, inner_text = unit.helper_versions[index]
                _merge(record, inner.record)
                reach(inner_text)
                reached.append(index)

    reach(text)
    taken = {rewriter.facts.frame.fn.__name__, *record.globals_needed}
    names: dict[int, str] = {}
    helpers: list[EmittedFunction] = []
    by_text: dict[tuple[Any, str], str] = {}

    def named(source: str) -> str:
        return _HELPER.sub(lambda m: names[int(m.group(1))], source)

    for index in reached:  # callees before callers
        inner, inner_text = unit.helper_versions[index]
        final = function_with_layouts(inner, named(inner_text))
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
    kernel_text, partitions = split_loops(rewriter, function_with_layouts(rewriter, named(text)))
    helpers += partitions
    fn = rewriter.facts.frame.fn
    for used in record.globals_needed:
        if used in {h.name for h in helpers}:
            record.globals_needed = {k: v for k, v in record.globals_needed.items() if k != used}
    kernel = EmittedFunction(fn.__name__, kernel_text, fn, bool(fn.noinline))
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


def function_with_layouts(rw: FunctionRewriter, text: str) -> str:
    """`text` with placeholders resolved and the layout constants at the top of the body."""
    taken = rw.locals | {n.id for n in ast.walk(rw.facts.tree) if isinstance(n, ast.Name)}
    text, constants = rw.names.resolve(text, taken)
    text = _wrap_long_statements(text, rw.facts.source.text)
    if not constants:
        return text
    names = {layout: name for name, layout in constants}
    tree = ast.parse(text).body[0]
    lines = text.splitlines(keepends=True)
    at = _body_start(tree, lines)
    indent = " " * tree.body[0].col_offset
    block: list[str] = []
    for name, layout in constants:
        comment = describe(layout)
        if comment:
            block.append(f"# {comment}\n")
        block.append(definition(name, layout, names) + "\n")
    copying = {loop.buffers for loop in rw.pipelined_loops.values() if loop.copies}
    reading_ahead = {loop.buffers for loop in rw.pipelined_loops.values() if loop.prefetched is not None}
    for name in rw.added_parameters:
        if name in reading_ahead:
            why = "one tile is copied, one has landed, one is read"
            block.append(f'gl.static_assert({name} >= {FEWEST_BUFFERS}, "{name}: {why}")\n')
        elif name in copying:
            block.append(f'gl.static_assert({name} >= 2, "{name}: one tile is copied while another is read")\n')
    formatted = black.format_str("".join(block), mode=black.Mode(line_length=LINE_LENGTH - len(indent)))
    inserted = "".join(indent + line if line.strip() else line for line in formatted.splitlines(keepends=True))
    following = "".join(lines[at:])
    gap = "" if following.startswith("\n") else "\n"
    return "".join(lines[:at]) + inserted + gap + following


def _body_start(tree: ast.FunctionDef, lines: list[str]) -> int:
    """Index of the line before which constants go: after the signature and the docstring."""
    first = tree.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.end_lineno
    at = first.lineno - 1
    while at > 0 and (not lines[at - 1].strip() or lines[at - 1].lstrip().startswith("#")):
        at -= 1
    return at


def describe(layout: Layout) -> str:
    """One line for the reader: what the layout spreads over what."""
    if isinstance(layout, SharedLayout):
        return layout.described()
    if isinstance(layout, Mfma):
        shape, warps = "x".join(map(str, layout.instr_shape)), " x ".join(map(str, layout.warps_per_cta))
        return f"Matrix cores: {shape} MFMA, warps {warps} over the tile."
    if isinstance(layout, Wmma):
        return f"Matrix cores: {'x'.join(map(str, layout.instr_shape))} WMMA."
    if isinstance(layout, DotOperand):
        return ""
    if isinstance(layout, Blocked):
        fastest = layout.order[0]
        n = layout.size_per_thread[fastest]
        where = f" along dimension {fastest}" if layout.rank > 1 else ""
        return f"{n} consecutive element{'s' if n > 1 else ''} per lane{where}."
    if isinstance(layout, Linear):
        n = 1
        fastest = next((i for i, x in enumerate(layout.register[0]) if x), 0) if layout.register else 0
        for basis in layout.register:
            if basis[fastest] == n and sum(basis) == n:
                n *= 2
        where = f" along dimension {fastest}" if layout.rank > 1 else ""
        return f"{n} consecutive element{'s' if n > 1 else ''} per lane{where}."
    return ""


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
