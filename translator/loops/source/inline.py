"""Put helpers that load a loop's tiles into the loop, so that the loads can run ahead of the rest.

A helper such as one step of attention loads its tiles itself; the caller cannot fetch them for a later iteration. The
helper's statements take the place of the call, with the author's comments; branches that the call's constants decide
are resolved, parameters become the arguments. The new source is traced again, so nothing else has to know. So do helpers
with the whole loop that are given tensors of pointers.

before: `a = load(ptrs, mask, not EVEN)` with `if MASKED: return tl.load(ptrs, mask) else: return tl.load(ptrs)`
after:  `if not EVEN: a = tl.load(ptrs, mask) else: a = tl.load(ptrs)`
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any

from gluonize.loops.source.inlined_body import CannotInline, body_for, names_in
from gluonize.read.text.moved_lines import file_line
from gluonize.read.text.source_text import Edit, SourceText, edited_copy
from gluonize.trace.front.trace import ConstFact, Frame, TensorFact, Trace, Visit
from gluonize.triton_api.front_end import CompilationError
from gluonize.triton_api.jit_functions import JITFunction

MAX_ROUNDS = 8
Place = tuple[str, int]  # a line of a file


def inlined_kernel(trace: Trace, staged: frozenset[Place]) -> Any | None:
    """A copy of the kernel with such helpers in place of their calls, in it and in the helpers that it calls; None when there are
    none (or none that fit). staged: the loads that Triton fetches ahead."""
    calling = _calling(trace, staged)
    frames: dict[int, list[Frame]] = {}
    for frame in trace.frames:
        frames.setdefault(id(frame.fn), []).append(frame)
    kernel = trace.frames[0].fn
    edited: dict[int, Any] = {}
    for own in frames.values():
        source = SourceText(own[0].fn.src)
        if edits := _edits(trace, own, source, calling, own[0].fn is kernel):
            edited[id(own[0].fn)] = edited_copy(own[0].fn, source, edits)
    if not edited:
        return None
    if edited.keys() != {id(kernel)}:
        for own in frames.values():  # who calls a copy is a copy too
            edited.setdefault(id(own[0].fn), copy.copy(own[0].fn))
        for fn in edited.values():
            fn.__globals__ = {name: edited.get(id(value), value) for name, value in fn.__globals__.items()}
    return edited[id(kernel)]


def _edits(trace: Trace, frames: list[Frame], source: SourceText, calling: set[int], kernel: bool) -> list[Edit]:
    """The edits that put helpers in place of their calls in one function, in all of its specializations alike."""
    fn = frames[0].fn
    if not isinstance(fn, JITFunction) or not any(ident in calling for frame in frames for ident in frame.calls):
        return []
    tree = ast.parse(fn.src).body[0]
    edits: list[Edit] = []
    names = names_in(tree) | {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    blocks = [(loop.body, True) for loop in ast.walk(tree) if isinstance(loop, ast.For)]
    for block, looped in [*blocks, *([(tree.body, False)] if kernel else [])]:
        known = set(names)  # what one loop calls its variables, another one may
        for statement in dict.fromkeys(s for frame in frames for s in _reached(frame, block, not looped)):
            call = getattr(statement, "value", None)
            if not isinstance(statement, (ast.Assign, ast.Expr)) or not isinstance(call, ast.Call):
                continue
            reached = [(frame, helper) for frame in frames for helper in _helpers(trace, frame, call)]
            if not reached or not any(ident in calling for _, (ident, _) in reached):
                continue
            if not looped and (edits or not _takes_pointers(reached[0][1][1])):
                continue  # one at a time: what it calls its variables counts for the next one
            ended = set() if looped else _ended(tree, statement)
            try:
                texts = {
                    tuple(body_for(source, tree, frame, statement, call, helper, ended, known))
                    for frame, (_, helper) in reached
                }
            except CannotInline:
                continue
            if len(texts) > 1 or any(len(_visits(frame, call)) > 1 for frame, _ in reached):
                continue
            lines = texts.pop()
            known |= {n.id for s in ast.parse("\n".join(lines)).body for n in ast.walk(s) if isinstance(n, ast.Name)}
            indent = source.indent(statement)
            text = ("\n").join(indent + line if line.strip() else "" for line in lines)
            start, end = source.span(statement)
            edits.append((start - len(indent), end, text))
    return edits


def _visits(frame: Frame, node: ast.AST) -> list[Visit]:
    return frame.visits.get((type(node).__name__, *_position(node)), [])


def _helpers(trace: Trace, frame: Frame, call: ast.Call) -> list[tuple[int, Frame]]:
    """The call's visits in a specialization, each with the specialization of the helper that it reached."""
    return [(v.ident, trace.by_name[frame.calls[v.ident]]) for v in _visits(frame, call) if v.ident in frame.calls]


def inline_tile_loads(launch: Any, retrace: Callable[[Any], Any], read: Callable[[Any], Trace]) -> Any:
    """`launch`, traced again with helpers inlined for as long as that puts more loads into their loops.

    Where Triton does not take a helper's statements in place of the call (a variable of another type, say), the call stays.
    read: the trace of a function alone, which is all that the steps in between take.
    """
    staged, trace, inlined = _staged(launch), launch.trace, None
    for _ in range(MAX_ROUNDS if staged else 0):
        fn = inlined_kernel(trace, staged)
        if fn is None:
            break
        try:
            trace, inlined = read(fn), fn
        except CompilationError:
            break
    return retrace(inlined) if inlined is not None else launch


def _staged(launch: Any) -> frozenset[Place]:
    """Where the loads stand that Triton fetches ahead and a helper makes, and the calls by which it comes to them: their lines are
    those of a helper's statements in their place."""
    idents = {ident for path in launch.staging if len(path) > 1 for ident in path}
    return frozenset(
        _place(frame, key)
        for frame in (launch.trace.frames if idents else ())
        for key, visits in frame.visits.items()
        if any(v.ident in idents for v in visits)
    )


def _place(frame: Frame, key: tuple) -> Place:
    """The file and the line of what a function's visits are of."""
    return frame.fn.file_name, file_line(frame.fn, key[1])


def _calling(trace: Trace, staged: frozenset[Place]) -> set[int]:
    """The visits of the calls that reach a load of `staged` in a helper."""

    @functools.cache
    def reaches(name: str) -> bool:
        frame = trace.by_name[name]
        here = any(key[0] == "Call" and _place(frame, key) in staged for key in frame.visits)
        return here or any(reaches(callee) for callee in frame.calls.values())

    return {ident for frame in trace.frames for ident, callee in frame.calls.items() if reaches(callee)}


def _position(node: ast.AST) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


def _takes_pointers(helper: Frame) -> bool:
    """Whether a helper is given tensors of pointers: where they come from is only seen in its caller."""
    facts = [fact for fact in helper.args.values() if isinstance(fact, TensorFact)]
    return any(fact.is_pointer and fact.shape for fact in facts)


def _ended(kernel: ast.AST, statement: ast.stmt) -> set[str]:
    """The variables that nothing reads after `statement`, which stands outside of loops."""
    end = statement.end_lineno, statement.end_col_offset
    names = [n for n in ast.walk(kernel) if isinstance(n, ast.Name)]
    later = {n.id for n in names if (n.lineno, n.col_offset) >= end}
    return {n.id for n in names} - later


def _reached(frame: Frame, statements: list[ast.stmt], either: bool = False) -> Iterator[ast.stmt]:
    """Statements of a block, and of those that conditions decided at compile time choose in it; either: also of both sides of others."""
    for s in statements:
        if isinstance(s, ast.If) and isinstance(fact := frame.fact(s.test), ConstFact):
            yield from _reached(frame, s.body if fact.value else s.orelse, either)
        elif isinstance(s, ast.If) and either:
            yield from _reached(frame, [*s.body, *s.orelse], either)
        else:
            yield s
