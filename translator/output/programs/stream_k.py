"""Stream-K: each program has as many steps of the loop as any other, of all tiles together, so that rounds need not be whole.

for tile in range(last_tile, first_tile - 1, -1):      the kernel of the source, from step `begin` to step `end` of a tile
    ...
    a_ptrs = a_ptr + offsets + begin * step
    for k in range(begin, min(end, tl.cdiv(K, BLOCK_K))):
        acc = tl.dot(a, b, acc)
    if end < steps:                            the rest of the tile is that of the next program
        tl.store(sums + program, acc), then marks[program] is set
    else:                                      whoever has the last step of a tile owns it
        acc += sums of the programs before that have the steps before, each once its mark is set
        tl.store(c_ptrs, acc)

This is made of the source, which is traced again: nothing else has to know. A program waits for programs with smaller numbers alone, which have
been started before it; it does so at its end, for what they have stored at their beginning. Sums are added in the order of the programs, the last first: a launch repeats its bits.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gluonize.decide.choices.chosen import Choices
from gluonize.decide.readback.traced_launch import TracedLaunch
from gluonize.facts.function import FunctionFacts
from gluonize.facts.programs.shared_steps import Moved, SharedSteps, Summed, refused, shared_steps
from gluonize.numbered import numbered
from gluonize.read.launches.sites.persistent import Shared, with_shared
from gluonize.read.spec.launch import LaunchSpec
from gluonize.read.text.source_text import Edit, edited_copy
from gluonize.read.text.string_lines import inside_strings
from gluonize.request import TranslateRequest
from gluonize.triton_api.front_end import CompilationError
from gluonize.triton_api.jit_functions import KernelParam
from gluonize.triton_api.language import tl

_VALUES = {"stream-k": 1, "stream-k-2": 2}
Retrace = Callable[[Any, LaunchSpec], TracedLaunch]
_TAB = "    "
_NAMES = (
    "tiles sums marks steps launched work programs program first_tile first_step next_program last_tile last_step slots tile begin end stop "
    "elements other left step"
).split()
_PARAMETERS = ("tiles", "sums", "marks")

# The steps of all tiles in equal shares. `work` and `share` are changed in place: what the host could say of their size is not worth
# its text, and `% steps` bounds what they become.
_HEAD = """\
# Each program has an equal share of the steps of all tiles, at least one.
{steps} = max({bound}, 1)
{launched} = {tl}.num_programs(0)
{work} = min({steps}, {launched} // {tiles} + 1)
{work} *= {tiles}
{programs} = max(min(min({work}, {launched}), 2147483647 // {steps}), 1)
{program} = {tl}.program_id(0)
{first_tile} = max({tile_of_program}, 0)
{first_step} = {rest} * {program} % {programs}
{first_step} *= {steps}
{first_step} //= {programs}
{next_program} = {program} + 1
{last_tile} = {tile_of_next}
{last_step} = {rest} * {next_program} % {programs}
{last_step} *= {steps}
{last_step} //= {programs}
{slots} = ({tl}.program_id(2) * {tl}.num_programs(1) + {tl}.program_id(1)) * {launched}
# The last tile first, which may be one for another program to finish: nobody waits for what is done at the end.
for {tile} in range(min({last_tile} + min({last_step}, 1), {tiles}) - 1, {first_tile} - 1, -1):
    {begin} = {tl}.where({tile} == {first_tile}, max({first_step}, 0) % {steps}, 0)
    {end} = {tl}.where({tile} == {last_tile}, {last_step}, {steps})
"""
_LEFT = """\
if {end} < {steps}:
    # Each warp sets the mark once its part of the sums is there.
{stored}
    {tl}.atomic_add({marks} + {slots} + {program} + {tl}.arange(0, {threads}) * 0, 1, sem="release")
else:
    # The steps before `{begin}` are those of the programs before.
    {other} = {program}
    {left} = {begin}
    while {left} > 0:
        {other} -= 1
        while {tl}.atomic_add({marks} + {slots} + {other}, 0, sem="acquire") < {threads}:
            pass
        {tl}.debug_barrier()
{added}
        {step} = {rest} * {other} % {programs}
        {step} *= {steps}
        {step} //= {programs}
        {left} = {tl}.where({tile_of_other} == {tile}, {step}, 0)
"""


def programs_per_unit(choices: Choices) -> int:
    """How many programs are launched for each compute unit where they share the steps of tiles, 0 where they do not."""
    return next((n for value, n in _VALUES.items() if choices.asks("programs", value)), 0)


def share_steps(
    launch: TracedLaunch, facts: FunctionFacts, choices: Choices, request: TranslateRequest, retrace: Retrace
) -> TracedLaunch:
    """`launch` with the steps of its tiles shared by its programs, traced again. facts: of its kernel.

    Raises: TranslationError `stream-k` for a kernel, or a choice beside it, with which they cannot be.
    """
    _check_choices(facts, choices, request)
    found = shared_steps(facts)
    words = _words(facts, found)
    fn = edited_copy(facts.frame.fn, facts.source, _edits(facts, found, words))
    added = [words[name] for name in _PARAMETERS]
    _add_parameters(fn, added)
    shared = Shared(*added, found.elements, found.sums[0].dtype, programs_per_unit(choices))
    try:
        return replace(retrace(fn, with_shared(launch.spec, shared)), shared=shared)
    except CompilationError as error:
        said = error.error_message or "its statements do not go into a loop"
        why = f"Triton does not take it with a loop over tiles around it: {said.strip().splitlines()[0]}"
        raise refused(facts, found.loop, why, "leave the choice out") from error


def _check_choices(facts: FunctionFacts, choices: Choices, request: TranslateRequest) -> None:
    """Raises: TranslationError for what cannot stand beside."""
    kernel = facts.kernel
    if choices.asks("program-order", "per-xcd"):
        why = "a program waits for those with smaller numbers, and numbers that are dealt anew are not those in whose order programs start"
        raise refused(facts, facts.tree, why, "leave one of program-order and programs out")
    if request.general or request.fallback == "general":
        why = "memory for sums is allocated for the tiles of the launches that are given, and a kernel for any launch has others"
        raise refused(facts, facts.tree, why, "leave --general and --fallback out")
    if kernel.num_ctas > 1 or request.strategy == "warp-specialized":
        what = "are clusters" if kernel.num_ctas > 1 else "have warps with loops of their own"
        help = "leave out the cluster" if kernel.num_ctas > 1 else "leave --strategy out"
        raise refused(facts, facts.tree, f"its programs {what}", help)
    if not _language(facts):
        why = "its file has no name for triton.language"
        raise refused(facts, facts.tree, why, "import triton.language as tl")


def _language(facts: FunctionFacts) -> str:
    """What the file of a kernel calls Triton's language, "" where it has no name for it."""
    scope = facts.frame.fn.get_capture_scope()
    return next((name for name, value in scope.items() if value is tl and name not in facts.source_names - {"tl"}), "")


def _fresh_names(facts: FunctionFacts) -> dict[str, str]:
    """Names that the kernel does not have, by what they are for."""
    taken = set(facts.source_names) | set(facts.frame.fn.get_capture_scope())
    names: dict[str, str] = {}
    for name in _NAMES:
        names[name] = numbered(name, taken.__contains__)
        taken.add(names[name])
    return names


def _words(facts: FunctionFacts, found: SharedSteps) -> dict[str, str]:
    """What the templates are filled with."""
    language, names = _language(facts), _fresh_names(facts)
    threads = facts.kernel.num_warps * facts.kernel.target.warp_size
    step = facts.source.of(found.step) if found.step is not None else ""
    words = {**names, "tl": language, "threads": str(threads)}
    words["bound"] = f"{language}.cdiv({found.bound}, {step})" if step else found.bound
    words["rest"] = f"{names['tiles']} % {names['programs']}"
    for what, number in (("program", "program"), ("next", "next_program"), ("other", "other")):
        whole = f"{names['tiles']} // {names['programs']} * {names[number]}"
        words[f"tile_of_{what}"] = f"{whole} + {words['rest']} * {names[number]} // {names['programs']}"
    stored, added = zip(*(_kept(summed, found.sums[:n], found.sums, words) for n, summed in enumerate(found.sums)))
    words["stored"] = textwrap.indent("\n".join(stored), _TAB)
    words["added"] = textwrap.indent("\n".join(added), 2 * _TAB)
    return words


def _kept(
    summed: Summed, before: tuple[Summed, ...], every: tuple[Summed, ...], words: Mapping[str, str]
) -> tuple[str, str]:
    """What stores a sum for another program, and what adds one of another program's. before: those that lie before it."""
    x, at = summed.name, words["tl"]
    lanes = f"{at}.arange(0, {summed.sides[0]})"
    if len(summed.sides) == 2:
        lanes = f"{lanes}[:, None] * {summed.sides[1]} + {at}.arange(0, {summed.sides[1]})[None, :]"
    behind = "".join(f" + {_size(s)}" for s in before)
    whole = _size(*every) if len(every) == 1 else f"({' + '.join(_size(s) for s in every)})"
    made = f"{words['elements']} = {lanes}{behind}"
    own = f"{words['sums']} + ({words['slots']} + {words['program']}) * {whole}"
    its = f"{words['sums']} + ({words['slots']} + {words['other']}) * {whole}"
    stored = f"{made}\n{at}.store({own} + {words['elements']}, {x})"
    return stored, f"{made}\n{x} += {at}.load({its} + {words['elements']})"


def _size(summed: Summed) -> str:
    return f"({' * '.join(summed.sides)})" if len(summed.sides) > 1 else summed.sides[0]


def _edits(facts: FunctionFacts, found: SharedSteps, words: Mapping[str, str]) -> list[Edit]:
    """What makes the kernel one whose programs share steps."""
    source, loop, block = facts.source, found.loop, facts.tree.body
    if isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant):
        block = block[1:]  # the documentation stays where it is
    first, tail = source.first_line(block[0], facts.tree.lineno), facts.tree.body[facts.tree.body.index(loop) + 1]
    behind = source.first_line(tail, loop.end_lineno)
    indent = source.indent(block[0])
    around = {
        first: textwrap.indent(_HEAD.format(**words), indent),
        behind: textwrap.indent(_LEFT.format(**words), indent + _TAB),
    }
    above = source.first_line(loop, block[0].lineno)
    lines = [f"{m.name} {m.sign}= {_distance(facts, m, words)}\n" for m in found.moved if m.made is None]
    lines.append(f"{words['stop']} = min({words['end']}{_by(facts, found)}, {facts.source.of(_high(found))})\n")
    around[above] = around.get(above, "") + textwrap.indent("".join(lines), indent + _TAB)
    edits: list[Edit] = []
    kept = inside_strings(source.text)
    for line in range(first, len(source.lines) + 1):
        start, text = source.starts[line - 1], source.lines[line - 1]
        before = indent if text.startswith(indent) else ""  # which may be of tabs
        deeper = _TAB * (2 if line >= behind else 1) if text.strip() and line not in kept else ""
        if line in around or deeper:
            edits.append((start, start + len(before), around.get(line, "") + before + deeper))
    edits += [(*source.span(call), words["tile"]) for call in found.numbers]
    edits += [
        (source.span(m.made.value)[1],) * 2 + (f" {m.sign} {_distance(facts, m, words)}",)
        for m in found.moved
        if m.made is not None
    ]
    edits.append(_of_range(facts, found, words))
    edits.append(_of_signature(facts, words))
    return sorted(edits)


def _distance(facts: FunctionFacts, moved: Moved, words: Mapping[str, str]) -> str:
    """How far the steps before the first one move a variable, in its own width: nothing wraps around that would not in a loop."""
    begin = f"{words['tl']}.cast({words['begin']}, {words['tl']}.int64)" if moved.wide else words["begin"]
    return f"{begin} * ({facts.source.of(moved.by)})"


def _high(found: SharedSteps) -> ast.expr:
    """The end of the loop, as the source has it."""
    arguments = found.loop.iter.args
    return arguments[min(len(arguments), 2) - 1]


def _by(facts: FunctionFacts, found: SharedSteps) -> str:
    """What makes an index of the number of a step."""
    return f" * ({facts.source.of(found.step)})" if found.step is not None else ""


def _of_range(facts: FunctionFacts, found: SharedSteps, words: Mapping[str, str]) -> Edit:
    """The bounds of the loop."""
    start, end = facts.source.span(found.loop.iter.args[0])[0], facts.source.span(_high(found))[1]
    return start, end, f"{words['begin']}{_by(facts, found)}, {words['stop']}"


def _of_signature(facts: FunctionFacts, words: Mapping[str, str]) -> Edit:
    """Further parameters behind the others, in a line of their own where those have several."""
    given, source = facts.tree.args, facts.source
    nodes = [*given.posonlyargs, *given.args, *given.kwonlyargs, *given.defaults, *given.kw_defaults]
    last = max((node for node in nodes if node is not None), key=lambda node: source.span(node)[1])
    line = source.lines[last.lineno - 1]
    gap = f"\n{line[: len(line) - len(line.lstrip())]}" if last.lineno > facts.tree.lineno else " "
    at = source.span(last)[1]
    return at, at, f",{gap}" + ", ".join(f"{words[name]}=None" for name in _PARAMETERS)


def _add_parameters(fn: Any, names: list[str]) -> None:
    """Have a copy of a jit function know of its further parameters."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    added = [inspect.Parameter(name, kind, default=None) for name in names]
    count = len(fn.params)
    fn.params = [*fn.params, *(KernelParam(count + n, p, False, False) for n, p in enumerate(added))]
    fn.arg_names = [p.name for p in fn.params]


__all__ = ["programs_per_unit", "share_steps"]
