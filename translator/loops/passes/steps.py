"""The body of a pipelined loop as it has been written: what each of the author's statements has become, as a tree.

The rewriter edits the author's text; here the edits of one loop's body become one tree, so that passes can look into it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from gluonize.facts.function import FunctionFacts
from gluonize.facts.products import products
from gluonize.facts.refusals import refuse
from gluonize.gluon.code import begins, joined, lines_of, outline, spliced, without_prefix, without_suffix
from gluonize.gluon.nodes import NONE, Authored, Code, Line, Node, beside
from gluonize.loops.loop.loop import Step
from gluonize.write.state.edits import Edits, origins

Reads = Callable[[ast.AST], frozenset[str]]  # the variables that a statement reads as rewritten


def take_steps(facts: FunctionFacts, reads: Reads, every: Edits, s: ast.For) -> tuple[list[Step], tuple[int, int]]:
    """The steps of a body, whose edits are taken from `every`; and where it begins and ends."""
    source, statements, out = facts.source, list(s.body), []
    top, stop = source.offset(source.first_line(s.body[0], s.iter.end_lineno), 0), source.line_end(s)
    edits = [e for e in every if top <= e[0] and (e[0] < stop or e[1] == stop)]
    every[:] = [e for e in every if e not in edits]
    start, begins_line = top, True
    while statements:
        own = [statements.pop(0)]
        end = source.line_end(own[-1])
        while statements and (
            source.starts[statements[0].lineno - 1] <= end or any(e[0] < end and e[1] > end + 1 for e in edits)
        ):
            own.append(statements.pop(0))
            end = source.line_end(own[-1])
        here = [e for e in edits if e[1] <= end or e[0] < end]
        edits = [e for e in edits if e not in here]
        end = max([end, *(e[1] for e in here)])  # what is left out takes its newline along
        code = spliced(source.text, start, end, here)
        made: tuple[Node, ...] = ()  # of a statement that is left out
        if code != ("",):
            kept = origins(source, start, end, here)
            kept = kept if begins_line or not begins(code, "\n") else kept[1:]
            code = code if begins_line else without_prefix(code, "\n")
            code = without_suffix(code, "\n") if source.text[end - 1] == "\n" else code
            made = _statements(facts, reads, own, code, source.indent(s.body[0]), kept)
        multiplies = any(facts.taken(x) and products.multiplies(facts, x) for x in own)
        out.append(Step(tuple(own), made, multiplies))
        start, begins_line = end, source.text[end - 1] == "\n"
    assert not edits, f"bug in gluonize: {edits[0]} belongs to no statement"
    return out, (top, start)


def check_apart(facts: FunctionFacts, steps: list[Step]) -> None:
    """Raises: TranslationError where statements of the body cannot be moved one by one."""
    for step in steps:
        if len(step.sources) > 1:
            what = "statements of this loop share a line"
            raise refuse(facts.frame, step.sources[0], "ping-pong", what, help="put each on its own")


def _statements(
    facts: FunctionFacts, reads: Reads, sources: list[ast.stmt], code: Code, indent: str, kept: Sequence[int]
) -> tuple[Node, ...]:
    """The statements of a step: those of ours that stand on lines of their own, and the author's. kept: where each line came from."""
    out: list[Node] = []
    own: list[Code] = []
    from_lines: list[int] = []

    def close() -> None:
        moves = all(begins(line, indent) if outline(line).strip() else line == ("",) for line in own)
        lines = [Line(without_prefix(line, indent) if moves else line) for line in own]
        if moves and all(line.is_comment for line in lines):
            out.extend(lines)
        else:
            made = _authored(facts, reads, sources, joined("\n", (line.code for line in lines)), not moves)
            out.append(replace(made, lines=tuple(from_lines)))
        own.clear()
        from_lines.clear()

    for line, origin in zip(lines_of(code), kept):
        rest = without_prefix(line, indent)
        if begins(line, indent) and len(rest) == 1 and isinstance(rest[0], Node):
            close()
            out.append(replace(rest[0], lines=(origin,)))
        else:
            own.append(line)
            from_lines.append(origin)
    close()
    return tuple(out)


def _authored(facts: FunctionFacts, reads: Reads, sources: list[ast.stmt], code: Code, verbatim: bool) -> Authored:
    inside = {n for s in sources for n in ast.walk(s)}
    bound = frozenset(name for node, name in facts.webs.of_definition if node in inside)
    return Authored(code, beside(NONE.union(*map(reads, sources)), code), bound, verbatim)


__all__ = ["check_apart", "take_steps"]
