"""What moves from tile to tile in a text for many sizes: the base of addresses, or their offsets where a tile is small.

    a_base += BLOCK_K * stride_ak  ->  a_base, a_offs = advanced(a_base, a_offs, BLOCK_K * stride_ak)

A moving base serves all loads of a lane, offsets that move are one instruction less (`gluonize.loops.forms.prepare`). Which of them is right
follows from the sizes, so a function of the output picks it, where translations for small tiles differ in nothing else.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst
from gluonize.facts.kernel import words_of
from gluonize.general.box import Point, Region, some
from gluonize.general.converted_texts import in_words_of
from gluonize.general.launches.trials import Trials
from gluonize.gluon.trees.function import INDENT, GluonFunction, code, formatted, statements
from gluonize.gluon.trees.walk import assigned, inside, mapped, walk
from gluonize.loops.forms.prepare import FEWEST_LOADS
from gluonize.numbered import numbered
from gluonize.write.state.emitted import EmittedKernel
from gluonize.write.state.unit import Synthesized

SMALLEST, ANYWHERE = 2, 2  # sizes for which translations are compared: those with the smallest tiles, and any


@dataclass(frozen=True)
class Moving:
    """A base that moves: the argument that it starts as, "" where it starts as anything else, and the variable of offsets from it."""

    start: str
    offs: str


def advanced(lanes: int) -> Synthesized:
    """lanes: of a warp."""
    text = f'''@gluon.jit
def advanced(base, offs, step):
    """The addresses of the next tile: their base moves where a lane has several loads of a tile, else the offsets from it."""
    bits: gl.constexpr = offs.numel * base.dtype.element_ty.primitive_bitwidth
    return (base + step, offs) if bits >= {FEWEST_LOADS} * 128 * {lanes} * gl.num_warps() else (base, offs + step)
'''
    return Synthesized("advanced", text)


def with_either(every: Sequence[EmittedKernel], trials: Trials, region: Region) -> list[EmittedKernel]:
    """The launches of a text, by number, with what moves chosen by sizes; as they are where translations for small tiles do not differ
    from theirs in this alone, or ask for more."""
    moving = moving_bases(every[0].kernel.laid_out.function)  # type: ignore[union-attr]
    alike = all(moving_bases(e.kernel.laid_out.function) == moving for e in every)  # type: ignore[union-attr]
    if not moving or not alike or not _small_tiles_agree(every, moving, trials, region):
        return list(every)
    return [_with_function(emitted, moving, trials) for emitted in every]


def _small_tiles_agree(
    every: Sequence[EmittedKernel], moving: Mapping[str, Moving], trials: Trials, region: Region
) -> bool:
    """Whether some translations have offsets that move, and are the text otherwise, and rest on no more."""
    found = False
    for i, emitted in enumerate(every):
        own = replace(trials.own[i].kernel, laid_out=_by_offsets(trials.own[i], moving))
        for point in _tried(region):
            plain = trials.unmoved(i, point)
            if plain is None:
                return False
            if any(plain.moving.values()) or not plain.moving:
                continue
            if in_words_of(replace(trials.own[i], kernel=own), plain) is None or not _rests_on(plain, emitted):
                return False
            found = True
    return found


def _tried(region: Region) -> list[Point]:
    """Some sizes of a region: those with the smallest tiles for the warps, which come last, and others."""
    points = region.points()
    smallest = sorted(points, key=lambda point: sum(v.bit_length() for v in point[:-1]) - 2 * point[-1].bit_length())
    return list(dict.fromkeys([*smallest[:SMALLEST], *some(points, ANYWHERE)]))


def _rests_on(plain: EmittedKernel, emitted: EmittedKernel) -> bool:
    """Whether no more is checked before a launch of a translation than of another one."""
    known = {(o.kind, o.condition, o.arguments) for o in emitted.record.obligations}
    asked = (o for o in plain.record.obligations if o.discharge == "launch")
    return all((o.kind, o.condition, o.arguments) in known for o in asked)


def moving_bases(function: GluonFunction) -> dict[str, Moving]:
    """The bases that are assigned once, are used with one variable of offsets alone, and are added to; no offsets of two."""
    body = function.node.body
    every = [*walk(body)]
    names = [n.value for n in every if isinstance(n, cst.Name)]
    stored = [name.value for name in assigned(body)]
    out: dict[str, Moving] = {}
    for base in dict.fromkeys(n.target.value for n in every if _is_step(n)):
        starts = [n.value for n in every if _starts(n, base)]
        beside = [offs for n in every if isinstance(n, cst.Call) for offs in _beside(n, base)]
        steps = sum(_is_step(n) and n.target.value == base for n in every)
        if len(starts) != 1 or len(set(beside)) != 1 or names.count(base) != 1 + steps + len(beside):
            continue
        (offs,) = set(beside)
        if stored.count(offs) == 1 and names.count(offs) == 1 + len(beside):
            start = starts[0].value if isinstance(starts[0], cst.Name) else ""
            out[base] = Moving("" if start in stored else start, offs)
    return out


def _is_step(node: cst.CSTNode) -> bool:
    """`base += step`"""
    added = isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.AddAssign)
    return added and isinstance(node.target, cst.Name)  # type: ignore[attr-defined]


def _starts(node: cst.CSTNode, base: str) -> bool:
    """`base = start`"""
    if not isinstance(node, cst.Assign) or len(node.targets) != 1:
        return False
    target = node.targets[0].target
    return isinstance(target, cst.Name) and target.value == base


def _beside(call: cst.Call, base: str) -> Iterator[str]:
    """The variable that a call takes behind a base."""
    for one, other in zip(call.args, call.args[1:]):
        named = isinstance(one.value, cst.Name) and isinstance(other.value, cst.Name)
        if named and not (one.keyword or other.keyword) and one.value.value == base:
            yield other.value.value


def _by_offsets(emitted: EmittedKernel, moving: Mapping[str, Moving]):
    """What is laid out of a translation, with offsets that move."""
    laid_out = emitted.kernel.laid_out
    started = {base: known.start for base, known in moving.items() if known.start}  # which then stand for the bases

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if _is_step(node) and node.target.value in moving:  # type: ignore[attr-defined]
            return node.with_changes(target=cst.Name(moving[node.target.value].offs))  # type: ignore[attr-defined]
        if isinstance(node, cst.IndentedBlock):
            kept = [s for s in node.body if not any(_starts(n, base) for n in _small(s) for base in started)]
            return inside(node.with_changes(body=kept), change)
        if isinstance(node, cst.Name) and node.value in started:
            return cst.Name(started[node.value])
        return None

    function = laid_out.function.with_node(mapped(laid_out.function.node, change))  # type: ignore[union-attr]
    return replace(laid_out, function=function)  # type: ignore[type-var]


def _small(statement: cst.CSTNode) -> Sequence[cst.CSTNode]:
    return statement.body if isinstance(statement, cst.SimpleStatementLine) else ()


def _with_function(emitted: EmittedKernel, moving: Mapping[str, Moving], trials: Trials) -> EmittedKernel:
    """A translation that picks what moves."""
    fn, laid_out, record = emitted.kernel.fn, emitted.kernel.laid_out, copy.copy(emitted.record)
    function, taken = advanced(trials.given[0].traced.target.warp_size), words_of(fn.file_name or "", fn.src)
    record.globals_needed = dict(record.globals_needed)

    def is_taken(name: str) -> bool:
        known = trials.tools.functions.get(name, function.called(name))
        return name in taken or name in record.globals_needed or known != function.called(name)

    name = numbered(function.name, is_taken)
    record.need(function.called(name), fn)

    def at(columns: int):
        def change(node: cst.CSTNode) -> cst.CSTNode | None:
            if isinstance(node, cst.IndentedBlock):
                return inside(node, at(columns + len(INDENT)))
            step = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
            if not (_is_step(step) and step.target.value in moving):  # type: ignore[arg-type, union-attr]
                return None
            base = step.target.value  # type: ignore[union-attr]
            both = f"{base}, {moving[base].offs}"
            text = formatted(f"{both} = {name}({both}, {code(step.value)})", columns)  # type: ignore[union-attr]
            return statements(text)[0].with_changes(leading_lines=node.leading_lines)

        return change

    old = laid_out.function  # type: ignore[union-attr]
    new = old.with_node(mapped(old.node, at(old.indent - len(INDENT))))
    kernel = replace(emitted.kernel, laid_out=replace(laid_out, function=new))  # type: ignore[type-var]
    return replace(emitted, kernel=kernel, record=record)


__all__ = ["Moving", "advanced", "moving_bases", "with_either"]
